"""The embedded data sets, in the manner of ``sklearn.datasets``.

Those that are fixed give their first ``n`` rows, those that are simulated draw ``n`` with ``seed``; both are the sets
of ``latentgp dataset`` on the command line, to the bit.

>>> from latentgp import datasets
>>> X, y = datasets.load_oil_flow(100, seed=1, return_X_y=True)
>>> X.shape, sorted(set(y.tolist()))
((100, 12), ['annular', 'homogeneous', 'stratified'])
>>> datasets.load_airline().target[:3]
array([112., 118., 132.])
"""

from __future__ import annotations

from numbers import Integral

import numpy as np
from sklearn.utils import Bunch

from . import _native
from ._base import count_of
from ._doc import documented

__all__ = ["load_airline", "load_iris", "load_oil_flow", "load_sinc", "load_spiral"]


@documented
def load_oil_flow(n=1000, seed=0, *, return_X_y=False, as_frame=False):
    """Gamma densitometry of oil, water and gas in a pipe, simulated.

    Parameters
    ----------
    {simulated}
    {container}

    Returns
    -------
    data : Bunch
        With ``data`` of shape (n, 12), ``target`` (one of three regimes of flow, as words), ``feature_names``,
        ``target_names`` and ``DESCR``.
    """
    columns, values, (name, words) = _draw("oil-flow", n, seed)
    return _bunch(values, np.asarray(words), columns, name, load_oil_flow, return_X_y, as_frame)


@documented
def load_iris(n=None, *, return_X_y=False, as_frame=False):
    """Four lengths of 150 irises of three species.

    Parameters
    ----------
    n : int, default=None
        How many of the first rows; None is all.
    {container}

    Returns
    -------
    data : Bunch
        With ``data`` of shape (n, 4), ``target`` (the species, as words), ``feature_names``, ``target_names`` and
        ``DESCR``.
    """
    columns, values, (name, words) = _first("iris", n)
    return _bunch(values, np.asarray(words), columns, name, load_iris, return_X_y, as_frame)


def load_airline(n=None, *, return_X_y=False, as_frame=False):
    """International airline passengers, in thousands a month from 1949 to 1960.

    Parameters
    ----------
    n : int, default=None
        How many of the first months; None is all 144.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Whether data and target are a DataFrame and a Series of pandas, with the months as their index, dates that
        :class:`latentgp.GPNarx` goes on from.

    Returns
    -------
    data : Bunch
        With ``data`` of shape (n, 1), the time in years, ``target``, the passengers, ``months`` (as ``"1949-01"``),
        ``feature_names`` and ``DESCR``.
    """
    columns, values, (_, months) = _first("airline", n)
    years = np.array([int(m[:4]) + (int(m[5:7]) - 1) / 12 for m in months])[:, None]
    out = _bunch(years, values[:, 0], ["year"], columns[0], load_airline, return_X_y, as_frame, months)
    if not return_X_y:
        out["months"] = np.asarray(months)
    return out


@documented
def load_spiral(n=100, seed=0, *, return_X_y=False, as_frame=False):
    """A spiral in the plane seen in ten dimensions with noise, simulated.

    Parameters
    ----------
    {simulated}
    {container}

    Returns
    -------
    data : Bunch
        With ``data`` of shape (n, 10), ``target``, the angle along the spiral, ``feature_names`` and ``DESCR``.
    """
    columns, values, _ = _draw("spiral", n, seed)
    angle = np.linspace(0, 3 * np.pi, len(values))
    return _bunch(values, angle, columns, "angle", load_spiral, return_X_y, as_frame)


@documented
def load_sinc(n=100, seed=0, *, return_X_y=False, as_frame=False):
    """A sinc of one direction among 25 inputs with noise, simulated.

    Parameters
    ----------
    {simulated}
    {container}

    Returns
    -------
    data : Bunch
        With ``data`` of shape (n, 25), ``target``, ``feature_names`` and ``DESCR``.
    """
    columns, values, _ = _draw("sinc", n, seed)
    data, target = np.ascontiguousarray(values[:, :-1]), values[:, -1].copy()
    return _bunch(data, target, columns[:-1], columns[-1], load_sinc, return_X_y, as_frame)


def _draw(name, n, seed):
    """A simulated set."""
    if not isinstance(seed, Integral) or not 0 <= seed < 2**64:
        raise ValueError(f"seed: expected a whole number, 0 or more, found {seed!r}")
    return _native.dataset(name, count_of(n, "n"), int(seed))


def _first(name, n):
    """The first rows of a fixed set, or all."""
    return _native.dataset(name, None if n is None else count_of(n, "n"))


def _bunch(data, target, columns, name, loader, return_X_y, as_frame, months=None):
    names = np.unique(target) if target.dtype.kind == "U" else [name]
    frame = None
    if as_frame:
        try:
            import pandas
        except ImportError as error:
            raise ImportError("as_frame=True needs pandas: pip install pandas") from error
        index = None if months is None else pandas.DatetimeIndex(months, freq="MS")
        data = pandas.DataFrame(data, columns=columns, index=index)
        target = pandas.Series(target, name=name, index=data.index)
        frame = data.assign(**{name: target})
    if return_X_y:
        return data, target
    description = loader.__doc__.partition("\n")[0]
    return Bunch(
        data=data, target=target, frame=frame, feature_names=list(columns), target_names=names, DESCR=description
    )
