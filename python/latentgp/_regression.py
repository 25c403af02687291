"""Regressions: GPRegressor, SparseGPRegressor, SPGPDRRegressor, VDMGPRegressor and GPCountRegressor."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.base import RegressorMixin, _fit_context
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from . import _native
from ._base import COMMON_CONSTRAINTS, Estimator, at_least, names_of, seed_of, take_names

#: Inducing inputs of an exact regression whose inputs are uncertain, at most.
UNCERTAIN_INDUCING = 200


class InputEstimator(Estimator):
    """An estimator that learns targets from inputs."""

    _model_name = "gp"
    _likelihood = "gaussian"
    #: Whether inputs may be missing.
    _gaps = False

    def _settings(self, X, targets: list[str], classes: list[str], uncertain: bool) -> dict:
        inputs = names_of(self, X.shape[1])
        return {
            "model": self._model_name,
            "likelihood": self._likelihood,
            "latent_dim": int(getattr(self, "n_components", 1)),
            "inducing": int(getattr(self, "n_inducing", 1) or 1),
            "mean": getattr(self, "mean", "zero"),
            "expectation": getattr(self, "expectation", "auto"),
            "scale": getattr(self, "scale", "standardize"),
            "kernel": self._kernel_text(),
            "max_iter": int(self.max_iter),
            "restarts": int(self.restarts),
            "seed": self._seed(),
            "inputs": inputs,
            "input_std": [f"{name}_std" for name in inputs] if uncertain else [],
            "targets": targets,
            "classes": classes,
        }

    def _kernel_dim(self, X) -> int:
        return X.shape[1]

    def _learn(self, X, X_std, y, targets, classes):
        settings = self._settings(X, targets, classes, X_std is not None)
        kernel = self._native_kernel(self._kernel_dim(X))
        self._keep(_native.RegressionModel.fit(X, X_std, y, kernel, settings, self._watch()))

    def _take(self, model) -> None:
        super()._take(model)
        self.log_evidence_ = self._report["log_evidence"]
        self.restarts_ = self._report["restarts"]

    def _restore(self, model):
        take_names(self, model.names[0])
        self._take(model)
        return self

    def _inputs(self, X) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(self, X, dtype=np.float64, order="C", reset=False)


def input_std(X_std, X) -> np.ndarray | None:
    """Standard deviations as large as X, from an array, a row or a number; None where there are none."""
    if X_std is None:
        return None
    std = np.asarray(X_std, dtype=np.float64)
    try:
        std = np.ascontiguousarray(np.broadcast_to(std, X.shape))
    except ValueError:
        raise ValueError(f"X_std has the shape {std.shape}, expected that of X, {X.shape}") from None
    if not (np.isfinite(std).all() and (std >= 0).all()):
        raise ValueError("X_std: expected finite numbers, 0 or more")
    return std


def target_names(y, count: int) -> list[str]:
    """The names of targets in tables of pandas, else ``y`` or ``y0``, ``y1``, …"""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(y, pandas.Series) and isinstance(y.name, str):
        return [y.name]
    if pandas is not None and isinstance(y, pandas.DataFrame) and all(isinstance(c, str) for c in y.columns):
        return list(y.columns)
    return ["y"] if count == 1 else [f"y{k}" for k in range(count)]


class Regressor(RegressorMixin, InputEstimator):
    """A regression with Gaussian noise, of one target or several."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, X_std=None):
        """Learn y from X.

        Ctrl-C ends the fit and keeps its best state: the estimator is fitted as far as it got, and
        KeyboardInterrupt is raised.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        X_std : array-like of shape (n_samples, n_features), default=None
            Standard deviations of the inputs, where these are known up to errors; a row or a number serves for all.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        targets = y
        X, y = validate_data(
            self, X, y, dtype=np.float64, order="C", multi_output=True, y_numeric=True,
            ensure_all_finite="allow-nan" if self._gaps else True,
        )  # fmt: skip
        y = np.asarray(y, dtype=np.float64)
        columns = np.ascontiguousarray(y.reshape(len(y), -1))
        self._one = y.ndim == 1
        self._learn(X, self._checked_std(X_std, X), columns, target_names(targets, columns.shape[1]), [])
        return self

    def _checked_std(self, X_std, X):
        return input_std(X_std, X)

    def _take(self, model) -> None:
        super()._take(model)
        self.n_targets_ = model.sizes[2]
        noise = model.noise_variance
        if noise is not None:
            self.noise_variance_ = np.asarray(noise)

    def _restore(self, model):
        self._one = model.sizes[2] == 1
        return super()._restore(model)

    def _shaped(self, of: np.ndarray) -> np.ndarray:
        return of[:, 0] if self._one else of

    def predict(self, X, return_std=False, return_cov=False, X_std=None):
        """Predict observations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        return_std : bool, default=False
            Whether to return standard deviations as well.
        return_cov : bool, default=False
            Whether to return the covariance of all predictions as well.
        X_std : array-like of shape (n_samples, n_features), default=None
            Standard deviations of the inputs; a row or a number serves for all.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Predictive means.
        std : ndarray of the same shape
            Standard deviations of observations, noise included, if asked for.
        cov : ndarray of shape (n_samples, n_samples) or (n_samples, n_samples, n_targets)
            Their covariances, if asked for.
        """
        if return_std and return_cov:
            raise ValueError("At most one of return_std or return_cov can be requested.")
        rows = self._inputs(X)
        std = input_std(X_std, rows)
        if return_cov and std is not None:
            raise ValueError("return_cov is that of certain inputs: give X_std or return_cov, not both")
        mean, var = self._model.predict(rows, None if std is None else std**2)
        if return_cov:
            return self._shaped(mean), self._covariance(rows)
        return (self._shaped(mean), self._shaped(np.sqrt(var))) if return_std else self._shaped(mean)

    def _covariance(self, rows: np.ndarray) -> np.ndarray:
        every = []
        for output in range(self.n_targets_):
            cov = self._model.covariance(rows, output)
            cov[np.diag_indices_from(cov)] += self.noise_variance_[output]
            every.append(cov)
        return every[0] if self._one else np.stack(every, axis=-1)

    def sample_y(self, X, n_samples=1, random_state=0):
        """Draw functions from the posterior and evaluate them at X, without the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int, default=1
            How many functions.
        random_state : int, RandomState instance or None, default=0
            The seed of the draws.

        Returns
        -------
        values : ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_targets, n_samples)
            A column for each function.
        """
        rows = self._inputs(X)
        drawn = np.stack(self._model.sample(rows, int(n_samples), seed_of(random_state)), axis=-1)
        return drawn[:, 0] if self._one else drawn

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = self._gaps
        return tags


class GPRegressor(Regressor):
    """Exact Gaussian process regression.

    Inputs with known errors have no exact posterior: with ``X_std`` at the fit, the variational one with an
    inducing input at each row, or at 200 of them, takes its place.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        An expression such as ``"matern32 + linear"``, or an object of :mod:`latentgp.kernels`; of standardised
        inputs.
    mean : {"zero", "constant", "linear"}, default="zero"
        The mean function.
    expectation : str, default="auto"
        How kernels are averaged over uncertain inputs.
    scale : {"standardize", "global", "center", "none"}, default="standardize"
        How targets are scaled inside.
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
        The log evidence of the data as given.
    kernel_ : Kernel
        The kernel with its fitted parameters.
    noise_variance_ : ndarray of shape (n_targets,)
        The variance of the noise of each target.
    n_iter_, converged_, stop_reason_, trace_
        How the fit went.

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
        **COMMON_CONSTRAINTS,
    }

    def __init__(
        self,
        kernel="rbf",
        *,
        mean="zero",
        expectation="auto",
        scale="standardize",
        max_iter=1000,
        restarts=1,
        random_state=None,
        verbose=0,
        callback=None,
    ):
        self.kernel = kernel
        self.mean = mean
        self.expectation = expectation
        self.scale = scale
        self.max_iter = max_iter
        self.restarts = restarts
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _settings(self, X, targets, classes, uncertain):
        settings = super()._settings(X, targets, classes, uncertain)
        if uncertain:
            settings.update(model="sparse", inducing=min(len(X), UNCERTAIN_INDUCING))
        return settings


