"""Starts of one's own, dimensions from the data, and searches."""

import latentgp as lg
import numpy as np
import pytest


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_starts_where_it_is_told(table):
    def start(**more):
        return lg.BayesianGPLVM(2, n_inducing=6, max_iter=1, random_state=0, **more).fit(table)

    usual = start().embedding_
    for name in ("pca-raw", "spectral", "random"):
        assert not np.array_equal(start(init=name).embedding_, usual), name
    assert np.array_equal(start(init="pca").embedding_, usual)
    rng = np.random.default_rng(0)
    given = rng.normal(size=(40, 2))
    own = start(init=given)
    assert not np.array_equal(own.embedding_, usual)
    long = lg.BayesianGPLVM(2, n_inducing=6, max_iter=200, random_state=0).fit(table)
    assert start(init=long, inducing_init=long).lower_bound_ > start().lower_bound_
    points = lg.GPLVM(2, max_iter=1, init=given).fit(table)
    assert np.array_equal(points.embedding_, lg.GPLVM(2, max_iter=1, init=given.tolist()).fit(table).embedding_)
    assert np.array_equal(start(init=points).embedding_, start(init=points.embedding_).embedding_)
    for how in ("kmeans", "rows", own.inducing_ + 1.0):
        assert not np.array_equal(start(inducing_init=how).inducing_, own.inducing_)
    for bad, words in [
        ({"init": "umap"}, "spectral"),
        ({"init": given[:9]}, "9"),
        ({"inducing_init": "grid"}, "kmeans"),
        ({"inducing_init": given}, "inducing"),
        ({"init": lg.PPCA(2)}, "not fitted"),
    ]:
        with pytest.raises(Exception, match=words):
            start(**bad)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_warm_start_goes_on(table):
    for make in (lg.GPLVM, lg.BayesianGPLVM):
        model = make(2, max_iter=5, warm_start=True, random_state=0).fit(table)
        bounds = [model.lower_bound_]
        for _ in range(4):
            bounds.append(model.fit(table).lower_bound_)
            assert model.n_iter_ <= 5
        assert bounds == sorted(bounds) and bounds[-1] > bounds[0] + 1.0
        assert make(2, max_iter=5, random_state=0).fit(table).fit(table).lower_bound_ == bounds[0]
        with pytest.raises(ValueError, match="warm_start"):
            model.fit(table[:30])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_what_is_not_given_is_chosen_and_told(table, capsys):
    model = lg.BayesianGPLVM("auto", n_inducing="auto", max_iter=60, random_state=0, verbose=1).fit(table)
    assert 2 <= model.n_components_ <= 5 and model.embedding_.shape == (40, model.n_components_)
    assert len(model.inducing_) == 20 and set(model.choices_) == {"n_components", "n_inducing"}
    assert f"n_components={model.n_components_}: " in capsys.readouterr().out
    assert lg.BayesianGPLVM(2, max_iter=2).fit(table).choices_ == {}


def test_a_search_finds_what_predicts_best(table, wave):
    x, y = wave
    found = lg.search(x, y, kernels=["linear", "rbf"], fits=3, random_state=0)
    assert found.candidates[0]["kernel"] == "rbf" and isinstance(found.estimator, lg.GPRegressor)
    assert found.estimator.score(x, y) > 0.9 and (found.fits, found.fits_of) == (3, 4)
    again = lg.search(x, y, kernels=["linear", "rbf"], fits=3, random_state=0)
    assert [c["density"] for c in again.candidates] == [c["density"] for c in found.candidates]
    of = {"kernels": ["rbf"], "n_components": [1, 2], "n_inducing": [6], "max_iter": 20, "effort": "quick"}
    spaces = lg.search(table, fits=4, random_state=0, **of)
    assert spaces.estimator.n_components_ == spaces.candidates[0]["n_components"]
    series = np.sin(0.5 * np.arange(60))
    ahead = lg.search(series, series=True, lags=4, kernels=["rbf"], fits=1, effort="quick", random_state=0)
    assert np.isfinite(ahead.estimator.forecast(3)).all()
    for bad, words in [({"effort": "much"}, "effort"), ({"budget": 0}, "budget"), ({"lags": 3}, "lags")]:
        with pytest.raises(ValueError, match=words):
            lg.search(x, y, **bad)
