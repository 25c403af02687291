"""Latent spaces: BayesianGPLVM, GPLVM and PPCA."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from . import _native
from ._base import (
    COMMON_CONSTRAINTS,
    NOISES,
    Estimator,
    at_least,
    check_room,
    count_of,
    doubt,
    fitting,
    input_std,
    like,
    named,
    names_of,
    seed_of,
    take_names,
)
from ._doc import documented

#: The names of options that are called otherwise here.
ARGUMENTS = {"latent_dim": "n_components", "inducing": "n_inducing"}


def _start(given, name: str):
    """Where positions or inducing inputs start: a name, or rows; a fitted model has its own."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, LatentEstimator):
        check_is_fitted(given)
        given = given.embedding_ if name == "init" else getattr(given, "inducing_", None)
        if given is None:
            raise ValueError(f"{name}: this model has no inducing inputs")
    rows = check_array(given, dtype=np.float64, input_name=name)
    return {"given": rows.tolist()}


#: Points of the importance sampling behind the log density of a Bayesian GPLVM.
SAMPLES = 256


@documented
class LatentEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):
    """A transformer to latent positions and back; NaN is a missing cell."""

    #: The name of the model.
    _model_name = ""

    def _fit(self, X: np.ndarray, columns: list[str]):
        auto = self.n_components == "auto"
        kernel = self._native_kernel(int(self.n_components)) if hasattr(self, "kernel") and not auto else None
        given = {name: _start(getattr(self, name, None), name) for name in ("init", "inducing_init")}
        chosen = {name: None for name, own in (("latent_dim", "n_components"), ("inducing", "n_inducing"))
                  if getattr(self, own, None) == "auto"}  # fmt: skip
        warm = self._warm(X)
        if warm is not None:
            given = {}
            kernel = None if kernel is None else self._native_kernel(warm.latent_dim)
        recipe = self._recipe(model=self._model_name, prior=getattr(self, "prior", None), **given, **chosen)
        fitted = _native.LatentModel.fit(X, self._asked_for(len(X)), kernel, recipe, columns, self._watch(), warm)
        if self.verbose:
            for option, value, reason in fitted[0].choices:
                print(f"[{type(self).__name__}] {ARGUMENTS.get(option, option)}={value}: {reason}", flush=True)
        return fitted

    def _warm(self, X):
        """The model of the fit before, where this one begins there."""
        if not getattr(self, "warm_start", False) or not hasattr(self, "_model"):
            return None
        before = self._model.latent()[0].shape[0]
        if before != len(X):
            raise ValueError(
                f"warm_start=True goes on with the {before} rows of the fit before, found {len(X)}; set it to False"
            )
        return self._model

    def _asked_for(self, rows: int):
        """The columns that the prior of the positions asks for, of those given."""
        return None

    @fitting
    def fit(self, X, y=None):
        """Learn the latent space of the rows of X.

        {interrupt}

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The data; NaN is a missing cell.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        X = validate_data(
            self, X, dtype=np.float64, order="C", ensure_all_finite="allow-nan", ensure_min_samples=2
        )
        columns = names_of(self, X.shape[1])
        doubt(columns, X, "rows")
        self._keep(self._fit(X, columns))
        return self

    def _take(self, model) -> None:
        super()._take(model)
        self._known = {}
        self.n_components_ = self._n_features_out = model.latent_dim
        self.choices_ = {ARGUMENTS.get(option, option): reason for option, _, reason in model.choices}
        self.lower_bound_ = self._report["bound"]
        self.noise_variance_ = np.asarray(model.noise_variance)

    def _once(self, name: str, work):
        """What is worked out when it is first asked for: a fit that was interrupted ends at once."""
        check_is_fitted(self)
        if name not in self._known:
            self._known[name] = work(self._model)
        return self._known[name]

    @property
    def embedding_(self) -> np.ndarray:
        """Positions of the training rows."""
        return self._once("latent", lambda model: model.latent())[0]

    @property
    def embedding_std_(self) -> np.ndarray:
        """Standard deviations of these positions."""
        return self._once("std", lambda model: np.sqrt(self._once("latent", lambda m: m.latent())[1]))

    @property
    def relevance_(self) -> np.ndarray:
        """How much each dimension matters."""
        return self._once("relevance", lambda model: np.asarray(model.relevance()))

    def _restore(self, model, told):
        """An estimator of a model file, with what its settings tell."""
        take_names(self, model.columns, told["named"])
        self._take(model)
        return self

    def _rows(self, X) -> np.ndarray:
        check_is_fitted(self)
        return validate_data(
            self, X, dtype=np.float64, order="C", ensure_all_finite="allow-nan", reset=False
        )

    def _contained(self, given, values: np.ndarray):
        """Positions in the container that was given, unless ``set_output`` says otherwise."""
        if _get_output_config("transform", self)["dense"] != "default":
            return values
        return like(given, values, list(self.get_feature_names_out()))

    def transform(self, X, return_std=False):
        """Place rows in the latent space.

        A row of the training data has the position that the fit gave it. Each row is placed on its own.

        Parameters
        ----------
        {rows}

        Returns
        -------
        positions : ndarray of shape (n_samples, n_components)
            Posterior means; a table of pandas or polars where X is one.
        std : ndarray of shape (n_samples, n_components)
            Posterior standard deviations, if asked for.
        """
        rows = self._rows(X)
        mean, var, _ = self._model.transform(rows)
        out = self._contained(X, mean)
        return (out, np.sqrt(var)) if return_std else out

    def inverse_transform(self, X, return_std=False, X_std=None):
        """Decode latent positions to data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Latent positions. A table with the columns of :meth:`transform` has them in any order; one with other names
            goes by position.
        return_std : bool, default=False
            Whether to return standard deviations as well.
        X_std : array-like of shape (n_samples, n_components), default=None
            Standard deviations of the positions; a row or a number serves for all. A table has the columns of X.

        Returns
        -------
        data : ndarray of shape (n_samples, n_features)
            Predictive means; a table of pandas or polars where X is one.
        std : ndarray of shape (n_samples, n_features)
            Standard deviations of the noise-free data, if asked for; those of observations follow by adding
            ``noise_variance_`` to their squares.
        """
        check_is_fitted(self)
        mean, var = self._model.reconstruct(*self._positions(X, X_std))
        out = like(X, mean, names_of(self, mean.shape[1]))
        return (out, np.sqrt(var)) if return_std else out

    def _positions(self, X, X_std):
        """Means and variances of latent positions, in the order of the dimensions."""
        mean = check_array(X, dtype=np.float64, order="C", input_name="X")
        if mean.shape[1] != self.n_components_:
            raise ValueError(
                f"X has {mean.shape[1]} columns, expected the {self.n_components_} of the latent space"
            )
        own = list(self.get_feature_names_out())
        names = list(X.columns) if hasattr(X, "columns") and named(X.columns) else None
        if names is None and set(getattr(X_std, "columns", ())) == set(own):
            names = own
        std = input_std(X_std, mean, X, names)
        var = np.zeros_like(mean) if std is None else std**2
        if names is None or sorted(names) != sorted(own):
            return mean, var
        order = [names.index(name) for name in own]
        return np.ascontiguousarray(mean[:, order]), np.ascontiguousarray(var[:, order])

    def impute(self, X, return_std=False):
        """Fill missing cells, each row from its own latent posterior.

        Parameters
        ----------
        {rows}

        Returns
        -------
        filled : ndarray of shape (n_samples, n_features)
            X with its missing cells filled; a table of pandas or polars where X is one.
        std : ndarray of shape (n_samples, n_features)
            Standard deviations of the filled cells as observations, 0 elsewhere, if asked for.
        """
        rows = self._rows(X)
        filled, var = self._model.impute(rows)
        out = like(X, filled, list(getattr(X, "columns", ())))
        return (out, np.sqrt(var)) if return_std else out

    def score_samples(self, X):
        """The log density of each row, given the training data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing cell, which is left out.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            Log densities in the units of the data.
        """
        rows = self._rows(X)
        return np.asarray(self._model.log_density(rows, SAMPLES, 0))

    def score(self, X, y=None):
        """The mean log density of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows; NaN is a missing cell, which is left out.
        y : Ignored
            Not used, present for API consistency by convention.

        Returns
        -------
        score : float
            The mean of :meth:`score_samples`.
        """
        return float(np.mean(self.score_samples(X)))

    def sample(self, n_samples=1, random_state=None):
        """Draw data from the model.

        Parameters
        ----------
        n_samples : int, default=1
            How many rows.
        random_state : int, RandomState instance or None, default=None
            The seed of the draws.

        Returns
        -------
        data : ndarray of shape (n_samples, n_features)
            Rows, noise included.
        positions : ndarray of shape (n_samples, n_components)
            Where in the latent space they come from.
        """
        check_is_fitted(self)
        count = count_of(n_samples, "n_samples")
        check_room(2 * count, self.n_features_in_, f"{count} samples", "fewer at a time")
        positions, data = self._model.sample(count, seed_of(random_state))
        return data, positions

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


@documented
class BayesianGPLVM(LatentEstimator):
    """Bayesian Gaussian process latent variable model, with any kernel.

    Rows are noisy functions of latent positions that are Gaussians themselves; dimensions that the data do not
    need are switched off. With a kernel that has no closed form, expectations are those of the unscented
    transformation.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Latent dimensions; ``"auto"`` are as many as matter to a first short fit.
    n_inducing : int or "auto", default=20
        Inducing inputs; at most as many as rows are used. ``"auto"`` are from 20 to 60 by the number of rows.
    {kernel_of_positions}
    expectation : str, default="auto"
        How kernels are averaged over uncertain positions: ``"auto"``, ``"analytic"``, ``"unscented"``,
        ``"gauss_hermite(points=3)"``, ``"cubature5"``, ``"monte_carlo(samples=200)"``, …
    prior : str, default=None
        What is known of the positions: None is N(0, I); ``"times(column=day, std=0.1)"`` puts one of them near a time.
    known : dict, default=None
        The columns that the prior asks for, by name: a number a row, NaN where it is not known.
    noise : {"shared", "columns"}, default="shared"
        Whose noise variance is: shared by all columns, or one of each column.
    init : {"pca", "pca-raw", "spectral", "random"}, array-like of shape (n_samples, n_components) or a model, default="pca"
        Where the positions of the first run start; a fitted latent space of the same rows starts it at its own.
    inducing_init : {"spread", "kmeans", "rows"}, array-like of shape (n_inducing, n_components) or a model, \
            default="spread"
        Where inducing inputs start: positions that are far apart, centres of k-means, or positions of rows drawn at
        random.
    warm_start : bool, default=False
        Whether ``fit`` goes on where the fit before ended, by a single run of at most ``max_iter`` iterations.
    scale : {"standardize", "global", "center", "none"}, default="standardize"
        How columns are scaled inside.
    max_iter : int, default=1000
        Most iterations of a run with everything free, after up to 50 that hold the noise and the variances of the
        kernel; ``n_iter_`` and ``trace_`` have both.
    {runs}

    Attributes
    ----------
    embedding_, embedding_std_ : ndarray of shape (n_samples, n_components)
        Positions of the training rows and their standard deviations.
    choices_ : dict
        What was chosen from the data, each with the reason.
    relevance_ : ndarray of shape (n_components,)
        How much each dimension matters.
    lower_bound_ : float
        The bound of the log evidence of the data as given.
    noise_variance_ : ndarray of shape (n_features,)
        The variance of the noise of each column.
    inducing_ : ndarray of shape (n_inducing, n_components)
        The inducing inputs.
    certificate_ : dict
        How far the expectations that were used are from a stronger rule.
    {outcome}

    Examples
    --------
    >>> import latentgp as lg
    >>> from sklearn.datasets import load_iris
    >>> Y = load_iris().data
    >>> model = lg.BayesianGPLVM(n_components=2, n_inducing=10, kernel="matern32", random_state=0, max_iter=30)
    >>> X = model.fit_transform(Y)
    >>> X.shape
    (150, 2)
    >>> Y_hat, std = model.inverse_transform(X, return_std=True)
    >>> Y_hat.shape == std.shape == Y.shape
    True
    """

    _model_name = "bayesian-gplvm"
    _parameter_constraints = {
        "n_components": [at_least(1), StrOptions({"auto"})],
        "n_inducing": [at_least(1), StrOptions({"auto"})],
        "expectation": [str],
        "init": [str, "array-like", HasMethods(["fit_transform"])],
        "inducing_init": [str, "array-like", HasMethods(["fit_transform"])],
        "warm_start": ["boolean"],
        "noise": [StrOptions(set(NOISES))],
        "prior": [str, None],
        "known": [dict, None],
        **COMMON_CONSTRAINTS,
    }

    def __init__(self, n_components=2, *, n_inducing=20, kernel="rbf", expectation="auto", prior=None, known=None,
                 noise="shared", init="pca", inducing_init="spread", warm_start=False, scale="standardize", max_iter=1000,
                 effort="normal", restarts=None, random_state=None, verbose=0, callback=None):  # fmt: skip
        self._store(locals())

    def _asked_for(self, rows):
        names = [] if self.prior is None else _native.prior_columns(self.prior)
        known = self.known or {}
        missing = [name for name in names if name not in known]
        if missing:
            raise ValueError(f"known: the prior {self.prior!r} asks for the column {missing[0]!r}, found {sorted(known)}")
        columns = [np.asarray(known[name], dtype=np.float64).reshape(-1) for name in names]
        for name, column in zip(names, columns):
            if len(column) != rows:
                raise ValueError(f"known[{name!r}]: expected {rows} numbers, one a row, found {len(column)}")
        return np.ascontiguousarray(np.column_stack(columns)) if columns else None

    def _take(self, model):
        super()._take(model)
        self.inducing_ = model.inducing

    @property
    def certificate_(self) -> dict:
        """How far the expectations that were used are from a stronger rule."""
        return self._once("certificate", lambda model: model.certificate())


@documented
class GPLVM(LatentEstimator):
    """Gaussian process latent variable model: latent positions as points.

    Parameters
    ----------
    n_components : int, default=2
        Latent dimensions.
    {kernel_of_positions}
    expectation : str, default="auto"
        How uncertain positions are decoded.
    noise : {"shared", "columns"}, default="shared"
        Whose noise variance is: shared by all columns, or one of each column.
    init : {"pca", "pca-raw", "spectral", "random"}, array-like of shape (n_samples, n_components) or a model, default="pca"
        Where the positions of the first run start; a fitted latent space of the same rows starts it at its own.
    warm_start : bool, default=False
        Whether ``fit`` goes on where the fit before ended, by a single run of at most ``max_iter`` iterations.
    scale : {"standardize", "global", "center", "none"}, default="standardize"
        How columns are scaled inside.
    max_iter : int, default=1000
        Most iterations of a run with everything free, after up to 50 that hold the noise and the variances of the
        kernel; ``n_iter_`` and ``trace_`` have both.
    {runs}

    Attributes
    ----------
    embedding_ : ndarray of shape (n_samples, n_components)
        Positions of the training rows; ``embedding_std_`` is 0.
    relevance_ : ndarray of shape (n_components,)
        How much each dimension matters.
    lower_bound_ : float
        The log density of data and positions.
    noise_variance_ : ndarray of shape (n_features,)
        The variance of the noise of each column.
    {outcome}

    Examples
    --------
    >>> import latentgp as lg
    >>> from sklearn.datasets import load_iris
    >>> lg.GPLVM(max_iter=20, random_state=0).fit_transform(load_iris().data[::3]).shape
    (50, 2)
    """

    _model_name = "gplvm"
    _parameter_constraints = {
        "n_components": [at_least(1)],
        "expectation": [str],
        "init": [str, "array-like", HasMethods(["fit_transform"])],
        "warm_start": ["boolean"],
        "noise": [StrOptions(set(NOISES))],
        **COMMON_CONSTRAINTS,
    }

    def __init__(self, n_components=2, *, kernel="rbf", expectation="auto", noise="shared", init="pca", warm_start=False,
                 scale="standardize", max_iter=1000, effort="normal", restarts=None, random_state=None, verbose=0,
                 callback=None):  # fmt: skip
        self._store(locals())

    def _fit(self, X, columns):
        check_room(4 * len(X), len(X), f"the covariance of {len(X)} rows", "BayesianGPLVM, which has inducing inputs")
        return super()._fit(X, columns)


class PPCA(LatentEstimator):
    """Probabilistic principal component analysis, also of tables with missing cells; with ``noise="columns"`` factor
    analysis.

    Parameters
    ----------
    n_components : int, default=1
        Latent dimensions, fewer than columns.
    noise : {"shared", "columns"}, default="shared"
        Whose noise variance is: shared by all columns, or one of each column.
    scale : {"standardize", "global", "center", "none"}, default="standardize"
        How columns are scaled inside.
    max_iter : int, default=5000
        Most iterations of EM, where cells are missing or every column has its noise; else there is a closed form.
    verbose : int, default=0
        1 prints progress now and then, 2 every iteration.
    callback : callable or None, default=None
        Called with a ``Progress(restart, iteration, bound)`` after each iteration of EM; returns True to stop.

    Attributes
    ----------
    embedding_, embedding_std_ : ndarray of shape (n_samples, n_components)
        Positions of the training rows and their standard deviations.
    components_ : ndarray of shape (n_components, n_features)
        Loadings, in the units of the data.
    mean_ : ndarray of shape (n_features,)
        The mean of each column.
    relevance_ : ndarray of shape (n_components,)
        The variance of the scaled data that each dimension explains.
    lower_bound_ : float
        The log likelihood of the data as given.
    noise_variance_ : ndarray of shape (n_features,)
        The variance of the noise of each column.
    n_iter_, converged_, stop_reason_, trace_
        How the fit went.

    Examples
    --------
    >>> import latentgp as lg
    >>> from sklearn.datasets import load_iris
    >>> model = lg.PPCA(n_components=2).fit(load_iris().data)
    >>> model.components_.shape
    (2, 4)
    """

    _model_name = "ppca"
    _parameter_constraints = {
        "n_components": [at_least(1)],
        "noise": [StrOptions(set(NOISES))],
        **{name: COMMON_CONSTRAINTS[name] for name in ("scale", "max_iter", "verbose", "callback")},
    }

    def __init__(self, n_components=1, *, noise="shared", scale="standardize", max_iter=5000, verbose=0, callback=None):
        self._store(locals())

    def _fit(self, X, columns):
        if self.n_components >= X.shape[1]:
            raise ValueError(
                f"n_components={self.n_components} must be below n_features={X.shape[1]}: PPCA explains "
                "columns by fewer components"
            )
        return super()._fit(X, columns)

    def _take(self, model):
        super()._take(model)
        loadings, mean = model.loadings
        self.components_ = loadings.T
        self.mean_ = np.asarray(mean)
