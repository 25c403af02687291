"""Ψ-statistics: expectations of a kernel under Gaussian inputs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_array

from . import _native
from ._base import spread
from .kernels import as_native


class PsiStatistics(NamedTuple):
    """Σ E[k(x, x)], E[k(x, Z)] of shape (n, m), and Σ E[k(Z, x) k(x, Z)] of shape (m, m)."""

    psi0: float
    psi1: np.ndarray
    psi2: np.ndarray


def psi_statistics(kernel, mean, var, Z, expectation="auto") -> PsiStatistics:
    """Expectations of a kernel under inputs x_n ~ N(mean_n, diag var_n).

    Parameters
    ----------
    kernel : str or Kernel
        An expression, or an object of :mod:`latentgp.kernels`.
    mean : array-like of shape (n, q)
        Means of the inputs.
    var : array-like of shape (n, q)
        Their variances; a row or a number serves for all.
    Z : array-like of shape (m, q)
        Inducing inputs.
    expectation : str, default="auto"
        ``"auto"``, ``"analytic"``, ``"unscented"``, ``"gauss_hermite(points=3)"``, …

    Returns
    -------
    statistics : PsiStatistics
        A tuple ``(psi0, psi1, psi2)``.

    Examples
    --------
    >>> import latentgp as lg
    >>> exact = lg.psi_statistics("rbf", [[0.0, 1.0]], [[0.05, 0.05]], [[0.2, 0.7]])
    >>> close = lg.psi_statistics("rbf", [[0.0, 1.0]], [[0.05, 0.05]], [[0.2, 0.7]], expectation="unscented")
    >>> bool(abs(exact.psi1[0, 0] - close.psi1[0, 0]) < 1e-3)
    True
    """
    mean, Z = (check_array(of, dtype=np.float64, order="C", input_name=name) for of, name in ((mean, "mean"), (Z, "Z")))
    var = spread(var, mean, "var", "mean")
    found = PsiStatistics(*_native.psi_statistics(as_native(kernel, mean.shape[1]), mean, var, Z, expectation))
    if not all(np.isfinite(part).all() for part in found):
        raise ValueError("psi_statistics: the kernel is not finite there; try inputs of a smaller scale")
    return found
