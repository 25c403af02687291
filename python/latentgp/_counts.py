"""Counts: GPCountRegressor."""

from __future__ import annotations

from ._doc import documented
from ._likelihood import LikelihoodEstimator
from ._supervised import Regressor


@documented
class GPCountRegressor(LikelihoodEstimator, Regressor):
    """Gaussian process regression of counts: y ~ Poisson(exp f(x)).

    Targets are numbers of 0 or more; averages of counts need not be whole. With ``X_std`` at the fit, the sparse
    posterior with up to 50 inducing inputs takes the place of Laplace's approximation.

    Parameters
    ----------
    {kernel_of_inputs}
    {posterior}
    {runs}

    Attributes
    ----------
    log_evidence_ : float
        Laplace's approximation of the log evidence, or a lower bound of it.
    {learnt_std}
    {outcome}

    Examples
    --------
    >>> import latentgp as lg
    >>> import numpy as np
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> y = np.random.default_rng(0).poisson(np.exp(1 + np.sin(X[:, 0])))
    >>> mean, std = lg.GPCountRegressor().fit(X, y).predict(X, return_std=True)
    >>> bool((std > np.sqrt(mean)).all())
    True
    """

    _likelihood = "poisson(whole=false)"

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        tags.target_tags.multi_output = False
        return tags
