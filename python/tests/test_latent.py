"""Latent spaces: positions, missing cells, densities, and tables that stay tables."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.utils.validation import check_is_fitted

import latentgp as lg

#: Training rows come back within this.
RECALL = 1e-6
#: A batch equals its pieces within this.
PIECES = 1e-9

MODELS = [
    lg.BayesianGPLVM(n_components=2, n_inducing=10, max_iter=30, random_state=0),
    lg.BayesianGPLVM(n_components=2, n_inducing=8, kernel="matern32", max_iter=20, random_state=0),
    lg.GPLVM(n_components=2, max_iter=30, random_state=0),
    lg.PPCA(n_components=2),
]


def name(of):
    return f"{type(of).__name__}-{getattr(of, 'kernel', '')}"


@pytest.fixture(scope="module", params=MODELS, ids=name)
def model(request, table):
    return clone(request.param).fit(table)


def test_training_rows_come_back(model, table):
    assert np.abs(model.transform(table) - model.embedding_).max() < RECALL
    assert np.abs(model.transform(table[::-1]) - model.embedding_[::-1]).max() < RECALL
    _, std = model.transform(table, return_std=True)
    assert np.abs(std - model.embedding_std_).max() < RECALL


def test_a_batch_equals_its_pieces(model, table):
    new = table[:6] + 0.01
    new[2, 1] = np.nan
    whole = model.transform(new)
    pieces = np.vstack([model.transform(row[None]) for row in new])
    assert np.abs(whole - pieces).max() < PIECES
    order = [3, 0, 5, 1, 4, 2]
    assert np.abs(model.transform(new[order]) - whole[order]).max() < PIECES


def test_positions_decode_to_the_data(model, table):
    back, std = model.inverse_transform(model.embedding_, return_std=True)
    assert np.sqrt(np.mean((back - table) ** 2)) < 0.35 * table.std()
    assert (std >= 0).all()
    wide = model.inverse_transform(model.embedding_, return_std=True, X_std=np.full((40, 2), 0.5))[1]
    assert (wide > std).all()


def test_tables_of_positions_go_by_their_columns(model):
    names = list(model.get_feature_names_out())
    positions = pd.DataFrame(model.embedding_, columns=names)
    errors = pd.DataFrame(np.linspace([0.1, 0.9], [0.3, 1.5], 40), columns=names)
    arrays = positions.to_numpy(), errors.to_numpy()
    mean, std = model.inverse_transform(arrays[0], return_std=True, X_std=arrays[1])
    swapped, other = names[::-1], {names[0]: "u", names[1]: "v"}
    for X, X_std in [
        (positions, errors),
        (positions[swapped], errors),
        (positions, errors[swapped]),
        (positions[swapped], errors[swapped]),
        (positions[swapped], arrays[1][:, ::-1]),
        (arrays[0], errors[swapped]),
        (positions.rename(columns=other), errors.rename(columns=other)[["v", "u"]]),
        (pl.from_pandas(positions[swapped]), pl.from_pandas(errors)),
    ]:
        found = model.inverse_transform(X, return_std=True, X_std=X_std)
        assert np.array_equal(found[0], mean) and np.array_equal(found[1], std)
    assert not np.allclose(model.inverse_transform(arrays[0][:, ::-1]), model.inverse_transform(arrays[0]))
    with pytest.raises(ValueError, match="X_std has the columns u, v, expected those of X"):
        model.inverse_transform(positions, X_std=errors.rename(columns=other))


def test_missing_cells_are_filled(model, table):
    holed = table.copy()
    holed[[3, 11, 20], [0, 2, 4]] = np.nan
    filled, std = model.impute(holed, return_std=True)
    gaps = np.isnan(holed)
    assert np.array_equal(filled[~gaps], table[~gaps]) and (std[~gaps] == 0).all()
    assert (std[gaps] > 0).all() and np.abs(filled - table)[gaps].max() < 0.6


def test_every_column_may_have_its_noise(table, tmp_path):
    for of in MODELS:
        shared = clone(of).fit(table)
        each = clone(of).set_params(noise="columns").fit(table)
        scale = table.std(axis=0) ** 2
        assert np.ptp(shared.noise_variance_ / scale) < 1e-9, name(of)
        assert np.ptp(each.noise_variance_ / scale) > 1e-9, name(of)
        each.save(tmp_path / "m.lgp")
        back = lg.load(tmp_path / "m.lgp")
        assert back.noise == "columns" and np.array_equal(back.noise_variance_, each.noise_variance_), name(of)
        assert np.array_equal(back.transform(table[:3]), each.transform(table[:3])), name(of)
        with pytest.raises(ValueError, match="noise"):
            clone(of).set_params(noise="own").fit(table)


def test_fits_learn_around_missing_cells(table):
    holed = table.copy()
    holed[::7, 1] = np.nan
    for of in MODELS:
        fitted = clone(of).fit(holed)
        assert np.isfinite(fitted.embedding_).all(), name(of)
        assert np.abs(fitted.transform(holed) - fitted.embedding_).max() < RECALL, name(of)


def test_rows_of_the_data_are_likelier_than_others(model, table):
    assert model.score(table) > model.score(table + 2.0)
    assert model.score_samples(table).shape == (40,)


@pytest.mark.parametrize("cls", [lg.GPLVM, lg.PPCA])
def test_densities_of_one_cell_integrate_to_one(cls, table):
    options = {} if cls is lg.PPCA else {"max_iter": 30, "random_state": 0}
    model = cls(n_components=1, **options).fit(table[:, :3])
    spread = table[:, 1].std()
    grid = table[:, 1].mean() + np.linspace(-12, 12, 801) * spread
    rows = np.full((len(grid), 3), np.nan)
    rows[:, 1] = grid
    total = np.exp(model.score_samples(rows)).sum() * (grid[1] - grid[0])
    assert total == pytest.approx(1, abs=0.05)


def test_samples_follow_the_seed(model):
    data, positions = model.sample(7, random_state=3)
    assert data.shape == (7, 5) and positions.shape == (7, 2)
    assert np.array_equal(model.sample(7, random_state=3)[0], data)
    assert not np.array_equal(model.sample(7, random_state=4)[0], data)


def test_pandas_stays_pandas(table):
    frame = pd.DataFrame(table, columns=list("abcde"), index=[f"row{i}" for i in range(40)])
    model = lg.BayesianGPLVM(n_inducing=8, max_iter=10, random_state=0)
    positions = model.fit_transform(frame)
    assert isinstance(positions, pd.DataFrame) and positions.index.equals(frame.index)
    assert list(positions.columns) == ["bayesiangplvm0", "bayesiangplvm1"]
    assert list(model.feature_names_in_) == list("abcde")
    back = model.inverse_transform(positions)
    assert list(back.columns) == list("abcde") and back.index.equals(frame.index)
    assert list(model.impute(frame).columns) == list("abcde")
    assert isinstance(model.transform(table), np.ndarray)
    first, std = model.transform(frame, return_std=True)
    assert isinstance(first, pd.DataFrame) and std.shape == (40, 2)


def test_polars_stays_polars(table):
    frame = pl.DataFrame(table, schema=list("abcde"))
    model = lg.PPCA(n_components=2).fit(frame)
    positions = model.transform(frame)
    assert isinstance(positions, pl.DataFrame) and positions.columns == ["ppca0", "ppca1"]
    assert model.inverse_transform(positions).columns == list("abcde")


def test_ppca_is_pca(table):
    ours = lg.PPCA(n_components=2, scale="center").fit(table)
    theirs = PCA(n_components=2).fit(table)
    cosines = np.abs(
        np.sum(ours.components_ * theirs.components_, axis=1) / np.linalg.norm(ours.components_, axis=1)
    )
    assert np.abs(cosines - 1).max() < 1e-9
    assert np.allclose(ours.mean_, table.mean(axis=0))
    # scikit-learn's covariance has 1/(N − 1); its density is that of PPCA otherwise.
    assert abs(ours.score(table) - theirs.score(table)) < 0.1


def test_settings_reach_the_library(table):
    model = lg.BayesianGPLVM(3, n_inducing=5, kernel=lg.kernels.Matern52() + lg.kernels.Linear(), max_iter=5)
    model.set_params(expectation="gauss_hermite(points=2)", scale="center", restarts=2, random_state=1).fit(table)
    assert model.inducing_.shape == (5, 3) and model.n_components_ == 3
    assert model._report["restarts"][1] is not None and len(model._report["restarts"]) == 2
    assert model.certificate_["expectation"] == "gauss_hermite(points=2)"
    assert isinstance(model.kernel_, lg.kernels.Sum) and np.shape(model.kernel_.k1.lengthscale) == (3,)


def test_bad_input_is_named(table):
    for bad, words in [
        (dict(kernel="rbff"), "rbff"),
        (dict(expectation="unscentd"), "unscented"),
        (dict(kernel="matern32", expectation="analytic"), "closed-form"),
        (dict(n_components=0), "n_components"),
        (dict(scale="nonsense"), "scale"),
        (dict(expectation="gauss_hermite(points=40)", n_components=9), "nodes"),
    ]:
        with pytest.raises(ValueError, match=words):
            lg.BayesianGPLVM(**bad).fit(table)
    with pytest.raises(ValueError, match="n_components=5 must be below n_features=5"):
        lg.PPCA(n_components=5).fit(table)
    with pytest.raises(ValueError, match="infinity"):
        lg.PPCA().fit(np.where(table > 5, np.inf, table))
    model = lg.PPCA(n_components=2).fit(table)
    with pytest.raises(ValueError, match="3 columns, expected the 2"):
        model.inverse_transform(np.zeros((2, 3)))
    for words, call in [
        ("X_std: expected finite numbers, 0 or more", lambda: model.inverse_transform(np.zeros((2, 2)), X_std=-1.0)),
        ("n_samples: expected a whole number, 1 or more, found -1", lambda: model.sample(-1)),
        ("n_samples: expected a whole number, 1 or more, found 1.5", lambda: model.sample(1.5)),
    ]:
        with pytest.raises(ValueError, match=words):
            call()
    empty = np.full((30, 2), np.nan)
    empty[:, 0] = np.arange(30)
    with pytest.raises(ValueError):
        lg.BayesianGPLVM().fit(empty)


def test_unfitted_says_so(table):
    from sklearn.exceptions import NotFittedError

    for of in (lg.BayesianGPLVM(), lg.GPLVM(), lg.PPCA()):
        for method in ("transform", "inverse_transform", "impute", "score", "save"):
            with pytest.raises(NotFittedError):
                getattr(of, method)(table)
        check_is_fitted(of.fit(table[:10]))


def test_more_than_a_machine_holds_is_refused(table, wave):
    with pytest.raises(MemoryError, match="samples would take .* GB, more than this machine has; try fewer"):
        lg.PPCA(1).fit(table).sample(10**12)
    with pytest.raises(MemoryError, match="functions at 50 rows would take"):
        lg.GPRegressor(max_iter=2).fit(*wave).sample_y(wave[0], 10**12)
    many = np.broadcast_to(wave[0][:1], (10**6, 1)) + np.arange(10**6)[:, None]
    for model, advice in ((lg.GPRegressor(), "n_inducing"), (lg.GPCountRegressor(), "n_inducing")):
        with pytest.raises(MemoryError, match=f"the covariance of 1000000 rows would take .*{advice}"):
            model.fit(many, np.ones(10**6))
    with pytest.raises(MemoryError, match="BayesianGPLVM"):
        lg.GPLVM(1).fit(many)
    with pytest.raises(MemoryError, match="n_inducing=200"):
        lg.GPNarx(2).fit(many[:, 0])


def test_filled_tables_have_the_columns_they_came_with(table):
    frame = pd.DataFrame(table)
    frame.iloc[0, 0] = np.nan
    filled = lg.PPCA().fit(frame).impute(frame)
    assert list(filled.columns) == list(frame.columns) and not frame.fillna(filled).isna().any().any()
