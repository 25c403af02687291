"""The embedded data sets."""

import numpy as np
import pytest

from latentgp import datasets

SHAPES = {"oil_flow": (1000, 12), "airline": (144, 1), "spiral": (100, 10), "sinc": (100, 25), "iris": (150, 4)}


@pytest.mark.parametrize("name", SHAPES)
def test_loaders(name):
    load = getattr(datasets, f"load_{name}")
    whole = load()
    assert whole.data.shape == SHAPES[name] and len(whole.target) == SHAPES[name][0]
    assert len(whole.feature_names) == SHAPES[name][1] and whole.DESCR
    X, y = load(20, return_X_y=True)
    assert X.shape == (20, SHAPES[name][1]) and y.shape == (20,) and X.flags.c_contiguous
    with pytest.raises((ValueError, OverflowError)):
        load(0)


@pytest.mark.parametrize("name", ["oil_flow", "spiral", "sinc"])
def test_simulations_follow_their_seed(name):
    load = getattr(datasets, f"load_{name}")
    assert np.array_equal(load(30, 5).data, load(30, 5).data)
    assert not np.array_equal(load(30, 5).data, load(30, 6).data)


def test_frames():
    pandas = pytest.importorskip("pandas")
    X, y = datasets.load_iris(return_X_y=True, as_frame=True)
    assert isinstance(X, pandas.DataFrame) and y.name == "species" and len(X.columns) == 4
    months = datasets.load_airline(as_frame=True)
    assert months.target.index[1] == pandas.Timestamp("1949-02-01") and months.frame.shape == (144, 2)
    assert sorted(datasets.load_iris().target_names) == sorted(set(y))


@pytest.mark.parametrize("load", [datasets.load_oil_flow, datasets.load_spiral, datasets.load_sinc, datasets.load_iris])
@pytest.mark.parametrize("n", [-3, 0, 5.5, "ten"])
def test_wrong_numbers_of_rows_are_named(load, n):
    with pytest.raises(ValueError, match=f"n: expected a whole number, 1 or more, found {n!r}"):
        load(n)


@pytest.mark.parametrize("seed", [-1, 0.5, None])
def test_wrong_seeds_are_named(seed):
    with pytest.raises(ValueError, match="seed: expected a whole number, 0 or more"):
        datasets.load_spiral(10, seed=seed)
