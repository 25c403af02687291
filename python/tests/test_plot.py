"""Pictures: each draws on the Axes it is given and says what is wrong."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

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
    # Classes lie above one another in turn, and every row is there once.
    colours, places = zip(*[(tuple(c.get_facecolors()[0]), c.get_offsets()) for c in ax.collections if c.zorder == 3])
    assert len(set(colours)) == 2 and colours[0] != colours[1] and colours[0] in colours[2:]
    x = np.concatenate(places)[:, 0]
    assert np.array_equal(np.sort(x), np.sort(space.embedding_[:, int(ax.get_xlabel()[-1]) - 1]))
    assert len(ax.images) == 1 and {ax.get_xlabel()[:6], ax.get_ylabel()[:6]} == {"latent"}
    given = plt.subplots()[1]
    assert lg.plot.latent_map(space, table[:7], ellipses=False, background=False, dims=(2, 0), ax=given) is given
    assert given.get_xlabel() == "latent dimension 3" and not given.images
    assert len(given.collections[0].get_offsets()) == 7
    assert len(lg.plot.latent_map(space, labels=np.linspace(0, 1, 40)).figure.axes) == 2
    ax = lg.plot.latent_map(lg.PPCA(n_components=1).fit(table), labels=words)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"] and ax.get_legend() is None
    lg.plot.latent_map(lg.PPCA(n_components=1).fit(table), labels=np.linspace(0, 1, 40))
    with pytest.raises(ValueError, match="labels has 3 entries"):
        lg.plot.latent_map(space, labels=[1, 2, 3])
    with pytest.raises(ValueError, match="from 0 to 2, found 7"):
        lg.plot.latent_map(space, dims=(0, 7))


def test_many_classes_differ(space):
    for count in (10, 20, 40):
        ax = lg.plot.latent_map(space, labels=[f"class {k % count:02}" for k in range(40)], ellipses=False)
        looks = {}
        for points in (of for of in ax.collections if of.zorder == 3):
            look = tuple(points.get_facecolors()[0]), points.get_paths()[0].vertices.tobytes()
            looks.setdefault(look, 0)
            looks[look] += len(points.get_offsets())
        assert len(looks) == count and set(looks.values()) == {40 // count}
        assert len({colour for colour, _ in looks}) == min(count, 20)
        assert len(ax.get_legend().get_texts()) == count


def test_many_numbers_and_dates_have_a_colour_bar(space):
    pandas = pytest.importorskip("pandas")
    days = pandas.date_range("2020-01-01", periods=40)
    for labels, ticks in [
        (1900 + np.arange(40), {"1900", "1910", "1920"}),
        (days, {"Feb"}),
        (days.tz_localize("Europe/Berlin"), {"Feb"}),
        ([day.date() for day in days], {"Feb"}),
        (pandas.period_range("2020-01-01", periods=40), {"Feb"}),
        (pandas.Series(pandas.to_timedelta(np.arange(40), unit="h"), name="age"), {"0", "10", "20", "30"}),
    ]:
        ax = lg.plot.latent_map(space, labels=labels)
        ax.figure.canvas.draw()
        assert ax.get_legend() is None and len(ax.figure.axes) == 2
        bar = ax.figure.axes[1]
        assert bar.get_ylabel() == ("age (hours)" if "age" == getattr(labels, "name", None) else "")
        assert ticks <= {tick.get_text() for tick in bar.get_yticklabels()}
    for labels in (np.arange(40) % 20, pandas.Categorical(np.arange(40)), np.arange(40) % 2 == 0):
        ax = lg.plot.latent_map(space, labels=labels)
        assert len(ax.get_legend().get_texts()) == len(np.unique(labels)) and len(ax.figure.axes) == 1
    with pytest.raises(ValueError, match="found 1 that are missing"):
        lg.plot.latent_map(space, labels=[pandas.NaT, *days[1:]])


def test_constant_columns_leave_the_background_as_it_is(table):
    data = np.column_stack([table, np.full(40, 3.0), np.zeros(40)])
    model = lg.BayesianGPLVM(n_components=2, n_inducing=8, max_iter=15, random_state=0).fit(data)
    shade = np.asarray(lg.plot.latent_map(model).images[0].get_array())
    # Standard deviations in units of the spread of a column.
    assert 0.05 < shade.max() < 3 and np.ptp(shade) > 0.3 * shade.max()


def test_relevance(space, wave):
    ax = lg.plot.relevance(space, names=["a", "b", "c"])
    assert max(bar.get_height() for bar in ax.patches) == pytest.approx(1.0) and len(ax.patches) == 3
    with pytest.raises(ValueError, match="names has 1"):
        lg.plot.relevance(space, names=["a"])


def test_relevance_of_inputs(table):
    pandas = pytest.importorskip("pandas")
    named = pandas.DataFrame(table[:, :3], columns=["p", "q", "r"])
    model = lg.GPRegressor(max_iter=10).fit(named, table[:, 0])
    ax = lg.plot.relevance(model)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["p", "q", "r"] and ax.get_xlabel() == "input"
    lengths = np.asarray(model.kernel_.lengthscale)
    assert np.argmax([bar.get_height() for bar in ax.patches]) == np.argmin(lengths)
    assert lg.plot.relevance(lg.SPGPDRRegressor(2, max_iter=5).fit(table, table[:, 0])).get_xlabel() == "direction"
    with pytest.raises(ValueError, match="expected a kernel with a lengthscale.*found periodic.*try kernel='rbf'"):
        lg.plot.relevance(lg.GPRegressor("periodic", max_iter=2).fit(named, table[:, 0]))


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


def overlap(ticks, renderer):
    """Whether labels of an axis lie upon one another."""
    boxes = [tick.get_window_extent(renderer) for tick in ticks if tick.get_text()]
    return any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


@pytest.mark.parametrize("count", [3, 12, 60])
def test_names_of_bars_have_room(count, wave):
    pandas = pytest.importorskip("pandas")
    X = np.random.default_rng(0).normal(size=(30, count))
    names = [f"a long column name {k}" for k in range(count)]
    model = lg.GPRegressor(max_iter=2).fit(pandas.DataFrame(X, columns=names), X[:, 0])
    for ax in (lg.plot.relevance(model), lg.plot.relevance(model, names=range(count))):
        ax.figure.canvas.draw()
        renderer = ax.figure.canvas.get_renderer()
        assert len(ax.patches) == count
        assert not overlap(ax.get_xticklabels(), renderer) and not overlap(ax.get_yticklabels(), renderer)
        assert not overlap(ax.texts, renderer)


def test_inputs_of_a_regression_go_by_name(wave):
    pandas = pytest.importorskip("pandas")
    X, y = wave
    table = pandas.DataFrame({"dose": X[:, 0], "age": np.cos(X[:, 0])})
    model = lg.GPRegressor().fit(table, y)
    errors = pandas.DataFrame({"age": np.full(50, 3.0), "dose": np.full(50, 0.01)})
    for std in (errors, errors.iloc[0]):
        bars = lg.plot.regression(model, table, y, X_std=std).containers[0].lines[2][0].get_segments()
        assert np.allclose([bar[1, 0] - bar[0, 0] for bar in bars], 0.02)
    ax = lg.plot.regression(model, table, y, feature="age")
    assert ax.get_xlabel() == "age"
    assert np.array_equal(ax.lines[0].get_ydata(), lg.plot.regression(model, table, y, feature=1).lines[0].get_ydata())
    for wrong in ("weight", 2, -1, 0.5, None):
        with pytest.raises(ValueError, match=f"feature: expected an input from 0 to 1 or one of dose, age, found {wrong!r}"):
            lg.plot.regression(model, table, y, feature=wrong)
    with pytest.raises(ValueError, match="X_std has the columns a, dose, expected those of X: dose, age"):
        lg.plot.regression(model, table, y, X_std=errors.set_axis(["a", "dose"], axis=1))
    counted = table.set_axis([0, 1], axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ax = lg.plot.regression(lg.GPRegressor().fit(counted, y), counted, y, feature=1)
    assert ax.get_xlabel() == "1"


def test_the_band_of_counts_ends_at_zero(wave):
    X, y = wave
    model = lg.GPCountRegressor(max_iter=20).fit(X, np.round(np.exp(y)))
    mean, std = model.predict(X, return_std=True)
    assert (mean - 2 * std).min() < 0
    band = lg.plot.regression(model, X, np.round(np.exp(y))).collections[0].get_paths()[0].vertices
    assert band[:, 1].min() == 0 and band[:, 1].max() > mean.max()


def test_forecast(wave):
    series = np.sin(np.arange(60) / 4)
    model = lg.GPNarx(lags=4, max_iter=10).fit(series)
    ax = lg.plot.forecast(model, 9, history=series, truth=series[:9])
    assert np.allclose(next(of for of in ax.lines if of.get_label() == "forecast").get_ydata(), model.forecast(9))
    with pytest.raises(ValueError, match="index has 3"):
        lg.plot.forecast(model, 9, history=series, index=[1, 2, 3])


def test_forecasts_go_on_with_the_dates(tmp_path):
    pandas = pytest.importorskip("pandas")
    passengers = lg.datasets.load_airline(60, as_frame=True).target
    model = lg.GPNarx(lags=12, max_iter=5).fit(passengers)
    ax = lg.plot.forecast(model, 12)
    observed, ahead = (next(of for of in ax.lines if of.get_label() == name) for name in ("observed", "forecast"))
    assert np.array_equal(observed.get_xdata(), passengers.index.to_numpy())
    assert list(ahead.get_xdata()) == list(pandas.date_range("1954-01-01", periods=12, freq="MS").to_numpy())
    assert ax.get_ylabel() == "passengers" and "1949-01-01" not in ax.get_xlabel()
    ax.figure.savefig(tmp_path / "dates.png")
    monthly = passengers.to_period("M")
    again = lg.plot.forecast(lg.GPNarx(lags=12, max_iter=5).fit(monthly), 12, history=monthly)
    assert np.array_equal(again.lines[0].get_xdata(), passengers.index.to_numpy())


def test_times_of_forecasts_are_dates_of_a_zone_or_durations():
    pandas = pytest.importorskip("pandas")
    series, hours = np.sin(np.arange(60) / 2), pandas.to_timedelta(np.arange(63), unit="h")
    # The clocks go forward on the second day.
    dates = pandas.date_range("2024-03-30", periods=63, freq="h", tz="Europe/Berlin")
    for times, places, name in [
        (dates, dates.tz_convert(None).to_numpy(), "Europe/Berlin"),
        (hours, np.arange(63), "time (hours)"),
    ]:
        model = lg.GPNarx(3, max_iter=3).fit(pandas.Series(series, index=times[:60]))
        for ax in (lg.plot.forecast(model, 3), lg.plot.forecast(model, 3, index=pandas.Series(times))):
            observed, ahead = (next(of for of in ax.lines if of.get_label() == name) for name in ("observed", "forecast"))
            assert np.array_equal(np.concatenate([observed.get_xdata(), ahead.get_xdata()]), places)
            assert ax.get_xlabel() == name


def test_the_legend_of_a_forecast_hides_nothing():
    series = np.sin(np.arange(80) / 2)
    ax = lg.plot.forecast(lg.GPNarx(3, max_iter=10).fit(series[:70]), 10, truth=series[70:])
    ax.figure.canvas.draw()
    legend = ax.get_legend().get_window_extent().transformed(ax.transData.inverted())
    band = ax.collections[0].get_paths()[0].vertices
    highest = max(np.max(line.get_ydata()) for line in ax.lines if len(line.get_ydata()) > 2)
    assert legend.y0 > max(highest, band[:, 1].max()) and legend.x1 < ax.get_xlim()[1]


@pytest.fixture(scope="module")
def every(space, table, wave):
    x, y = wave
    return {
        "latent": space,
        "regressor": lg.GPRegressor(max_iter=3).fit(x, y),
        "classifier": lg.GPClassifier(max_iter=3).fit(x, y > 0),
        "narx": lg.GPNarx(3, max_iter=3).fit(y),
    }


DRAWN = {
    "latent_map": ({"latent"}, lambda draw, model, x, y: draw(model)),
    "relevance": ({"latent", "regressor", "classifier"}, lambda draw, model, x, y: draw(model)),
    "regression": ({"regressor"}, lambda draw, model, x, y: draw(model, x, y)),
    "forecast": ({"narx"}, lambda draw, model, x, y: draw(model, 3)),
}


@pytest.mark.parametrize("name", DRAWN)
def test_estimators_that_a_picture_is_not_of_are_named(name, every, wave):
    drawn, call = DRAWN[name]
    draw = getattr(lg.plot, name)
    for key, model in every.items():
        if key in drawn:
            call(draw, model, *wave)
            with pytest.raises(NotFittedError, match="not fitted"):
                call(draw, clone(model), *wave)
            continue
        with pytest.raises(TypeError, match=f"{name}: expected .*, found {type(model).__name__}"):
            call(draw, model, *wave)
    with pytest.raises(TypeError, match="found list"):
        call(draw, [1.0], *wave)
    assert not plt.get_fignums() or len(plt.get_fignums()) == len(drawn), "a figure is begun before all is checked"


def test_what_cannot_be_drawn_is_named(every, wave, table):
    x, y = wave
    holed = np.where(np.arange(len(x)) == 3, np.nan, 1.0)
    model, draw = every["regressor"], lg.plot.regression
    for arguments, words in [
        ((x * holed[:, None], y), "X: expected finite numbers, found 1 rows with NaN"),
        ((x, y * holed), "y: expected finite numbers, found 1 rows with NaN"),
        ((x[:, 0], y), r"X has the shape \(50,\), expected \(n, 1\); try X"),
        ((x, y[:4]), "y has 4 entries, expected one for each of the 50 rows"),
        ((np.zeros((0, 1)),), "X: expected finite numbers, found none"),
    ]:
        with pytest.raises(ValueError, match=words):
            draw(model, *arguments)
    with pytest.raises(ValueError, match="feature: expected an input from 0 to 0, found 2"):
        draw(model, x, y, feature=2)
    with pytest.raises(ValueError, match="at has the shape"):
        draw(model, x, y, at=[1.0, 2.0])
    space = every["latent"]
    for labels in (np.where(np.arange(40) < 3, np.nan, 1.0), [None] * 3 + ["a"] * 37):
        with pytest.raises(ValueError, match="labels: expected one for each row, found 3 that are missing"):
            lg.plot.latent_map(space, labels=labels)
    lg.plot.latent_map(space, labels=[1, "two"] * 20)
    with pytest.raises(ValueError, match="dims: expected two"):
        lg.plot.latent_map(space, dims=(0, 1, 2))
    with pytest.raises(ValueError, match="truth has 9 entries, expected at most the 3"):
        lg.plot.forecast(every["narx"], 3, truth=y[:9])
    both = lg.GPNarx(2, max_iter=2).fit(table[:, :2])
    with pytest.raises(ValueError, match="expected an estimator of one series, found one of 2"):
        lg.plot.forecast(both, 3)


def test_forecasts_with_exogenous_inputs(wave):
    u, y = wave
    model = lg.GPNarx(2, max_iter=3).fit(u[:40], y[:40])
    assert len(lg.plot.forecast(model, 5, u[40:45]).lines) == 3
