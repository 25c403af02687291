"""Any kernel: a Cauchy kernel in three lines of JAX learns a latent space, gradients included."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import jax.numpy as jnp
import matplotlib.pyplot as plt

import latentgp as lg


def cauchy(x, z, params):
    return params["variance"] / (1 + jnp.sum(((x - z) / params["lengthscale"]) ** 2))


X, regime = lg.datasets.load_oil_flow(100, seed=0, return_X_y=True)
kernel = lg.kernels.from_jax(cauchy, {"variance": 1.0, "lengthscale": [1.0, 1.0]})
model = lg.BayesianGPLVM(n_components=2, n_inducing=15, kernel=kernel, max_iter=40, random_state=0).fit(X)
print(model.kernel_)

figure, ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
lg.plot.latent_map(model, labels=regime, ax=ax).set_title("a kernel of one's own, from JAX")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"), dpi=84)
