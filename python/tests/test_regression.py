"""Regressions, classes and counts: answers, uncertain inputs, bad input."""

import numpy as np
import pandas as pd
import pytest

import latentgp as lg


def test_exact_regression_learns_a_wave(wave):
    x, y = wave
    model = lg.GPRegressor(kernel="matern52").fit(x, y)
    at = np.linspace(0.2, 5.8, 30)[:, None]
    mean, std = model.predict(at, return_std=True)
    assert np.abs(mean - np.sin(at[:, 0])).max() < 0.2 and (std > 0.05).all() and (std < 0.3).all()
    assert abs(np.sqrt(model.noise_variance_[0]) - 0.1) < 0.05 and model.converged_
    _, cov = model.predict(at, return_cov=True)
    assert cov.shape == (30, 30) and np.allclose(np.sqrt(np.diag(cov)), std)
    assert np.linalg.eigvalsh(cov).min() > 0
    drawn = model.sample_y(at, 4000, random_state=0)
    assert drawn.shape == (30, 4000)
    assert np.abs(np.cov(drawn) - (cov - np.eye(30) * model.noise_variance_)).max() < 0.1 * cov.max()


def test_uncertain_inputs_widen_answers(wave, table):
    x, y = wave
    for model in (lg.GPRegressor(), lg.SparseGPRegressor(15, random_state=0), lg.GPCountRegressor(),
                  lg.GPCountRegressor(n_inducing=10, random_state=0)):  # fmt: skip
        model.fit(x, np.round(np.exp(1 + y)))
        _, sharp = model.predict(x, return_std=True)
        mean, wide = model.predict(x, return_std=True, X_std=0.7)
        assert np.isfinite(mean).all() and np.mean(wide > sharp) > 0.8, model
    for model in (lg.SPGPDRRegressor(1, random_state=0), lg.VDMGPRegressor(2, random_state=0)):
        model.fit(table, table[:, 0])
        _, sharp = model.predict(table, return_std=True)
        _, wide = model.predict(table, return_std=True, X_std=0.5)
        assert np.mean(wide > sharp) > 0.8


def test_errors_of_inputs_are_learnt_with(wave):
    x, y = wave
    counts = np.round(np.exp(1 + y))
    for model in (lg.GPRegressor(random_state=0), lg.SparseGPRegressor(20, random_state=0),
                  lg.SPGPDRRegressor(1, random_state=0), lg.VDMGPRegressor(1, random_state=0),
                  lg.GPCountRegressor(n_inducing=10, random_state=0)):  # fmt: skip
        of = counts if isinstance(model, lg.GPCountRegressor) else y
        naive = model.fit(x, of).predict(x)
        certain = model.fit(x, of, X_std=0.0).predict(x)
        assert np.abs(certain - naive).max() < 0.02 * np.abs(naive).max(), model
        told = model.fit(x, of, X_std=np.full_like(x, 0.4)).predict(x)
        assert np.isfinite(told).all() and np.abs(told - naive).max() > 0.02, model
    labels = y > 0
    assert lg.GPClassifier(random_state=0).fit(x, labels, X_std=0.2).score(x, labels) > 0.85


def test_missing_inputs_are_learnt_around(wave):
    x, y = wave
    x = np.column_stack([x, np.cos(x)])
    x[::6, 1] = np.nan
    model = lg.SparseGPRegressor(15, random_state=0).fit(x, y)
    complete = ~np.isnan(x[:, 1])
    assert model.score(x[complete], y[complete]) > 0.9
    with pytest.raises(ValueError, match="NaN"):
        lg.GPRegressor().fit(x, y)


def test_targets_keep_their_shape(wave):
    x, y = wave
    both = np.column_stack([y, -2 * y])
    model = lg.GPRegressor(max_iter=20).fit(x, both)
    mean, std = model.predict(x[:4], return_std=True)
    assert mean.shape == std.shape == (4, 2) and np.allclose(mean[:, 1], -2 * mean[:, 0], atol=0.02)
    assert model.predict(x[:4], return_cov=True)[1].shape == (4, 4, 2)
    assert model.sample_y(x[:4], 3).shape == (4, 2, 3)
    one = lg.GPRegressor(max_iter=20).fit(x, y[:, None])
    assert one.predict(x[:4]).shape == (4, 1)


def test_directions_are_found():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(150, 6))
    y = np.sin(x[:, 0] + x[:, 1]) + 0.05 * rng.normal(size=150)
    model = lg.VDMGPRegressor(3, random_state=0).fit(x, y)
    assert model.score(x, y) > 0.9
    weight = np.abs(model.projection_).max(axis=0)
    assert weight[:2].min() > 3 * weight[2:].max()
    assert lg.SPGPDRRegressor(1, restarts=3, random_state=0).fit(x, y).score(x, y) > 0.9


