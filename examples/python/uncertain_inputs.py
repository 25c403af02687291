"""Predictions at inputs that are known with an error: it widens the band where the function is steep."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import latentgp as lg

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, 50))[:, None]
y = np.sin(2 * X[:, 0]) + 0.05 * rng.normal(size=50)
model = lg.GPRegressor(kernel="rbf").fit(X, y)

true = rng.uniform(0.5, 5.5, 200)
read = (true + 0.25 * rng.normal(size=200))[:, None]
came = np.sin(2 * true) + 0.05 * rng.normal(size=200)

figure, both = plt.subplots(1, 2, figsize=(8.6, 3.5), sharey=True, layout="constrained")
for ax, X_std, title in zip(both, (None, 0.25), ("read as exact", "read with its error")):
    grid = np.linspace(0, 6, 200)
    mean, std = model.predict(grid[:, None], return_std=True, X_std=X_std)
    there, spread = model.predict(read, return_std=True, X_std=X_std)
    inside = np.mean(np.abs(came - there) < 2 * spread)
    ax.fill_between(grid, mean - 2 * std, mean + 2 * std, color="#0072b2", alpha=0.18, lw=0)
    ax.plot(grid, mean, color="#0072b2", lw=1.8)
    ax.scatter(read, came, s=9, color="#222222", edgecolors="white", linewidths=0.3, zorder=3)
    ax.set(xlabel="input, as read", title=f"{title}: {inside:.0%} inside the band", xlim=(0, 6))
    ax.spines[["top", "right"]].set_visible(False)
    print(f"{title}: {inside:.0%} of the new observations within two standard deviations")
both[0].set_ylabel("output")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"), dpi=84)
