"""Forecasts."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import latentgp as lg

STEPS = np.arange(80)


@pytest.fixture(scope="module")
def series():
    return np.sin(0.4 * STEPS) + 0.02 * np.random.default_rng(0).normal(size=80)


def test_a_wave_goes_on(series):
    model = lg.GPNarx(6).fit(series)
    mean, std = model.forecast(20, return_std=True)
    truth = np.sin(0.4 * np.arange(80, 100))
    assert np.abs(mean - truth).max() < 0.25 and (np.abs(mean - truth) < 4 * std).all()
    assert mean.shape == (20,) and model.lags_ == 6


def test_uncertainty_travels(series):
    model = lg.GPNarx(6, max_iter=50).fit(series)
    of = {way: model.simulate(series, 15, propagation=way, random_state=0)
          for way in ("none", "independent", "correlated", "trajectories")}  # fmt: skip
    assert of["independent"].std[-1] > of["none"].std[-1]
    assert of["trajectories"].trajectories.shape == (500, 15) and of["none"].trajectories.shape == (0, 15)
    assert np.abs(of["trajectories"].mean - of["correlated"].mean).max() < 0.2
    assert np.array_equal(of["independent"].mean, model.forecast(15))
    again = model.simulate(series, 15, propagation="trajectories", random_state=0)
    assert np.array_equal(again.trajectories, of["trajectories"].trajectories)
    with pytest.raises(ValueError, match="propagation"):
        model.simulate(series, 3, propagation="sideways")


def test_gaps_are_inferred(series, tmp_path):
    whole = lg.GPNarx(6, n_inducing=30, random_state=0).fit(series)
    holed = series.copy()
    holed[[0, 20, 21, 44, 78]] = np.nan
    model = lg.GPNarx(6, n_inducing=30, random_state=0).fit(holed)
    truth = np.sin(0.4 * np.arange(80, 95))
    errors = [np.sqrt(np.mean((of.forecast(15) - truth) ** 2)) for of in (whole, model)]
    assert errors[1] < 2 * errors[0] + 0.05, errors
    model.save(tmp_path / "m.lgp")
    assert np.array_equal(lg.load(tmp_path / "m.lgp").forecast(5), model.forecast(5))
    # What ends in a gap is forecast from the last value on.
    ended = np.concatenate([series, [np.nan, np.nan]])
    assert np.array_equal(whole.simulate(ended, 3).mean, whole.simulate(series, 5).mean[2:])
    with pytest.raises(ValueError, match="missing"):
        lg.GPNarx(2).fit(np.full(20, np.nan))
    read = lg.GPNarx(6, n_inducing=30, error=0.01, max_iter=50, random_state=0).fit(series)
    assert (read.forecast(3, return_std=True)[1] > 0.1 * series.std()).all()


def test_exogenous_inputs_help():
    u = np.random.default_rng(0).normal(size=(100, 1))
    y = np.zeros(100)
    for t in range(1, 100):
        y[t] = 0.5 * y[t - 1] + u[t, 0]
    model = lg.GPNarx(2, max_iter=100).fit(u[:80], y[:80])
    assert np.abs(model.forecast(20, u[80:]) - y[80:]).max() < 0.3
    assert np.array_equal(model.simulate(y[:80], 20, u).mean, model.forecast(20, u[80:]))
    with pytest.raises(ValueError, match="give X"):
        model.forecast(3)
    with pytest.raises(ValueError, match="X has 2 rows, expected 3: one for each step ahead"):
        model.forecast(3, u[:2])
    with pytest.raises(ValueError, match="X has 80 rows, expected 83: 80 of the history, then 3 of the steps ahead"):
        model.simulate(y[:80], 3, u[:80])
    with pytest.raises(ValueError, match="give X, 83 rows"):
        model.simulate(y[:80], 3)
    with pytest.raises(ValueError, match="no exogenous inputs: leave X out"):
        lg.GPNarx(2, max_iter=3).fit(y).simulate(y, 3, u)


def test_columns_are_those_of_the_fit(tmp_path):
    u = pd.DataFrame(np.random.default_rng(0).normal(size=(43, 2)), columns=["wind", "rain"])
    y = pd.DataFrame({"a": np.sin(STEPS[:40]), "b": np.cos(STEPS[:40])})
    model = lg.GPNarx(2, max_iter=3).fit(u[:40], y)
    model.save(tmp_path / "m.lgp")
    for model in (model, lg.load(tmp_path / "m.lgp")):
        assert np.array_equal(model.forecast(3, u[40:]), model.simulate(y, 3, u).mean)
        for other in (u[["rain", "wind"]], u.rename(columns={"wind": "sun"})):
            with pytest.raises(ValueError, match="The feature names should match"):
                model.forecast(3, other[40:])
            with pytest.raises(ValueError, match="The feature names should match"):
                model.simulate(y, 3, other)
        with pytest.raises(ValueError, match="history has the columns b, a, expected the series of the fit.*: a, b"):
            model.simulate(y[["b", "a"]], 3, u)
    alone = lg.GPNarx(2, max_iter=3).fit(y)
    with pytest.raises(ValueError, match="history has the columns b, a"):
        alone.simulate(y[["b", "a"]], 3)


def test_several_series(series):
    both = np.column_stack([series, np.cos(0.4 * STEPS)])
    model = lg.GPNarx(4, max_iter=50).fit(both)
    assert model.forecast(5).shape == (5, 2)
    assert model.simulate(both, 5, propagation="trajectories", n_trajectories=7).trajectories.shape == (7, 5, 2)


def test_dates_go_on(series):
    dates = pd.date_range("2001-01-01", periods=80, freq="MS")
    model = lg.GPNarx(6, max_iter=20).fit(pd.Series(series, index=dates, name="sales"))
    mean, std = model.forecast(3, return_std=True)
    assert mean.name == std.name == "sales"
    assert list(mean.index) == list(pd.date_range("2007-09-01", periods=3, freq="MS"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(pd.Series(series, index=pd.DatetimeIndex(dates.to_numpy())))
        assert list(model.forecast(3).index) == list(mean.index), "a frequency is found where none is told"
    frame = pd.DataFrame({"a": series, "b": series**2})
    table = lg.GPNarx(3, max_iter=10).fit(frame).forecast(2)
    assert list(table.columns) == ["a", "b"] and list(table.index) == [80, 81]


def test_short_series_have_short_windows():
    model = lg.GPNarx(max_iter=5).fit([1.0, 2.0, 4.0, 3.0, 5.0, 7.0, 6.0, 8.0])
    assert model.lags_ == 2
    with pytest.raises(ValueError, match="minimum of 4"):
        lg.GPNarx().fit([1.0, 2.0])
    with pytest.raises(ValueError, match="nothing to learn"):
        lg.GPNarx(2).fit(np.ones(20))
    with pytest.raises(ValueError, match="longest lag|lag"):
        lg.GPNarx(30).fit(np.arange(20.0))
    with pytest.raises(ValueError, match="horizon"):
        model.forecast(0)


@pytest.mark.parametrize("steps", [0, -1, 2.5, "3"])
def test_steps_are_whole_numbers(steps):
    model = lg.GPNarx(2, max_iter=3).fit(np.sin(np.arange(20)))
    with pytest.raises(ValueError, match="horizon: expected a whole number, 1 or more"):
        model.forecast(steps)
    with pytest.raises(ValueError, match="steps: expected a whole number, 1 or more"):
        model.simulate([0.1, 0.2], steps)


def test_horizons_that_no_machine_holds_are_refused():
    model = lg.GPNarx(2, max_iter=3).fit(np.sin(np.arange(20)))
    with pytest.raises(ValueError, match="horizon.*at most 10000000 steps"):
        model.forecast(10**9)
    with pytest.raises(ValueError, match="horizon.*at most 2500 steps of sampled futures"):
        model.simulate([0.1, 0.2], 10**5, propagation="trajectories", n_trajectories=2)


@pytest.mark.parametrize("delays", [("a",), (0, -1), (0.5,), ()])
def test_delays_are_whole_numbers(delays):
    with pytest.raises(ValueError, match="delays: expected whole numbers, 0 or more, such as"):
        lg.GPNarx(2, delays=delays).fit(np.ones((20, 1)), np.sin(np.arange(20)))


@pytest.mark.parametrize(
    "index, expected",
    [
        (pd.Index(1950 + np.arange(40) / 4), [1960.0, 1960.25]),
        (pd.Index(np.arange(215, 255), dtype="uint8"), [255, 256]),
        (pd.Index(np.arange(40, 0, -1), dtype="uint64"), [0, -1]),
        (pd.to_timedelta(np.arange(40), unit="h"), list(pd.to_timedelta([40, 41], unit="h"))),
        (pd.date_range("2024-01-01", periods=41).delete(20), list(pd.to_datetime(["2024-02-11", "2024-02-12"]))),
    ],
)
def test_every_index_goes_on(index, expected):
    series = pd.Series(np.sin(np.arange(40) / 2), index=index)
    assert list(lg.GPNarx(4, max_iter=5).fit(series).forecast(2).index) == expected
