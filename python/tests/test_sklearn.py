"""scikit-learn's checks on every estimator: those of ``check_estimator`` and those of its own estimators alone."""

import pytest
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import latentgp as lg

#: Iterations of a fit: the checks are of what estimators do, not of how well they have learnt.
FEW = 40

LATENT = [lg.BayesianGPLVM(max_iter=FEW), lg.GPLVM(max_iter=FEW), lg.PPCA()]
OTHERS = [
    lg.GPRegressor(max_iter=FEW),
    lg.SparseGPRegressor(max_iter=FEW),
    lg.LinearRegressor(max_iter=FEW),
    lg.SPGPDRRegressor(max_iter=FEW),
    lg.VDMGPRegressor(max_iter=FEW),
    lg.GPCountRegressor(max_iter=FEW),
    lg.GPClassifier(max_iter=FEW),
    lg.GPNarx(max_iter=FEW),
]

#: The checks that scikit-learn keeps for its own transformers, and for its own estimators.
TRANSFORMER_CHECKS = [
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_set_output_transform_polars",
    "check_global_output_transform_pandas",
    "check_global_set_output_transform_polars",
    "check_inplace_ensure_writeable",
]
ESTIMATOR_CHECKS = [
    "check_param_validation",
    "check_dataframe_column_names_consistency",
    "check_get_feature_names_out_error",
]


def name(of):
    return of if isinstance(of, str) else type(of).__name__


@parametrize_with_checks(LATENT + OTHERS)
def test_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", TRANSFORMER_CHECKS)
@pytest.mark.parametrize("estimator", LATENT, ids=name)
def test_transformer_like_its_own(estimator, check):
    getattr(estimator_checks, check)(name(estimator), estimator)


@pytest.mark.parametrize("check", ESTIMATOR_CHECKS)
@pytest.mark.parametrize("estimator", LATENT + OTHERS, ids=name)
def test_estimator_like_its_own(estimator, check):
    if check == "check_get_feature_names_out_error" and not hasattr(estimator, "get_feature_names_out"):
        pytest.skip("it has no names of outputs")
    getattr(estimator_checks, check)(name(estimator), estimator)
