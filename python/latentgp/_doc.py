"""What docstrings share, written once: a line ``{name}`` in one stands for the text of that name here."""

from __future__ import annotations

import re
from textwrap import dedent, indent

PARTS = {
    "runs": """
        effort : {"quick", "normal", "thorough"}, default="normal"
            How hard the best optimum is looked for: one start; a race of many, in about ten times the time at the most;
            a longer one, in about forty times.
        restarts : int or None, default=None
            In the place of a search, so many runs from different starts, each to its end, of which the best is kept.
        random_state : int, RandomState instance or None, default=None
            The seed of the starts.
        verbose : int, default=0
            1 prints progress now and then, 2 every iteration.
        callback : callable or None, default=None
            Called with a ``Progress(restart, iteration, bound)`` after each iteration; returns True to stop.
        """,
    "scale": """
        scale : {"standardize", "global", "center", "none"}, default="standardize"
            How targets are scaled inside: each column, all alike, only centred, or not at all.
        """,
    "kernel_of_inputs": """
        kernel : str or Kernel, default="rbf"
            An expression such as ``"matern32 + linear"``, or an object of :mod:`latentgp.kernels`; of standardised
            inputs.
        """,
    "kernel_of_projection": """
        kernel : str or Kernel, default="rbf"
            An expression such as ``"matern32 + linear"``, or an object of :mod:`latentgp.kernels`; of projected inputs.
        """,
    "kernel_of_positions": """
        kernel : str or Kernel, default="rbf"
            An expression such as ``"matern32 + linear"``, or an object of :mod:`latentgp.kernels`.
        """,
    "posterior": """
        n_inducing : int or None, default=None
            Inducing inputs of a sparse variational posterior; None is Laplace's approximation with all rows.
        inputs : {"inferred", "averaged"} or None, default=None
            What is done about inputs with errors (``X_std``). Inferred ones have a posterior each, see ``inputs_``;
            averages cost less, but are wider. None infers.
        max_iter : int, default=1000
            Most iterations of a run.
        """,
    "noise": """
        noise_variance_ : ndarray of shape (n_targets,)
            The variance of the noise of each target.
        """,
    "errors_of_inputs": """
        X_std : array-like of shape (n_samples, n_features), "learn" or mapping, default=None
            Standard deviations of the inputs, where these are known up to errors; a row or a number serves for all.
            ``"learn"`` where they are not known but alike in all rows. A mapping has an entry for each uncertain column,
            by its name or position: ``"learn"``, a number, or one for each row.
        """,
    "inputs": """
        inputs : {"inferred", "averaged"} or None, default=None
            What is done about inputs with errors (``X_std``). Inferred ones have a posterior each, see ``inputs_``;
            averages cost less, but the noise pays for the slope across every error bar. None infers.
        """,
    "learnt_std": """
        learnt_std_ : dict
            The standard deviations of errors that were learnt, by column.
        inputs_ : Inputs
            ``mean`` and ``std`` of the true inputs of the training rows, where these may be uncertain.
        """,
    "new_inputs": """
        X : array-like of shape (n_samples, n_features)
            Inputs.
        X_std : array-like of shape (n_samples, n_features), "learn" or mapping, default=None
            Standard deviations of the inputs; a row or a number serves for all. ``"learn"`` stands for what the fit
            has learnt.
        """,
    "rows": """
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing cell.
        return_std : bool, default=False
            Whether to return standard deviations as well.
        """,
    "axes": """
        ax : matplotlib.axes.Axes, default=None
            Where to draw; None is a new figure.

        Returns
        -------
        ax : matplotlib.axes.Axes
            With the picture.
        """,
    "outcome": """
        kernel_ : Kernel
            The kernel with its fitted parameters, those of scaled data.
        n_iter_, converged_, stop_reason_, trace_
            How the fit went: iterations, whether and why it ended, and the bound after each iteration.
        """,
    "interrupt": """
        Ctrl-C ends the fit and keeps its best state: the estimator is fitted as far as it got, and
        KeyboardInterrupt is raised. Before the first iteration is over, the estimator stays as it was.
        """,
    "simulated": """
        n : int
            Rows.
        seed : int, default=0
            The seed of the simulation.
        """,
    "container": """
        return_X_y : bool, default=False
            Whether to return ``(data, target)`` instead of a Bunch.
        as_frame : bool, default=False
            Whether data and target are a DataFrame and a Series of pandas.
        """,
}


def documented(of):
    """A class or a function whose docstring has its shared parts filled in, those of its own methods as well."""
    methods = [m for m in vars(of).values() if hasattr(m, "__code__")] if isinstance(of, type) else []
    for one in (of, *methods):
        if one.__doc__:
            one.__doc__ = re.sub(r"^( *)\{(\w+)\}$", _part, one.__doc__, flags=re.MULTILINE)
    return of


def _part(line: re.Match) -> str:
    return indent(dedent(PARTS[line[2]]).strip("\n"), line[1])
