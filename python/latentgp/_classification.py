"""Classification: GPClassifier."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin, _fit_context
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ._base import COMMON_CONSTRAINTS, at_least
from ._counts import UNCERTAIN_INDUCING
from ._supervised import InputEstimator, input_std, target_names


class GPClassifier(ClassifierMixin, InputEstimator):
    """Gaussian process classification, of two classes or more.

    Parameters
    ----------
    kernel : str or Kernel, default="rbf"
        An expression such as ``"matern32 + linear"``, or an object of :mod:`latentgp.kernels`; of standardised
        inputs.
    n_inducing : int or None, default=None
        Inducing inputs of a sparse variational posterior; None is Laplace's approximation with all rows.
    max_iter : int, default=1000
        Most iterations of a run.
    restarts : int, default=1
        Runs from different starts, of which the best is kept.
    random_state : int, RandomState instance or None, default=None
        The seed of the starts.
    verbose : int, default=0
        1 prints progress now and then, 2 every iteration.
    callback : callable or None, default=None
        Called with a ``Progress(restart, iteration, bound)`` after each iteration; returns True to stop.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, of any type.
    log_evidence_ : float
        Laplace's approximation of the log evidence, or a lower bound of it.
    kernel_ : Kernel
        The kernel with its fitted parameters.
    n_iter_, converged_, stop_reason_, trace_
        How the fit went.

    Examples
    --------
    >>> import latentgp as lg
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = lg.GPClassifier(max_iter=20).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """

    _parameter_constraints = {
        "n_inducing": [at_least(1), None],
        **{name: of for name, of in COMMON_CONSTRAINTS.items() if name != "scale"},
    }

    def __init__(
        self,
        kernel="rbf",
        *,
        n_inducing=None,
        max_iter=1000,
        restarts=1,
        random_state=None,
        verbose=0,
        callback=None,
    ):
        self.kernel = kernel
        self.n_inducing = n_inducing
        self.max_iter = max_iter
        self.restarts = restarts
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def _settings(self, X, targets, classes, uncertain):
        settings = super()._settings(X, targets, classes, uncertain)
        settings["likelihood"] = "bernoulli" if len(classes) == 2 else "categorical"
        if self.n_inducing is not None or uncertain:
            settings.update(model="sparse", inducing=self.n_inducing or min(len(X), UNCERTAIN_INDUCING))
        return settings

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y, X_std=None):
        """Learn classes from X.

        Ctrl-C ends the fit and keeps its best state: the estimator is fitted as far as it got, and
        KeyboardInterrupt is raised.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Classes, of any type.
        X_std : array-like of shape (n_samples, n_features), default=None
            Standard deviations of the inputs; a row or a number serves for all. The sparse posterior, with up to 50
            inducing inputs where ``n_inducing`` is None, takes the place of Laplace's approximation then.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        name = target_names(y, 1)
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"GPClassifier needs at least 2 classes in y, found 1 class: {self.classes_[0]!r}")
        codes = np.ascontiguousarray(codes.reshape(-1, 1), dtype=np.float64)
        self._learn(X, input_std(X_std, X), codes, name, [str(c) for c in self.classes_])
        return self

    def _restore(self, model):
        self.classes_ = _typed(model.names[2])
        return super()._restore(model)

    def predict_proba(self, X, X_std=None):
        """Class probabilities, the latent functions averaged out.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        X_std : array-like of shape (n_samples, n_features), default=None
            Standard deviations of the inputs; a row or a number serves for all.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        rows = self._inputs(X)
        std = input_std(X_std, rows)
        return self._model.predict(rows, None if std is None else std**2)[0]

    def predict(self, X, X_std=None):
        """The most probable classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        X_std : array-like of shape (n_samples, n_features), default=None
            Standard deviations of the inputs; a row or a number serves for all.

        Returns
        -------
        classes : ndarray of shape (n_samples,)
            Of the type of ``classes_``.
        """
        probabilities = self.predict_proba(X, X_std)
        return self.classes_[np.argmax(probabilities, axis=1)]


def _typed(names: list[str]) -> np.ndarray:
    """Classes of their names in a file: numbers where all of them are."""
    for kind in ({"True": True, "False": False}.__getitem__, int, float):
        try:
            classes = [kind(name) for name in names]
        except (KeyError, ValueError):
            continue
        if [str(c) for c in classes] == names:
            return np.asarray(classes)
    return np.asarray(names)
