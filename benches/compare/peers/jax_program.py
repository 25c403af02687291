"""The same objectives as one jit-compiled JAX program each, written for speed.

Ψ2 is a matrix product (of nodes, or of the 2Q + 1 features of the closed form's exponent), an unscented
point's distance is that of the mean plus one term, and rows go in blocks that are recomputed on the way back
once N×M arrays no longer fit in cache.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from common import MAX_ITERATIONS, NOISE, best, main, timed_fit
from jax.scipy.linalg import cho_solve, solve_triangular

jax.config.update("jax_enable_x64", True)
JITTER = 1e-6
BLOCK_ELEMENTS = 1 << 21


def rows_per_block(n, columns):
    """The largest divisor of N whose block of this many columns is small enough."""
    wanted = max(1, BLOCK_ELEMENTS // columns)
    return max(b for b in range(1, n + 1) if n % b == 0 and b <= max(wanted, 1))


def blocked(psi, mean, var, columns):
    """Ψ1 and Ψ2, block by block where the rows are many."""
    n, q = mean.shape
    rows = rows_per_block(n, columns)
    if rows == n:
        return psi(mean, var)
    parts = (mean.reshape(-1, rows, q), var.reshape(-1, rows, q))
    step = jax.checkpoint(lambda total, part: (lambda p: (total + p[1], p[0]))(psi(*part)))
    m = jax.eval_shape(psi, parts[0][0], parts[1][0])[1].shape[0]
    psi2, psi1 = jax.lax.scan(step, jnp.zeros((m, m)), parts)
    return psi1.reshape(n, m), psi2


def psi_rbf(variance, lengthscale, z, mean, var):
    """The closed forms of the rbf kernel, their exponents as matrix products."""
    m, l2 = z.shape[0], lengthscale**2
    j, k = np.triu_indices(m)
    middle = 0.5 * (z[j] + z[k])
    gap = -0.25 * jnp.sum((z[j] - z[k]) ** 2 / l2, axis=1)

    def psi(mean, var):
        w1 = 1.0 / (l2 + var)
        const1 = -0.5 * jnp.sum(w1 * mean**2 + jnp.log1p(var / l2), axis=1)
        psi1 = variance * jnp.exp((w1 * mean) @ z.T - 0.5 * w1 @ (z**2).T + const1[:, None])
        w2 = 1.0 / (l2 + 2.0 * var)
        const2 = -jnp.sum(w2 * mean**2 + 0.5 * jnp.log1p(2.0 * var / l2), axis=1)
        pairs = jnp.exp((2.0 * w2 * mean) @ middle.T - w2 @ (middle**2).T + const2[:, None] + gap)
        half = variance**2 * jnp.sum(pairs, axis=0)
        psi2 = jnp.zeros((m, m)).at[j, k].set(half).at[k, j].set(half)
        return psi1, psi2

    return blocked(psi, mean, var, len(j))


@jax.custom_jvp
def matern32(r2):
    r = jnp.sqrt(3.0 * r2)
    return (1.0 + r) * jnp.exp(-r)


@matern32.defjvp
def _(primals, tangents):
    r = jnp.sqrt(3.0 * primals[0])
    e = jnp.exp(-r)
    return (1.0 + r) * e, -1.5 * e * tangents[0]


def psi_unscented(variance, lengthscale, z, mean, var):
    """The 2Q sigma points of the Matérn 3/2 kernel."""
    m, q = z.shape
    scaled = z / lengthscale

    def psi(mean, var):
        centre = mean / lengthscale
        r2 = jnp.sum(centre**2, axis=1)[:, None] - 2.0 * centre @ scaled.T + jnp.sum(scaled**2, axis=1)
        step = jnp.sqrt(q * var) / lengthscale
        gap = centre.T[:, :, None] - scaled.T[:, None, :]
        up = step.T[:, :, None] * (step.T[:, :, None] + 2.0 * gap)
        down = step.T[:, :, None] * (step.T[:, :, None] - 2.0 * gap)
        points = jnp.maximum(r2 + jnp.concatenate([up, down]), 0.0)
        k = variance * matern32(points)
        flat = k.reshape(-1, m)
        return jnp.mean(k, axis=0), flat.T @ flat / (2 * q)

    return blocked(psi, mean, var, 2 * q * m)


def kzz_rbf(variance, lengthscale, z):
    return variance * jnp.exp(-0.5 * jnp.sum(((z[:, None] - z[None]) / lengthscale) ** 2, axis=2))


def kzz_matern32(variance, lengthscale, z):
    return variance * matern32(jnp.sum(((z[:, None] - z[None]) / lengthscale) ** 2, axis=2))


def collapsed(y, psi0, psi1, psi2, kzz, noise):
    """Titsias' bound from the statistics."""
    n, d = y.shape
    m, beta = kzz.shape[0], 1.0 / noise
    chol = jnp.linalg.cholesky(kzz + JITTER * jnp.eye(m))
    half = solve_triangular(chol, psi2, lower=True)
    a = solve_triangular(chol, half.T, lower=True)
    chol_b = jnp.linalg.cholesky(jnp.eye(m) + beta * a)
    c = solve_triangular(chol_b, solve_triangular(chol, psi1.T @ y, lower=True), lower=True)
    return (
        0.5 * n * d * jnp.log(beta / (2.0 * jnp.pi))
        - d * jnp.sum(jnp.log(jnp.diag(chol_b)))
        - 0.5 * beta * jnp.sum(y**2)
        + 0.5 * beta**2 * jnp.sum(c**2)
        - 0.5 * beta * d * (psi0 - jnp.trace(a))
    )


