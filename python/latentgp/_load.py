"""Model files: the same for Python, the command line and Rust."""

from __future__ import annotations

from . import _native
from ._classification import GPClassifier
from ._counts import GPCountRegressor
from ._latent import GPLVM, PPCA, BayesianGPLVM
from ._narx import GPNarx
from ._projected import SPGPDRRegressor, VDMGPRegressor
from ._regression import GPRegressor, SparseGPRegressor
from .kernels import parse

LATENT = {"bayesian-gplvm": BayesianGPLVM, "gplvm": GPLVM, "ppca": PPCA}
GAUSSIAN = {"gp": GPRegressor, "sparse": SparseGPRegressor, "spgp-dr": SPGPDRRegressor, "vdmgp": VDMGPRegressor}


def load(path, kernel=None):
    """Read a fitted estimator from a ``.lgp`` file, written here or by the command line.

    Reading executes nothing; a file that is damaged is a ValueError.

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
    with open(path, "rb") as file:
        content = file.read()
    try:
        model = _native.from_bytes(content, {} if kernel is None else kernel._own())
    except ValueError as error:
        text = str(error).removeprefix("model file: ")
        if "unknown kernel" in text:
            text = f"{text}; a kernel that is written in Python is given as load(path, kernel=...)"
        raise ValueError(f"{path}: {text}") from None
    return _estimator(model, kernel)


def _estimator(model, kernel):
    report = model.report()
    given = {
        "kernel": report["kernel"] if kernel is None else parse(report["kernel"], kernel),
        "scale": report["scale"],
        "restarts": max(1, len(report["restarts"])),
        "random_state": report["seed"],
    }
    if isinstance(model, _native.LatentModel):
        cls = LATENT[model.name]
        given["n_components"] = model.latent()[0].shape[1]
        given["expectation"] = report["expectation"]
        if model.inducing is not None:
            given["n_inducing"] = len(model.inducing)
    elif isinstance(model, _native.NarxModel):
        cls = GPNarx
        lags, delays, inducing = model.lags
        given.update(lags=lags[0], n_inducing=inducing, delays=tuple(delays[0]) if delays else (0,))
    else:
        cls = {"gaussian": GAUSSIAN[model.name], "poisson": GPCountRegressor}.get(model.likelihood, GPClassifier)
        _, _, _, inducing, directions = model.sizes
        given.update(n_inducing=inducing, n_components=directions)
    takes = cls._parameter_constraints
    return cls(**{name: value for name, value in given.items() if name in takes})._restore(model)
