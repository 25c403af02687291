"""Kernels that are written in Python: on NumPy blocks, or for two points in JAX."""

from __future__ import annotations

import keyword
from functools import lru_cache
from typing import Any

import numpy as np

from ._expression import write
from ._kernels import COMMON, LEAVES, Kernel

#: Points of the square blocks that a diagonal is taken from.
SQUARE = 16

#: The step of central differences, relative to the larger of a value and 1.
STEP = 6e-6


class Custom(Kernel):
    """A kernel of one's own, on blocks of NumPy arrays.

    Every block of a fit is one call. A fit runs without the interpreter's lock, which each call takes; what a
    function raises is raised by ``fit`` or ``predict``.

    Parameters
    ----------
    fn : callable
        ``fn(X, Z, params)`` with X of shape (n, q) and Z of shape (m, q) returns k(x, z), of shape (n, m);
        ``params`` is a dictionary of numbers and arrays.
    vjp : callable or None
        ``vjp(X, Z, params, G)`` returns the gradients of ``sum(G * fn(X, Z, params))`` with respect to X, Z and
        the parameters: ``(dX, dZ, {name: gradient})``. None takes central differences, which is slower and exact to
        about nine digits.
    params : dict
        Names and starting values, numbers or arrays, positive unless ``transform`` or ``bounds`` say otherwise.
    name : str, default=None
        What ``repr`` calls the kernel; None is the name of ``fn``.
    diag : callable, default=None
        ``diag(X, params)`` returns k(x, x), of shape (n,). None takes it from small square blocks of ``fn``.
    dims, fix, bounds, transform, prior
        As of every kernel: input columns, parameters that the fit leaves alone, and per parameter bounds, a
        transform (``"identity"`` for any real number) or a prior.

    Examples
    --------
    >>> import numpy as np
    >>> from latentgp import kernels
    >>> def cauchy(X, Z, params):
    ...     square = ((X[:, None] - Z[None]) ** 2).sum(-1)
    ...     return params["variance"] / (1 + square / params["lengthscale"] ** 2)
    >>> k = kernels.Custom(cauchy, None, {"variance": 1.0, "lengthscale": 2.0})
    >>> k + kernels.Linear()
    cauchy(variance=1.0, lengthscale=2.0) + linear
    >>> k([[0.0]], [[2.0]])
    array([[0.5]])
    """

    def __init__(
        self, fn, vjp, params, *, name=None, diag=None,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self.fn = fn
        self.vjp = vjp
        self.params = params
        self.name = name
        self.diag = diag
        self.dims = dims
        self.fix = fix
        self.bounds = bounds
        self.transform = transform
        self.prior = prior

    def _word(self) -> str:
        """The name in expressions."""
        name = self.name
        if name is None:
            name = getattr(self.fn, "__name__", type(self.fn).__name__)
            name = name if name.isidentifier() and name.isascii() else "custom"
            return f"custom_{name}" if name in LEAVES else name
        if not (isinstance(name, str) and name.isidentifier() and name.isascii()) or keyword.iskeyword(name):
            raise ValueError(f"name: expected one word for the kernel, found {name!r}")
        if name in LEAVES:
            raise ValueError(f"name: `{name}` is a kernel of latentgp; give the kernel another name")
        return name

    def __repr__(self) -> str:
        settings = [(key, getattr(self, key)) for key in COMMON if getattr(self, key) is not None]
        return write(self._word(), [*self.params.items(), *settings])

    def __getattr__(self, key: str) -> Any:
        params = self.__dict__.get("params")
        if isinstance(params, dict) and key in params:
            return params[key]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {key!r}")

    def __setattr__(self, key: str, value: Any) -> None:
        params = self.__dict__.get("params")
        if isinstance(params, dict) and key in params and key not in self._names():
            # A dictionary of its own: that of the user, or of a copy, stays as it is.
            value, key = {**params, key: value}, "params"
        super().__setattr__(key, value)

    def _settable(self) -> list[str]:
        params = self.__dict__.get("params")
        return [*(params if isinstance(params, dict) else ()), *Custom._names()]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments by name; with ``deep`` the kernel's parameters as well."""
        params = super().get_params(deep)
        if deep:
            params.update(self.params)
        return params

    def set_params(self, **params) -> "Custom":
        """Set arguments, and parameters of the kernel, by name."""
        for key, value in params.items():
            if key in self.params:
                setattr(self, key, value)
            else:
                super().set_params(**{key: value})
        return self

    def _own(self) -> dict[str, "Custom"]:
        return {self._word(): self}

    def _with(self, arguments: dict[str, Any]) -> "Custom":
        """This kernel with the parameters and settings of an expression."""
        rest = dict(arguments)
        values = {
            key: _shaped(rest.pop(key, value), value) if key in arguments else value
            for key, value in self.params.items()
        }
        unknown = [key for key in rest if key not in COMMON]
        if unknown:
            takes = ", ".join([*self.params, *COMMON])
            raise ValueError(f"`{self._word()}` has no argument `{unknown[0]}`; it takes {takes}")
        given = {**self.get_params(deep=False), **dict.fromkeys(COMMON), **rest, "params": values}
        return type(self)(**given)

    # What the compiled part calls; theta has the entries of all parameters in their order.

    def _starts(self) -> list[tuple[str, np.ndarray]]:
        if not isinstance(self.params, dict):
            raise TypeError(f"params: expected a dictionary of names and values, found {self.params!r}")
        starts = []
        for key, value in self.params.items():
            if not (isinstance(key, str) and key.isidentifier() and key.isascii()) or key in self._names():
                raise ValueError(f"params: expected names that are one word and no argument, found {key!r}")
            array = np.asarray(value, dtype=np.float64)
            if array.ndim > 2 or array.size == 0:
                raise ValueError(f"params: {key} has the shape {array.shape}, expected a number, a list or a matrix")
            starts.append((key, np.array(np.atleast_2d(array))))
        return starts

    def _named(self, theta: np.ndarray) -> dict[str, Any]:
        named, at = {}, 0
        for key, value in self.params.items():
            shape = np.shape(value)
            size = int(np.prod(shape))
            part = theta[at : at + size]
            named[key] = part.reshape(shape) if shape else float(part[0])
            at += size
        return named

    def _flat(self, gradients: Any) -> np.ndarray:
        if not isinstance(gradients, dict) or set(gradients) != set(self.params):
            found = list(gradients) if isinstance(gradients, dict) else gradients
            raise ValueError(f"{self._word()}: vjp should give gradients of {list(self.params)}, it gave {found}")
        parts = []
        for key, value in self.params.items():
            gradient = np.asarray(gradients[key])
            # That of a number may come as a list of one.
            gradient = gradient.reshape(np.shape(value)) if gradient.size == np.size(value) else gradient
            parts.append(_array(gradient, np.shape(value), f"{self._word()}: the gradient of {key}").ravel())
        return np.concatenate(parts) if parts else np.zeros(0)

    def _cross(self, theta, X, Z) -> np.ndarray:
        return _array(self.fn(X, Z, self._named(theta)), (len(X), len(Z)), f"{self._word()}: k(X, Z)")

    def _cross_vjp(self, theta, X, Z, G):
        if self.vjp is None:
            return self._differences(theta, X, Z, G)
        given = self.vjp(X, Z, self._named(theta), G)
        if not isinstance(given, tuple) or len(given) != 3:
            raise ValueError(f"{self._word()}: vjp should give (dX, dZ, gradients), it gave {type(given).__name__}")
        word = self._word()
        dX = _array(given[0], X.shape, f"{word}: the gradient of X")
        return self._flat(given[2]), dX, _array(given[1], Z.shape, f"{word}: the gradient of Z")

    def _differences(self, theta, X, Z, G):
        def slope(at, of, axis=None):
            h = STEP * max(1.0, float(np.abs(at).max(initial=0.0)))
            change = (of(h) - of(-h)) * G / (2 * h)
            return change.sum(axis=axis)

        dtheta, dX, dZ = np.empty_like(theta), np.empty_like(X), np.empty_like(Z)
        for i in range(len(theta)):
            step = np.eye(len(theta))[i]
            h = STEP * abs(theta[i]) or STEP
            up, down = self._cross(theta + h * step, X, Z), self._cross(theta - h * step, X, Z)
            dtheta[i] = ((up - down) * G).sum() / (2 * h)
        for q in range(X.shape[1]):
            step = np.eye(X.shape[1])[q]
            dX[:, q] = slope(X[:, q], lambda h: self._cross(theta, X + h * step, Z), 1)
            dZ[:, q] = slope(Z[:, q], lambda h: self._cross(theta, X, Z + h * step), 0)
        return dtheta, dX, dZ

    def _diag(self, theta, X) -> np.ndarray:
        if self.diag is not None:
            return _array(self.diag(X, self._named(theta)), (len(X),), f"{self._word()}: diag(X)")
        parts = [self._cross(theta, part, part).diagonal() for part in _parts(X)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _diag_vjp(self, theta, X, g):
        dtheta, dX = np.zeros_like(theta), np.empty_like(X)
        for at in range(0, len(X), SQUARE):
            rows = slice(at, at + SQUARE)
            each, left, right = self._cross_vjp(theta, X[rows], X[rows], np.diag(g[rows]))
            dtheta += each
            dX[rows] = left + right
        return dtheta, dX


class FromJax(Custom):
    """A kernel of :func:`from_jax`."""

    def __init__(
        self, fn, params, *, name=None,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        super().__init__(
            fn, None, params, name=name, dims=dims, fix=fix, bounds=bounds, transform=transform, prior=prior
        )

    def _jax(self):
        """The batched functions, compiled once for each shape; copies of a kernel share them."""
        return _compile(self.fn)

    def _cross(self, theta, X, Z):
        return _array(self._jax()["cross"](self._named(theta), X, Z), (len(X), len(Z)), f"{self._word()}: k(x, z)")

    def _cross_vjp(self, theta, X, Z, G):
        dparams, dX, dZ = self._jax()["cross_vjp"](self._named(theta), X, Z, G)
        word = self._word()
        return self._flat(dparams), _array(dX, X.shape, word), _array(dZ, Z.shape, word)

    def _diag(self, theta, X):
        return _array(self._jax()["diag"](self._named(theta), X), (len(X),), f"{self._word()}: k(x, x)")

    def _diag_vjp(self, theta, X, g):
        dparams, dX = self._jax()["diag_vjp"](self._named(theta), X, g)
        return self._flat(dparams), _array(dX, X.shape, self._word())


def from_jax(fn, params, *, name=None, dims=None, fix=None, bounds=None, transform=None, prior=None) -> FromJax:
    """A kernel from a function of two points in JAX, batched, compiled and differentiated by JAX.

    Parameters
    ----------
    fn : callable
        ``fn(x, z, params)`` with x and z of shape (q,) returns the number k(x, z), in operations of ``jax.numpy``.
    params : dict
        Names and starting values, numbers or arrays, positive unless ``transform`` or ``bounds`` say otherwise.
    name : str, default=None
        What ``repr`` calls the kernel; None is the name of ``fn``.
    dims, fix, bounds, transform, prior
        As of every kernel.

    Returns
    -------
    kernel : Kernel
        In double precision, whatever the settings of JAX.

    Notes
    -----
    A gradient of JAX is NaN where a formula is not differentiable, such as that of a distance √(r²) at x = z: use
    r², or ``jnp.sqrt(r2 + 1e-12)``.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from latentgp import kernels
    >>> def cauchy(x, z, params):
    ...     return 1 / (1 + jnp.sum(((x - z) / params["lengthscale"]) ** 2))
    >>> k = kernels.from_jax(cauchy, {"lengthscale": [1.0, 2.0]})
    >>> k
    cauchy(lengthscale=[1.0, 2.0])
    >>> k([[0.0, 0.0]], [[0.0, 2.0]])
    array([[0.5]])
    """
    _import_jax()
    return FromJax(
        fn, params, name=name, dims=dims, fix=fix, bounds=bounds, transform=transform, prior=prior
    )


def _import_jax():
    try:
        import jax
    except ImportError as error:
        raise ImportError("latentgp.kernels.from_jax needs JAX: pip install jax") from error
    return jax


@lru_cache(maxsize=32)
def _compile(fn) -> dict:
    jax = _import_jax()
    vmap = jax.vmap

    def cross(params, X, Z):
        return vmap(lambda x: vmap(lambda z: fn(x, z, params))(Z))(X)

    def diag(params, X):
        return vmap(lambda x: fn(x, x, params))(X)

    def back(forward):
        def vjp(*of):
            *points, g = of
            return jax.vjp(forward, *points)[1](g)

        return vjp

    made = {"cross": cross, "cross_vjp": back(cross), "diag": diag, "diag_vjp": back(diag)}
    return {key: _double(jax, jax.jit(of)) for key, of in made.items()}


def _double(jax, of):
    """A function that computes in double precision, in whatever thread it is called."""
    # Newer versions of JAX have it outside of `experimental`.
    enable = getattr(jax, "enable_x64", None)
    if enable is None:
        from jax.experimental import enable_x64 as enable

    def called(*arrays):
        with enable(True):
            return jax.tree_util.tree_map(np.asarray, of(*arrays))

    return called


def _parts(X: np.ndarray) -> list[np.ndarray]:
    return [X[at : at + SQUARE] for at in range(0, len(X), SQUARE)]


def _array(of, shape: tuple, what: str) -> np.ndarray:
    of = np.asarray(of)
    if of.dtype.kind not in "fiub":
        raise TypeError(f"{what} should be real numbers, it is of the type {of.dtype}")
    if of.shape != shape:
        raise ValueError(f"{what} should have the shape {shape}, it has {of.shape}")
    return np.ascontiguousarray(of, dtype=np.float64)


def _shaped(value, like):
    shape = np.shape(like)
    array = np.asarray(value, dtype=np.float64)
    if array.size == 1 or array.size == int(np.prod(shape)):
        array = np.broadcast_to(array.reshape(shape) if array.size > 1 else array.reshape(()), shape)
    return float(array) if shape == () else array.tolist()
