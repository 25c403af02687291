"""Counts: GPCountRegressor."""

from __future__ import annotations

from ._base import COMMON_CONSTRAINTS, at_least
from ._supervised import Regressor

#: Inducing inputs where inputs are uncertain, at most.
UNCERTAIN_INDUCING = 50


class GPCountRegressor(Regressor):
    """Gaussian process regression of counts: y ~ Poisson(exp f(x)).

    Targets are numbers of 0 or more; averages of counts need not be whole. With ``X_std`` at the fit, the sparse
    posterior with up to 50 inducing inputs takes the place of Laplace's approximation.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        An expression such as ``"matern32 + linear"``, or an object of :mod:`latentgp.kernels`; of standardised
        inputs.
    n_inducing : int or None, default=None
        Inducing inputs of a sparse variational posterior; None is Laplace's approximation with all rows.
    max_iter : int, default=1000
        Most iterations of a run.
    restarts : int, default=1
        Runs from different starts, of which the best is kept.
    random_state : int, RandomState instance or None, default=None
        The seed of the starts.
    verbose : int, default=0
        1 prints progress now and then, 2 every iteration.
    callback : callable or None, default=None
        Called with a ``Progress(restart, iteration, bound)`` after each iteration; returns True to stop.

    Attributes
    ----------
    log_evidence_ : float
        Laplace's approximation of the log evidence, or a lower bound of it.
    kernel_ : Kernel
        The kernel with its fitted parameters.
    n_iter_, converged_, stop_reason_, trace_
        How the fit went.

    Examples
    --------
    >>> import latentgp as lg
    >>> import numpy as np
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.random.default_rng(0).poisson(np.exp(1 + np.sin(X[:, 0])))
    >>> mean, std = lg.GPCountRegressor().fit(X, y).predict(X, return_std=True)
    >>> bool((std > np.sqrt(mean)).all())
    True
    """

    _likelihood = "poisson"
    _parameter_constraints = {
        "n_inducing": [at_least(1), None],
        **{name: of for name, of in COMMON_CONSTRAINTS.items() if name != "scale"},
    }

    def __init__(
        self,
        kernel="rbf",
        *,
        n_inducing=None,
        max_iter=1000,
        restarts=1,
        random_state=None,
        verbose=0,
        callback=None,
    ):
        self.kernel = kernel
        self.n_inducing = n_inducing
        self.max_iter = max_iter
        self.restarts = restarts
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _settings(self, X, targets, classes, uncertain):
        settings = super()._settings(X, targets, classes, uncertain)
        if self.n_inducing is not None:
            settings["model"] = "sparse"
        elif uncertain:
            settings.update(model="sparse", inducing=min(len(X), UNCERTAIN_INDUCING))
        return settings

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.target_tags.multi_output = False
        return tags
