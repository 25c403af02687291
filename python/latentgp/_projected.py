"""Regressions on a projection of the inputs: SPGPDRRegressor and VDMGPRegressor."""

from __future__ import annotations

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ._base import COMMON_CONSTRAINTS, at_least
from ._doc import documented
from ._supervised import Regressor


class ProjectedRegressor(Regressor):
    """A regression on a projection of its inputs."""

    def _kernel_dim(self, X):
        return int(self.n_components)


@documented
class SPGPDRRegressor(ProjectedRegressor):
    """Sparse Gaussian process regression on a learned projection of the inputs (SPGP-DR, FITC).

    With ``X_std`` at the fit, the kernel is averaged over the projected inputs; correlations that the errors make
    between directions are left out.

    Parameters
    ----------
    n_components : int, default=2
        Directions of the projection.
    n_inducing : int, default=20
        Inducing inputs; at most as many as rows are used.
    {kernel_of_projection}
    {scale}
    max_iter : int, default=1000
        Most iterations of a run.
    {runs}

    Attributes
    ----------
    projection_ : ndarray of shape (n_components, n_features)
        From standardised inputs to those of the kernel.
    log_evidence_ : float
        The log evidence of FITC, of the data as given.
    {noise}
    {outcome}

    Examples
    --------
    >>> import latentgp as lg
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(80, 4))
    >>> y = np.sin(X[:, 0] - X[:, 1])
    >>> model = lg.SPGPDRRegressor(n_components=1, restarts=3, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _model_name = "spgp-dr"
    _parameter_constraints = {
        "n_components": [at_least(1)],
        "n_inducing": [at_least(1)],
        **COMMON_CONSTRAINTS,
    }

    def __init__(self, n_components=2, *, n_inducing=20, kernel="rbf", scale="standardize", max_iter=1000,
                 effort="normal", restarts=None, random_state=None, verbose=0, callback=None):  # fmt: skip
        self._store(locals())

    def _take(self, model):
        super()._take(model)
        self.projection_ = model.projection[0]


@documented
class VDMGPRegressor(ProjectedRegressor):
    """Gaussian process regression on a projection of the inputs that is integrated out (VDMGP).

    The weights of the projection have a prior that switches off directions of no use, and tells which inputs
    matter. ``X_std`` at the fit adds to the uncertainty of the projected inputs; correlations that the errors make
    between directions are left out.

    Parameters
    ----------
    n_components : int, default=5
        Directions of the projection; those of no use are switched off.
    n_inducing : int, default=20
        Inducing inputs; at most as many as rows are used.
    {kernel_of_projection}
    expectation : str, default="auto"
        How kernels are averaged over the weights.
    weight_prior : {"type-ii", "gamma"}, default="type-ii"
        What is assumed of the weights: variances by maximum likelihood, or a vague Gamma distribution of the precisions.
    {scale}
    max_iter : int, default=600
        Most iterations of a run with everything free, after up to 200 that hold the noise and the variances of the
        kernel; ``n_iter_`` and ``trace_`` have both.
    {runs}

    Attributes
    ----------
    projection_, projection_std_ : ndarray of shape (n_components, n_features)
        Means and standard deviations of the weights, of standardised inputs.
    log_evidence_ : float
        A lower bound of the log evidence of the data as given.
    {noise}
    {outcome}

    Examples
    --------
    >>> import latentgp as lg
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(80, 4))
    >>> y = np.sin(X[:, 0] - X[:, 1])
    >>> model = lg.VDMGPRegressor(n_components=2, max_iter=100, random_state=0).fit(X, y)
    >>> model.projection_.shape
    (2, 4)
    """

    _model_name = "vdmgp"
    _parameter_constraints = {
        "n_components": [at_least(1)],
        "n_inducing": [at_least(1)],
        "expectation": [str],
        "weight_prior": [StrOptions({"type-ii", "gamma"})],
        **COMMON_CONSTRAINTS,
    }

    def __init__(self, n_components=5, *, n_inducing=20, kernel="rbf", expectation="auto", weight_prior="type-ii",
                 scale="standardize", max_iter=600,
                 effort="normal", restarts=None, random_state=None, verbose=0, callback=None):  # fmt: skip
        self._store(locals())

    def _options(self, X, uncertain):
        return {**super()._options(X, uncertain), "weight_prior": self.weight_prior}

    def _take(self, model):
        super()._take(model)
        self.projection_, var = model.projection
        self.projection_std_ = np.sqrt(var)
