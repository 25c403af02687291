"""Exact regression in scikit-learn."""

from common import NOISE, best, main
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel


def model(case):
    kernel = ConstantKernel(1.0) * RBF(case["lengthscale"][0]) + WhiteKernel(NOISE)
    return GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(case["x"], case["y"][:, 0])


def exact(case):
    regression = model(case)
    theta = regression.kernel_.theta
    return best(lambda: regression.log_marginal_likelihood(theta, eval_gradient=True, clone_kernel=False)[0])


def predict_exact(case):
    regression = model(case)
    # WhiteKernel adds the noise to the variance of new rows; the other programs give that of the function.
    return best(lambda: (regression.predict(case["new"], return_std=True)[1] ** 2 - NOISE).sum())


if __name__ == "__main__":
    main({"exact": exact, "predict_exact": predict_exact})
