"""Kernels as objects: ``+``, ``*``, readable and settable parameters, and a ``repr`` that is the expression.

>>> from latentgp import kernels
>>> k = kernels.Periodic(period=12) * kernels.RBF() + kernels.Linear()
>>> k
periodic(period=12.0) * rbf + linear
>>> k.k1.k1.period = 6.0
>>> kernels.parse("periodic(period=6) * rbf + linear") == k
True
>>> kernels.RBF(lengthscale=2.0)([[0.0]], [[2.0]]).round(4)
array([[0.6065]])
"""

from ._custom import Custom, from_jax
from ._kernels import (
    MLP,
    RBF,
    ArcSine,
    Constant,
    Cosine,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    Product,
    RationalQuadratic,
    Select,
    SpectralMixture,
    Sum,
    White,
    as_native,
    parse,
)

__all__ = [
    "ArcSine",
    "Constant",
    "Cosine",
    "Custom",
    "Kernel",
    "Linear",
    "MLP",
    "Matern12",
    "Matern32",
    "Matern52",
    "Periodic",
    "Polynomial",
    "Product",
    "RBF",
    "RationalQuadratic",
    "Select",
    "SpectralMixture",
    "Sum",
    "White",
    "as_native",
    "from_jax",
    "parse",
]
