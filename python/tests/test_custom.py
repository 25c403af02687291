"""Kernels that are written in Python: values, gradients, models, exceptions, copies and files."""

import copy
import pickle
import traceback

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import latentgp as lg
from latentgp import kernels

#: Agreement of the same kernel in Rust and in NumPy.
SAME = 1e-8
#: Agreement of two fits of a latent space: what multiplies rounding there is the condition of Kzz.
FITTED = 1e-6
#: Agreement of a gradient with central differences.
CLOSE = 1e-6


def my_rbf(X, Z, params):
    scaled = (X[:, None] - Z[None]) / params["lengthscale"]
    return params["variance"] * np.exp(-0.5 * (scaled**2).sum(-1))


def my_rbf_vjp(X, Z, params, G):
    length = np.broadcast_to(params["lengthscale"], X.shape[1:])
    gap = (X[:, None] - Z[None]) / length**2
    weighted = (G * my_rbf(X, Z, params))[..., None] * gap
    each = (weighted * gap).sum((0, 1)) * length
    return (
        -weighted.sum(1),
        weighted.sum(0),
        {"variance": (G * my_rbf(X, Z, params)).sum() / params["variance"], "lengthscale": each},
    )


def cauchy(x, z, params):
    return params["variance"] / (1 + (((x - z) / params["lengthscale"]) ** 2).sum())


def custom(dim=2, vjp=my_rbf_vjp, **options):
    return kernels.Custom(my_rbf, vjp, {"variance": 1.0, "lengthscale": [1.0] * dim}, **options)


def from_jax(dim=2, **options):
    pytest.importorskip("jax")
    return kernels.from_jax(cauchy, {"variance": 1.5, "lengthscale": [0.7] * dim}, **options)


def check_gradient(kernel, dim=2):
    """The adjoint of a kernel against central differences in its parameters and in both sets of points."""
    rng = np.random.default_rng(0)
    X, Z, G = rng.normal(size=(5, dim)), rng.normal(size=(4, dim)), rng.normal(size=(5, 4))
    theta, (dX, dZ) = kernel._native(dim).cross_adjoint(X, Z, G)
    h = 1e-5

    def slope(of):
        return ((of(h) - of(-h)) * G).sum() / (2 * h)

    for mine, at, k in ((dX, X, lambda x: kernel(x, Z)), (dZ, Z, lambda z: kernel(X, z))):
        for i in np.ndindex(at.shape):
            unit = np.zeros_like(at)
            unit[i] = 1.0
            assert mine[i] == pytest.approx(slope(lambda s: k(at + s * unit)), abs=CLOSE)
    for name, value in kernel.params.items():
        for i in np.ndindex(np.shape(value)):
            unit = np.zeros(np.shape(value))
            unit[i] = 1.0

            def moved(s):
                return clone(kernel).set_params(**{name: np.asarray(value) + s * unit})(X, Z)

            assert np.atleast_1d(theta[name].ravel())[i[0] if i else 0] == pytest.approx(slope(moved), abs=CLOSE)


def test_gradients_agree_with_differences():
    check_gradient(custom())
    check_gradient(custom(vjp=None))
    check_gradient(kernels.Custom(my_rbf, None, {"variance": 2.0, "lengthscale": 0.5}))


def test_gradients_of_jax_agree_with_differences():
    check_gradient(from_jax())
    check_gradient(from_jax(3), 3)


def test_jax_computes_in_double_precision_and_by_pairs():
    kernel, rng = from_jax(), np.random.default_rng(1)
    X, Z = rng.normal(size=(7, 2)), rng.normal(size=(3, 2))
    slow = [[1.5 / (1 + (((x - z) / 0.7) ** 2).sum()) for z in Z] for x in X]
    assert np.abs(kernel(X, Z) - slow).max() < 1e-14
    assert np.allclose(kernel._diag(np.array([1.5, 0.7, 0.7]), X), 1.5, atol=1e-14)


