"""Pictures: each draws on the Axes it is given and says what is wrong."""

import numpy as np
import pytest

import latentgp as lg

plt = pytest.importorskip("matplotlib.pyplot")
plt.switch_backend("Agg")


@pytest.fixture(scope="module")
def space(table):
    return lg.BayesianGPLVM(n_components=3, n_inducing=8, max_iter=15, random_state=0).fit(table)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def test_latent_maps(space, table):
    words = np.repeat(["a", "b"], 20)
    ax = lg.plot.latent_map(space, labels=words)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b"]
    assert len(ax.images) == 1 and {ax.get_xlabel()[:6], ax.get_ylabel()[:6]} == {"latent"}
    given = plt.subplots()[1]
    assert lg.plot.latent_map(space, table[:7], ellipses=False, background=False, dims=(2, 0), ax=given) is given
    assert given.get_xlabel() == "latent dimension 3" and not given.images
    assert len(given.collections[0].get_offsets()) == 7
    assert len(lg.plot.latent_map(space, labels=np.linspace(0, 1, 40)).figure.axes) == 2
    lg.plot.latent_map(lg.PPCA(n_components=1).fit(table))
    with pytest.raises(ValueError, match="labels has 3 entries"):
        lg.plot.latent_map(space, labels=[1, 2, 3])
    with pytest.raises(ValueError, match="from 0 to 2, found 7"):
        lg.plot.latent_map(space, dims=(0, 7))


def test_relevance(space, wave):
    ax = lg.plot.relevance(space, names=["a", "b", "c"])
    assert max(bar.get_height() for bar in ax.patches) == pytest.approx(1.0) and len(ax.patches) == 3
    with pytest.raises(ValueError, match="names has 1"):
        lg.plot.relevance(space, names=["a"])


def test_regression(wave):
    X, y = wave
    model = lg.GPRegressor(max_iter=10).fit(X, y)
    ax = lg.plot.regression(model, X, y, X_std=0.1)
    line = ax.lines[0]
    assert np.allclose(line.get_ydata(), model.predict(line.get_xdata()[:, None]))
    assert ax.get_xlim()[0] < X.min() and ax.get_xlim()[1] > X.max()
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"time": X[:, 0], "other": 0.1 * X[:, 0] ** 2})
    named = lg.GPRegressor(max_iter=3).fit(table, pandas.Series(y, name="height"))
    ax = lg.plot.regression(named, table, pandas.Series(y, name="height"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("time", "height")
    with pytest.raises(ValueError, match="X: expected"):
        lg.plot.regression(model)


def test_forecast(wave):
    series = np.sin(np.arange(60) / 4)
    model = lg.GPNarx(lags=4, max_iter=10).fit(series)
    ax = lg.plot.forecast(model, 9, history=series, truth=series[:9])
    assert np.allclose(next(of for of in ax.lines if of.get_label() == "forecast").get_ydata(), model.forecast(9))
    with pytest.raises(ValueError, match="index has 3"):
        lg.plot.forecast(model, 9, history=series, index=[1, 2, 3])
