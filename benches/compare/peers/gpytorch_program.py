"""Exact regression in GPyTorch, with its Cholesky path."""

import gpytorch
import torch
from common import NOISE, best, main

torch.set_default_dtype(torch.float64)


class Regression(gpytorch.models.ExactGP):
    def __init__(self, case, likelihood):
        super().__init__(torch.tensor(case["x"]), torch.tensor(case["y"][:, 0]), likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        rbf = gpytorch.kernels.RBFKernel(ard_num_dims=case["x"].shape[1])
        self.covar_module = gpytorch.kernels.ScaleKernel(rbf)
        self.covar_module.outputscale = 1.0
        rbf.lengthscale = torch.tensor(case["lengthscale"])
        likelihood.noise = NOISE

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def model(case):
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    return Regression(case, likelihood), likelihood


def exact(case):
    regression, likelihood = model(case)
    regression.train()
    mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, regression)
    n = len(case["x"])

    def evaluate():
        regression.zero_grad()
        with gpytorch.settings.fast_computations(False, False, False), gpytorch.settings.max_cholesky_size(n + 1):
            value = mll(regression(*regression.train_inputs), regression.train_targets) * n
            value.backward()
        return value.detach()

    return best(evaluate)


def predict_exact(case):
    regression, _ = model(case)
    regression.eval()
    new = torch.tensor(case["new"])

    def evaluate():
        size = gpytorch.settings.max_cholesky_size(len(case["x"]) + 1)
        with torch.no_grad(), size, gpytorch.settings.fast_computations(False, False, False):
            return sum(regression(part).variance.sum() for part in new.split(2000))

    return best(evaluate)


if __name__ == "__main__":
    main({"exact": exact, "predict_exact": predict_exact})