@pytest.mark.parametrize("own", [custom(1), custom(1, vjp=None)], ids=["vjp", "differences"])
def test_a_custom_rbf_is_the_rbf_in_regression(own, wave):
    X, y = wave
    tolerance = SAME if own.vjp is not None else 1e-4
    for cls, more in ((lg.GPRegressor, {}), (lg.SparseGPRegressor, {"n_inducing": 8})):
        ours = cls(kernel=own, max_iter=15, random_state=0, **more).fit(X, y)
        built = cls(kernel="rbf", max_iter=15, random_state=0, **more).fit(X, y)
        assert ours.log_evidence_ == pytest.approx(built.log_evidence_, rel=tolerance)
        for a, b in zip(ours.predict(X, return_std=True), built.predict(X, return_std=True)):
            assert np.abs(a - b).max() < tolerance


def test_a_custom_rbf_is_the_rbf_in_a_latent_space(table):
    given = dict(n_components=2, n_inducing=8, expectation="unscented", max_iter=3, random_state=0)
    ours = lg.BayesianGPLVM(kernel=custom(), **given).fit(table)
    built = lg.BayesianGPLVM(kernel="rbf", **given).fit(table)
    assert ours.lower_bound_ == pytest.approx(built.lower_bound_, rel=FITTED)
    assert np.abs(ours.embedding_ - built.embedding_).max() < 10 * FITTED
    assert np.abs(ours.inverse_transform(ours.embedding_) - built.inverse_transform(ours.embedding_)).max() < 10 * FITTED
    auto = lg.BayesianGPLVM(kernel=custom(), **{**given, "expectation": "auto"}).fit(table)
    assert auto.lower_bound_ == ours.lower_bound_
    again = lg.BayesianGPLVM(kernel=custom(), **given).fit(table)
    assert np.array_equal(again.embedding_, ours.embedding_)


FEW = dict(max_iter=3, random_state=0)

#: Every estimator that has a kernel, on two dimensions; what it is fitted with, by name.
EVERY = {
    "BayesianGPLVM": (lg.BayesianGPLVM(2, n_inducing=8, **FEW), "table"),
    "GPLVM": (lg.GPLVM(2, **FEW), "table"),
    "GPRegressor": (lg.GPRegressor(**FEW), "X y"),
    "GPRegressor, X_std": (lg.GPRegressor(**FEW), "X y X_std"),
    "SparseGPRegressor": (lg.SparseGPRegressor(8, **FEW), "X y"),
    "SparseGPRegressor, X_std": (lg.SparseGPRegressor(8, **FEW), "X y X_std"),
    "SPGPDRRegressor": (lg.SPGPDRRegressor(2, n_inducing=8, **FEW), "X y"),
    "SPGPDRRegressor, X_std": (lg.SPGPDRRegressor(2, n_inducing=8, **FEW), "X y X_std"),
    "VDMGPRegressor": (lg.VDMGPRegressor(2, n_inducing=8, **FEW), "X y"),
    "GPCountRegressor": (lg.GPCountRegressor(**FEW), "X counts"),
    "GPCountRegressor, sparse": (lg.GPCountRegressor(n_inducing=8, **FEW), "X counts"),
    "GPClassifier": (lg.GPClassifier(**FEW), "X classes"),
    "GPClassifier, sparse": (lg.GPClassifier(n_inducing=8, **FEW), "X classes"),
    "GPNarx": (lg.GPNarx(2, **FEW), "y"),
    "GPNarx, sparse": (lg.GPNarx(2, n_inducing=8, **FEW), "y"),
}


@pytest.mark.parametrize("made", [custom, from_jax], ids=["Custom", "from_jax"])
@pytest.mark.parametrize("name", EVERY)
def test_every_model_takes_kernels_of_ones_own(name, made, table, wave, tmp_path):
    X, y = wave
    wide = np.column_stack([X, X**2 / 6])
    data = {"table": table, "X": wide, "y": y, "counts": np.round(np.exp(y)), "classes": y > 0, "X_std": 0.1}
    estimator, given = EVERY[name]
    given = [data[word] for word in given.split()]
    model = clone(estimator).set_params(kernel=made()).fit(*given)

    def answers(of):
        if isinstance(of, lg.GPNarx):
            return of.forecast(3)
        if hasattr(of, "transform"):
            return np.hstack([of.transform(table[:3] + 0.1), of.inverse_transform(of.embedding_[:3], X_std=0.1)])
        return of.predict_proba(wide) if hasattr(of, "predict_proba") else of.predict(wide, X_std=0.1)

    said = answers(model)
    assert np.isfinite(said).all() and model.kernel_ != model.kernel, "the kernel learns"
    model.save(tmp_path / "m.lgp")
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), lg.load(tmp_path / "m.lgp", kernel=made())):
        assert np.array_equal(answers(again), said) and again.kernel_ == model.kernel_
        assert again.get_params() == model.get_params()
    assert clone(model).kernel == model.kernel


