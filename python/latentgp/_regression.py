"""Regressions on the inputs as they are: GPRegressor, SparseGPRegressor and LinearRegressor."""

from __future__ import annotations

from sklearn.utils._param_validation import StrOptions

from ._base import COMMON_CONSTRAINTS, INPUTS, NOISES, at_least
from ._doc import documented
from ._supervised import Regressor

#: Inducing inputs of an exact regression whose inputs are uncertain, at most.
UNCERTAIN_INDUCING = 200


@documented
class GPRegressor(Regressor):
    """Exact Gaussian process regression.

    Inputs with known errors have no exact posterior: with ``X_std`` at the fit, the variational one with an
    inducing input at each row, or at 200 of them, takes its place, and ``log_evidence_`` is its lower bound; the true
    inputs are inferred.

    Parameters
    ----------
    {kernel_of_inputs}
    mean : {"zero", "constant", "linear"}, default="zero"
        The mean function.
    expectation : str, default="auto"
        How kernels are averaged over uncertain inputs.
    {inputs}
    {scale}
    max_iter : int, default=1000
        Most iterations of a run.
    {runs}

    Attributes
    ----------
    log_evidence_ : float
        The log evidence of the data as given.
    {noise}
    {learnt_std}
    {outcome}

    Examples
    --------
    >>> import latentgp as lg
    >>> import numpy as np
    >>> X = np.linspace(0, 6, 40)[:, None]
    >>> model = lg.GPRegressor(kernel="matern52").fit(X, np.sin(X[:, 0]))
    >>> mean, std = model.predict([[1.0]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.0)) < 0.01)
    True
    >>> wide = model.predict([[1.0]], return_std=True, X_std=0.5)[1]
    >>> bool(wide[0] > 10 * std[0])
    True
    """

    _parameter_constraints = {
        "mean": [StrOptions({"zero", "constant", "linear"})],
        "expectation": [str],
        "inputs": INPUTS,
        **COMMON_CONSTRAINTS,
    }

    def __init__(self, kernel="rbf", *, mean="zero", expectation="auto", inputs=None, scale="standardize", max_iter=1000,
                 effort="normal", restarts=None, random_state=None, verbose=0, callback=None):  # fmt: skip
        self._store(locals())

    def _options(self, X, uncertain):
        if not uncertain:
            return super()._options(X, uncertain)
        if self.mean != "zero":
            raise ValueError(
                f"mean={self.mean!r} goes with inputs that are certain: with X_std at the fit expected mean='zero'; "
                "a kernel with '+ linear' or '+ constant' says nearly the same"
            )
        return {"model": "sparse", "mean": None, "inducing": min(len(X), UNCERTAIN_INDUCING)}


@documented
class SparseGPRegressor(Regressor):
    """Sparse Gaussian process regression: the collapsed bound, also for inputs with errors or missing cells.

    Parameters
    ----------
    n_inducing : int, default=50
        Inducing inputs; at most as many as rows are used.
    {kernel_of_inputs}
    expectation : str, default="auto"
        How kernels are averaged over uncertain inputs; not with FITC.
    {inputs}
    latent_inputs : int, default=0
        Inputs that were never observed, inferred from the targets; they come after the columns of X.
    likelihood : str, default="gaussian"
        The noise: Gaussian, or ``"student_t(df=4)"`` for targets with outliers, of which there is one then.
    fitc : bool, default=False
        FITC in the place of the variational bound; inputs must not be missing then, and errors are averaged over.
    noise : {"shared", "columns"}, default="shared"
        Whose noise variance is: shared by all targets, or one of each; not with FITC.
    {scale}
    max_iter : int, default=1000
        Most iterations of a run.
    {runs}

    Attributes
    ----------
    log_evidence_ : float
        A lower bound of the log evidence of the data as given, or the log evidence of FITC.
    {noise}
    {learnt_std}
    {outcome}

    Examples
    --------
    >>> import latentgp as lg
    >>> import numpy as np
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = lg.SparseGPRegressor(n_inducing=12, random_state=0).fit(X, np.sin(X[:, 0]), X_std=0.05)
    >>> model.predict(X[:3], X_std=0.05).shape
    (3,)
    """

    _model_name = "sparse"
    _parameter_constraints = {
        "n_inducing": [at_least(1)],
        "expectation": [str],
        "inputs": INPUTS,
        "latent_inputs": [at_least(0)],
        "likelihood": [str],
        "fitc": ["boolean"],
        "noise": [StrOptions(set(NOISES))],
        **COMMON_CONSTRAINTS,
    }

    def __init__(self, n_inducing=50, *, kernel="rbf", expectation="auto", inputs=None, latent_inputs=0,
                 likelihood="gaussian", fitc=False, noise="shared", scale="standardize", max_iter=1000, effort="normal", restarts=None, random_state=None,
                 verbose=0, callback=None):  # fmt: skip
        self._store(locals())

    @property
    def _gaps(self) -> bool:
        return not self.fitc and self.likelihood == "gaussian"

    def _options(self, X, uncertain):
        options = super()._options(X, uncertain)
        if self.likelihood != "gaussian":
            # A likelihood has rules and units of its own.
            usual = {"expectation": "auto", "scale": "standardize"}
            own = {name: None if getattr(self, name) == value else getattr(self, name) for name, value in usual.items()}
            options.update(likelihood=self.likelihood, **own)
        if self.fitc:
            options.update(fitc=True, expectation=None if self.expectation == "auto" else self.expectation)
        return options


@documented
class LinearRegressor(Regressor):
    """Bayesian linear regression, exact for any number of rows.

    It is ``GPRegressor(kernel="linear")``, number for number, in O(N Q²) once and O(Q³) a step. With one variance a column
    (ARD) a column that says nothing ends near 0: see ``kernel_``. Inputs and targets are standardised inside, which is the
    intercept.

    Parameters
    ----------
    kernel : str or Kernel, default="linear"
        The prior variances of the weights: ``"linear"``, one a column, or ``"linear(ard=false)"``, one for all.
    expectation : str, default="auto"
        How the kernel is averaged over uncertain inputs of predictions.
    {scale}
    max_iter : int, default=1000
        Most iterations of a run.
    {runs}

    Attributes
    ----------
    log_evidence_ : float
        The log evidence of the data as given.
    {noise}
    {outcome}

    Examples
    --------
    >>> import latentgp as lg
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = lg.LinearRegressor().fit(X, 2 + X[:, 0] - 3 * X[:, 1])
    >>> model.predict([[1.0, 0.0, 0.0]]).round(2)
    array([3.])
    """

    _model_name = "linear"
    _parameter_constraints = {"expectation": [str], **COMMON_CONSTRAINTS}

    def __init__(self, kernel="linear", *, expectation="auto", scale="standardize", max_iter=1000, effort="normal",
                 restarts=None, random_state=None, verbose=0, callback=None):  # fmt: skip
        self._store(locals())


#: The estimators of this file by the name of their model.
BY_NAME = {cls._model_name: cls for cls in (GPRegressor, SparseGPRegressor, LinearRegressor)}
