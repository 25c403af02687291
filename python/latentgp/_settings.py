"""What an estimator was asked for, in the header of its model file.

::

    {"estimator": "GPNarx", "arguments": {"lags": 12, "propagation": "correlated", …}, "flat": true, "named": false, …}
    {"estimator": "GPClassifier", "arguments": {…}, "named": true, "classes": {"dtype": "<U1", "text": true}}

``named`` says whether the columns of X had names, or have some only in the file. A kernel that is an object is
``{"expression": …}``. What JSON has no words for, a callback, a generator of random
numbers or a model to start at, is left out. Files of the command line have no settings: the model itself says most of them.
"""

from __future__ import annotations

import json
from numbers import Integral
from typing import Any, Optional

import numpy as np

from ._kernels import Kernel, parse


def write(estimator) -> str:
    """The settings of an estimator, as JSON."""
    arguments = {name: _plain(value) for name, value in estimator.get_params(deep=False).items() if _told(name, value)}
    settings = {
        "estimator": type(estimator).__name__,
        "arguments": arguments,
        "flat": getattr(estimator, "_one", None),
        "named": hasattr(estimator, "feature_names_in_"),
        "series_named": getattr(estimator, "_series_named", None),
    }
    classes = getattr(estimator, "classes_", None)
    if classes is not None:
        settings["classes"] = {"dtype": classes.dtype.str, "text": all(isinstance(c, str) for c in classes)}
    return json.dumps(settings, allow_nan=False)


def classes_as(told, names: list[str], guessed: np.ndarray) -> np.ndarray:
    """Classes of the type they were saved with; where nothing is told of it, as ``guessed`` from their names."""
    if told is None:
        return guessed
    try:
        dtype = np.dtype(told["dtype"])
        return (np.asarray(names) if told["text"] or dtype.kind in "mM" else guessed).astype(dtype)
    except (KeyError, TypeError, ValueError):
        raise ValueError("its settings are damaged") from None


def read(text: Optional[str], own: Optional[Kernel]) -> dict[str, Any]:
    """Settings as they were; ``own`` has the kernels that are written in Python."""
    settings = {} if text is None else json.loads(text)
    arguments = settings.get("arguments", {}) if isinstance(settings, dict) else None
    if not isinstance(arguments, dict):
        raise ValueError("its settings are damaged")
    kernel = arguments.get("kernel")
    if isinstance(kernel, dict):
        arguments["kernel"] = parse(str(kernel.get("expression")), own)
    if isinstance(arguments.get("delays"), list):
        arguments["delays"] = tuple(arguments["delays"])
    told = {name: settings.get(name) for name in ("estimator", "flat", "named", "series_named", "classes")}
    return {"arguments": arguments, **told}


def _told(name: str, value) -> bool:
    if name == "random_state":
        return value is None or isinstance(value, Integral)
    return not (callable(value) or hasattr(value, "fit_transform")) or isinstance(value, Kernel)


def _plain(value) -> Any:
    """A value in the types of JSON."""
    if isinstance(value, Kernel):
        return {"expression": repr(value)}
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if hasattr(value, "to_numpy"):
        return value.to_numpy().tolist()
    return [_plain(v) for v in value] if isinstance(value, (list, tuple)) else value
