"""Forecasts of series: GPNarx."""

from __future__ import annotations

import sys
import warnings
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from . import _native
from ._base import (
    COMMON_CONSTRAINTS,
    Estimator,
    at_least,
    check_room,
    count_of,
    doubt,
    fitting,
    listed,
    named,
    names_of,
    seed_of,
    take_names,
)
from ._doc import documented

#: Past values that a window has, where the series is long enough.
LAGS = 12

PROPAGATIONS = ("independent", "correlated", "none", "trajectories")


class Forecast(NamedTuple):
    """Means and standard deviations of the steps ahead, and the futures that were drawn, of shape (k, steps, …)."""

    mean: np.ndarray
    std: np.ndarray
    trajectories: np.ndarray


@documented
class GPNarx(Estimator):
    """Gaussian process NARX: the next value of a series from a window of past ones.

    Many steps ahead, each prediction is an uncertain input of the next ones.

    Parameters
    ----------
    lags : int or None, default=None
        Past values in a window; None is 12, or a third of the series where it is short.
    kernel : str or Kernel, default="rbf + linear"
        An expression, or an object of :mod:`latentgp.kernels`, of standardised windows; its parameters start wide
        unless it is given values.
    n_inducing : int or None, default=None
        Inducing inputs of a sparse regression; None is exact, or at most 200 where values are missing or have errors.
    error : float, default=0.0
        The variance of the errors with which the series were read, in standardised units: with any, each value has a
        posterior, and forecasts are of what will be read.
    propagation : {"independent", "correlated", "none", "trajectories"}, default="independent"
        How uncertainty travels from a step to the next: every lag a Gaussian of its own, the lags of a window
        with their covariance, not at all, or by drawing whole futures.
    expectation : str, default="auto"
        How kernels are averaged over uncertain windows.
    delays : tuple of int, default=(0,)
        Delays of each exogenous input; 0 is its value at the time of the target.
    scale : {"standardize", "global", "center", "none"}, default="standardize"
        How series are scaled inside.
    max_iter : int, default=1000
        Most iterations of a run.
    effort : {"quick", "normal", "thorough"}, default="normal"
        How hard the best optimum is looked for: one start; a race of many, in about ten times the time at the most; a
        longer one, in about forty times.
    restarts : int or None, default=None
        In the place of a search, so many runs from different starts, each to its end, of which the best is kept.
    random_state : int, RandomState instance or None, default=None
        The seed of the starts and of drawn futures.
    verbose : int, default=0
        1 prints progress now and then, 2 every iteration.
    callback : callable or None, default=None
        Called with a ``Progress(restart, iteration, bound)`` after each iteration; returns True to stop.

    Attributes
    ----------
    log_evidence_ : float
        The log evidence of the training targets as given, or its lower bound.
    lags_ : int
        Past values in a window.
    noise_variance_ : ndarray of shape (n_series,)
        The variance of the noise of each series.
    {outcome}

    Examples
    --------
    >>> import latentgp as lg
    >>> import numpy as np
    >>> series = np.sin(0.5 * np.arange(60)) + 0.02 * np.random.default_rng(0).normal(size=60)
    >>> mean, std = lg.GPNarx(lags=4).fit(series).forecast(12, return_std=True)
    >>> mean.shape
    (12,)
    >>> bool((np.abs(mean - np.sin(0.5 * np.arange(60, 72))) < 4 * std).all())
    True
    """

    _parameter_constraints = {
        "lags": [at_least(1), None],
        "n_inducing": [at_least(1), None],
        "error": [Interval(Real, 0, None, closed="left")],
        "propagation": [StrOptions(set(PROPAGATIONS))],
        "expectation": [str],
        "delays": ["array-like"],
        **COMMON_CONSTRAINTS,
    }

    def __init__(self, lags=None, *, kernel="rbf + linear", n_inducing=None, error=0.0,
                 propagation="independent", expectation="auto", delays=(0,), scale="standardize", max_iter=1000,
                 effort="normal", restarts=None, random_state=None, verbose=0, callback=None):  # fmt: skip
        self._store(locals())

    @fitting
    def fit(self, X, y=None):
        """Learn a series, alone or with exogenous inputs.

        {interrupt}

        Parameters
        ----------
        X : array-like of shape (n_steps,) or (n_steps, n_series)
            The series, the oldest value first; NaN is a missing value, which is inferred. Where y is given, exogenous
            inputs of shape (n_steps, n_inputs).
        y : array-like of shape (n_steps,) or (n_steps, n_series), default=None
            The series, where X are exogenous inputs.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        given = X if y is None else y
        if y is None and np.ndim(X) == 1:
            X = _column(X)
        X = validate_data(
            self, X, dtype=np.float64, order="C", ensure_min_samples=4, ensure_all_finite="allow-nan"
        )
        if y is None:
            series, inputs = X, None
        else:
            series = check_array(
                y, dtype=np.float64, ensure_2d=False, ensure_all_finite="allow-nan", input_name="y"
            )
            series, inputs = np.ascontiguousarray(series.reshape(len(series), -1)), X
            check_consistent_length(X, series)
        self._one = np.ndim(given) == 1
        self._index = _index(given)
        self._series_named = _is_named(given)
        names = [str(c) for c in getattr(given, "columns", [getattr(given, "name", None) or "y"])]
        if len(names) != series.shape[1]:
            names = [f"y{k}" for k in range(series.shape[1])]
        lags = min(LAGS, len(series) // 3) if self.lags is None else int(self.lags)
        delays = list(self.delays)
        if not delays or not all(isinstance(d, Integral) and d >= 0 for d in delays):
            raise ValueError(f"delays: expected whole numbers, 0 or more, such as (0, 1), found {self.delays!r}")
        delays = [int(d) for d in delays]
        width = lags * series.shape[1] + len(delays) * (0 if inputs is None else inputs.shape[1])
        gaps = np.isnan(series).any() or (inputs is not None and np.isnan(inputs).any())
        if self.n_inducing is None and not gaps and self.error == 0:
            check_room(4 * len(series), len(series), f"the covariance of {len(series)} steps", "n_inducing=200")
        exogenous = 0 if inputs is None else inputs.shape[1]
        windows = {"series": [lags] * series.shape[1], "exogenous": [delays] * exogenous}
        error = float(self.error) if self.error > 0 else None
        recipe = self._recipe(model="narx", lags=windows, expectation=None, error=error)
        told = (names, [] if inputs is None else names_of(self, exogenous, "u"))
        doubt(names, series, "values")
        self._keep(_native.NarxModel.fit(series, inputs, self._native_kernel(width), recipe, told, self._watch()))
        return self

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _take(self, model) -> None:
        super()._take(model)
        self.log_evidence_ = self._report["log_evidence"]
        self.noise_variance_ = np.asarray(model.noise_variance)
        self.lags_ = model.lags[0][0]

    def _restore(self, model, told):
        series, inputs = model.names
        take_names(self, inputs or series, told["named"])
        self._one, self._index = len(series) == 1, None
        self._series_named = told["series_named"] is not False
        self._take(model)
        return self

    def forecast(self, horizon, X=None, return_std=False):
        """Forecast the steps after the training series.

        Parameters
        ----------
        horizon : int
            Steps ahead.
        X : array-like of shape (horizon, n_inputs), default=None
            Exogenous inputs of these steps, where the model was trained with some; a table has the columns of the fit.
        return_std : bool, default=False
            Whether to return standard deviations as well.

        Returns
        -------
        mean : ndarray of shape (horizon,) or (horizon, n_series)
            Predictive means; a series or a table of pandas, whose index goes on, where the training series was one.
        std : of the same type and shape
            Standard deviations of observations, noise included, if asked for.
        """
        check_is_fitted(self)
        horizon = count_of(horizon, "horizon")
        series, inputs = self._model.data
        ahead = self._exogenous(X, horizon, "one for each step ahead")
        inputs = None if ahead is None else np.vstack([inputs, ahead])
        found = self._simulate(series, inputs, horizon, self.propagation, self.expectation, 500)
        mean, std = self._named(found.mean, horizon), self._named(found.std, horizon)
        return (mean, std) if return_std else mean

    def simulate(
        self, history, steps, X=None, *, propagation=None, expectation=None, n_trajectories=500, random_state=None
    ):  # fmt: skip
        """Simulate the steps after any history.

        Parameters
        ----------
        history : array-like of shape (n_past,) or (n_past, n_series)
            Past values, at least as many as a window has, NaN where one is missing; a table of several series has the
            columns of the fit.
        steps : int
            Steps ahead.
        X : array-like of shape (n_past + steps, n_inputs), default=None
            Exogenous inputs of the history, then of the steps, where the model was trained with some; a table has the
            columns of the fit.
        propagation : {"independent", "correlated", "none", "trajectories"}, default=None
            How uncertainty travels; None is that of the estimator.
        expectation : str, default=None
            How kernels are averaged over uncertain windows; None is that of the estimator.
        n_trajectories : int, default=500
            Futures to draw, with ``propagation="trajectories"``.
        random_state : int, RandomState instance or None, default=None
            Their seed.

        Returns
        -------
        forecast : Forecast
            A tuple ``(mean, std, trajectories)``; the last is empty unless futures were drawn.
        """
        check_is_fitted(self)
        steps, n_trajectories = count_of(steps, "steps"), count_of(n_trajectories, "n_trajectories")
        propagation = self.propagation if propagation is None else propagation
        if propagation not in PROPAGATIONS:
            raise ValueError(f"propagation: expected one of {', '.join(PROPAGATIONS)}, found {propagation!r}")
        past = self._history(history)
        inputs = self._exogenous(X, len(past) + steps, f"{len(past)} of the history, then {steps} of the steps ahead")
        expectation = self.expectation if expectation is None else expectation
        return self._simulate(past, inputs, steps, propagation, expectation, n_trajectories, random_state)

    def _history(self, history) -> np.ndarray:
        """Past values, whose columns are those of the series."""
        names = self._model.names[0]
        past = _column(history) if np.ndim(history) == 1 else history
        if self._series_named and len(names) > 1 and _is_named(past) and list(past.columns) != names:
            raise ValueError(
                f"history has the columns {listed(past.columns)}, expected the series of the fit in their order: "
                f"{listed(names)}"
            )
        return check_array(
            past, dtype=np.float64, order="C", ensure_all_finite="allow-nan", input_name="history"
        )

    def _exogenous(self, X, rows: int, of: str):
        """Exogenous inputs of so many rows, by the names of the fit; None where the model has none."""
        if not self._model.names[1]:
            if X is not None:
                raise ValueError("the model has no exogenous inputs: leave X out")
            return None
        if X is None:
            raise ValueError(f"the model has exogenous inputs: give X, {rows} rows, {of}")
        X = validate_data(self, X, dtype=np.float64, order="C", reset=False, ensure_all_finite="allow-nan")
        if len(X) != rows:
            raise ValueError(f"X has {len(X)} rows, expected {rows}: {of}")
        return X

    def _simulate(self, past, inputs, steps, propagation, expectation, count, random_state=None):
        settings = {
            "propagation": propagation,
            "expectation": expectation,
            "trajectories": int(count),
            "seed": seed_of(self.random_state if random_state is None else random_state),
        }
        past = np.ascontiguousarray(past)
        (mean, var), drawn = self._model.simulate(past, inputs, int(steps), settings)
        drawn = np.stack(drawn) if drawn else np.empty((0, *mean.shape))
        of = (lambda a: a[..., 0]) if self._one else (lambda a: a)
        return Forecast(of(mean), of(np.sqrt(var)), of(drawn))

    def _named(self, values: np.ndarray, horizon: int):
        """Values with the index that goes on from that of the training series."""
        if self._index is None:
            return values
        pandas = sys.modules["pandas"]
        names, index = self._model.names[0], _continued(self._index, horizon)
        if self._one:
            return pandas.Series(values, index=index, name=names[0])
        return pandas.DataFrame(values, index=index, columns=names)


def _column(series):
    """A series as a table of one column."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(series, pandas.Series):
        return series.to_numpy().reshape(-1, 1)
    return np.asarray(series).reshape(-1, 1)


