"""What classes and counts share: Laplace's approximation with all rows, or a sparse variational posterior."""

from __future__ import annotations

from ._base import COMMON_CONSTRAINTS, INPUTS, at_least
from ._supervised import InputEstimator

#: Inducing inputs where inputs are uncertain, at most.
UNCERTAIN_INDUCING = 50


class LikelihoodEstimator(InputEstimator):
    """A process seen through a likelihood that is not Gaussian."""

    _parameter_constraints = {
        "n_inducing": [at_least(1), None],
        "inputs": INPUTS,
        **{name: of for name, of in COMMON_CONSTRAINTS.items() if name != "scale"},
    }

    def __init__(self, kernel="rbf", *, n_inducing=None, inputs=None, max_iter=1000,
                 effort="normal", restarts=None, random_state=None, verbose=0,
                 callback=None):  # fmt: skip
        self._store(locals())

    def _options(self, X, uncertain):
        options = {**super()._options(X, uncertain), "likelihood": self._likelihood}
        if self.n_inducing is not None or uncertain:
            options.update(model="sparse", inducing=self.n_inducing or min(len(X), UNCERTAIN_INDUCING))
        return options