class SparseGPRegressor(Regressor):
    """Sparse Gaussian process regression: the collapsed bound, also for inputs with errors or missing cells.

    Parameters
    ----------
    n_inducing : int, default=50
        Inducing inputs; at most as many as rows are used.
    kernel : str or Kernel, default="rbf"
        An expression such as ``"matern32 + linear"``, or an object of :mod:`latentgp.kernels`; of standardised
        inputs.
    expectation : str, default="auto"
        How kernels are averaged over uncertain inputs.
    scale : {"standardize", "global", "center", "none"}, default="standardize"
        How targets are scaled inside.
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
        A lower bound of the log evidence of the data as given.
    kernel_ : Kernel
        The kernel with its fitted parameters.
    noise_variance_ : ndarray of shape (n_targets,)
        The variance of the noise of each target.
    n_iter_, converged_, stop_reason_, trace_
        How the fit went.

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
    _gaps = True
    _parameter_constraints = {
        "n_inducing": [at_least(1)],
        "expectation": [str],
        **COMMON_CONSTRAINTS,
    }

    def __init__(
        self,
        n_inducing=50,
        *,
        kernel="rbf",
        expectation="auto",
        scale="standardize",
        max_iter=1000,
        restarts=1,
        random_state=None,
        verbose=0,
        callback=None,
    ):
        self.n_inducing = n_inducing
        self.kernel = kernel
        self.expectation = expectation
        self.scale = scale
        self.max_iter = max_iter
        self.restarts = restarts
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback


class ProjectedRegressor(Regressor):
    """A regression on a projection of its inputs."""

    def _kernel_dim(self, X):
        return int(self.n_components)

    def _checked_std(self, X_std, X):
        std = super()._checked_std(X_std, X)
        if std is not None and std.any():
            raise ValueError(
                f"{type(self).__name__} learns from inputs that are certain; SparseGPRegressor takes X_std at the fit"
            )
        return None


class SPGPDRRegressor(ProjectedRegressor):
    """Sparse Gaussian process regression on a learned projection of the inputs (SPGP-DR, FITC).

    Parameters
    ----------
    n_components : int, default=2
        Directions of the projection.
    n_inducing : int, default=20
        Inducing inputs; at most as many as rows are used.
    kernel : str or Kernel, default="rbf"
        An expression such as ``"matern32 + linear"``, or an object of :mod:`latentgp.kernels`; of projected inputs.
    scale : {"standardize", "global", "center", "none"}, default="standardize"
        How targets are scaled inside.
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
    projection_ : ndarray of shape (n_components, n_features)
        From standardised inputs to those of the kernel.
    log_evidence_ : float
        The log evidence of FITC, of the data as given.
    kernel_ : Kernel
        The kernel with its fitted parameters.
    noise_variance_ : ndarray of shape (n_targets,)
        The variance of the noise of each target.
    n_iter_, converged_, stop_reason_, trace_
        How the fit went.

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

    def __init__(
        self,
        n_components=2,
        *,
        n_inducing=20,
        kernel="rbf",
        scale="standardize",
        max_iter=1000,
        restarts=1,
        random_state=None,
        verbose=0,
        callback=None,
    ):
        self.n_components = n_components
        self.n_inducing = n_inducing
        self.kernel = kernel
        self.scale = scale
        self.max_iter = max_iter
        self.restarts = restarts
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _take(self, model):
        super()._take(model)
        self.projection_ = model.projection[0]


