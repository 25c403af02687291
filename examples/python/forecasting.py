"""Four years of airline passengers forecast from eight, uncertainty carried from step to step.

Of five kernels, the one with the largest evidence of the eight years is taken.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import latentgp as lg

airline = lg.datasets.load_airline()
years, passengers = airline.data[:, 0], airline.target
past, came = passengers[:96], passengers[96:]

KERNELS = ("rbf", "linear", "rbf + linear", "matern32 + linear", "matern52 + linear")
tried = [lg.GPNarx(lags=12, kernel=kernel, max_iter=300, random_state=0).fit(past) for kernel in KERNELS]
model = max(tried, key=lambda model: model.log_evidence_)
mean, std = model.forecast(len(came), return_std=True)
inside = np.mean(np.abs(came - mean) < 2 * std)
print(f"{model.kernel}: root mean squared error {np.sqrt(np.mean((mean - came) ** 2)):.1f}, within the band {inside:.0%}")

figure, ax = plt.subplots(figsize=(7.2, 3.8), layout="constrained")
lg.plot.forecast(model, len(came), history=past, truth=came, index=years, ax=ax)
ax.set(xlabel="year", ylabel="passengers, thousands", title="a forecast of 48 months")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"), dpi=84)
