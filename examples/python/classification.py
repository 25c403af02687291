"""Three species of iris, with the probability of each over the plane of two lengths."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgb

import latentgp as lg

X, species = lg.datasets.load_iris(return_X_y=True)
X = X[:, [2, 3]]
model = lg.GPClassifier(kernel="rbf", max_iter=30).fit(X, species)
print(f"accuracy {model.score(X, species):.3f}, log evidence {model.log_evidence_:.1f}")

side = np.linspace(X.min(axis=0) - 0.5, X.max(axis=0) + 0.5, 80)
grid = np.stack(np.meshgrid(side[:, 0], side[:, 1]), axis=-1)
shares = model.predict_proba(grid.reshape(-1, 2))
colours = np.array([to_rgb(c) for c in lg.plot.COLOURS[:3]])

figure, ax = plt.subplots(figsize=(5.4, 4.2), layout="constrained")
ax.imshow((shares @ (0.35 * colours + 0.65)).reshape(grid.shape[0], -1, 3), origin="lower", aspect="auto",
          extent=(side[0, 0], side[-1, 0], side[0, 1], side[-1, 1]), interpolation="bilinear")  # fmt: skip
for name, colour, marker in zip(model.classes_, colours, lg.plot.MARKERS):
    ax.scatter(*X[species == name].T, s=20, color=colour, marker=marker, edgecolors="white", linewidths=0.4, label=name)
ax.set(xlabel="petal length", ylabel="petal width", title="probabilities of three species")
ax.legend(frameon=False, fontsize="small", loc="upper left")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"), dpi=84)
