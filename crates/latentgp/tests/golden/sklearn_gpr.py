"""Exact regression at fixed hyperparameters by scikit-learn; writes sklearn_gpr.json beside this file.

Run as `python sklearn_gpr.py`. The file names the versions that made it.
"""

import json
import pathlib

import numpy as np
import sklearn
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    ConstantKernel, DotProduct, ExpSineSquared, Matern, RationalQuadratic, RBF,
)

rng = np.random.default_rng(7)
NOISE = 0.07


def variance(v):
    return ConstantKernel(v)


# Our expression, their kernel, input columns. Their periodic kernel has sin²·2/ℓ², ours sin²/(2ℓ²); their
# dot product has no variance a column.
KERNELS = [
    ("rbf(variance=1.3, lengthscale=[0.8, 1.5, 3.0])", variance(1.3) * RBF([0.8, 1.5, 3.0]), 3),
    ("matern12(variance=0.9, lengthscale=0.7, ard=false)", variance(0.9) * Matern(0.7, nu=0.5), 2),
    ("matern32(variance=0.9, lengthscale=[1.1, 0.7])", variance(0.9) * Matern([1.1, 0.7], nu=1.5), 2),
    ("matern52(variance=1.1, lengthscale=[0.9])", variance(1.1) * Matern(0.9, nu=2.5), 1),
    ("rational_quadratic(variance=1.2, lengthscale=0.9, alpha=0.6, ard=false)",
     variance(1.2) * RationalQuadratic(length_scale=0.9, alpha=0.6), 2),
    ("periodic(variance=0.8, lengthscale=0.65, period=1.7)",
     variance(0.8) * ExpSineSquared(length_scale=1.3, periodicity=1.7), 1),
    ("rbf(variance=0.7, lengthscale=0.8, ard=false) + linear(variance=0.3, ard=false) + constant(variance=0.2)",
     variance(0.7) * RBF(0.8) + variance(0.3) * DotProduct(0.0) + variance(0.2), 2),
    ("rbf(variance=1.4, lengthscale=[2.0]) * periodic(variance=1.0, lengthscale=0.65, period=1.7, fix=[variance])",
     variance(1.4) * RBF(2.0) * ExpSineSquared(length_scale=1.3, periodicity=1.7), 1),
]

cases = []
for expression, kernel, dim in KERNELS:
    x, at = rng.normal(size=(18, dim)), rng.normal(size=(5, dim))
    y = np.column_stack([np.sin(2 * x[:, 0]), x.sum(1) ** 2]) + 0.1 * rng.normal(size=(18, 2)) + [3.0, -5.0]
    case = {"kernel": expression, "noise": NOISE, "x": x.tolist(), "y": y.tolist(), "x_test": at.tolist()}
    for name, normalize in [("plain", False), ("standardized", True)]:
        gp = GaussianProcessRegressor(kernel, alpha=NOISE, optimizer=None, normalize_y=normalize).fit(x, y)
        mean, cov = gp.predict(at, return_cov=True)
        case[name] = {
            "log_marginal": gp.log_marginal_likelihood_value_,
            "mean": mean.tolist(),
            "cov": [cov[:, :, d].tolist() for d in range(2)],
        }
    cases.append(case)

versions = {"scikit-learn": sklearn.__version__, "numpy": np.__version__}
out = pathlib.Path(__file__).with_suffix(".json")
out.write_text(json.dumps({"versions": versions, "cases": cases}, indent=1) + "\n")
