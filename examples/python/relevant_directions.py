"""VDMGP finds that a sinc of 25 inputs varies along one direction only."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import latentgp as lg

X, y = lg.datasets.load_sinc(150, seed=0, return_X_y=True)
model = lg.VDMGPRegressor(n_components=5, n_inducing=20, max_iter=120, random_state=0).fit(X, y)

lengths = np.linalg.norm(model.projection_, axis=1)
along = X @ model.projection_[lengths.argmax()]
print(f"lengths of the directions {np.round(lengths, 3)}, R² {model.score(X, y):.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
lg.plot.relevance(model, ax=left).set_title("five directions, one of them used")
right.scatter(along, y, s=14, color="#222222", edgecolors="white", linewidths=0.3, label="observed")
right.scatter(along, model.predict(X), s=10, color="#0072b2", label="predicted")
right.set(xlabel="the most relevant direction", ylabel="y", title="the sinc along it")
right.legend(frameon=False, fontsize="small")
right.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"), dpi=84)
