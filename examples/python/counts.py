"""Counts a day, whose rate rises and falls: a Poisson likelihood instead of Gaussian noise."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import latentgp as lg

rng = np.random.default_rng(0)
day = np.arange(120.0)[:, None]
rate = np.exp(1.2 + np.sin(day[:, 0] / 12) + 0.006 * day[:, 0])
visits = rng.poisson(rate)

model = lg.GPCountRegressor(kernel="rbf").fit(day, visits)
print(f"log evidence {model.log_evidence_:.1f}, kernel {model.kernel_}")

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
lg.plot.regression(model, day, visits, ax=ax)
ax.plot(day, rate, color="#d55e00", lw=1, ls="--", label="true rate")
ax.set(xlabel="day", ylabel="visits", title="counts, and the band that holds most of them", ylim=(0, None))
ax.legend(frameon=False, fontsize="small", loc="upper left")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"), dpi=84)
