"""Errors of inputs: ``X_std`` in all its forms, and what a model knows of the true inputs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import NamedTuple, Optional

import numpy as np

from ._base import input_std, listed

#: In the place of a standard deviation: it is learnt, one a column.
LEARN = "learn"


class Inputs(NamedTuple):
    """The posterior of the true inputs: a row for each row of X, latent columns after the others."""

    mean: np.ndarray
    std: np.ndarray


def split(X_std, X: np.ndarray, given=None, names=None) -> tuple[Optional[np.ndarray], list[int]]:
    """Standard deviations as large as X, or None where there are none, and the columns whose errors are learnt.

    ``X_std`` is what ``input_std`` takes, ``"learn"``, a list with an entry for each column, or a mapping from columns, by
    their names or positions, to entries: ``"learn"``, a number, or one number for each row.
    """
    count = X.shape[1]
    if isinstance(X_std, str):
        return None, list(range(count)) if _learnt(X_std) else []
    if isinstance(X_std, Mapping):
        entries = {_place(column, count, names): entry for column, entry in X_std.items()}
    elif isinstance(X_std, (list, tuple)) and any(isinstance(entry, str) for entry in X_std):
        if len(X_std) != count:
            raise ValueError(f"X_std has {len(X_std)} entries, expected one for each of the {count} columns of X")
        entries = dict(enumerate(X_std))
    else:
        return input_std(X_std, X, given, names), []
    learn = sorted(j for j, entry in entries.items() if isinstance(entry, str) and _learnt(entry))
    std = np.zeros(X.shape)
    for j, entry in entries.items():
        if j not in learn:
            std[:, [j]] = input_std(entry, X[:, [j]], given)
    return (std if len(learn) < len(entries) else None), learn


def _learnt(text: str) -> bool:
    if text != LEARN:
        raise ValueError(f"X_std: expected numbers or {LEARN!r}, found {text!r}")
    return True


def _place(column, count: int, names) -> int:
    known = [] if names is None else [str(name) for name in names]
    if column in known:
        return known.index(column)
    if isinstance(column, (int, np.integer)) and 0 <= column < count:
        return int(column)
    found = f"the columns of X are {listed(known)}" if known else f"X has {count} columns"
    raise ValueError(f"X_std has an entry for the column {column!r}, but {found}")


def warn_unclear(learnt: dict, evidence) -> None:
    """Warns of every learnt error that the data do not tell; ``evidence`` has what the bound loses without and doubled."""
    for (column, std), (without, doubled, clear) in zip(learnt.items(), evidence):
        if not clear:
            warnings.warn(
                f"the error of column {column!r} was learnt as {std:.3g}, but the data do not tell it: without it the log "
                f"evidence is lower by {max(0.0, without):.2g}, with twice as much by {max(0.0, doubled):.2g}; "
                "give X_std as numbers if they are known",
                UserWarning,
                stacklevel=6,
            )
