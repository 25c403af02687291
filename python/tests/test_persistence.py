"""pickle, copy, clone, pipelines, searches and model files."""

import copy
import json
import os
import pickle
import shutil
import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import latentgp as lg


def fitted(table, wave):
    x, y = wave
    counts = np.round(np.exp(1 + y))
    labels = np.where(y > 0.5, "high", np.where(y < -0.5, "low", "middle"))
    return {
        "bayesian": lg.BayesianGPLVM(n_inducing=6, kernel="matern32", max_iter=5, random_state=0).fit(table),
        "gplvm": lg.GPLVM(max_iter=5, random_state=0).fit(table),
        "ppca": lg.PPCA(n_components=2).fit(table),
        "gp": lg.GPRegressor(mean="linear", max_iter=10).fit(x, y),
        "sparse": lg.SparseGPRegressor(8, max_iter=10, random_state=0).fit(x, y, X_std=0.1),
        "linear": lg.LinearRegressor(max_iter=10).fit(table, table[:, :2]),
        "spgpdr": lg.SPGPDRRegressor(1, n_inducing=8, max_iter=10, random_state=0).fit(table, table[:, 0], X_std=0.1),
        "vdmgp": lg.VDMGPRegressor(2, n_inducing=8, max_iter=10, random_state=0).fit(table, table[:, :2]),
        "count": lg.GPCountRegressor(max_iter=10).fit(x, counts),
        "sparse count": lg.GPCountRegressor(n_inducing=8, max_iter=10, random_state=0).fit(x, counts),
        "binary": lg.GPClassifier(max_iter=10).fit(x, y > 0),
        "classes": lg.GPClassifier(max_iter=10).fit(x, labels),
        "narx": lg.GPNarx(5, max_iter=10).fit(y),
    }


@pytest.fixture(scope="module")
def models(table, wave):
    return fitted(table, wave)


def answers(model, table, wave):
    """Everything that a model says, as arrays."""
    x, _ = wave
    if isinstance(model, lg.GPNarx):
        return model.forecast(6, return_std=True)
    if hasattr(model, "transform"):
        new = table[:4] + 0.1
        return (*model.transform(new, return_std=True), *model.inverse_transform(model.embedding_, return_std=True))
    rows = x[:7] if model.n_features_in_ == 1 else table[:7]
    if hasattr(model, "predict_proba"):
        return (model.predict_proba(rows), model.predict(rows))
    return model.predict(rows, return_std=True)


def same(a, b):
    return all(np.array_equal(np.asarray(u), np.asarray(v)) for u, v in zip(a, b))


NAMES = ["bayesian", "gplvm", "ppca", "gp", "sparse", "linear", "spgpdr", "vdmgp", "count", "sparse count", "binary", "classes",
         "narx"]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_copies_answer_alike(name, models, table, wave):
    model = models[name]
    before = answers(model, table, wave)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), copy.copy(model)):
        assert same(answers(again, table, wave), before)
        assert again.get_params() == model.get_params()
    assert not hasattr(clone(model), "_model")


@pytest.mark.parametrize("name", NAMES)
def test_files_answer_alike(name, models, table, wave, tmp_path):
    model = models[name]
    model.save(tmp_path / "m.lgp")
    again = lg.load(tmp_path / "m.lgp")
    assert type(again) is type(model)
    before, after = answers(model, table, wave), answers(again, table, wave)
    assert same(before, after)
    assert again.n_features_in_ == model.n_features_in_ and repr(again.kernel_) == repr(model.kernel_)
    assert os.listdir(tmp_path) == ["m.lgp"]