def test_functions_that_have_no_name_are_not_pickled(wave):
    own = kernels.Custom(lambda X, Z, params: params["variance"] * my_rbf(X, Z, {**params, "lengthscale": 1.0}), None,
                         {"variance": 1.0})  # fmt: skip
    model = lg.GPRegressor(own, max_iter=2).fit(*wave)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(model)


def test_psi_statistics_of_a_custom_kernel(wave):
    wide = np.column_stack([wave[0], wave[0] ** 2 / 6])
    psi = lg.psi_statistics(custom(), wide, 0.1, wide[:3])
    built = lg.psi_statistics("rbf", wide, 0.1, wide[:3], expectation="unscented")
    assert np.abs(psi.psi2 - built.psi2).max() < SAME and psi.psi0 == pytest.approx(built.psi0)


def test_kernels_compose(table):
    own = custom(1)
    whole = kernels.Periodic(period=3.0) * own.on([1]) + kernels.Linear()
    assert "my_rbf(variance=1.0, lengthscale=[1.0])" in repr(whole)
    X = table[:, :2]
    assert np.allclose(whole(X), (kernels.parse("periodic(period=3) * rbf(dims=[1]) + linear"))(X), atol=1e-12)
    assert np.allclose(custom(1, dims=[1])(X), own(X[:, 1:]))
    model = lg.BayesianGPLVM(kernel=whole, n_inducing=5, max_iter=3, random_state=0).fit(table)
    assert isinstance(model.kernel_, kernels.Sum) and model.kernel_._own()["my_rbf"].fn is my_rbf
    other = kernels.Custom(lambda X, Z, p: X @ Z.T, None, {}, name="my_rbf")
    with pytest.raises(ValueError, match="two kernels are called `my_rbf`"):
        (own + other)(X)


def test_parameters_are_read_set_and_constrained(wave):
    own = custom(1, fix=["variance"])
    assert own.variance == 1.0 and repr(own) == "my_rbf(variance=1.0, lengthscale=[1.0], fix=[variance])"
    own.variance = 2.5
    assert own.params["variance"] == 2.5 and own.get_params()["variance"] == 2.5
    model = lg.GPRegressor(kernel=own, max_iter=10).fit(*wave)
    assert model.kernel_.variance == 2.5 and model.kernel_.lengthscale != [1.0]
    bounded = kernels.Custom(my_rbf, my_rbf_vjp, {"variance": 1.0, "lengthscale": -0.5},
                             transform={"lengthscale": "identity"}, bounds={"variance": (0.5, 1.5)})  # fmt: skip
    fitted = lg.GPRegressor(kernel=bounded, max_iter=20).fit(*wave).kernel_
    assert fitted.lengthscale < 0 and 0.5 <= fitted.variance <= 1.5
    search = GridSearchCV(lg.GPRegressor(kernel=custom(1), max_iter=3), {"kernel__variance": [0.5, 2.0]}, cv=2)
    assert search.fit(*wave).best_params_["kernel__variance"] in (0.5, 2.0)
    with pytest.raises(ValueError, match="above 0"):
        custom(1).set_params(variance=-1.0)(np.zeros((2, 1)))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        own.nothing


def failing(X, Z, params):
    if params["lengthscale"] != 1.0:
        raise ZeroDivisionError("from inside the kernel")
    return my_rbf(X, Z, params)


