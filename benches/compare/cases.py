"""The sizes, and the data of each case: drawn once, written as .npy files that every program reads."""

from pathlib import Path

import numpy as np

BOUND_SIZES = [
    (100, 12, 5, 20),
    (1000, 12, 10, 50),
    (5000, 256, 5, 20),
    (5000, 256, 5, 100),
    (20000, 50, 10, 100),
]
EXACT_SIZES = [500, 2000, 5000]
EXACT_INPUTS = 8
PREDICTED_ROWS = 10_000
NOISE = 0.05


def smooth(rng, x, outputs):
    """Smooth functions of the rows of x, with noise."""
    weights = rng.normal(size=(x.shape[1], outputs)) / np.sqrt(x.shape[1])
    y = np.sin(2.0 * x @ weights) + np.sqrt(NOISE) * rng.normal(size=(len(x), outputs))
    return y - y.mean(axis=0)


def bound(folder: Path, n, d, q, m):
    """A Bayesian GPLVM of N rows, D columns, Q latent dimensions and M inducing inputs."""
    rng = np.random.default_rng(n + d + q + m)
    mean = rng.normal(size=(n, q))
    arrays = {
        "y": smooth(rng, mean, d),
        "mean": mean,
        "var": rng.uniform(0.05, 0.3, size=(n, q)),
        "z": rng.normal(size=(m, q)),
        "lengthscale": np.sqrt(q) * rng.uniform(0.8, 1.2, size=(1, q)),
    }
    write(folder, arrays)


def regression(folder: Path, n, m=100):
    """A regression on eight inputs, and rows to predict."""
    rng = np.random.default_rng(n)
    x = rng.uniform(-2.0, 2.0, size=(n, EXACT_INPUTS))
    arrays = {
        "x": x,
        "y": smooth(rng, x, 1),
        "z": rng.uniform(-2.0, 2.0, size=(m, EXACT_INPUTS)),
        "new": rng.uniform(-2.0, 2.0, size=(PREDICTED_ROWS, EXACT_INPUTS)),
        "lengthscale": rng.uniform(2.0, 4.0, size=(1, EXACT_INPUTS)),
    }
    write(folder, arrays)


def fit(folder: Path, y, q=5, m=20):
    """A whole fit: standardised columns, and the start that every peer is given."""
    rng = np.random.default_rng(0)
    y = (y - y.mean(axis=0)) / y.std(axis=0)
    _, _, axes = np.linalg.svd(y, full_matrices=False)
    scores = y @ axes[:q].T
    mean = scores / scores.std(axis=0)
    arrays = {
        "y": y,
        "mean": mean,
        "var": np.full_like(mean, 0.5),
        "z": mean[rng.permutation(len(y))[:m]],
        "lengthscale": np.ones((1, q)),
    }
    write(folder, arrays)


def write(folder: Path, arrays):
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array, dtype=np.float64))


def read(folder: Path):
    """The arrays of a case, by name."""
    return {path.stem: np.load(path) for path in Path(folder).glob("*.npy")}
