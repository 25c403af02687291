"""Classification: GPClassifier."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ._base import fitting
from ._doc import documented
from ._likelihood import LikelihoodEstimator
from ._supervised import target_names

# As many as probabilities can be averaged over by quasi-Monte Carlo.
MOST_CLASSES = 160


@documented
class GPClassifier(ClassifierMixin, LikelihoodEstimator):
    """Gaussian process classification, of two classes or more.

    Parameters
    ----------
    {kernel_of_inputs}
    link : {"logit", "probit"}, default="logit"
        How a latent value becomes the probability of one of two classes.
    {posterior}
    {runs}

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, of any type.
    log_evidence_ : float
        Laplace's approximation of the log evidence, or a lower bound of it.
    {learnt_std}
    {outcome}

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
        **LikelihoodEstimator._parameter_constraints,
        "link": [StrOptions({"logit", "probit"})],
    }

    def __init__(self, kernel="rbf", *, link="logit", n_inducing=None, inputs=None, max_iter=1000,
                 effort="normal", restarts=None, random_state=None,
                 verbose=0, callback=None):  # fmt: skip
        self._store(locals())

    @property
    def _likelihood(self) -> str:
        if len(self.classes_) == 2:
            return f"bernoulli(link={self.link})"
        if self.link != "logit":
            raise ValueError(f"link={self.link!r} goes with two classes, found {len(self.classes_)}: leave it out")
        return "categorical"

    @fitting
    def fit(self, X, y, X_std=None):
        """Learn classes from X.

        {interrupt}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Classes, of any type.
        {errors_of_inputs}
            With errors the sparse posterior, with up to 50 inducing inputs where ``n_inducing`` is None, takes the place of
            Laplace's approximation.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        name, given = target_names(y, 1), X
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"GPClassifier needs at least 2 classes in y, found 1 class: {str(self.classes_[0])!r}")
        if len(self.classes_) > MOST_CLASSES:
            raise ValueError(f"GPClassifier takes at most {MOST_CLASSES} classes in y, found {len(self.classes_)}")
        codes = np.ascontiguousarray(codes.reshape(-1, 1), dtype=np.float64)
        self._learn(X, self._split(X_std, X, given), codes, name, [str(c) for c in self.classes_])
        return self

    def _codes(self, y):
        places = {label: k for k, label in enumerate(self.classes_.tolist())}
        labels = np.asarray(y, dtype=object).ravel().tolist()
        places.update({label: np.nan for label in labels if label is None or label != label})
        unknown = [label for label in labels if label not in places]
        if unknown:
            raise ValueError(f"y has the class {unknown[0]!r}, expected one of {self.classes_.tolist()}")
        return [places[label] for label in labels]

    def _restore(self, model, told):
        self.classes_ = _typed(model.names[2])
        return super()._restore(model, told)

    def predict_proba(self, X, X_std=None):
        """Class probabilities, the latent functions averaged out.

        Parameters
        ----------
        {new_inputs}

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        rows = self._inputs(X)
        std = self._errors(X_std, rows, X)
        return self._model.predict(rows, None if std is None else std**2)[0]

    def predict(self, X, X_std=None):
        """The most probable classes.

        Parameters
        ----------
        {new_inputs}

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
