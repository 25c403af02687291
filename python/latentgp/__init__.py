"""Gaussian processes with uncertain inputs, for any kernel, as scikit-learn estimators.

>>> import latentgp as lg
>>> from sklearn.datasets import load_iris
>>> model = lg.BayesianGPLVM(n_components=2, kernel="matern32", max_iter=10, random_state=0)
>>> model.fit_transform(load_iris().data).shape
(150, 2)
"""

from . import kernels
from ._base import Progress
from ._classification import GPClassifier
from ._counts import GPCountRegressor
from ._latent import GPLVM, PPCA, BayesianGPLVM
from ._load import load
from ._narx import Forecast, GPNarx
from ._native import __version__
from ._projected import SPGPDRRegressor, VDMGPRegressor
from ._psi import PsiStatistics, psi_statistics
from ._regression import GPRegressor, SparseGPRegressor

__all__ = [
    "BayesianGPLVM",
    "Forecast",
    "GPClassifier",
    "GPCountRegressor",
    "GPLVM",
    "GPNarx",
    "GPRegressor",
    "PPCA",
    "Progress",
    "PsiStatistics",
    "SPGPDRRegressor",
    "SparseGPRegressor",
    "VDMGPRegressor",
    "__version__",
    "datasets",
    "kernels",
    "load",
    "plot",
    "psi_statistics",
]


def __getattr__(name):
    # Pictures and data are imported when they are asked for: most programs need neither.
    if name in ("plot", "datasets"):
        from importlib import import_module

        return import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