def asked(table, wave):
    """Estimators with arguments that are not the usual ones."""
    x, y = wave
    kernel = lg.kernels.Matern32(lengthscale=[0.5]) + 2 * lg.kernels.Linear()
    return [
        lg.BayesianGPLVM(1, n_inducing=100, kernel="matern32", expectation="cubature5", max_iter=3).fit(table),
        lg.GPLVM(scale="center", expectation="unscented", max_iter=3, restarts=2, random_state=4, verbose=0).fit(table),
        lg.PPCA(2, scale="none", max_iter=7).fit(table),
        lg.GPRegressor(kernel, mean="constant", expectation="unscented", max_iter=4, random_state=np.int64(3)).fit(x, y),
        lg.GPRegressor("matern32", expectation="unscented", max_iter=3).fit(x, y, X_std=0.1),
        lg.SparseGPRegressor(99, expectation="gauss_hermite(points=3)", max_iter=3).fit(x, y[:, None]),
        lg.SPGPDRRegressor(1, n_inducing=8, max_iter=5, scale="global").fit(table, table[:, 0]),
        lg.VDMGPRegressor(2, n_inducing=8, expectation="unscented", max_iter=5).fit(table, table[:, 0]),
        lg.GPCountRegressor(max_iter=6).fit(x, np.round(np.exp(1 + y)), X_std=0.1),
        lg.GPClassifier(n_inducing=12, max_iter=6).fit(x, y > 0),
        lg.GPNarx(max_iter=5, propagation="correlated", expectation="unscented").fit(y),
        lg.GPNarx(3, max_iter=5, propagation="none", delays=(0, 2)).fit(x, y),
    ]


def test_files_keep_what_was_asked_for(table, wave, tmp_path):
    for model in asked(table, wave):
        model.set_params(verbose=1, callback=print)
        model.save(tmp_path / "m.lgp")
        again = lg.load(tmp_path / "m.lgp")
        assert type(again) is type(model)
        assert again.get_params() == {**model.get_params(), "callback": None}
        if isinstance(model, lg.SparseGPRegressor):
            assert again.predict(wave[0]).shape == model.predict(wave[0]).shape == (50, 1)


def test_files_without_settings_tell_what_the_model_knows(table, wave, tmp_path):
    for model in asked(table, wave):
        # As the command line writes it.
        (tmp_path / "m.lgp").write_bytes(model._model.to_bytes())
        again = lg.load(tmp_path / "m.lgp").get_params()
        told = {"expectation", "mean", "scale"} & set(again) - ({"expectation"} if isinstance(model, lg.GPNarx) else set())
        assert {name: again[name] for name in told} == {name: model.get_params().get(name, "zero") for name in told}


def test_a_generator_comes_back_as_its_seed(wave, tmp_path):
    model = lg.SparseGPRegressor(5, max_iter=2, random_state=np.random.RandomState(3)).fit(*wave)
    model.save(tmp_path / "m.lgp")
    seed = lg.load(tmp_path / "m.lgp").random_state
    assert seed == np.random.RandomState(3).randint(np.iinfo(np.int32).max)


def test_files_keep_whether_columns_have_names(wave, tmp_path):
    x, y = wave
    data = np.column_stack([x, x**2])
    learnt = [
        (lambda of: lg.GPRegressor(max_iter=3).fit(of, y), lambda model, of: model.predict(of), ["x0", "x1"]),
        (lambda of: lg.PPCA(1).fit(of), lambda model, of: model.transform(of), ["x0", "x1"]),
        (lambda of: lg.GPNarx(2, max_iter=3).fit(of, y), lambda model, of: model.forecast(50, of), ["u0", "u1"]),
        (lambda of: lg.GPNarx(2, max_iter=3).fit(of), lambda model, of: model.simulate(of, 2).mean, ["y0", "y1"]),
    ]
    for fit, ask, names in learnt:
        table = pd.DataFrame(data, columns=names)
        for given in (data, table):
            model = fit(given)
            model.save(tmp_path / "m.lgp")
            again = lg.load(tmp_path / "m.lgp")
            assert hasattr(again, "feature_names_in_") == hasattr(model, "feature_names_in_") == (given is table)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                assert np.array_equal(ask(again, given), ask(model, given))
        with pytest.raises(ValueError, match="in the same order|in their order"):
            ask(again, table[names[::-1]])


