"""The same objectives in GPy."""

import GPy
from common import MAX_ITERATIONS, NOISE, best, main, timed_fit


def evaluation(model):
    """One value and full gradient, as GPy's optimisers ask for them."""
    u = model.optimizer_array.copy()
    return best(lambda: -model._objective_grads(u)[0])


def gplvm(case):
    q = case["mean"].shape[1]
    kernel = GPy.kern.RBF(q, variance=1.0, lengthscale=case["lengthscale"][0], ARD=True)
    return GPy.models.BayesianGPLVM(
        case["y"], q, X=case["mean"].copy(), X_variance=case["var"].copy(), Z=case["z"].copy(),
        num_inducing=len(case["z"]), kernel=kernel, likelihood=GPy.likelihoods.Gaussian(variance=NOISE),
    )


def fit(case):
    model = gplvm(case)

    def optimise():
        run = model.optimize("lbfgsb", max_iters=MAX_ITERATIONS)
        return model.log_likelihood().item(), getattr(run, "funct_eval", 0) or 0

    return timed_fit(optimise)


def kernel(case):
    return GPy.kern.RBF(case["x"].shape[1], variance=1.0, lengthscale=case["lengthscale"][0], ARD=True)


def exact(case):
    return evaluation(GPy.models.GPRegression(case["x"], case["y"], kernel(case), noise_var=NOISE))


def predict_exact(case):
    model = GPy.models.GPRegression(case["x"], case["y"], kernel(case), noise_var=NOISE)
    return best(lambda: model.predict_noiseless(case["new"])[1].sum())


def predict_sparse(case):
    model = GPy.models.SparseGPRegression(case["x"], case["y"], kernel(case), Z=case["z"].copy())
    model.likelihood.variance = NOISE
    return best(lambda: model.predict_noiseless(case["new"])[1].sum())


if __name__ == "__main__":
    main(
        {
            "bound_rbf": lambda case: evaluation(gplvm(case)),
            "fit": fit,
            "exact": exact,
            "predict_exact": predict_exact,
            "predict_sparse": predict_sparse,
        }
    )
