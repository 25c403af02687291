"""Pictures of fitted estimators, with matplotlib: each function draws on an Axes and returns it.

>>> import matplotlib
>>> matplotlib.use("Agg")
>>> import latentgp as lg
>>> X, y = lg.datasets.load_iris(return_X_y=True)
>>> model = lg.BayesianGPLVM(n_components=2, n_inducing=10, max_iter=20, random_state=0).fit(X)
>>> lg.plot.latent_map(model, labels=y).get_xlabel()
'latent dimension 1'
"""

from __future__ import annotations

import sys
from datetime import date, datetime
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._base import input_std, listed, named
from ._doc import documented
from ._latent import LatentEstimator
from ._narx import GPNarx
from ._supervised import InputEstimator, Regressor

__all__ = ["forecast", "latent_map", "regression", "relevance"]

#: Colours that are told apart by most eyes, the first eight by nearly all.
COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#444444", "#7b2d8e", "#a8b400",
    "#9b1b30", "#f08fb5", "#00b3a6", "#56660a", "#2a2f9b", "#ff8573", "#8fce8b", "#c9a66b", "#b39ddb", "#9e9e9e",
)  # fmt: skip
#: Points of one class have one marker, so that classes differ without colours as well; as their number has no divisor in
#: common with that of the colours, 180 classes differ in one of them.
MARKERS = "os^DvPX*<"
#: More classes than these have their legend beside the picture.
INSIDE = 6
#: Entries of a column of such a legend, and how many it has at most.
COLUMN, LISTED = 20, 60
#: Parts in which the points of each class are drawn, in turn with those of other classes.
LAYERS = 8
#: Inches that a letter of a small label takes.
LETTER = 0.07
#: Bars below one another that all have their name.
MOST_ROWS = 40
#: Seconds of the units of durations.
UNITS = {"days": 86400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}
#: A column is constant where it varies by less than this part of its size.
SAME = 1e-9
#: Points on each side of the grid behind a latent map.
GRID = 60


@documented
def latent_map(
    estimator, X=None, *, labels=None, dims=None, ellipses=True, background=True, ax=None, n_std=1.0
):
    """The latent positions of rows, with their uncertainty, before the predictive variance.

    Parameters
    ----------
    estimator : BayesianGPLVM, GPLVM or PPCA
        Fitted.
    X : array-like of shape (n_samples, n_features), default=None
        Rows to place; None shows the training rows.
    labels : array-like of shape (n_samples,), default=None
        Classes, drawn with colours, markers and a legend: words, categories of pandas, truth values, up to 20 different
        whole numbers or up to 8 others; more than 60 have no legend. More numbers, dates and durations are drawn with a
        colour bar.
    dims : tuple of two int, default=None
        The latent dimensions; None is the two most relevant ones.
    ellipses : bool, default=True
        Whether to draw each position's standard deviations.
    background : bool, default=True
        Whether to shade the plane by the standard deviation of the data decoded there: light where the model knows.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None is a new figure.
    n_std : float, default=1.0
        How many standard deviations an ellipse spans.

    Returns
    -------
    ax : matplotlib.axes.Axes
        With the picture.
    """
    _check(estimator, LatentEstimator, "latent_map")
    if X is None:
        mean, std = estimator.embedding_, estimator.embedding_std_
    else:
        mean, std = estimator.transform(X, return_std=True)
        mean = np.asarray(mean)
    first, second = _two(estimator, mean.shape[1], dims)
    x, y = mean[:, first], mean[:, second]
    groups, numbers = _groups(labels, len(x))
    ax = _axes(ax, (5.6, 4.6))
    if second == first:
        # One dimension: a line for each class.
        y = np.zeros_like(x)
        for place, (_, rows) in enumerate(groups):
            y[rows] = -place
        if ellipses:
            ax.errorbar(x, y, xerr=n_std * std[:, first], fmt="none", ecolor="#9a9a9a", elinewidth=0.6, zorder=2)
    limits = _limits(x), _limits(y)
    if background and first != second:
        _shade(ax, estimator, mean, first, second, limits)
    if ellipses and first != second:
        _ellipses(ax, x, y, n_std * std[:, first], n_std * std[:, second], groups)
    if numbers is not None:
        points = ax.scatter(x, y, c=numbers.values, cmap="viridis", s=16, linewidths=0.4, edgecolors="white", zorder=3)
        name = " ".join(str(of) for of in (getattr(labels, "name", None), numbers.unit) if of)
        bar = ax.figure.colorbar(points, ax=ax, label=name, pad=0.02)
        if numbers.are_dates:
            _date_axis(bar.ax.yaxis, numbers.zone)
    else:
        for place, name, rows in _layers(groups):
            ax.scatter(
                x[rows], y[rows], s=18, color=COLOURS[place % len(COLOURS)], marker=MARKERS[place % len(MARKERS)],
                linewidths=0.4, edgecolors="white", label=name, zorder=3,
            )  # fmt: skip
        if labels is not None and first != second and len(groups) <= LISTED:
            _legend(ax, len(groups))
    ax.set(xlim=limits[0], ylim=limits[1], xlabel=f"latent dimension {first + 1}")
    if first != second:
        ax.set_ylabel(f"latent dimension {second + 1}")
    else:
        ax.set_yticks(-np.arange(len(groups)), [name for name, _ in groups])
    return _tidy(ax)