@pytest.mark.parametrize("settings", ["[]", '{"arguments": 3}', '{"arguments": {"max_iter": "many"}}'])
def test_damaged_settings_are_refused(settings, models, tmp_path):
    (tmp_path / "m.lgp").write_bytes(models["gp"]._model.to_bytes(settings))
    with pytest.raises(ValueError, match="m.lgp: "):
        lg.load(tmp_path / "m.lgp")


@pytest.mark.parametrize("labels", [[1, 2, 3], [1.0, 2.0], ["1", "two"], [False, True], [-1, 1], ["yes", "no"]])
def test_classes_keep_their_type_in_files(labels, wave, tmp_path):
    x, _ = wave
    model = lg.GPClassifier(max_iter=3).fit(x, np.asarray(labels)[np.arange(len(x)) % len(labels)])
    model.save(tmp_path / "m.lgp")
    again = lg.load(tmp_path / "m.lgp")
    assert np.array_equal(again.classes_, model.classes_) and again.classes_.dtype.kind == model.classes_.dtype.kind


def test_damaged_files_are_refused(models, tmp_path):
    path = tmp_path / "m.lgp"
    models["gp"].save(path)
    whole = path.read_bytes()
    for bad in (whole[:-5], whole[:200] + b"x" + whole[201:], b"", b"nonsense"):
        path.write_bytes(bad)
        with pytest.raises(ValueError, match="m.lgp"):
            lg.load(path)
    with pytest.raises(OSError):
        lg.load(tmp_path / "nowhere.lgp")
    with pytest.raises(OSError):
        models["gp"].save(tmp_path / "nowhere" / "m.lgp")


def test_pipelines_and_searches(table, wave):
    x, y = wave
    pipe = make_pipeline(StandardScaler(), lg.PPCA(n_components=2), lg.GPRegressor(max_iter=20))
    assert pipe.fit(table, table[:, 0]).score(table, table[:, 0]) > 0.9
    search = GridSearchCV(
        lg.GPRegressor(kernel=lg.kernels.RBF(fix=["lengthscale"]), max_iter=20),
        {"kernel__lengthscale": [0.01, 0.5], "mean": ["zero", "constant"]},
        cv=3,
    ).fit(x, y)
    assert search.best_params_["kernel__lengthscale"] == 0.5
    search = GridSearchCV(lg.BayesianGPLVM(max_iter=5, random_state=0), {"n_components": [1, 2]}, cv=2).fit(table)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(lg.SparseGPRegressor(10, random_state=0), x, y, cv=folds, params={"X_std": np.full_like(x, 0.1)})
    assert scores.mean() > 0.5


def program():
    """The command line, where it is built."""
    named = os.environ.get("LATENTGP_PROGRAM") or shutil.which("latentgp")
    if not named:
        pytest.skip("the program is not here; LATENTGP_PROGRAM names it")
    return named


