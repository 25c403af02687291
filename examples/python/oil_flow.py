"""The latent space of the oil-flow data: 12 measurements, 5 latent dimensions, of which few are used."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

import latentgp as lg

X, regime = lg.datasets.load_oil_flow(150, seed=0, return_X_y=True)
model = lg.BayesianGPLVM(n_components=5, n_inducing=15, kernel="matern32", max_iter=60, random_state=0).fit(X)

best = model.relevance_.argsort()[::-1][:2]
accuracy = cross_val_score(KNeighborsClassifier(1), model.embedding_[:, best], regime).mean()
print(f"bound {model.lower_bound_:.1f}, accuracy of the nearest neighbour {accuracy:.3f}")

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.8), width_ratios=(2, 1), layout="constrained")
lg.plot.latent_map(model, labels=regime, ax=left).set_title("regimes of flow")
lg.plot.relevance(model, ax=right).set_title("relevance")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"), dpi=84)
