"""Inputs with errors: inferred, averaged over, learnt, latent, and what comes back of them."""

import numpy as np
import pytest

import latentgp as lg


@pytest.fixture(scope="module")
def noisy():
    """True inputs, inputs as they were read, targets."""
    rng = np.random.default_rng(0)
    true = rng.uniform(-3, 3, size=(200, 1))
    y = np.sin(2 * true[:, 0]) + 0.1 * rng.normal(size=200)
    return true, true + 0.3 * rng.normal(size=true.shape), y


def error_of_curve(model):
    grid = np.linspace(-2.7, 2.7, 80)[:, None]
    return np.sqrt(np.mean((model.predict(grid) - np.sin(2 * grid[:, 0])) ** 2))


def rms(of):
    return np.sqrt(np.mean(np.square(of)))


def test_inferred_inputs_make_a_better_curve_and_are_nearer_to_the_truth(noisy):
    true, X, y = noisy
    model = lg.SparseGPRegressor(15, effort="quick", max_iter=150, random_state=0)
    ignored = error_of_curve(model.fit(X, y))
    averaged = error_of_curve(model.set_params(inputs="averaged").fit(X, y, X_std=0.3))
    assert rms(model.inputs_.std - 0.3) < 1e-6 and np.allclose(model.inputs_.mean, X)
    model.set_params(inputs=None).fit(X, y, X_std=0.3)
    assert error_of_curve(model) < ignored < averaged
    mean, std = model.inputs_
    assert mean.shape == std.shape == X.shape and std.mean() < 0.25
    assert rms(mean - true) < 0.85 * rms(X - true)
    # Rows of the training as if they were new.
    again = model.infer_inputs(X, y, X_std=0.3)
    assert rms(again.mean - true) < 0.9 * rms(X - true)
    certain = model.infer_inputs(X[:3], y[:3])
    assert np.allclose(certain.mean, X[:3]) and not certain.std.any()
    unknown = model.infer_inputs(X[:3], np.full(3, np.nan), X_std=0.3)
    assert np.allclose(unknown.mean, X[:3], atol=0.01) and np.allclose(unknown.std, 0.3, atol=0.01)


def test_an_exact_regression_with_errors_infers_its_inputs(noisy):
    true, X, y = noisy
    model = lg.GPRegressor(effort="quick", max_iter=60).fit(X[:80], y[:80])
    with pytest.raises(AttributeError, match="certain"):
        model.inputs_  # noqa: B018
    mean, _ = model.fit(X[:80], y[:80], X_std=0.3).inputs_
    assert rms(mean - true[:80]) < 0.9 * rms(X[:80] - true[:80])


def test_errors_are_learnt(noisy):
    _, X, y = noisy
    wide = np.column_stack([X, np.cos(np.arange(len(X)))])
    model = lg.SparseGPRegressor(20, effort="quick", random_state=0).fit(X, y, X_std="learn")
    assert 0.2 < model.learnt_std_[0] < 0.45
    assert np.array_equal(model.predict(X, X_std="learn"), model.predict(X, X_std=model.learnt_std_[0]))
    model = lg.SparseGPRegressor(20, effort="quick", max_iter=100, random_state=0)
    forms = ({0: "learn", 1: 0.01}, ["learn", 0.01], {0: "learn", 1: np.full(len(X), 0.01)})
    found = [model.fit(wide, y, X_std=form).log_evidence_ for form in forms]
    assert found[0] == found[1] == found[2] and list(model.learnt_std_) == [0]
    with pytest.raises(ValueError, match="not learnt at the fit"):
        model.predict(wide, X_std="learn")
    for wrong, message in [
        ("guess", "'learn'"),
        ({2: "learn"}, "X has 2 columns"),
        (["learn"], "1 entries"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.fit(wide, y, X_std=wrong)
    with pytest.raises(ValueError, match="learnt"):
        lg.SparseGPRegressor(8, inputs="averaged").fit(X, y, X_std="learn")


def test_an_error_that_the_data_do_not_tell_is_a_warning():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 1))
    y = 0.5 * X[:, 0] + 0.5 * rng.normal(size=60)
    with pytest.warns(UserWarning, match="do not tell"):
        lg.SparseGPRegressor(4, kernel="linear", effort="quick", random_state=0).fit(X, y, X_std="learn")


def test_classes_and_counts_infer_their_inputs(noisy):
    true, X, y = noisy
    rng = np.random.default_rng(1)
    counts = rng.poisson(np.exp(1 + 2 * np.sin(2 * true[:, 0])))
    labels = np.where(y > 0, "up", "down")
    options = {"effort": "quick", "max_iter": 150, "random_state": 0, "n_inducing": 15}
    for model, of in ((lg.GPCountRegressor(**options), counts), (lg.GPClassifier(**options), labels)):
        model.fit(X, of, X_std=0.3)
        mean, std = model.inputs_
        assert rms(mean - true) < rms(X - true) and std.mean() < 0.3
        new = model.infer_inputs(X[:5], of[:5], X_std=0.3)
        assert np.isfinite(new.mean).all() and (new.std > 0).all()
    with pytest.raises(ValueError, match="class 'left'"):
        model.infer_inputs(X[:1], ["left"], X_std=0.3)


def test_what_is_known_of_inputs_is_kept(noisy, tmp_path):
    _, X, y = noisy
    model = lg.SparseGPRegressor(12, effort="quick", max_iter=60, random_state=0).fit(X, y, X_std="learn")
    model.save(tmp_path / "m.lgp")
    again = lg.load(tmp_path / "m.lgp")
    assert np.array_equal(model.inputs_.mean, again.inputs_.mean) and np.array_equal(model.inputs_.std, again.inputs_.std)
    assert model.learnt_std_ == again.learnt_std_


def test_an_input_that_was_never_observed_is_found():
    rng = np.random.default_rng(0)
    X, hidden = rng.uniform(-2, 2, size=(120, 1)), rng.normal(size=120)
    Y = np.column_stack([np.sin(X[:, 0]) + a * hidden for a in (1.0, -0.7, 0.5)]) + 0.05 * rng.normal(size=(120, 3))
    model = lg.SparseGPRegressor(20, kernel="rbf + linear", latent_inputs=1, effort="quick", random_state=0).fit(X, Y)
    mean, std = model.inputs_
    assert mean.shape == (120, 2) and np.allclose(mean[:, 0], X[:, 0]) and not std[:, 0].any()
    assert abs(np.corrcoef(mean[:, 1], hidden)[0, 1]) > 0.95
    assert model.predict(X).shape == (120, 3)
    with pytest.raises(ValueError, match="latent_inputs"):
        lg.SparseGPRegressor(5, latent_inputs=1, fitc=True).fit(X, Y)
