"""A table of pandas through a pipeline, its latent dimensions and kernel chosen by grid search."""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import latentgp as lg

X, species = lg.datasets.load_iris(return_X_y=True, as_frame=True)
latent = lg.BayesianGPLVM(n_inducing=10, max_iter=25, random_state=0).set_output(transform="pandas")
grid = {"bayesiangplvm__n_components": [1, 2, 3], "bayesiangplvm__kernel": ["linear", "rbf"]}
search = GridSearchCV(make_pipeline(latent, KNeighborsClassifier(5)), grid, cv=3).fit(X, species)
print(search.best_params_, f"{search.best_score_:.3f}")

scores = pd.DataFrame(search.cv_results_).pivot(
    index="param_bayesiangplvm__n_components", columns="param_bayesiangplvm__kernel", values="mean_test_score"
)
figure, ax = plt.subplots(figsize=(5.2, 3.4), layout="constrained")
scores.plot(ax=ax, marker="o", color=list(lg.plot.COLOURS[:2]))
ax.set(xlabel="latent dimensions", ylabel="accuracy, 3 folds", title="grid search over a latent space", xticks=[1, 2, 3])
ax.legend(title="kernel", frameon=False)
ax.spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".png"), dpi=84)