def test_counts_have_the_spread_of_counts(wave):
    x, _ = wave
    rng = np.random.default_rng(3)
    rate = np.exp(1.5 + np.sin(x[:, 0]))
    model = lg.GPCountRegressor().fit(x, rng.poisson(rate))
    mean, std = model.predict(x, return_std=True)
    assert np.abs(np.log(mean / rate)).mean() < 0.2 and (std**2 > mean).all()
    _, cov = model.predict(x, return_cov=True)
    assert np.allclose(np.diag(cov), std**2, rtol=1e-6)
    with pytest.raises(ValueError):
        lg.GPCountRegressor().fit(x, -np.ones(len(x)))


@pytest.mark.parametrize("labels", [[0, 1], ["b", "a"], [True, False], [2.0, 1.0], ["x", "y", "z"], [5, 9, 7]])
def test_classes_of_any_type(labels):
    rng = np.random.default_rng(0)
    code = np.arange(60) % len(labels)
    x = rng.normal(size=(60, 2)) * 0.4 + np.column_stack([code, code**2])
    y = np.asarray(labels)[code]
    for model in (lg.GPClassifier(max_iter=30), lg.GPClassifier(n_inducing=15, max_iter=60, random_state=0)):
        model.fit(x, y)
        assert model.classes_.tolist() == sorted(labels) and model.predict(x).dtype == model.classes_.dtype
        proba = model.predict_proba(x)
        assert np.allclose(proba.sum(axis=1), 1) and model.score(x, y) > 0.8
        blurred = model.predict_proba(x, X_std=1.5)
        assert np.max(blurred, axis=1).mean() < np.max(proba, axis=1).mean()


@pytest.mark.parametrize(
    "model",
    [lg.GPRegressor(), lg.SparseGPRegressor(15), lg.SPGPDRRegressor(1), lg.VDMGPRegressor(1), lg.GPCountRegressor(),
     lg.GPCountRegressor(n_inducing=12)],
    ids=lambda m: repr(m),
)  # fmt: skip
def test_drawn_functions_have_the_moments_that_are_predicted(model, wave):
    x, y = wave
    counts = isinstance(model, lg.GPCountRegressor)
    model.set_params(random_state=0).fit(x * 3 + 5, np.round(np.exp(1 + y)) if counts else y)
    at = x[::9] * 3 + 5
    mean, std = model.predict(at, return_std=True)
    drawn = model.sample_y(at, 4000, random_state=1)
    # The rate of a count varies as the count does, but for the noise of counting.
    spread = np.sqrt(std**2 - (mean if counts else model.noise_variance_))
    assert drawn.shape == (len(at), 4000) and np.isfinite(drawn).all()
    assert np.abs(drawn.mean(axis=1) - mean).max() < 0.1 * np.abs(mean).max()
    assert np.allclose(drawn.std(axis=1), spread, rtol=0.35)
    assert np.array_equal(model.sample_y(at, 3, random_state=1), drawn[:, :3])


def test_errors_of_inputs_go_by_name(wave):
    x, y = wave
    rng = np.random.default_rng(0)
    inputs = pd.DataFrame({"a": x[:, 0], "b": np.cos(x[:, 0])}, index=[f"row {k}" for k in range(len(x))])
    errors = pd.DataFrame({"a": rng.uniform(0.1, 0.5, len(x)), "b": 0.0}, index=inputs.index)
    model = lg.SparseGPRegressor(8, max_iter=5, random_state=0).fit(inputs, y, X_std=errors)
    shuffled = errors[["b", "a"]].sample(frac=1, random_state=1)
    again = lg.SparseGPRegressor(8, max_iter=5, random_state=0).fit(inputs, y, X_std=shuffled)
    assert again.log_evidence_ == model.log_evidence_
    expected = model.predict(inputs, X_std=errors.to_numpy())
    for std in (errors, shuffled):
        assert np.array_equal(model.predict(inputs, X_std=std), expected)
    row = model.predict(inputs, X_std=pd.Series({"b": 0.0, "a": 0.3}))
    assert np.array_equal(row, model.predict(inputs, X_std=[0.3, 0.0]))
    assert np.array_equal(row, model.predict(inputs, X_std=pd.Series([0.3, 0.0])))
    for std in (pd.Series({"b": 0.0, "c": 0.3}), pd.Series({"a": 0.3}), pd.Series([0.1, 0.2], index=["a", "a"])):
        with pytest.raises(ValueError, match="X_std has the entries .*, expected those of X: a, b; an array goes by pos"):
            model.predict(inputs, X_std=std)
    with pytest.raises(ValueError, match="X_std has the columns a, c, expected those of X: a, b"):
        model.predict(inputs, X_std=errors.rename(columns={"b": "c"}))
    with pytest.raises(ValueError, match="another index"):
        model.predict(inputs, X_std=errors.reset_index(drop=True))
    one = lg.GPRegressor(max_iter=5).fit(x, y)
    assert np.array_equal(one.predict(x, X_std=np.full(len(x), 0.2)), one.predict(x, X_std=0.2))