class VDMGPRegressor(ProjectedRegressor):
    """Gaussian process regression on a projection of the inputs that is integrated out (VDMGP).

    The weights of the projection have a prior that switches off directions of no use, and tells which inputs
    matter.

    Parameters
    ----------
    n_components : int, default=5
        Directions of the projection; those of no use are switched off.
    n_inducing : int, default=20
        Inducing inputs; at most as many as rows are used.
    kernel : str or Kernel, default="rbf"
        An expression such as ``"matern32 + linear"``, or an object of :mod:`latentgp.kernels`; of projected inputs.
    expectation : str, default="auto"
        How kernels are averaged over the weights.
    scale : {"standardize", "global", "center", "none"}, default="standardize"
        How targets are scaled inside.
    max_iter : int, default=600
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
    projection_, projection_std_ : ndarray of shape (n_components, n_features)
        Means and standard deviations of the weights, of standardised inputs.
    log_evidence_ : float
        A lower bound of the log evidence of the data as given.
    kernel_ : Kernel
        The kernel with its fitted parameters.
    noise_variance_ : ndarray of shape (n_targets,)
        The variance of the noise of each target.
    n_iter_, converged_, stop_reason_, trace_
        How the fit went.

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
        **COMMON_CONSTRAINTS,
    }

    def __init__(
        self,
        n_components=5,
        *,
        n_inducing=20,
        kernel="rbf",
        expectation="auto",
        scale="standardize",
        max_iter=600,
        restarts=1,
        random_state=None,
        verbose=0,
        callback=None,
    ):
        self.n_components = n_components
        self.n_inducing = n_inducing
        self.kernel = kernel
        self.expectation = expectation
        self.scale = scale
        self.max_iter = max_iter
        self.restarts = restarts
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _take(self, model):
        super()._take(model)
        self.projection_, var = model.projection
        self.projection_std_ = np.sqrt(var)


class GPCountRegressor(Regressor):
    """Gaussian process regression of counts: y ~ Poisson(exp f(x)).

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

    @property
    def _model_name(self):
        return "gp" if self.n_inducing is None else "sparse"
