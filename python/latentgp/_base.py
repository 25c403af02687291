"""What every estimator shares: its kernel, its seed, progress, and its file."""

from __future__ import annotations

import copy
import errno
import functools
import json
import os
import sys
import time
import warnings
from numbers import Integral
from typing import Any, Callable, NamedTuple, Optional

import numpy as np
from sklearn.base import BaseEstimator, _fit_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from . import _native
from ._kernels import Kernel, as_native, build
from ._settings import write

SCALES = ("standardize", "global", "center", "none")
#: Whose a noise variance is.
NOISES = ("shared", "columns")

#: What may be done about inputs with errors.
INPUTS = [StrOptions({"inferred", "averaged"}), None]

#: How many times as long as one run a search may take.
EFFORTS = {"quick": 1, "normal": 10, "thorough": 40}

#: Seconds between two lines of ``verbose=1``.
PAUSE = 0.5


class DataWarning(UserWarning):
    """Data that look like something else: identifiers, dates as numbers, classes, marks of missing values, slips."""


def doubt(names: list[str], values: np.ndarray, used: str) -> None:
    """Warns of columns that may be no data; ``used`` as ``rows`` of a table, as ``inputs`` or as ``values``."""
    for text in _native.doubts(names, values, used):
        warnings.warn(text, DataWarning, stacklevel=4)


class Progress(NamedTuple):
    """Where a fit stands, as ``callback`` sees it; a callback that returns True ends the fit."""

    restart: int
    iteration: int
    bound: float