@documented
def relevance(estimator, *, names=None, ax=None):
    """How much each latent dimension or each input matters, as bars, the largest being 1.

    Bars lie below one another where their names have no room otherwise.

    Parameters
    ----------
    estimator : object
        Fitted: a latent model, of which the latent dimensions are drawn; SPGPDRRegressor or VDMGPRegressor, of which the
        lengths of the directions are; or another regressor or classifier, of which the inputs are, as its kernel weighs
        them.
    names : sequence of str, default=None
        What the bars are called; None is the names of the inputs, or numbers.
    {axes}
    """
    _check(estimator, (LatentEstimator, InputEstimator), "relevance")
    if isinstance(estimator, LatentEstimator):
        values, over = estimator.relevance_, "latent dimension"
    elif getattr(estimator, "projection_", None) is not None:
        values, over = np.sqrt((np.asarray(estimator.projection_) ** 2).sum(axis=1)), "direction"
    else:
        values, over = estimator._model.relevance, "input"
        if names is None and hasattr(estimator, "feature_names_in_"):
            names = [str(name) for name in estimator.feature_names_in_]
    if values is None:
        raise ValueError(
            f"relevance: expected a kernel with a lengthscale or a variance for each input, found {estimator.kernel_}, "
            "which does not tell which inputs matter; try kernel='rbf'"
        )
    values = np.asarray(values, dtype=float)
    values = values / max(values.max(initial=0.0), np.finfo(float).tiny)
    names = [str(k + 1) for k in range(len(values))] if names is None else list(names)
    if len(names) != len(values):
        raise ValueError(f"names has {len(names)} entries, expected {len(values)}")
    colours = np.where(values >= 0.05, COLOURS[0], "#b9c7d2")
    if _fit_side_by_side(names, ax):
        return _columns(_axes(ax, (5.0, 3.2)), values, names, colours, over)
    return _rows(_axes(ax, (5.0, min(0.9 + 0.24 * len(names), 10.0))), values, names, colours, over)


def _fit_side_by_side(names, ax) -> bool:
    """Whether names, or the numbers above the bars, have room beside one another."""
    width = 4.4 if ax is None else ax.get_position().width * ax.figure.get_figwidth()
    return len(names) * (1 + max(len(str(name)) for name in [*names, "0.00"])) * LETTER <= width


def _columns(ax, values, names, colours, over):
    places = np.arange(len(values))
    ax.bar(places, values, width=0.72, color=colours, zorder=2)
    for place, value in zip(places, values):
        ax.annotate(f"{value:.2f}", (place, value), (0, 2), textcoords="offset points", ha="center", va="bottom",
                    fontsize="small", color="#444444")  # fmt: skip
    ax.set_xticks(places, names)
    ax.set(ylim=(0, 1.12), xlabel=over, ylabel="relevance")
    ax.tick_params(axis="x", length=0)
    return _tidy(ax)


