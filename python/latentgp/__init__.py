"""Gaussian processes with uncertain inputs, for any kernel, as scikit-learn estimators.

>>> import latentgp as lg
>>> from sklearn.datasets import load_iris
>>> model = lg.BayesianGPLVM(n_components=2, kernel="matern32", max_iter=10, random_state=0)
>>> model.fit_transform(load_iris().data).shape
(150, 2)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from . import kernels
from ._native import __version__

if TYPE_CHECKING:
    from . import datasets, plot
    from ._base import DataWarning, Progress
    from ._classification import GPClassifier
    from ._counts import GPCountRegressor
    from ._explore import Page, explore
    from ._latent import GPLVM, PPCA, BayesianGPLVM
    from ._load import load
    from ._narx import Forecast, GPNarx
    from ._projected import SPGPDRRegressor, VDMGPRegressor
    from ._psi import PsiStatistics, psi_statistics
    from ._regression import GPRegressor, LinearRegressor, SparseGPRegressor
    from ._search import SearchResult, search

__all__ = [
    "BayesianGPLVM",
    "DataWarning",
    "Forecast",
    "GPClassifier",
    "GPCountRegressor",
    "GPLVM",
    "GPNarx",
    "GPRegressor",
    "LinearRegressor",
    "PPCA",
    "Page",
    "Progress",
    "PsiStatistics",
    "SPGPDRRegressor",
    "SearchResult",
    "SparseGPRegressor",
    "VDMGPRegressor",
    "__version__",
    "datasets",
    "explore",
    "kernels",
    "load",
    "plot",
    "psi_statistics",
    "search",
]


# Where each name lives, which is imported when it is asked for: scikit-learn takes many times as long as all the rest.
_HOMES = {
    "BayesianGPLVM": "_latent",
    "DataWarning": "_base",
    "Forecast": "_narx",
    "GPClassifier": "_classification",
    "GPCountRegressor": "_counts",
    "GPLVM": "_latent",
    "GPNarx": "_narx",
    "GPRegressor": "_regression",
    "LinearRegressor": "_regression",
    "PPCA": "_latent",
    "Page": "_explore",
    "Progress": "_base",
    "PsiStatistics": "_psi",
    "SPGPDRRegressor": "_projected",
    "SearchResult": "_search",
    "SparseGPRegressor": "_regression",
    "VDMGPRegressor": "_projected",
    "explore": "_explore",
    "load": "_load",
    "psi_statistics": "_psi",
    "search": "_search",
}


def __getattr__(name):
    if name in ("plot", "datasets"):
        return import_module(f"{__name__}.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