def seed_of(random_state) -> int:
    """A whole number is its own seed, as on the command line."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def count_of(value, name: str) -> int:
    """A whole number of things, at least one."""
    if not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}: expected a whole number, 1 or more, found {value!r}")
    return int(value)


def check_room(rows: int, columns: int, what: str, advice: str) -> None:
    """Whether a matrix of so many numbers can be had at all."""
    try:
        np.empty((rows, columns))
    except (MemoryError, ValueError):
        size = f"{rows * columns * 8 / 1e9:.3g} GB"
        raise MemoryError(f"{what} would take {size}, more than this machine has; try {advice}") from None


def spread(given, X: np.ndarray, name: str, of: str) -> np.ndarray:
    """Numbers of 0 or more as many as X has, from an array, a row, a number, or a column where X has one."""
    values = np.asarray(given, dtype=np.float64)
    if values.ndim == 1 and X.shape[1] == 1 and len(values) == len(X):
        values = values[:, None]
    try:
        values = np.ascontiguousarray(np.broadcast_to(values, X.shape))
    except ValueError:
        raise ValueError(
            f"{name} has the shape {values.shape}, expected that of {of}, {X.shape}, a row of it or a number"
        ) from None
    # What is missing has no error of its own.
    values = np.where(np.isnan(values) & np.isnan(X), 0.0, values)
    bad = ~(np.isfinite(values) & (values >= 0))
    if bad.any():
        raise ValueError(
            f"{name}: expected finite numbers, 0 or more, found {values[bad][0]:g}; 0 is that of what is known exactly"
        )
    return values


def input_std(X_std, X: np.ndarray, given=None, names=None) -> np.ndarray | None:
    """Standard deviations as large as X; None where there are none.

    A table's columns go by their names, where those of X have some, and the rows of pandas by the index of ``given``,
    which is X as it came.
    """
    if X_std is None:
        return None
    return spread(_in_order(X_std, X, given, names), X, "X_std", "X")


def _in_order(std, X, given, names):
    pandas = sys.modules.get("pandas")
    known = None if names is None else [str(name) for name in names]
    if pandas is not None and isinstance(std, pandas.Series):
        # A row by the names of the columns, or a column by those of the rows.
        if X.shape[1] == 1 and len(std) == len(X) and set(std.index) != set(known or ()):
            std = _rows_in_order(std, given, pandas)
        elif known is not None and named(std.index):
            _check_names(std.index, known, "entries")
            std = std[known]
        return std.to_numpy()
    columns = getattr(std, "columns", None)
    if columns is None:
        return std
    if known is not None and named(columns):
        _check_names(columns, known, "columns")
        std = std[known]
    return _rows_in_order(std, given, pandas)


def named(columns) -> bool:
    """Whether columns have names, as scikit-learn has it: words."""
    return all(isinstance(c, str) for c in columns)


def _check_names(found, known: list[str], what: str) -> None:
    if sorted(found) != sorted(known):
        raise ValueError(
            f"X_std has the {what} {listed(found)}, expected those of X: {listed(known)}; an array goes by position"
        )


def listed(names, most: int = 8) -> str:
    """Names in a message, the first ones where there are many."""
    return ", ".join([*names[:most], *(["…"] if len(names) > most else [])])


def _rows_in_order(std, given, pandas):
    """The rows of a table of pandas in the order of those of X, where both have an index."""
    if pandas is None or not isinstance(std, (pandas.DataFrame, pandas.Series)):
        return std
    index = getattr(given, "index", None)
    if not isinstance(index, pandas.Index) or len(std) != len(index) or std.index.equals(index):
        return std
    if not (std.index.is_unique and index.is_unique and set(std.index) == set(index)):
        raise ValueError("X_std has another index than X, expected the same rows; an array goes by position")
    return std.loc[index]


def at_least(least: int) -> Interval:
    """A whole number from ``least`` on."""
    return Interval(Integral, least, None, closed="left")


COMMON_CONSTRAINTS: dict = {
    "kernel": [str, Kernel],
    "scale": [StrOptions(set(SCALES))],
    "max_iter": [at_least(1)],
    "effort": [StrOptions(set(EFFORTS))],
    "restarts": [at_least(1), None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "callback": [callable, None],
}


def fitting(fit):
    """A ``fit`` that checks the arguments of its estimator, and leaves this as it was where no model comes of it."""

    @_fit_context(prefer_skip_nested_validation=True)
    @functools.wraps(fit)
    def fitted(self, *args, **kwargs):
        before = dict(vars(self))
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            if vars(self).get("_model") is before.get("_model"):
                vars(self).clear()
                vars(self).update(before)
            raise

    return fitted


class Estimator(BaseEstimator):
    """A scikit-learn estimator around a fitted model of the library."""

    _parameter_constraints: dict = {}

    def _store(self, given: dict) -> None:
        """Keeps the arguments of the constructor, its ``locals()``, as they are."""
        for name in self._get_param_names():
            setattr(self, name, given[name])

    def _native_kernel(self, dim: int):
        return as_native(self.kernel, dim)

    def _kernel_text(self) -> str:
        return self.kernel if isinstance(self.kernel, str) else repr(self.kernel)

    def _recipe(self, **more) -> str:
        """What the library is told, by the names of its options; None is left to it."""
        options = {
            "kernel": self._kernel_text() if hasattr(self, "kernel") else None,
            "latent_dim": getattr(self, "n_components", None),
            "inducing": getattr(self, "n_inducing", None),
            "expectation": getattr(self, "expectation", None),
            "scale": getattr(self, "scale", None),
            "mean": getattr(self, "mean", None),
            "noise_kind": getattr(self, "noise", None),
            "max_iterations": self.max_iter,
            "effort": self.effort if getattr(self, "restarts", 1) is None else None,
            "restarts": getattr(self, "restarts", None),
            "seed": self._seed() if hasattr(self, "random_state") else None,
            **more,
        }
        plain = {name: int(v) if isinstance(v, Integral) and not isinstance(v, bool) else v for name, v in options.items()}
        return json.dumps({name: value for name, value in plain.items() if value is not None})

    def _seed(self) -> int:
        return seed_of(self.random_state)

    def _watch(self) -> Optional[Callable[[int, int, float], Any]]:
        """What the fit calls after each iteration; None where nobody looks."""
        callback, verbose = self.callback, int(self.verbose)
        if not verbose:
            return None if callback is None else lambda *at: callback(Progress(*at))
        name, began = type(self).__name__, time.monotonic()
        last, runs = [began], {}
        searches = getattr(self, "restarts", 1) is None and self.effort != "quick"

        def watch(restart: int, iteration: int, bound: float) -> Any:
            now = time.monotonic()
            runs[restart] = (iteration, bound)
            if verbose > 1 or now - last[0] >= PAUSE:
                last[0] = now
                others = ""
                if len(runs) > 1:
                    others = f"; best of {len(runs)} runs {max(b for _, b in runs.values()):.6g}"
                    if searches and 0 in runs:
                        done = sum(i for i, _ in runs.values()) / (EFFORTS[self.effort] * runs[0][0])
                        others += f", at most {max(0.0, (now - began) * (1 / done - 1)):.0f} s left"
                print(f"[{name}] run {restart + 1}, iteration {iteration}: {bound:.6g}{others}", flush=True)
            return callback is not None and callback(Progress(restart, iteration, bound))

        return watch

    def _keep(self, fitted) -> None:
        """Takes over a model, then raises what interrupted its fit."""
        model, raised = fitted
        self._take(model)
        report = self._report
        if self.verbose:
            print(
                f"[{type(self).__name__}] {report['iterations']} iterations in {report['seconds']:.1f} s: "
                f"{report['stop_reason']}" + (f"; {report['agreement']}" if report["agreement"] else ""),
                flush=True,
            )
        if raised is None and report["not_converged"]:
            warnings.warn(
                f"{type(self).__name__}: {report['not_converged']} (max_iter)"
                if "limit of iterations" in report["not_converged"]
                else f"{type(self).__name__}: {report['not_converged']}",
                ConvergenceWarning,
                stacklevel=3,
            )
        if raised is None:
            for collapse in report.get("collapses", ()):
                warnings.warn(f"{type(self).__name__}: {collapse}", ConvergenceWarning, stacklevel=3)
        if raised is not None:
            raise raised

    def _take(self, model) -> None:
        """Sets the fitted attributes from a model."""
        self._model = model
        self._own = _own_of(getattr(self, "kernel", None))
        self._report = report = model.report()
        self.n_iter_ = max(1, report["iterations"])
        self.converged_ = report["converged"]
        self.stop_reason_ = report["stop_reason"]
        self.gradient_norm_ = report["gradient_norm"]
        self.trace_ = np.asarray(report["trace"], dtype=float)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __getstate__(self):
        state = super().__getstate__()
        if "_model" in state and self._own:
            # The model's own file names kernels that are written in Python; they are copied beside it.
            state = {**state, "_model": state["_model"].to_bytes()}
        return state

    def __setstate__(self, state):
        super().__setstate__(state)
        if isinstance(self.__dict__.get("_model"), bytes):
            self._model = _native.from_bytes(self._model, self._own)

    @property
    def kernel_(self) -> Kernel:
        """The kernel with its fitted parameters, which are those of scaled data."""
        check_is_fitted(self)
        return build(self._model.kernel, self._own)

    def save(self, path) -> None:
        """Write the fitted model to a ``.lgp`` file, which the command line and :func:`latentgp.load` read.

        Parameters
        ----------
        path : str or path-like
            The file, which is written whole or not at all.
        """
        check_is_fitted(self)
        path = os.fspath(path)
        folder = os.path.dirname(path) or os.curdir
        if not os.path.isdir(folder):
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", folder)
        part = f"{path}.{os.getpid()}.part"
        try:
            with open(part, "wb") as file:
                file.write(self._model.to_bytes(write(self)))
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, path)
        finally:
            if os.path.exists(part):
                os.unlink(part)


def _own_of(kernel) -> dict[str, Kernel]:
    """The parts of a kernel that are written in Python, as they are now: the parameter may be set after the fit."""
    own = kernel._own() if isinstance(kernel, Kernel) else {}
    return {name: copy.copy(part) for name, part in own.items()}


def names_of(estimator, count: int, prefix: str = "x") -> list[str]:
    """The names of the columns that an estimator was fitted on, or ``x0``, ``x1``, …"""
    names = getattr(estimator, "feature_names_in_", None)
    return [f"{prefix}{k}" for k in range(count)] if names is None else [str(n) for n in names]


def take_names(estimator, names: list[str], named=None) -> None:
    """Sets the number of the columns, and their names where the fit had them named.

    A file of the command line does not tell: there columns without a header are called 0, 1, …
    """
    estimator.n_features_in_ = len(names)
    if named is None:
        named = names != [str(k) for k in range(len(names))]
    if named:
        estimator.feature_names_in_ = np.asarray(names, dtype=object)


def like(given, values: np.ndarray, columns: list[str]):
    """An array in the container that was given: a table of pandas or polars, or the array."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(given, pandas.DataFrame):
        return pandas.DataFrame(values, index=given.index, columns=columns)
    if polars is not None and isinstance(given, polars.DataFrame):
        return polars.DataFrame(values, schema=list(columns), orient="row")
    return values
