"""Kernels, latent dimensions and inducing inputs compared within a budget."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_array, check_X_y

from . import _native
from ._base import EFFORTS, count_of, seed_of
from ._latent import BayesianGPLVM
from ._narx import GPNarx
from ._projected import SPGPDRRegressor, VDMGPRegressor
from ._regression import GPRegressor, LinearRegressor, SparseGPRegressor

#: Seconds, where neither these nor a number of fits are given.
SECONDS = 60.0

#: The estimator of every model that is compared.
ESTIMATORS: dict[str, Any] = {
    "bayesian-gplvm": BayesianGPLVM,
    "gp": GPRegressor,
    "sparse": SparseGPRegressor,
    "spgp-dr": SPGPDRRegressor,
    "vdmgp": VDMGPRegressor,
    "linear": LinearRegressor,
    "narx": GPNarx,
}


class SearchResult(NamedTuple):
    """What a search found.

    ``candidates`` are dictionaries, best first, with ``kernel``, ``n_components``, ``n_inducing``, ``rounds``, ``density``
    (the mean log density of a row held out), ``evidence``, ``seconds`` and ``failure``; ``estimator`` is the best one,
    fitted to all rows; ``fits`` of ``fits_of`` were made within the budget.
    """

    candidates: list[dict[str, Any]]
    estimator: Any
    fits: int
    fits_of: int


def search(X, y=None, *, series=False, model=None, kernels=(), n_components=(), n_inducing=(), budget=None, fits=None,
           lags=None, max_iter=1000, effort="normal", random_state=None):  # fmt: skip
    """Compare kernels, latent dimensions and inducing inputs, and fit the best.

    A fifth of the rows is held out, of series the last fifth, which is simulated. All recipes have a few iterations, the
    better half more, the better half of these run to their end; the mean log density of a row held out decides.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        A table for latent spaces, inputs where there is ``y``, or series with ``series=True``.
    y : array-like of shape (n_samples,) or (n_samples, n_targets), default=None
        Targets of regressions.
    series : bool, default=False
        Whether X has a row each time step.
    model : str, default=None
        ``"bayesian-gplvm"``, a regression such as ``"gp"`` or ``"sparse"``, or ``"narx"``; None is the usual one.
    kernels : list of str, default=()
        Kernel expressions; a few usual ones where there are none.
    n_components, n_inducing : list of int, default=()
        Latent dimensions and inducing inputs, of models that have them.
    budget : float, default=None
        Seconds after which no fit begins, 60 unless there is a number of fits: then what is found depends on the machine.
    fits : int, default=None
        Most fits.
    lags : int, default=None
        Past values in a window of series; None is 12.
    max_iter : int, default=1000
        Most iterations of a run.
    effort : {"quick", "normal", "thorough"}, default="normal"
        How hard the best optimum of the winner is looked for.
    random_state : int, RandomState instance or None, default=None
        The seed.

    Returns
    -------
    result : SearchResult
        The candidates and the best estimator.

    Examples
    --------
    >>> import latentgp as lg
    >>> import numpy as np
    >>> x = np.linspace(0, 6, 40)[:, None]
    >>> found = lg.search(x, np.sin(2 * x[:, 0]), kernels=["linear", "rbf"], fits=3, random_state=0)
    >>> found.candidates[0]["kernel"]
    'rbf'
    """
    if effort not in EFFORTS:
        raise ValueError(f"effort: expected one of {', '.join(EFFORTS)}, found {effort!r}")
    if fits is not None:
        fits = count_of(fits, "fits")
    if budget is not None and not 0 < budget <= 1e9:
        raise ValueError(f"budget: expected a number of seconds above 0, at most 1e9, found {budget!r}")
    if series and y is not None:
        raise ValueError("y has no effect with series=True; leave it out")
    usual = "narx" if series else "bayesian-gplvm" if y is None else "gp"
    name, seed = usual if model is None else model, seed_of(random_state)
    if name not in ESTIMATORS:
        raise ValueError(f"model: expected one of {', '.join(ESTIMATORS)}, found {name!r}")
    recipe: dict[str, Any] = {"model": name, "max_iterations": count_of(max_iter, "max_iter"), "seed": seed}
    if y is None:
        given = check_array(
            X, dtype=np.float64, order="C", ensure_all_finite=True if series else "allow-nan", ensure_2d=not series
        )
        table, inputs = (given[:, None] if given.ndim == 1 else given), None
    else:
        inputs, targets = check_X_y(X, y, dtype=np.float64, order="C", multi_output=True, y_numeric=True)
        table = np.ascontiguousarray(targets.reshape(len(inputs), -1), dtype=np.float64)
    if series:
        window = 12 if lags is None else count_of(lags, "lags")
        recipe["lags"] = {"series": [window] * table.shape[1], "exogenous": []}
    elif lags is not None:
        raise ValueError("lags has no effect without series=True; leave it out")
    of = {
        "kernels": [str(kernel) for kernel in kernels],
        "latent_dims": [count_of(q, "n_components") for q in n_components],
        "inducing": [count_of(m, "n_inducing") for m in n_inducing],
        "budget": SECONDS if budget is None and fits is None else budget,
        "fits": fits,
    }
    found = _native.search(table, inputs, bool(series), json.dumps(recipe), of)
    best = found["candidates"][0]
    if best["density"] is None:
        raise ValueError(best["failure"] or "no recipe could be fitted; try a larger budget")
    own = {"kernel": best["kernel"], "max_iter": max_iter, "effort": effort, "random_state": seed}
    own.update({key: best[key] for key in ("n_components", "n_inducing") if best[key] is not None})
    if series:
        own["lags"] = window
    estimator = ESTIMATORS[best["model"]](**own)
    estimator.fit(X) if y is None else estimator.fit(X, y)
    return SearchResult(found["candidates"], estimator, found["fits"], found["fits_of"])
