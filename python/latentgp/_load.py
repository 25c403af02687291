"""Model files: the same for Python, the command line and Rust."""

from __future__ import annotations

from . import _native
from ._classification import GPClassifier
from ._counts import GPCountRegressor
from ._latent import GPLVM, PPCA, BayesianGPLVM
from ._narx import GPNarx
from ._projected import SPGPDRRegressor, VDMGPRegressor
from ._regression import BY_NAME, GPRegressor, SparseGPRegressor
from ._settings import classes_as, read
from .kernels import Kernel, parse

LATENT = {"bayesian-gplvm": BayesianGPLVM, "gplvm": GPLVM, "ppca": PPCA}
GAUSSIAN = {**BY_NAME, "spgp-dr": SPGPDRRegressor, "vdmgp": VDMGPRegressor}


def load(path, kernel=None):
    """Read a fitted estimator from a ``.lgp`` file, written here or by the command line.

    Reading executes nothing; a file that is damaged is a ValueError. ``get_params()`` is that of the estimator that was
    saved, but for ``callback``, and for a ``random_state`` that is a generator: it comes back as the seed that was
    drawn from it.

    Parameters
    ----------
    path : str or path-like
        The file.
    kernel : Kernel, default=None
        The kernel that the model was fitted with, or its parts that are written in Python: a file has only their
        names and parameters.

    Returns
    -------
    estimator : object
        The estimator of the model in the file, fitted.
    """
    if not isinstance(kernel, (Kernel, type(None))):
        raise TypeError(
            f"kernel: expected a kernel that is written in Python, such as kernels.Custom(...), found {kernel!r}; leave it "
            "out for kernels of the library, which are in the file"
        )
    with open(path, "rb") as file:
        content = file.read()
    try:
        model = _native.from_bytes(content, {} if kernel is None else kernel._own())
        return _estimator(model, read(_native.settings(content), kernel), kernel)
    except ValueError as error:
        text = str(error).removeprefix("model file: ")
        if "unknown kernel" in text:
            text = f"{text}; a kernel that is written in Python is given as load(path, kernel=...)"
        raise ValueError(f"{path}: {text}") from None


def _estimator(model, settings, kernel):
    """The estimator of a model, with the settings of its file where there are any."""
    cls, given = _told(model, kernel)
    if settings["estimator"] == "GPRegressor" and cls is SparseGPRegressor:
        cls = GPRegressor  # which has inducing inputs where its inputs have errors
    if settings["estimator"] == "SparseGPRegressor" and cls is SPGPDRRegressor:
        cls = SparseGPRegressor  # by FITC, which is SPGP-DR without a projection
    takes = cls._parameter_constraints
    given.update(settings["arguments"])
    estimator = cls(**{name: value for name, value in given.items() if name in takes})
    estimator._validate_params()
    estimator._restore(model, settings)
    if kernel is not None:
        estimator._own = kernel._own()  # the estimator may have been given another kernel since its fit
    if hasattr(estimator, "classes_"):
        estimator.classes_ = classes_as(settings["classes"], model.names[2], estimator.classes_)
    if isinstance(settings["flat"], bool) and hasattr(estimator, "_one"):
        estimator._one = settings["flat"]
    return estimator


def _told(model, kernel):
    """The class of a model, and the arguments that the model itself tells."""
    report = model.report()
    given = {
        "kernel": report["kernel"] if kernel is None else parse(report["kernel"], kernel),
        "scale": report["scale"],
        "effort": report["effort"],
        "restarts": report["asked_restarts"],
        "random_state": report["seed"],
    }
    given.update((name, report[name]) for name in ("expectation", "mean") if report.get(name) is not None)
    if isinstance(model, _native.LatentModel):
        given["n_components"] = model.latent()[0].shape[1]
        if model.inducing is not None:
            given["n_inducing"] = len(model.inducing)
        given["noise"] = model.noise_kind
        return LATENT[model.name], given
    if isinstance(model, _native.NarxModel):
        lags, delays, inducing = model.lags
        given.update(lags=lags[0], n_inducing=inducing, delays=tuple(delays[0]) if delays else (0,))
        return GPNarx, given
    _, _, _, inducing, directions = model.sizes
    given.update(n_inducing=inducing, n_components=directions, noise=model.noise_kind)
    if model.observed == "classes":
        return GPClassifier, given
    if model.observed == "counts":
        return GPCountRegressor, given
    if model.likelihood != "gaussian":
        given.update(likelihood=model.likelihood, scale="standardize")
    return GAUSSIAN[model.name], given
