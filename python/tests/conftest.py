"""Data that many tests learn from."""

import latentgp as lg
import numpy as np
import pytest

# Tests fit from one start unless they ask for more: the point of most of them is another than the search.
for name in lg.__all__:
    defaults = getattr(getattr(getattr(lg, name), "__init__", None), "__kwdefaults__", None)
    if defaults and "effort" in defaults:
        defaults["effort"] = "quick"


@pytest.fixture(scope="session")
def table():
    """40 rows of 5 columns on a noisy curve."""
    rng = np.random.default_rng(0)
    t = np.linspace(0, 3, 40)
    clean = np.column_stack([np.sin(t), np.cos(2 * t), t, t**2, np.exp(-t)])
    return clean + 0.05 * rng.normal(size=clean.shape)


@pytest.fixture(scope="session")
def wave():
    """Inputs and targets of a noisy wave."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0, 6, 50))[:, None]
    return x, np.sin(x[:, 0]) + 0.1 * rng.normal(size=50)
