"""The kernels that expressions can name, as objects."""

from __future__ import annotations

import inspect
import re
from numbers import Real
from typing import Any, Optional

import numpy as np

from . import _native
from ._expression import Word, read, write

#: Bounds without an upper end, such as ``lengthscale=[0.1, inf]``.
OPEN_END = re.compile(r"(\w+)=\[\s*([-+.\w]+)\s*,\s*\+?inf(?:inity)?\s*\]", re.IGNORECASE)

#: Arguments of every kernel by itself: columns, what the fit leaves alone, bounds, priors and transforms.
COMMON = ("dims", "fix", "bounds", "transform", "prior")


class Kernel:
    """A covariance function; a value with parameters.

    Kernels add and multiply; a positive number stands for :class:`Constant`, so that ``2 * RBF()`` is
    ``Constant(variance=2) * RBF()``. They have ``get_params`` and ``set_params`` as scikit-learn's estimators do, so that
    ``GridSearchCV`` finds ``kernel__lengthscale``.
    """

    #: NumPy's numbers leave ``*`` and ``+`` to the kernel.
    __array_ufunc__ = None

    def __add__(self, other) -> "Kernel":
        other = _operand(other, "+")
        return self if other is None else Sum(self, other)

    def __radd__(self, other) -> "Kernel":
        other = _operand(other, "+")
        return self if other is None else Sum(other, self)

    def __mul__(self, other) -> "Kernel":
        return Product(self, _operand(other, "*"))

    def __rmul__(self, other) -> "Kernel":
        return Product(_operand(other, "*"), self)

    def __setattr__(self, key: str, value: Any) -> None:
        if not key.startswith("_") and key not in self._settable():
            from difflib import get_close_matches

            near = get_close_matches(key, self._settable(), 1)
            asked = f"; did you mean {near[0]}?" if near else ""
            raise AttributeError(
                f"{type(self).__name__} has no parameter {key!r}, expected one of {', '.join(self._settable())}{asked}"
            )
        super().__setattr__(key, value)

    def _settable(self) -> list[str]:
        """The names that may be set."""
        return self._names()

    def __eq__(self, other) -> bool:
        return isinstance(other, Kernel) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __call__(self, X, Z=None) -> np.ndarray:
        """The matrix of k(x, z), of shape (n, m).

        Parameters
        ----------
        X : array-like of shape (n, n_features)
            Points.
        Z : array-like of shape (m, n_features), default=None
            Other points. Without them the matrix is the covariance of the points X, :class:`White` noise on its
            diagonal included, which two sets of points never share.
        """
        X = _points(X, "X")
        Z = None if Z is None else _points(Z, "Z")
        np.empty((2 * len(X), len(X if Z is None else Z)))  # raises MemoryError where it cannot be had
        kernel = self._native(X.shape[1])
        return kernel.gram(X) if Z is None else kernel.cross(X, Z)

    @classmethod
    def _names(cls) -> list[str]:
        every = inspect.signature(cls.__init__).parameters
        return [name for name in every if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Arguments by name; with ``deep`` those of kernels inside as well, as ``k1__variance``."""
        params: dict[str, Any] = {}
        for name in self._names():
            value = getattr(self, name)
            params[name] = value
            if deep and isinstance(value, Kernel):
                params.update((f"{name}__{k}", v) for k, v in value.get_params().items())
        return params

    def set_params(self, **params) -> "Kernel":
        """Set arguments by name, those of kernels inside as ``k1__variance``."""
        for key, value in params.items():
            name, inside, rest = key.partition("__")
            if name not in self._names():
                known = ", ".join(self._names())
                raise ValueError(f"Invalid parameter {name!r} for kernel {self}. It takes {known}.")
            if inside:
                getattr(self, name).set_params(**{rest: value})
            else:
                setattr(self, name, value)
        return self

    def on(self, dims) -> "Select":
        """The kernel on some of the input columns."""
        return Select(self, dims)

    def _own(self) -> dict[str, "Kernel"]:
        """The parts that are written in Python, by the names they have in ``repr``."""
        own: dict[str, Kernel] = {}
        for name in self._names():
            part = getattr(self, name)
            for key, kernel in (part._own() if isinstance(part, Kernel) else {}).items():
                if own.setdefault(key, kernel).fn is not kernel.fn:
                    raise ValueError(f"two kernels are called `{key}`: give one of them another name with name=")
        return own

    def _native(self, dim: int) -> "_native.Kernel":
        """The compiled kernel, on inputs of ``dim`` columns."""
        return _compiled(repr(self), dim, self._own())


class Leaf(Kernel):
    """A kernel by itself."""

    name = ""

    def _store(self, arguments: dict) -> None:
        for key in self._names():
            setattr(self, key, arguments[key])

    def __repr__(self) -> str:
        default = inspect.signature(type(self).__init__).parameters
        items = [(key, getattr(self, key)) for key in self._names()]
        given = [(key, v) for key, v in items if not _same(v, default[key].default)]
        return write(self.name, given)


class RBF(Leaf):
    """Squared exponential: smooth functions."""

    name = "rbf"

    def __init__(
        self, *, variance=1.0, lengthscale=1.0, ard=True,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class Matern12(Leaf):
    """Matérn 1/2, exponential: continuous, rough functions."""

    name = "matern12"

    def __init__(
        self, *, variance=1.0, lengthscale=1.0, ard=True,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class Matern32(Leaf):
    """Matérn 3/2: functions with one derivative."""

    name = "matern32"

    def __init__(
        self, *, variance=1.0, lengthscale=1.0, ard=True,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class Matern52(Leaf):
    """Matérn 5/2: functions with two derivatives."""

    name = "matern52"

    def __init__(
        self, *, variance=1.0, lengthscale=1.0, ard=True,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class RationalQuadratic(Leaf):
    """Squared exponentials of many lengthscales."""

    name = "rational_quadratic"

    def __init__(
        self, *, variance=1.0, lengthscale=1.0, alpha=1.0, ard=True,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class Periodic(Leaf):
    """Functions that repeat; one lengthscale unless ``ard`` is true."""

    name = "periodic"

    def __init__(
        self, *, variance=1.0, lengthscale=1.0, period=1.0, ard=False,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class Cosine(Leaf):
    """One plane wave."""

    name = "cosine"

    def __init__(
        self, *, variance=1.0, period=1.0, ard=True,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class Linear(Leaf):
    """Linear functions through the origin."""

    name = "linear"

    def __init__(
        self, *, variance=1.0, ard=True,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class Polynomial(Leaf):
    """Polynomials up to a degree."""

    name = "polynomial"

    def __init__(
        self, *, degree=2, variance=1.0, offset=1.0,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class Constant(Leaf):
    """An unknown offset."""

    name = "constant"

    def __init__(
        self, *, variance=1.0,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class White(Leaf):
    """Noise that no two points share: ``k(X)`` has it on its diagonal, ``k(X, Z)`` nowhere."""

    name = "white"

    def __init__(
        self, *, variance=1.0,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class SpectralMixture(Leaf):
    """A mixture of Gaussians as the spectral density; where weights and frequencies are None, they start spread out."""

    name = "spectral_mixture"

    def __init__(
        self, *, components=4, weight=None, frequency=None, frequency_variance=None,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class ArcSine(Leaf):
    """A network of infinitely many erf units."""

    name = "arc_sine"

    def __init__(
        self, *, variance=1.0, bias_variance=1.0, weight_variance=1.0, ard=True,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())


class MLP(Leaf):
    """A base kernel on the output of a network.

    ``weights`` has the network's numbers by name, ``weights0``, ``bias0``, …; without it they are drawn by ``seed``.
    """

    name = "mlp"

    def __init__(
        self, *, hidden=(30, 60), base=None, bias="layer", seed=0, weights=None,
        dims=None, fix=None, bounds=None, transform=None, prior=None,
    ):  # fmt: skip
        self._store(locals())

    def __repr__(self) -> str:
        default = inspect.signature(type(self).__init__).parameters
        given = []
        for key in self._names():
            value = getattr(self, key)
            if key == "weights":
                given.extend((value or {}).items())
            elif not _same(value, default[key].default):
                given.append((key, Word(value) if key == "bias" else value))
        return write(self.name, given)


class Sum(Kernel):
    """The sum of two kernels."""

    def __init__(self, k1, k2):
        self.k1 = k1
        self.k2 = k2

    def __repr__(self) -> str:
        return f"{self.k1!r} + {self.k2!r}"


class Product(Kernel):
    """The product of two kernels."""

    def __init__(self, k1, k2):
        self.k1 = k1
        self.k2 = k2

    def __repr__(self) -> str:
        return " * ".join(f"({k!r})" if isinstance(k, Sum) else repr(k) for k in (self.k1, self.k2))


class Select(Kernel):
    """A kernel on some of the input columns."""

    def __init__(self, kernel, dims):
        self.kernel = kernel
        self.dims = dims

    def __repr__(self) -> str:
        return write(f"({self.kernel!r})", [("dims", self.dims)])


LEAVES = {
    cls.name: cls
    for cls in (
        RBF, Matern12, Matern32, Matern52, RationalQuadratic, Periodic, Cosine, Linear, Polynomial, Constant,
        White, SpectralMixture, ArcSine, MLP,
    )
}  # fmt: skip


def parse(expression: str, own=None) -> Kernel:
    """The kernel of an expression, as objects.

    Parameters
    ----------
    expression : str
        Such as ``"periodic(period=12) * rbf + linear"``.
    own : Kernel, default=None
        Where the kernels that are written in Python and that the expression names are found: one of them, or a
        kernel made of them.

    Returns
    -------
    kernel : Kernel
        Whose ``repr`` is an expression of the same kernel.
    """
    return build(expression, own._own() if isinstance(own, Kernel) else {})


def build(expression: str, own: dict[str, Kernel]) -> Kernel:
    """The kernel of an expression, with the parts that are written in Python by their names."""
    return _build(read(expression), expression, own)


def as_native(kernel, dim: int) -> "_native.Kernel":
    """The compiled kernel of an expression or an object, on inputs of ``dim`` columns."""
    return _compiled(kernel, dim, {}) if isinstance(kernel, str) else kernel._native(dim)


def _compiled(expression: str, dim: int, own: dict[str, Kernel]) -> "_native.Kernel":
    try:
        return _native.Kernel.parse(expression, dim, own)
    except ValueError as error:
        open_end = OPEN_END.search(expression) if "`bounds`" in str(error) else None
        if open_end is None:
            raise
        raise ValueError(
            f"{error}; bounds are finite numbers: try transform=[{open_end[1]}=above({open_end[2]})] instead of them"
        ) from None


def _build(tree, expression: str, own: dict[str, Kernel]) -> Kernel:
    kind = tree[0]
    if kind in "+*":
        parts = [_build(part, expression, own) for part in tree[1]]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole + part if kind == "+" else whole * part
        return whole
    if kind == "select":
        return Select(_build(tree[1], expression, own), tree[2]["dims"])
    name, arguments = tree[1], dict(tree[2])
    if name in own:
        return own[name]._with(arguments)
    if name not in LEAVES:
        known = ", ".join([*LEAVES, *own])
        raise ValueError(f"cannot read `{expression}`: there is no kernel `{name}`; there are {known}")
    cls = LEAVES[name]
    for key in ("ard",):
        if key in arguments:
            arguments[key] = str(arguments[key]) == "true"
    if cls is MLP:
        network = {k: arguments.pop(k) for k in list(arguments) if k.rstrip("0123456789") in ("weights", "bias")
                   and k[-1].isdigit()}  # fmt: skip
        arguments["weights"] = network or None
        if "base" in arguments:
            base = arguments["base"]
            arguments["base"] = _build(("call", str(base), {}) if isinstance(base, Word) else base, expression, own)
        if "bias" in arguments:
            arguments["bias"] = str(arguments["bias"])
    for key in ("degree", "components", "seed"):
        if key in arguments:
            arguments[key] = int(arguments[key])
    for key in ("dims", "hidden"):
        if key in arguments:
            arguments[key] = [int(v) for v in arguments[key]]
    unknown = [key for key in arguments if key not in cls._names()]
    if unknown:
        takes = ", ".join(cls._names())
        raise ValueError(f"cannot read `{expression}`: `{name}` has no argument `{unknown[0]}`; it takes {takes}")
    return cls(**arguments)


def _operand(other, sign: str) -> Optional[Kernel]:
    """A kernel, or a number as one; None for the 0 that ``sum`` begins with."""
    if isinstance(other, Kernel):
        return other
    if isinstance(other, Real) and not isinstance(other, (bool, np.bool_)):
        if sign == "+" and other == 0:
            return None
        if np.isfinite(other) and other > 0:
            return Constant(variance=float(other))
        raise ValueError(f"kernel {sign} number: expected a positive number, found {other!r}")
    hint = f": write kernel {sign} parse({other!r})" if isinstance(other, str) else ""
    raise TypeError(f"kernel {sign} other: expected a kernel or a positive number, found {type(other).__name__}{hint}")


def _points(of, name: str) -> np.ndarray:
    from sklearn.utils import check_array

    return check_array(of, dtype=np.float64, order="C", input_name=name)


def _same(a, b) -> bool:
    """Whether an argument is its default."""
    if a is b:
        return True
    if a is None or b is None or isinstance(a, Kernel) or isinstance(b, Kernel):
        return False
    if isinstance(b, (bool, str)) or np.ndim(a) != np.ndim(b):
        return type(a) is type(b) and a == b
    return np.array_equal(np.asarray(a, dtype=object), np.asarray(b, dtype=object))