def test_every_target_may_have_its_noise():
    rng = np.random.default_rng(0)
    X = np.linspace(0, 6, 300)[:, None]
    Y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 0])]) + rng.normal(size=(300, 2)) * [0.05, 0.4]
    each = lg.SparseGPRegressor(12, noise="columns", random_state=0).fit(X, Y)
    assert np.allclose(np.sqrt(each.noise_variance_), [0.05, 0.4], rtol=0.25)
    shared = lg.SparseGPRegressor(12, random_state=0).fit(X, Y)
    assert each.log_evidence_ > shared.log_evidence_ + 50
    with pytest.raises(ValueError, match="noise"):
        lg.SparseGPRegressor(12, noise="columns", fitc=True).fit(X, Y)


def test_missing_inputs_need_no_errors(wave):
    x, y = wave
    inputs = np.column_stack([x, np.cos(x)])
    inputs[::7, 1] = np.nan
    gaps, errors = np.isnan(inputs), np.full_like(inputs, 0.1)
    model = lg.SparseGPRegressor(8, max_iter=5, random_state=0)
    expected = model.fit(inputs, y, X_std=0.1).predict(inputs, X_std=0.1)
    for of in (np.nan, 0.0, 3.0):
        std = np.where(gaps, of, errors)
        assert np.array_equal(model.fit(inputs, y, X_std=std).predict(inputs, X_std=std), expected)
    with pytest.raises(ValueError, match="X_std: expected finite numbers, 0 or more, found nan; 0 is that of what is known"):
        model.predict(inputs, X_std=np.where(gaps, 0.1, np.nan))


def test_bad_input_is_named(wave):
    x, y = wave
    model = lg.GPRegressor(max_iter=5).fit(x, y)
    with pytest.raises(ValueError, match="X_std"):
        model.predict(x, X_std=-1.0)
    with pytest.raises(ValueError, match="X_std has the shape"):
        model.predict(x, X_std=np.zeros((3, 1)))
    with pytest.raises(ValueError, match="At most one"):
        model.predict(x, return_std=True, return_cov=True)
    with pytest.raises(ValueError, match="rbff"):
        lg.GPRegressor(kernel="rbff").fit(x, y)
    with pytest.raises(ValueError, match="mean"):
        lg.GPRegressor(mean="cubic").fit(x, y)
    with pytest.raises(ValueError, match="expected mean='zero'"):
        lg.GPRegressor(mean="linear").fit(x, y, X_std=0.1)
    with pytest.raises(ValueError, match="1 class"):
        lg.GPClassifier().fit(x, np.zeros(len(x)))


def test_names_of_targets_go_to_the_file(wave, tmp_path):
    x, y = wave
    model = lg.GPRegressor(max_iter=5).fit(pd.DataFrame({"time": x[:, 0]}), pd.Series(y, name="height"))
    assert model._model.names == (["time"], ["height"], [])


def test_more_classes_than_can_be_averaged_over_are_refused():
    x = np.arange(322.0).reshape(-1, 2)
    with pytest.raises(ValueError, match="at most 160 classes in y, found 161"):
        lg.GPClassifier().fit(x, np.arange(161))


def test_linear_regression_is_a_gp_with_a_linear_kernel(table):
    y = table @ np.arange(1.0, table.shape[1] + 1) + 0.1 * np.sin(np.arange(len(table)))
    linear, gp = lg.LinearRegressor().fit(table, y), lg.GPRegressor("linear").fit(table, y)
    assert linear.log_evidence_ == pytest.approx(gp.log_evidence_, rel=1e-4)
    for a, b in zip(linear.predict(table, return_std=True), gp.predict(table, return_std=True)):
        np.testing.assert_allclose(a, b, rtol=1e-2, atol=1e-2)
    with pytest.raises(ValueError, match="linear"):
        lg.LinearRegressor("rbf").fit(table, y)
    with pytest.raises(ValueError, match="no effect"):
        linear.fit(table, y, X_std=0.1)
