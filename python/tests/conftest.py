"""Data that many tests learn from."""

import numpy as np
import pytest


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