def _rows(ax, values, names, colours, over):
    """Bars below one another, the first on top; of very many only some have their name."""
    places = np.arange(len(values))
    ax.barh(places, values, height=0.72, color=colours, zorder=2)
    every = -(-len(values) // MOST_ROWS)
    for place, value in zip(places, values) if every == 1 else ():
        ax.annotate(f"{value:.2f}", (value, place), (3, 0), textcoords="offset points", ha="left", va="center",
                    fontsize="small", color="#444444")  # fmt: skip
    ax.set_yticks(places[::every], names[::every])
    ax.set(xlim=(0, 1.12), ylim=(len(values) - 0.4, -0.6), xlabel="relevance", ylabel=over)
    ax.tick_params(axis="y", length=0)
    return _tidy(ax)


@documented
def regression(
    estimator, X=None, y=None, *, X_std=None, feature=0, at=None, n_points=200, n_std=2.0, extend=0.1, ax=None
):
    """The predictive mean and band along one input, with the observations.

    Parameters
    ----------
    estimator : GPRegressor, SparseGPRegressor, GPCountRegressor or another regressor
        Fitted, whose ``predict`` has ``return_std``.
    X : array-like of shape (n_samples, n_features), default=None
        Observed inputs, which also say how far the curve goes.
    y : array-like of shape (n_samples,), default=None
        Observed outputs.
    X_std : array-like of shape (n_samples, n_features), float or None, default=None
        Standard deviations of the inputs, drawn as horizontal bars; a table goes by the names of its columns.
    feature : int or str, default=0
        The input along which to draw: its place, or the name of its column.
    at : array-like of shape (n_features,), default=None
        The values of the other inputs; None is their means in X.
    n_points : int, default=200
        Points of the curve.
    n_std : float, default=2.0
        Half the width of the band, in standard deviations; that of counts ends at 0.
    extend : float, default=0.1
        How far the curve goes beyond the observations, relative to their range.
    {axes}
    """
    _check(estimator, Regressor, "regression")
    if X is None:
        raise ValueError("X: expected the observed inputs, which say how far the curve goes")
    inputs = np.asarray(X, dtype=float)
    if inputs.ndim != 2 or inputs.shape[1] != estimator.n_features_in_:
        expected = f"(n, {estimator.n_features_in_})"
        raise ValueError(f"X has the shape {inputs.shape}, expected {expected}; try X[:, None] for one input")
    _finite(inputs, "X")
    columns = list(X.columns) if hasattr(X, "columns") else None
    feature = _place(feature, columns or list(getattr(estimator, "feature_names_in_", ())), inputs.shape[1])
    # scikit-learn takes words alone for names.
    names = columns if columns and named(columns) else None
    line = inputs[:, feature]
    lo, hi = _limits(line, extend)
    others = inputs.mean(axis=0) if at is None else np.asarray(at, dtype=float)
    if others.shape != inputs.shape[1:]:
        raise ValueError(f"at has the shape {others.shape}, expected a value for each of the {inputs.shape[1]} inputs")
    grid = np.tile(others, (n_points, 1))
    grid[:, feature] = np.linspace(lo, hi, n_points)
    asked = grid if names is None else type(X)({name: grid[:, k] for k, name in enumerate(names)})
    mean, std = (np.asarray(v, dtype=float) for v in estimator.predict(asked, return_std=True))
    if mean.ndim > 1 and mean.shape[1] > 1:
        raise ValueError(f"the estimator has {mean.shape[1]} outputs, expected one")
    observed = None if y is None else np.asarray(y, dtype=float).ravel()
    if observed is not None:
        _finite(observed, "y")
        if len(observed) != len(line):
            raise ValueError(f"y has {len(observed)} entries, expected one for each of the {len(line)} rows of X")
    errors = input_std(X_std, inputs, X, names)
    least = 0.0 if estimator._model.observed == "counts" else -np.inf
    name = str(columns[feature]) if columns else "x" if inputs.shape[1] == 1 else f"x{feature}"
    ax = _axes(ax, (6.0, 3.8))
    _band(ax, grid[:, feature], mean.ravel(), std.ravel(), n_std, least=least)
    if y is not None:
        if errors is not None:
            bars = errors[:, feature]
            ax.errorbar(line, observed, xerr=bars, fmt="none", ecolor="#9a9a9a", elinewidth=0.8, zorder=3)
        ax.scatter(line, observed, s=16, color="#222222", linewidths=0.4, edgecolors="white", zorder=4,
                   label="observed")  # fmt: skip
    ax.set(xlim=(lo, hi), xlabel=name, ylabel=getattr(y, "name", None) or "y")
    ax.legend(frameon=False, fontsize="small")
    return _tidy(ax)


@documented
def forecast(estimator, horizon, X=None, *, history=None, truth=None, index=None, n_std=2.0, ax=None):
    """The forecast of a series with its band, after the series itself.

    Parameters
    ----------
    estimator : GPNarx
        Fitted on one series.
    horizon : int
        Steps to forecast.
    X : array-like of shape (horizon, n_inputs), default=None
        Exogenous inputs of these steps, where the estimator was fitted with some.
    history : array-like of shape (n_steps,), default=None
        What is drawn before the forecast; None is the series that the estimator was fitted on.
    truth : array-like of shape (horizon,), default=None
        What came, to compare with.
    index : array-like, default=None
        Times of history and forecast, one after the other: numbers, dates, of a time zone too, or durations. None is
        the index of a series of pandas, which goes on, or counts steps from 0.
    n_std : float, default=2.0
        Half the width of the band, in standard deviations.
    {axes}
    """
    _check(estimator, GPNarx, "forecast")
    ahead, std = estimator.forecast(horizon, X, return_std=True)
    mean, std = np.asarray(ahead, dtype=float), np.asarray(std, dtype=float)
    if mean.ndim > 1 and mean.shape[1] > 1:
        raise ValueError(f"forecast: expected an estimator of one series, found one of {mean.shape[1]}")
    past = estimator._model.data[0] if history is None else history
    times, zone = _times(estimator, ahead, past, index)
    past = np.asarray(past, dtype=float).ravel()
    if len(times) != len(past) + len(mean):
        raise ValueError(f"index has {len(times)} entries, expected {len(past)} of the past and {len(mean)} to come")
    came = None if truth is None else np.asarray(truth, dtype=float).ravel()
    if came is not None and len(came) > len(mean):
        raise ValueError(f"truth has {len(came)} entries, expected at most the {len(mean)} of the horizon")
    are_dates = times.dtype.kind == "M"
    over = "" if are_dates else "time"
    if zone is not None:
        over = str(zone)
    elif times.dtype.kind == "m":
        times, unit, *_ = _numbers(times)
        over = f"time {unit}"
    ax = _axes(ax, (7.0, 3.8))
    after = times[len(past) :]
    if len(past):
        ax.plot(times[: len(past)], past, color="#222222", lw=1.2, label="observed", zorder=3)
        ax.axvline(after[0], color="#9a9a9a", lw=0.8, ls=":", zorder=1)
    _band(ax, after, mean.ravel(), std.ravel(), n_std, "forecast")
    if came is not None:
        ax.plot(after[: len(came)], came, color="#222222", lw=1.0, ls=(0, (3, 2)), label="what came", zorder=4)
    if are_dates:
        _date_axis(ax.xaxis, zone)
    name = getattr(history, "name", None) or estimator._model.names[0][0]
    ax.set(xlabel=over, ylabel="value" if name == "y" else name)
    ax.margins(x=0.01)
    # A row of its own above the curves, which may be anywhere below it.
    lo, hi = ax.get_ylim()
    ax.set_ylim(lo, hi + 0.1 * (hi - lo))
    ax.legend(frameon=False, fontsize="small", loc="upper left", ncols=4, columnspacing=1.4, borderaxespad=0.2)
    return _tidy(ax)


def _times(estimator, ahead, past, index) -> tuple[np.ndarray, Any]:
    """Times of the past and of the steps ahead, and their time zone: dates where a series of pandas has some."""
    if index is not None:
        return _plain(index)
    own = estimator._index
    before = getattr(past, "index", None)
    if callable(before) or before is None:  # lists have a method of that name
        before = own if own is not None and len(own) == len(past) else None
    if before is not None and hasattr(ahead, "index"):
        (before, zone), (after, _) = _plain(before), _plain(ahead.index)
        if any(before.dtype.kind in kinds and after.dtype.kind in kinds for kinds in ("M", "m", "iuf")):
            return np.concatenate([before, after]), zone
    return np.arange(len(past) + len(ahead)), None


def _plain(of) -> tuple[np.ndarray, Any]:
    """Labels or times as an array, dates of the time zone that comes with it as those of UTC."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(of, pandas.Series):
        of = pandas.Index(of)
    elif pandas is None or not isinstance(of, pandas.Index):
        of = np.asarray(of)
    if of.ndim == 1 and of.dtype.kind == "O":
        if len(of) and all(isinstance(day, date) and not isinstance(day, datetime) for day in of):
            of = np.asarray(of, dtype="datetime64[D]")
        elif pandas is not None:
            of = pandas.Index(of).infer_objects()
    if hasattr(of, "to_timestamp"):
        of = of.to_timestamp()
    zone = getattr(of, "tz", None)
    return np.asarray(of if zone is None else of.tz_convert(None)), zone


def _check(estimator, kinds, name: str) -> None:
    """Whether a function draws such an estimator, and whether it is fitted."""
    draws = {
        LatentEstimator: ("BayesianGPLVM, GPLVM or PPCA", "latent_map"),
        GPNarx: ("GPNarx", "forecast"),
        Regressor: ("a regressor of one target", "regression"),
    }
    if not isinstance(estimator, kinds):
        expected = draws[kinds][0] if kinds in draws else "a latent model, a regressor or a classifier"
        other = [name for kind, (_, name) in draws.items() if isinstance(estimator, kind)]
        found = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        try_ = f"; try plot.{other[0]}" if other else "; try its last step" if hasattr(estimator, "steps") else ""
        raise TypeError(f"{name}: expected {expected}, fitted, found {found}{try_}")
    check_is_fitted(estimator)


def _finite(of: np.ndarray, name: str) -> None:
    bad = sum(not np.isfinite(row).all() for row in of)
    if len(of) == 0 or bad:
        found = f"{bad} rows with NaN or infinity; try leaving them out" if len(of) else "none"
        raise ValueError(f"{name}: expected finite numbers, found {found}")


def _place(feature, names: list, count: int) -> int:
    """The place of an input that is named or counted."""
    if isinstance(feature, Integral) and 0 <= feature < count:
        return int(feature)
    if isinstance(feature, str) and feature in names:
        return names.index(feature)
    known = [name for name in names if isinstance(name, str)]
    or_names = f" or one of {listed(known)}" if known else ""
    raise ValueError(f"feature: expected an input from 0 to {count - 1}{or_names}, found {feature!r}")


def _band(ax, x, mean, std, n_std, label="mean", least=-np.inf):
    ax.fill_between(x, np.maximum(mean - n_std * std, least), mean + n_std * std, color=COLOURS[0], alpha=0.18, lw=0, zorder=1,
                    label=f"± {n_std:g} standard deviations")  # fmt: skip
    ax.plot(x, mean, color=COLOURS[0], lw=1.8, label=label, zorder=2)


def _shade(ax, estimator, mean, first, second, limits):
    """The root of the mean variance of the decoded columns, each in units of its own spread over the map; columns that
    are the same everywhere have none and are left out."""
    xs, ys = (np.linspace(*side, GRID) for side in limits)
    grid = np.tile(mean.mean(axis=0), (GRID * GRID, 1))
    grid[:, first], grid[:, second] = (of.ravel() for of in np.meshgrid(xs, ys))
    there, _ = estimator.inverse_transform(mean, return_std=True)
    _, std = estimator.inverse_transform(grid, return_std=True)
    there = np.asarray(there)
    scale = there.std(axis=0)
    varies = scale > SAME * np.abs(there).max(axis=0)
    if not varies.any():
        return
    depth = np.sqrt(((std[:, varies] / scale[varies]) ** 2).mean(axis=1)).reshape(GRID, GRID)
    ax.imshow(depth, extent=(*limits[0], *limits[1]), origin="lower", aspect="auto", cmap="Greys",
              vmin=0.0, vmax=1.8 * max(depth.max(), np.finfo(float).tiny), interpolation="bicubic", zorder=0)  # fmt: skip


def _ellipses(ax, x, y, width, height, groups):
    from matplotlib.collections import EllipseCollection

    for place, (_, rows) in enumerate(groups):
        shapes = EllipseCollection(
            2 * width[rows], 2 * height[rows], np.zeros(len(rows)), units="xy", transOffset=ax.transData,
            offsets=np.column_stack([x[rows], y[rows]]), facecolors=COLOURS[place % len(COLOURS)], alpha=0.16,
            edgecolors="none", zorder=2,
        )  # fmt: skip
        ax.add_collection(shapes)


def _groups(labels, count):
    """Names and rows of classes, and where labels are measurements these instead."""
    if labels is None:
        return [("", np.arange(count))], None
    given, (labels, zone) = labels, _plain(labels)
    if labels.shape != (count,):
        raise ValueError(f"labels has {len(given)} entries, expected one for each of the {count} rows")
    missing = _missing(labels)
    if missing:
        raise ValueError(
            f"labels: expected one for each row, found {missing} that are missing; try a word such as 'unknown' for them"
        )
    if _are_measured(given, labels):
        return [("", np.arange(count))], _numbers(labels, zone)
    if labels.dtype.kind == "O":
        labels = labels.astype(str)
    return [(str(name), np.flatnonzero(labels == name)) for name in np.unique(labels)], None


def _missing(labels) -> int:
    """How many labels are None, NaN or NaT."""
    pandas = sys.modules.get("pandas")
    if pandas is not None:
        return int(np.count_nonzero(pandas.isna(labels)))
    return sum(of is None or of != of for of in labels)


def _are_measured(given, labels) -> bool:
    """Whether labels are numbers rather than classes."""
    kind = "category" if str(getattr(given, "dtype", "")) == "category" else labels.dtype.kind
    most = {"f": 8, "i": len(COLOURS), "u": len(COLOURS), "M": 0, "m": 0}.get(kind)
    return most is not None and len(np.unique(labels)) > most


class _Numbers(NamedTuple):
    """Numbers of an axis: values, the unit of durations, and whether they are dates, of which time zone."""

    values: np.ndarray
    unit: str = ""
    are_dates: bool = False
    zone: Any = None


def _numbers(values: np.ndarray, zone=None) -> _Numbers:
    """Dates as matplotlib counts them, durations in a unit that suits them, numbers as they are."""
    if values.dtype.kind == "M":
        from matplotlib.dates import date2num

        return _Numbers(date2num(values), are_dates=True, zone=zone)
    if values.dtype.kind == "m":
        seconds = values / np.timedelta64(1, "s")
        unit = next((of for of in UNITS if np.ptp(seconds) >= 3 * UNITS[of]), "seconds")
        return _Numbers(seconds / UNITS[unit], f"({unit})")
    return _Numbers(values)


def _date_axis(axis, zone) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    places = AutoDateLocator(tz=zone)
    axis.set_major_locator(places)
    axis.set_major_formatter(ConciseDateFormatter(places, tz=zone))


def _legend(ax, count):
    """Names of classes, where they hide nothing."""
    how = {"frameon": True, "framealpha": 0.9, "edgecolor": "none", "fontsize": "small"}
    if count <= INSIDE:
        ax.legend(**how, loc="best")
    else:
        ax.legend(**how, loc="center left", bbox_to_anchor=(1.0, 0.5), borderaxespad=0.4, ncols=-(-count // COLUMN))


def _layers(groups):
    """Place, name and some rows of each class in turn, so that none lies above another; only the first has the name."""
    shuffle, layers = np.random.default_rng(0).permutation, LAYERS if len(groups) > 1 else 1
    parts = [np.array_split(shuffle(rows), layers) for _, rows in groups]
    for layer in range(layers):
        for place, (name, _) in enumerate(groups):
            rows = parts[place][layer]
            if len(rows):
                yield place, name if layer == 0 else None, rows


def _two(estimator, count, dims):
    if dims is None:
        order = np.argsort(-np.asarray(estimator.relevance_), kind="stable")
        return int(order[0]), int(order[min(1, count - 1)])
    if len(dims) != 2:
        raise ValueError(f"dims: expected two dimensions, found {dims!r}")
    first, second = dims
    for q in dims:
        if not (isinstance(q, Integral) and 0 <= q < count):
            raise ValueError(f"dims: expected dimensions from 0 to {count - 1}, found {q!r}")
    return int(first), int(second)


def _limits(of, room=0.08):
    lo, hi = float(np.min(of)), float(np.max(of))
    pad = room * (hi - lo) or 1.0
    return lo - pad, hi + pad


def _axes(ax, size):
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("latentgp.plot needs matplotlib: pip install matplotlib") from error
    return plt.subplots(figsize=size, layout="constrained")[1]


def _tidy(ax):
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color("#888888")
    ax.tick_params(color="#888888", labelsize="small")
    return ax
