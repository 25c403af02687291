"""What the recipe of the library gives to estimators: FITC, links, priors of weights and positions, likelihoods."""

import numpy as np
import pytest

import latentgp as lg


def data(n=60):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=n)


def test_fitc_is_another_evidence_and_comes_back_from_its_file(tmp_path):
    X, y = data()
    usual = lg.SparseGPRegressor(8, max_iter=20, random_state=0).fit(X, y)
    fitc = lg.SparseGPRegressor(8, fitc=True, max_iter=20, random_state=0).fit(X, y)
    assert fitc.log_evidence_ != usual.log_evidence_
    fitc.save(tmp_path / "m.lgp")
    again = lg.load(tmp_path / "m.lgp")
    assert isinstance(again, lg.SparseGPRegressor) and again.fitc
    np.testing.assert_array_equal(again.predict(X), fitc.predict(X))


def test_links_and_priors_of_weights_are_told_to_the_library():
    X, y = data()
    logit = lg.GPClassifier(max_iter=15).fit(X, y > 0)
    probit = lg.GPClassifier(link="probit", max_iter=15).fit(X, y > 0)
    assert logit.log_evidence_ != probit.log_evidence_
    with pytest.raises(ValueError, match="two classes"):
        lg.GPClassifier(link="probit").fit(X, np.arange(60) % 3)
    two = lg.VDMGPRegressor(2, max_iter=10, random_state=0).fit(X, y)
    gamma = lg.VDMGPRegressor(2, weight_prior="gamma", max_iter=10, random_state=0).fit(X, y)
    assert two.log_evidence_ != gamma.log_evidence_


def test_a_likelihood_for_outliers_keeps_the_function(tmp_path):
    X, y = data()
    y[::9] += 5
    robust = lg.SparseGPRegressor(20, likelihood="student_t(df=4)", random_state=0).fit(X, y)
    usual = lg.SparseGPRegressor(20, random_state=0).fit(X, y)
    truth = np.sin(2 * X[:, 0])
    assert np.mean((robust.predict(X) - truth) ** 2) < np.mean((usual.predict(X) - truth) ** 2)
    robust.save(tmp_path / "m.lgp")
    np.testing.assert_array_equal(lg.load(tmp_path / "m.lgp").predict(X), robust.predict(X))


def test_a_prior_of_positions_takes_its_column_by_name():
    X, _ = data(30)
    day = np.arange(30.0)
    told = lg.BayesianGPLVM(2, n_inducing=6, prior="times(column=day, std=1)", known={"day": day}, max_iter=5).fit(X)
    plain = lg.BayesianGPLVM(2, n_inducing=6, max_iter=5).fit(X)
    assert told.lower_bound_ != plain.lower_bound_
    assert abs(np.corrcoef(told.embedding_[:, 0], day)[0, 1]) > 0.9
    with pytest.raises(ValueError, match="asks for the column 'day'"):
        lg.BayesianGPLVM(2, prior="times(column=day, std=1)").fit(X)
    with pytest.raises(ValueError, match="expected 30 numbers"):
        lg.BayesianGPLVM(2, prior="times(column=day, std=1)", known={"day": day[:5]}).fit(X)