def _is_named(of) -> bool:
    """Whether it is a table whose columns have names."""
    return hasattr(of, "columns") and named(of.columns)


def _index(of):
    """The index of a table of pandas; None of anything else."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(of, (pandas.Series, pandas.DataFrame)):
        return of.index
    return None


def _continued(index, steps: int):
    """The index of the steps after one: dates go on at their frequency, or their median step where they have none;
    numbers and durations at their last step."""
    pandas = sys.modules["pandas"]
    if isinstance(index, pandas.DatetimeIndex):
        freq = index.freq or _inferred(index, pandas)
        if freq is not None:
            return pandas.date_range(index[-1], periods=steps + 1, freq=freq)[1:]
        return _stepped(index[-1], index.to_series().diff().median(), steps)
    if isinstance(index, pandas.PeriodIndex):
        return pandas.period_range(index[-1] + 1, periods=steps, freq=index.freq)
    if pandas.api.types.is_integer_dtype(index) and len(index) > 1:
        last, step = int(index[-1]), int(index[-1]) - int(index[-2])
        return pandas.RangeIndex(last + step, last + step * (steps + 1), step) if step else None
    stepped = isinstance(index, pandas.TimedeltaIndex) or pandas.api.types.is_float_dtype(index)
    if stepped and len(index) > 1:
        return _stepped(index[-1], index[-1] - index[-2], steps)
    return pandas.RangeIndex(len(index), len(index) + steps)


def _inferred(index, pandas):
    """The frequency that dates seem to have, or None."""
    with warnings.catch_warnings():
        # It is to be an offset instead of its name, which both serve here.
        warnings.simplefilter("ignore", DeprecationWarning)
        return pandas.infer_freq(index)


def _stepped(last, step, steps: int):
    """So many steps after the last place."""
    return sys.modules["pandas"].Index([last + step * k for k in range(1, steps + 1)])