def gplvm_bound(statistics, kzz, y, p):
    variance, noise, var = jnp.exp(p["variance"]), jnp.exp(p["noise"]), jnp.exp(p["var"])
    lengthscale = jnp.exp(p["lengthscale"])
    psi1, psi2 = statistics(variance, lengthscale, p["z"], p["mean"], var)
    fit = collapsed(y, len(y) * variance, psi1, psi2, kzz(variance, lengthscale, p["z"]), noise)
    return fit - 0.5 * jnp.sum(p["mean"] ** 2 + var - p["var"] - 1.0)


def start(case):
    return {
        "variance": jnp.log(1.0),
        "noise": jnp.log(NOISE),
        "lengthscale": jnp.log(case["lengthscale"][0]),
        "z": jnp.asarray(case["z"]),
        "mean": jnp.asarray(case["mean"]),
        "var": jnp.log(case["var"]),
    }


def bound(case, statistics, kzz):
    f = jax.jit(jax.value_and_grad(functools.partial(gplvm_bound, statistics, kzz, jnp.asarray(case["y"]))))
    p = start(case)
    return best(lambda: jax.block_until_ready(f(p))[0])


def fit(case):
    from jax.flatten_util import ravel_pytree
    from scipy.optimize import minimize

    u, back = ravel_pytree(start(case))
    y = jnp.asarray(case["y"])
    f = jax.jit(jax.value_and_grad(lambda u: -gplvm_bound(psi_rbf, kzz_rbf, y, back(u))))
    jax.block_until_ready(f(u))

    def objective(u):
        value, grad = f(u)
        return float(value), np.asarray(grad)

    def optimise():
        report = minimize(objective, np.asarray(u), jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITERATIONS})
        return -report.fun, report.nit

    return timed_fit(optimise)


def exact(case):
    x, y = jnp.asarray(case["x"]), jnp.asarray(case["y"])
    n = len(x)

    def evidence(p):
        s = x / jnp.exp(p["lengthscale"])
        r2 = jnp.sum(s**2, axis=1)
        k = jnp.exp(p["variance"] + s @ s.T - 0.5 * (r2[:, None] + r2[None]))
        chol = jnp.linalg.cholesky(k + jnp.exp(p["noise"]) * jnp.eye(n))
        w = solve_triangular(chol, y, lower=True)
        return -0.5 * jnp.sum(w**2) - jnp.sum(jnp.log(jnp.diag(chol))) - 0.5 * n * jnp.log(2.0 * jnp.pi)

    p = {"lengthscale": jnp.log(case["lengthscale"][0]), "variance": jnp.log(1.0), "noise": jnp.log(NOISE)}
    f = jax.jit(jax.value_and_grad(evidence))
    return best(lambda: jax.block_until_ready(f(p))[0])


def cross(a, b, lengthscale):
    a, b = a / lengthscale, b / lengthscale
    r2 = jnp.sum(a**2, axis=1)[:, None] - 2.0 * a @ b.T + jnp.sum(b**2, axis=1)
    return jnp.exp(-0.5 * r2)


def predict_exact(case):
    x, y, new, ls = (jnp.asarray(case[k]) for k in ("x", "y", "new", "lengthscale"))
    chol = jnp.linalg.cholesky(cross(x, x, ls) + NOISE * jnp.eye(len(x)))
    alpha = cho_solve((chol, True), y)

    @jax.jit
    def predict(new):
        k = cross(new, x, ls)
        return k @ alpha, 1.0 - jnp.sum(solve_triangular(chol, k.T, lower=True) ** 2, axis=0)

    return best(lambda: jax.block_until_ready(predict(new))[1].sum())


def predict_sparse(case):
    x, y, z, new, ls = (jnp.asarray(case[k]) for k in ("x", "y", "z", "new", "lengthscale"))
    chol = jnp.linalg.cholesky(cross(z, z, ls) + JITTER * jnp.eye(len(z)))
    a = solve_triangular(chol, cross(z, x, ls), lower=True)
    chol_b = jnp.linalg.cholesky(jnp.eye(len(z)) + a @ a.T / NOISE)
    c = solve_triangular(chol_b, a @ y, lower=True) / NOISE

    @jax.jit
    def predict(new):
        w = solve_triangular(chol, cross(z, new, ls), lower=True)
        v = solve_triangular(chol_b, w, lower=True)
        return v.T @ c, 1.0 - jnp.sum(w**2, axis=0) + jnp.sum(v**2, axis=0)

    return best(lambda: jax.block_until_ready(predict(new))[1].sum())


if __name__ == "__main__":
    main(
        {
            "bound_rbf": lambda case: bound(case, psi_rbf, kzz_rbf),
            "bound_matern32": lambda case: bound(case, psi_unscented, kzz_matern32),
            "fit": fit,
            "exact": exact,
            "predict_exact": predict_exact,
            "predict_sparse": predict_sparse,
        }
    )
