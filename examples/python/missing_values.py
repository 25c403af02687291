"""Missing cells filled from the latent space, with error bars: a fifth of the oil-flow data is hidden."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import latentgp as lg

X = lg.datasets.load_oil_flow(120, seed=1).data
hidden = np.random.default_rng(0).random(X.shape) < 0.2
holes = np.where(hidden, np.nan, X)

model = lg.BayesianGPLVM(n_components=4, n_inducing=20, max_iter=80, random_state=0).fit(holes)
filled, std = model.impute(holes, return_std=True)
rmse = np.sqrt(np.mean((filled - X)[hidden] ** 2))
mean_rmse = np.sqrt(np.mean((np.nanmean(holes, axis=0) - X)[hidden] ** 2))
print(f"root mean squared error {rmse:.3f}; {mean_rmse:.3f} with the means of the columns")

figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ax.axline((0, 0), slope=1, color="#999999", lw=0.8)
ax.errorbar(X[hidden], filled[hidden], yerr=2 * std[hidden], fmt="none", ecolor="#b9d3e6", elinewidth=0.8)
ax.scatter(X[hidden], filled[hidden], s=10, color="#0072b2", edgecolors="white", linewidths=0.3, zorder=3)
ax.set(xlabel="hidden value", ylabel="imputed value, ± 2 standard deviations", title="a fifth of the cells, imputed")
ax.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"), dpi=84)