def test_what_a_kernel_raises_is_raised(wave, table):
    own = kernels.Custom(failing, None, {"variance": 1.0, "lengthscale": 1.0})
    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="from inside the kernel") as raised:
            lg.GPRegressor(kernel=own, max_iter=50).fit(*wave)
        names = [frame.name for frame in traceback.extract_tb(raised.value.__traceback__)]
        assert "failing" in names and "fit" in names
    with pytest.raises(ZeroDivisionError):
        lg.BayesianGPLVM(kernel=own, n_inducing=5, restarts=2, random_state=0).fit(table)
    for fn, error, words in [
        (lambda X, Z, p: X, ValueError, r"should have the shape \(\d+, \d+\)"),
        (lambda X, Z, p: 1j * X @ Z.T, TypeError, "real numbers"),
        (lambda X, Z, p: p["nothing"], KeyError, "nothing"),
    ]:
        with pytest.raises(error, match=words):
            lg.GPRegressor(kernel=kernels.Custom(fn, None, {"a": 1.0})).fit(*wave)
    with pytest.raises(ValueError):
        lg.GPRegressor(kernel=kernels.Custom(lambda X, Z, p: np.nan * (X @ Z.T), None, {})).fit(*wave)
    broken = custom(1, vjp=lambda X, Z, p, G: (X, Z, {"variance": 0.0}))
    with pytest.raises(ValueError, match="gradients of"):
        lg.GPRegressor(kernel=broken).fit(*wave)
    assert lg.GPRegressor(kernel=custom(1), max_iter=3).fit(*wave).n_iter_ > 0


def test_copies_and_files(tmp_path, wave):
    X, y = wave
    own = custom(1)
    assert clone(own) == own == pickle.loads(pickle.dumps(own)) == copy.deepcopy(own)
    model = lg.GPRegressor(kernel=own + kernels.Linear(), max_iter=5).fit(X, y)
    there = model.predict(X)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert np.array_equal(other.predict(X), there) and other.kernel_ == model.kernel_
    path = tmp_path / "own.lgp"
    model.save(path)
    assert np.array_equal(lg.load(path, kernel=own).predict(X), there)
    assert lg.load(path, kernel=model.kernel).kernel_ == model.kernel_
    with pytest.raises(ValueError, match=r"unknown kernel `my_rbf`.*kernel=\.\.\."):
        lg.load(path)
    with pytest.raises(TypeError, match="kernel: expected a kernel that is written in Python.*found 'rbf'; leave it out"):
        lg.load(path, kernel="rbf")


def test_the_fitted_kernel_stays_when_the_parameter_is_set(tmp_path, wave):
    own = custom(1)
    for kernel, other in [(own, {"kernel": "rbf"}), (own + kernels.Linear(), {"kernel__k1": kernels.RBF()})]:
        model = lg.GPRegressor(kernel, max_iter=5).fit(*wave)
        before, said = repr(model.kernel_), model.predict(wave[0])
        model.set_params(**other)
        model.save(tmp_path / "m.lgp")
        copies = (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model), lg.load(tmp_path / "m.lgp", kernel=own))
        for again in copies:
            assert repr(again.kernel_) == before and np.array_equal(again.predict(wave[0]), said)
            assert again.get_params()["kernel"] == model.kernel
    model = lg.GPRegressor("rbf", max_iter=5).fit(*wave).set_params(kernel=own)
    assert isinstance(pickle.loads(pickle.dumps(model)).kernel_, kernels.RBF)


def test_jax_kernels_are_copied(wave):
    own = from_jax(1)
    own(np.zeros((2, 1)))
    assert clone(own)._jax() is own._jax(), "copies share what was compiled"
    assert pickle.loads(pickle.dumps(own)) == own == clone(own)
    model = lg.GPRegressor(kernel=own, max_iter=5).fit(*wave)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(wave[0]), model.predict(wave[0]))


def test_a_kernel_that_the_library_has_not_learns_the_oil_flow():
    X, regime = lg.datasets.load_oil_flow(100, seed=0, return_X_y=True)
    model = lg.BayesianGPLVM(n_components=3, n_inducing=15, kernel=from_jax(3), max_iter=60, random_state=0)
    positions = model.fit_transform(X)
    accuracy = cross_val_score(KNeighborsClassifier(1), positions, regime, cv=5).mean()
    assert accuracy > 0.85


def test_names():
    assert repr(kernels.Custom(lambda X, Z, p: X @ Z.T, None, {})) == "custom"

    def rbf(X, Z, params):
        return X @ Z.T

    assert repr(kernels.Custom(rbf, None, {})) == "custom_rbf"
    for name in ("rbf", "two words", "1st", 3):
        with pytest.raises(ValueError, match="name"):
            repr(kernels.Custom(rbf, None, {}, name=name))
