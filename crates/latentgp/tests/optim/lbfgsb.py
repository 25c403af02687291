"""Runs SciPy's L-BFGS-B on the functions of problems.rs and writes lbfgsb.json beside this file."""

import json
import pathlib

import numpy as np
import scipy
from scipy.optimize import minimize, rosen, rosen_der


def powell(x):
    a, b, c, d = x.reshape(-1, 4).T
    p, q, r, s = a + 10 * b, c - d, b - 2 * c, a - d
    g = np.stack([2 * p + 40 * s**3, 20 * p + 4 * r**3, 10 * q - 8 * r**3, -10 * q - 40 * s**3], 1)
    return np.sum(p**2 + 5 * q**2 + r**4 + 10 * s**4), g.ravel()


def beale(x):
    f, g = 0.0, np.zeros(2)
    for k, c in enumerate([1.5, 2.25, 2.625], 1):
        r = c - x[0] * (1 - x[1] ** k)
        f += r * r
        g += 2 * r * np.array([x[1] ** k - 1, k * x[0] * x[1] ** (k - 1)])
    return f, g


def brown(x):
    p, q, r = x[0] - 1e6, x[1] - 2e-6, x[0] * x[1] - 2
    return p * p + q * q + r * r, np.array([2 * p + 2 * r * x[1], 2 * q + 2 * r * x[0]])


def quadratic(x):
    lam = 10 ** (6 * np.arange(len(x)) / (len(x) - 1))
    return 0.5 * np.sum(lam * (x - 1) ** 2), lam * (x - 1)


def trigonometric(x):
    n = len(x)
    i = np.arange(1, n + 1)
    r = n - np.cos(x).sum() + i * (1 - np.cos(x)) - np.sin(x)
    return np.sum(r * r), 2 * (np.sin(x) * r.sum() + r * (i * np.sin(x) - np.cos(x)))


def gplvm(u, n=40, d=6):
    """RBF GPLVM, MAP, two latent dimensions; u is X (n by 2), then the log noise variance."""
    i, j = np.arange(n), np.arange(d)
    s = 2 * np.pi * i / n
    y = np.sin(s[:, None] * (1 + j % 3) + j) + 0.1 * np.cos(7.0 * i[:, None] * (j + 1))
    x, noise = u[:-1].reshape(n, 2), np.exp(u[-1])
    diff = x[:, None] - x[None]
    k = np.exp(-0.5 * (diff**2).sum(-1))
    c = k + (noise + 1e-6) * np.eye(n)
    inv = np.linalg.inv(c)
    a = inv @ y
    f = 0.5 * d * np.linalg.slogdet(c)[1] + 0.5 * np.sum(a * y) + 0.5 * np.sum(x * x)
    bar = 0.5 * (d * inv - a @ a.T)
    gx = -2 * np.einsum("ab,ab,abq->aq", bar, k, diff) + x
    return f, np.append(gx.ravel(), noise * np.trace(bar))


def gplvm_start(n=40):
    i = np.arange(float(n))
    x = np.stack([np.cos(2 * np.pi * i / n), 0.1 * np.sin(i)], 1)
    return np.append(x.ravel(), -2.0)


def both(f, g):
    return lambda x: (f(x), g(x))


PROBLEMS = [
    ("rosenbrock", both(rosen, rosen_der), np.tile([-1.2, 1.0], 1)),
    ("rosenbrock", both(rosen, rosen_der), np.tile([-1.2, 1.0], 50)),
    ("rosenbrock", both(rosen, rosen_der), np.tile([-1.2, 1.0], 500)),
    ("powell", powell, np.tile([3.0, -1.0, 0.0, 1.0], 25)),
    ("beale", beale, np.array([1.0, 1.0])),
    ("brown", brown, np.array([1.0, 1.0])),
    ("quadratic", quadratic, np.zeros(50)),
    ("trigonometric", trigonometric, np.full(100, 0.01)),
    ("gplvm", gplvm, gplvm_start()),
]


def main():
    ftol, gtol, runs = 2.2e-9, 1e-5, []
    for name, f, x0 in PROBLEMS:
        for memory in (10, 20, 30):
            options = dict(maxcor=memory, ftol=ftol, gtol=gtol, maxfun=100_000, maxiter=100_000, maxls=20)
            r = minimize(f, x0, jac=True, method="L-BFGS-B", options=options)
            counts = dict(iterations=r.nit, evaluations=r.nfev, value=float(r.fun), message=r.message)
            runs.append(dict(problem=name, n=len(x0), memory=memory) | counts)
    made_by = f"SciPy {scipy.__version__}, NumPy {np.__version__}, lbfgsb.py beside this file"
    here = pathlib.Path(__file__).parent
    lines = ",\n".join("    " + json.dumps(r) for r in runs)
    head = f'"made_by": {json.dumps(made_by)},\n  "value_tolerance": {ftol}, "gradient_tolerance": {gtol}'
    (here / "lbfgsb.json").write_text(f'{{\n  {head},\n  "runs": [\n{lines}\n  ]\n}}\n')


if __name__ == "__main__":
    main()