def run(*words):
    done = subprocess.run([program(), *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_learns_and_says_the_same_bits(table, tmp_path):
    frame = pd.DataFrame(table, columns=list("abcde"))
    frame.to_csv(tmp_path / "t.csv", index=False)
    run("fit", tmp_path / "t.csv", "--latent-dim", 2, "--inducing", 8, "--kernel", "matern32", "--max-iter", 15,
        "--effort", "quick", "--seed", 3, "--out", tmp_path / "m.lgp", "--quiet")  # fmt: skip
    ours = lg.BayesianGPLVM(2, n_inducing=8, kernel="matern32", max_iter=15, random_state=3).fit(frame)
    theirs = lg.load(tmp_path / "m.lgp")
    assert np.array_equal(ours.embedding_, theirs.embedding_) and ours.lower_bound_ == theirs.lower_bound_
    assert list(theirs.feature_names_in_) == list("abcde") and theirs.get_params()["random_state"] == 3
    new = frame[:5] + 0.1
    new.to_csv(tmp_path / "new.csv", index=False)
    ours.save(tmp_path / "ours.lgp")
    said = json.loads(run("transform", tmp_path / "ours.lgp", tmp_path / "new.csv", "--json"))
    assert np.array_equal(np.array(said["mean"]), ours.transform(new).to_numpy())


LEARNT = [
    ("", lg.GPRegressor()),
    ("--mean linear --kernel matern32+linear", lg.GPRegressor("matern32 + linear", mean="linear")),
    ("--model sparse --inducing 8 --input-std x=x_std,z=z_std", lg.SparseGPRegressor(8)),
    ("--model linear", lg.LinearRegressor()),
    ("--model spgp-dr --latent-dim 1 --inducing 8", lg.SPGPDRRegressor(1, n_inducing=8)),
    ("--model vdmgp --latent-dim 2 --inducing 8", lg.VDMGPRegressor(2, n_inducing=8)),
    ("--likelihood poisson", lg.GPCountRegressor()),
    ("--likelihood poisson --model sparse --inducing 8", lg.GPCountRegressor(n_inducing=8)),
    ("--likelihood categorical", lg.GPClassifier()),
]


@pytest.mark.parametrize("options, model", LEARNT, ids=lambda of: of if isinstance(of, str) else "")
def test_the_command_line_predicts_the_same_bits(options, model, wave, tmp_path):
    x, y = wave
    inputs = pd.DataFrame({"x": x[:, 0], "z": np.cos(x[:, 0])})
    target = y
    if isinstance(model, lg.GPCountRegressor):
        target = np.round(np.exp(1 + y))
    elif isinstance(model, lg.GPClassifier):
        target = np.where(y > 0.5, "high", np.where(y < -0.5, "low", "middle"))
    target, given = pd.Series(target, name="y"), {}
    errors = pd.DataFrame({"x_std": np.full(len(x), 0.1), "z_std": np.linspace(0, 0.2, len(x))})
    if "--input-std" in options:
        given["X_std"] = errors.to_numpy()
    else:
        errors = errors[[]]
    pd.concat([inputs, errors, target], axis=1).to_csv(tmp_path / "t.csv", index=False)
    run("regress", tmp_path / "t.csv", "--target", "y", *options.split(), "--max-iter", 8, "--effort", "quick",
        "--seed", 3, "--out", tmp_path / "m.lgp", "--quiet")  # fmt: skip
    ours = clone(model).set_params(max_iter=8, random_state=3).fit(inputs, target, **given)
    theirs = lg.load(tmp_path / "m.lgp")
    assert type(theirs) is type(ours) and ours.log_evidence_ == theirs.log_evidence_
    ours.save(tmp_path / "ours.lgp")
    assert json.loads(run("inspect", tmp_path / "ours.lgp", "--json"))["header"]["settings"]["arguments"]["max_iter"] == 8
    assert "kernel" in run("inspect", tmp_path / "ours.lgp")
    said = json.loads(run("predict", tmp_path / "ours.lgp", tmp_path / "t.csv", "--json"))
    if isinstance(model, lg.GPClassifier):
        assert said["classes"] == ours.classes_.tolist()
        assert np.array_equal(np.array(said["probabilities"]), ours.predict_proba(inputs))
        assert np.array_equal(theirs.predict_proba(inputs), ours.predict_proba(inputs))
        return
    mean, std = ours.predict(inputs, return_std=True, **given)
    assert np.array_equal(np.array(said["mean"])[:, 0], mean)
    assert np.array_equal(np.sqrt(np.array(said["variance"])[:, 0]), std)
    assert np.array_equal(theirs.predict(inputs, **given), mean)


@pytest.mark.parametrize(
    "classes",
    [
        np.array(["1", "2"]),
        np.array(["True", "False"]),
        np.array(["a", "b"], dtype=object),
        np.array([1, 2], dtype=np.int8),
        np.array([1.0, 2.0]),
        np.array([True, False]),
    ],
)
def test_classes_keep_their_type_in_a_file(classes, tmp_path):
    x = np.linspace(-1, 1, 12).reshape(-1, 1)
    y = classes[(x[:, 0] > 0).astype(int)]
    model = lg.GPClassifier(max_iter=5).fit(x, y)
    model.save(tmp_path / "classes.lgp")
    loaded = lg.load(tmp_path / "classes.lgp")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert list(loaded.predict(x)) == list(model.predict(x)) and loaded.score(x, y) == model.score(x, y)
