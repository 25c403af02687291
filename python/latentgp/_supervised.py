"""What learns targets from inputs: their names, their errors, and what comes of a regression."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from . import _native
from ._base import Estimator, check_room, count_of, doubt, fitting, names_of, seed_of, take_names
from ._doc import documented
from ._input_errors import LEARN, Inputs, split, warn_unclear


class InputEstimator(Estimator):
    """An estimator that learns targets from inputs."""

    _model_name = "gp"
    #: Whether inputs may be missing.
    _gaps = False

    def _options(self, X, uncertain: bool) -> dict:
        """The options of the recipe that are not arguments of the estimator by another name."""
        return {"model": self._model_name}

    def _kernel_dim(self, X) -> int:
        return X.shape[1] + self._latent()

    def _latent(self) -> int:
        """Inputs that were never observed."""
        return getattr(self, "latent_inputs", 0)

    def _learn(self, X, errors, y, targets, classes):
        X_std, learn = errors
        uncertain = X_std is not None or bool(learn)
        options = self._options(X, uncertain)
        if uncertain:
            options.update(inputs=getattr(self, "inputs", None), learn_errors=learn or None)
        if self._latent():
            options["latent_inputs"] = self._latent()
        if options["model"] == "gp":
            check_room(4 * len(X), len(X), f"the covariance of {len(X)} rows", "inducing inputs, n_inducing")
        kernel, names = self._native_kernel(self._kernel_dim(X)), (names_of(self, X.shape[1]), targets, classes)
        doubt(names[0], X, "inputs")
        if not classes:
            doubt(targets, y, "values")
        self._keep(_native.RegressionModel.fit(X, X_std, y, kernel, self._recipe(**options), names, self._watch()))
        warn_unclear(self.learnt_std_, model_evidence(self._model))

    def _take(self, model) -> None:
        super()._take(model)
        self.log_evidence_ = self._report["log_evidence"]
        self.restarts_ = self._report["restarts"]
        names = getattr(self, "feature_names_in_", range(model.sizes[1]))
        self.learnt_std_ = {names[j]: std for j, std in model.learnt_errors}

    @property
    def inputs_(self) -> Inputs:
        """The posterior of the true inputs of the training rows: means and standard deviations, latent inputs last.

        Of models whose inputs may be uncertain: sparse ones, and those of this package that become sparse with ``X_std``.
        """
        check_is_fitted(self)
        found = self._model.inputs_posterior()
        if found is None:
            raise AttributeError(f"{type(self).__name__} was fitted with inputs that are certain, of which nothing is inferred")
        return Inputs(found[0], np.sqrt(found[1]))

    def infer_inputs(self, X, y, X_std=None) -> Inputs:
        """The posterior of the true inputs of rows whose targets are known.

        Each row stands on its own. Inputs that are certain stay as they are.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets as at the fit; NaN is one that is missing.
        X_std : array-like, "learn" or mapping, default=None
            Standard deviations of the inputs, as for ``predict``.

        Returns
        -------
        inputs : Inputs
            ``mean`` and ``std``, arrays of shape (n_samples, n_features), latent inputs after the others.
        """
        rows = self._inputs(X)
        std = self._errors(X_std, rows, X)
        y = np.ascontiguousarray(np.asarray(self._codes(y), dtype=np.float64).reshape(len(rows), -1))
        mean, var = self._model.infer_inputs(rows, None if std is None else std**2, y)
        return Inputs(mean, np.sqrt(var))

    def _codes(self, y):
        """Targets as numbers."""
        return y

    def _restore(self, model, told):
        take_names(self, model.names[0], told["named"])
        self._take(model)
        return self

    def _split(self, X_std, rows: np.ndarray, given):
        """Standard deviations of inputs and the columns whose errors are learnt, by the names of columns and rows."""
        return split(X_std, rows, given, getattr(self, "feature_names_in_", None))

    def _errors(self, X_std, rows: np.ndarray, given):
        """Standard deviations of inputs; those that were learnt where they are asked for."""
        std, learn = self._split(X_std, rows, given)
        if not learn:
            return std
        learnt = dict(self._model.learnt_errors)
        std = np.zeros(rows.shape) if std is None else std
        for j in learn:
            if j not in learnt:
                raise ValueError(f"X_std={LEARN!r}: the error of column {j} was not learnt at the fit; expected a number")
            std[:, j] = learnt[j]
        return std

    def _inputs(self, X) -> np.ndarray:
        check_is_fitted(self)
        finite = "allow-nan" if self._gaps else True
        return validate_data(self, X, dtype=np.float64, order="C", reset=False, ensure_all_finite=finite)


def model_evidence(model) -> list:
    """Of every learnt error what the bound loses without it and with twice as much, and whether it is clear."""
    return [(without, doubled, clear) for _, without, doubled, clear in model.error_evidence]


def target_names(y, count: int) -> list[str]:
    """The names of targets in tables of pandas, else ``y`` or ``y0``, ``y1``, …"""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(y, pandas.Series) and isinstance(y.name, str):
        return [y.name]
    if pandas is not None and isinstance(y, pandas.DataFrame) and all(isinstance(c, str) for c in y.columns):
        return list(y.columns)
    return ["y"] if count == 1 else [f"y{k}" for k in range(count)]


@documented
class Regressor(RegressorMixin, InputEstimator):
    """A regression with Gaussian noise, of one target or several."""

    @fitting
    def fit(self, X, y, X_std=None):
        """Learn y from X.

        {interrupt}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        {errors_of_inputs}

        Returns
        -------
        self : object
            The fitted estimator.
        """
        targets, given = y, X
        X, y = validate_data(
            self, X, y, dtype=np.float64, order="C", multi_output=self.__sklearn_tags__().target_tags.multi_output,
            y_numeric=True, ensure_all_finite="allow-nan" if self._gaps else True,
        )  # fmt: skip
        y = np.asarray(y, dtype=np.float64)
        columns = np.ascontiguousarray(y.reshape(len(y), -1))
        self._one = y.ndim == 1
        self._learn(X, self._split(X_std, X, given), columns, target_names(targets, columns.shape[1]), [])
        return self

    def _take(self, model) -> None:
        super()._take(model)
        self.n_targets_ = model.sizes[2]
        noise = model.noise_variance
        if noise is not None:
            self.noise_variance_ = np.asarray(noise)

    def _restore(self, model, told):
        self._one = model.sizes[2] == 1
        return super()._restore(model, told)

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
        X_std : array-like of shape (n_samples, n_features), "learn" or mapping, default=None
            Standard deviations of the inputs; a row or a number serves for all. ``"learn"`` stands for what the fit
            has learnt.

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
        std = self._errors(X_std, rows, X)
        if return_cov and (std is not None or np.isnan(rows).any()):
            raise ValueError("return_cov is that of certain inputs, of which none is missing: leave X_std out")
        mean, var = self._model.predict(rows, None if std is None else std**2)
        if return_cov:
            return self._shaped(mean), self._covariance(rows)
        return (self._shaped(mean), self._shaped(np.sqrt(var))) if return_std else self._shaped(mean)

    def _covariance(self, rows: np.ndarray) -> np.ndarray:
        self._check_joint(rows)
        every = [self._model.covariance(rows, output) for output in range(self.n_targets_)]
        return every[0] if self._one else np.stack(every, axis=-1)

    def _check_joint(self, rows: np.ndarray) -> None:
        check_room(4 * len(rows), len(rows), f"the covariance of {len(rows)} rows", "fewer at a time")

    def sample_y(self, X, n_samples=1, random_state=0):
        """Draw functions from the posterior and evaluate them at X, without the noise; those of counts are rates.

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
        if np.isnan(rows).any():
            raise ValueError("sample_y is that of certain inputs, found a missing one: leave its row out")
        count = count_of(n_samples, "n_samples")
        self._check_joint(rows)
        check_room(2 * count, len(rows) * self.n_targets_, f"{count} functions at {len(rows)} rows", "fewer at a time")
        drawn = np.stack(self._model.sample(rows, count, seed_of(random_state)), axis=-1)
        return drawn[:, 0] if self._one else drawn

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.single_output = True
        tags.target_tags.multi_output = True
        tags.input_tags.allow_nan = self._gaps
        return tags
