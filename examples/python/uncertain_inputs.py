"""Inputs that were read with an error: ignored, averaged over, and inferred from what came of them."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import latentgp as lg

rng = np.random.default_rng(0)
true = rng.uniform(-3, 3, 200)
y = np.sin(2 * true) + 0.1 * rng.normal(size=200)
X = (true + 0.3 * rng.normal(size=200))[:, None]
grid = np.linspace(-3, 3, 200)[:, None]

figure, axes = plt.subplots(1, 3, figsize=(11, 3.4), sharex=True, sharey=True, layout="constrained")
for ax, (title, X_std, inputs) in zip(axes, [("ignored", None, None), ("averaged", 0.3, "averaged"), ("inferred", 0.3, None)]):
    model = lg.SparseGPRegressor(20, inputs=inputs, effort="quick", random_state=0).fit(X, y, X_std=X_std)
    mean, std = model.predict(grid, return_std=True)
    error = np.sqrt(np.mean((mean - np.sin(2 * grid[:, 0])) ** 2))
    ax.fill_between(grid[:, 0], mean - 2 * std, mean + 2 * std, color="#0072b2", alpha=0.18, lw=0)
    ax.plot(grid[:, 0], mean, color="#0072b2", lw=1.8)
    ax.plot(grid[:, 0], np.sin(2 * grid[:, 0]), color="#222222", lw=0.8, ls="--")
    place, left = model.inputs_ if title == "inferred" else (X, np.full_like(X, X_std or 0.0))
    ax.errorbar(place[:, 0], y, xerr=left[:, 0], fmt=".", ms=3, color="#222222", ecolor="#d55e00", elinewidth=0.8)
    ax.set(xlabel="input", title=f"{title}: error of the curve {error:.2f}")
    ax.spines[["top", "right"]].set_visible(False)
    print(f"{title}: error of the curve {error:.3f}, noise {model.noise_variance_[0] ** 0.5:.2f} (0.1 is true)")
axes[0].set_ylabel("output")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"), dpi=70)
