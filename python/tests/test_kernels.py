"""Kernels: values, expressions, parameters, and scikit-learn's ways with them."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone

import latentgp as lg
from latentgp import _native, kernels

LEAVES = [kernels.RBF, kernels.Matern12, kernels.Matern32, kernels.Matern52, kernels.RationalQuadratic,
          kernels.Periodic, kernels.Cosine, kernels.Linear, kernels.Polynomial, kernels.Constant, kernels.White,
          kernels.SpectralMixture, kernels.ArcSine, kernels.MLP]  # fmt: skip

EXPRESSIONS = [
    "rbf",
    "rbf(ard=false)",
    "rbf(variance=2.0, lengthscale=[1.0, 0.5, 3.0])",
    "periodic(period=12.0) * rbf + linear",
    "(rbf + white) * linear",
    "rbf(dims=[0, 1]) * matern32(dims=[2])",
    "(rbf + linear)(dims=[0, 2])",
    "rbf(variance=1.5, fix=[variance])",
    "rbf(bounds=[lengthscale=[0.1, 10.0]], prior=[variance=gamma(2.0, 3.0)])",
    "matern52(transform=[lengthscale=softplus(0.1)], prior=[lengthscale=log_normal(0.0, 1.0)])",
    "spectral_mixture(components=2)",
    "polynomial(degree=3, offset=0.5)",
    "mlp(hidden=[4, 3], base=matern32 + linear, bias=unit, seed=2)",
    "rbf(lengthscale=1e-07)",
]


@pytest.mark.parametrize("cls", LEAVES)
def test_defaults_are_those_of_the_library(cls):
    compiled = _native.Kernel.parse(cls.name, 2).params()
    for key, value in cls().get_params(deep=False).items():
        if key in compiled and value is not None:
            assert np.all(compiled[key] == value), (cls.name, key)


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions_read_and_print(text):
    kernel = kernels.parse(text)
    assert repr(kernel) == text.replace(".0, ", ".0, ")
    assert kernels.parse(repr(kernel)) == kernel
    assert kernel._native(3).expression == _native.Kernel.parse(text, 3).expression


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_what_the_library_prints_is_read_back(text):
    compiled = _native.Kernel.parse(text, 3)
    again = kernels.parse(compiled.expression)
    assert again._native(3).expression == compiled.expression


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_kernels_are_copied(text):
    kernel = kernels.parse(text)
    for other in (copy.deepcopy(kernel), pickle.loads(pickle.dumps(kernel)), clone(kernel)):
        assert other == kernel and other is not kernel and hash(other) == hash(kernel)


def test_values_agree_with_a_formula():
    x, z = np.random.default_rng(0).normal(size=(2, 4, 3))
    square = ((x[:, None] - z[None]) ** 2 / np.array([1.0, 0.5, 2.0]) ** 2).sum(-1)
    rbf = kernels.RBF(variance=2.0, lengthscale=[1.0, 0.5, 2.0])
    assert np.allclose(rbf(x, z), 2 * np.exp(-square / 2), atol=1e-12)
    assert np.allclose((rbf + kernels.Linear())(x, z), rbf(x, z) + x @ z.T)
    assert np.allclose((rbf * kernels.Constant(variance=3.0))(x), 3 * rbf(x))
    assert np.allclose((kernels.RBF() + kernels.White()).on([2, 0])(x, z), kernels.RBF()(x[:, [2, 0]], z[:, [2, 0]]))


def test_white_noise_is_what_a_point_shares_with_itself():
    x = np.random.default_rng(0).normal(size=(4, 3))
    white, eye = kernels.White(variance=0.5), np.eye(4)
    assert np.array_equal(white(x), 0.5 * eye)
    assert np.array_equal(white(x, x), np.zeros((4, 4)))
    rbf = kernels.RBF()
    assert np.allclose((rbf + white)(x), rbf(x) + 0.5 * eye)
    assert np.allclose((rbf * (2 * white)).on([1])(x), eye)
    assert np.array_equal((rbf + white)(x, x), rbf(x, x))
    with pytest.raises(ValueError):
        kernels.RBF(lengthscale=[1.0, 2.0])(x)


def test_parameters_are_read_and_set():
    kernel = kernels.Periodic(period=12) * kernels.RBF() + kernels.Linear()
    assert kernel.get_params()["k1__k1__period"] == 12
    kernel.set_params(k1__k1__period=6.0, k2__variance=[1.0, 2.0])
    assert repr(kernel) == "periodic(period=6.0) * rbf + linear(variance=[1.0, 2.0])"
    kernel.k1.k2.lengthscale = 3
    assert repr(kernel) == "periodic(period=6.0) * rbf(lengthscale=3.0) + linear(variance=[1.0, 2.0])"
    assert kernels.RBF(variance=2) != kernels.RBF() == kernels.RBF(variance=1)
    assert repr(kernels.RBF(fix="variance", bounds={"lengthscale": (0.1, 10)})) == (
        "rbf(fix=[variance], bounds=[lengthscale=[0.1, 10.0]])"
    )
    with pytest.raises(ValueError, match="variance, lengthscale"):
        kernel.set_params(k1__k2__length=1.0)



def test_bounds_without_an_end_are_told_what_to_try():
    for kernel in (kernels.RBF(bounds={"lengthscale": (0.1, np.inf)}), "linear + rbf(bounds=[lengthscale=[0.1, inf]])"):
        words = r"bounds are finite numbers: try transform=\[lengthscale=above\(0.1\)\]"
        with pytest.raises(ValueError, match=words):
            lg.GPRegressor(kernel).fit(np.eye(3), [1.0, 2.0, 3.0])
    tried = kernels.RBF(transform={"lengthscale": "above(0.1)"})
    assert lg.GPRegressor(tried, max_iter=2).fit(np.eye(3), [1.0, 2.0, 4.0]).kernel_.lengthscale[0] > 0.1


def test_wrong_expressions_are_named():
    for text, words in [
        ("rbff", "rbff"),
        ("rbf +", "expected a kernel"),
        ("rbf(", "argument"),
        ("rbf)", "the end"),
        ("rbf(lengths=1)", "lengths"),
        ("", "the end"),
    ]:
        with pytest.raises(ValueError, match=words):
            kernels.parse(text)
    with pytest.raises(ValueError, match="a list of 2, found a list of 3"):
        kernels.RBF(lengthscale=[1.0, 2.0, 3.0])(np.zeros((2, 2)))
    with pytest.raises(ValueError):
        kernels.RBF(lengthscale=-1.0)(np.zeros((2, 2)))
    with pytest.raises(TypeError, match="parse"):
        kernels.RBF() + "linear"
    with pytest.raises(TypeError, match="list"):
        [1.0] * kernels.RBF()


def test_numbers_are_constant_kernels():
    x = np.linspace(0, 1, 4)[:, None]
    k = kernels.RBF()
    for made, value in [(2 * k, 2 * k(x)), (k * 2, 2 * k(x)), (k + 1, k(x) + 1), (np.float64(0.5) + k, k(x) + 0.5)]:
        assert np.allclose(made(x), value) and "constant" in repr(made)
        assert kernels.parse(repr(made)) == made
    assert repr(2 * k) == "constant(variance=2.0) * rbf"
    assert sum([k, kernels.Linear()]) == k + kernels.Linear()
    for bad in (-1, 0, np.nan, np.inf):
        with pytest.raises(ValueError, match="a positive number"):
            bad * k


def test_misspelt_parameters_are_named():
    k = kernels.RBF() + kernels.Custom(lambda X, Z, params: X @ Z.T, None, {"width": 1.0}, name="mine")
    with pytest.raises(AttributeError, match="did you mean lengthscale"):
        k.k1.lenghtscale = 2.0
    with pytest.raises(AttributeError, match="did you mean width"):
        k.k2.widht = 2.0
    with pytest.raises(AttributeError, match="k1, k2"):
        k.k3 = kernels.RBF()
    k.k1.lengthscale, k.k2.width = 2.0, 3.0
    assert repr(k) == "rbf(lengthscale=2.0) + mine(width=3.0)"


def test_psi_statistics_have_their_limits():
    rng = np.random.default_rng(0)
    mean, z = rng.normal(size=(5, 2)), rng.normal(size=(3, 2))
    kernel = kernels.Matern32(lengthscale=0.7)
    psi0, psi1, psi2 = lg.psi_statistics(kernel, mean, np.zeros((5, 2)), z, expectation="unscented")
    k = kernel(mean, z)
    assert psi0 == pytest.approx(5.0) and np.allclose(psi1, k) and np.allclose(psi2, k.T @ k)
    exact = lg.psi_statistics("rbf", mean, np.full((5, 2), 0.3), z)
    near = lg.psi_statistics("rbf", mean, np.full((5, 2), 0.3), z, expectation="gauss_hermite(points=20)")
    assert np.allclose(exact.psi2, near.psi2, atol=1e-8) and not np.allclose(exact.psi1, kernels.RBF()(mean, z))
    for var in (0.3, [0.3, 0.3], [[0.3, 0.3]]):
        assert np.array_equal(lg.psi_statistics("rbf", mean, var, z).psi2, exact.psi2)
    with pytest.raises(ValueError, match=r"var has the shape \(3,\), expected that of mean, \(5, 2\)"):
        lg.psi_statistics("rbf", mean, [0.1, 0.2, 0.3], z)
    with pytest.raises(ValueError, match="try"):
        lg.psi_statistics("matern32", np.zeros((5, 40)), 0.1, np.zeros((3, 40)), expectation="gauss_hermite(points=9)")
    draws = mean[:, None] + np.sqrt(0.3) * rng.normal(size=(5, 40000, 2))
    sampled = np.stack([kernels.RBF()(d, z).mean(axis=0) for d in draws])
    assert np.abs(sampled - exact.psi1).max() < 0.01
    with pytest.raises(ValueError, match="inducing"):
        lg.psi_statistics("rbf", mean, np.zeros((5, 2)), np.zeros((3, 1)))
    with pytest.raises(ValueError, match="0 or more"):
        lg.psi_statistics("rbf", mean, np.full((5, 2), -1.0), z)


def test_psi_statistics_that_overflow_are_refused():
    with pytest.raises(ValueError, match="not finite"):
        lg.psi_statistics("linear", np.array([[1e300, -1e300]]), 1.0, np.array([[1e10, 1e10]]))
