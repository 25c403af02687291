"""The same objectives in GPflow; the unscented bound is the best one can write on its kernels."""

import gpflow
import numpy as np
import tensorflow as tf
from common import MAX_ITERATIONS, NOISE, best, main, timed_fit

gpflow.config.set_default_jitter(1e-6)


def evaluation(model, loss, sign=-1.0):
    """One value and full gradient in a compiled graph."""
    variables = model.trainable_variables

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            value = loss()
        return value, tape.gradient(value, variables)

    return best(lambda: sign * step()[0].numpy())


def gplvm(case, kernel):
    model = gpflow.models.BayesianGPLVM(
        case["y"], X_data_mean=case["mean"], X_data_var=case["var"], kernel=kernel,
        inducing_variable=gpflow.inducing_variables.InducingPoints(case["z"].copy()),
    )
    model.likelihood.variance.assign(NOISE)
    return model


def rbf(case):
    return gpflow.kernels.SquaredExponential(variance=1.0, lengthscales=case["lengthscale"][0])


def bound_rbf(case):
    model = gplvm(case, rbf(case))
    return evaluation(model, model.training_loss)


def bound_matern32(case):
    model = gplvm(case, gpflow.kernels.Matern32(variance=1.0, lengthscales=case["lengthscale"][0]))
    y, (n, q), m = tf.constant(case["y"]), case["mean"].shape, len(case["z"])
    xi = tf.constant(np.sqrt(q) * np.concatenate([np.eye(q), -np.eye(q)])[:, None, :])

    def bound():
        mean, var, z = model.X_data_mean, model.X_data_var, model.inducing_variable.Z
        beta = 1.0 / model.likelihood.variance
        points = tf.reshape(mean + tf.sqrt(var) * xi, (-1, q))
        k = model.kernel.K(points, z)
        psi1 = tf.reduce_mean(tf.reshape(k, (2 * q, n, m)), axis=0)
        psi2 = tf.matmul(k, k, transpose_a=True) / (2 * q)
        kzz = model.kernel.K(z, z) + gpflow.default_jitter() * tf.eye(m, dtype=tf.float64)
        chol = tf.linalg.cholesky(kzz)
        a = tf.linalg.triangular_solve(chol, tf.transpose(tf.linalg.triangular_solve(chol, psi2)))
        chol_b = tf.linalg.cholesky(tf.eye(m, dtype=tf.float64) + beta * a)
        p = tf.linalg.triangular_solve(chol, tf.matmul(psi1, y, transpose_a=True))
        c = tf.linalg.triangular_solve(chol_b, p)
        d = y.shape[1]
        fit = (
            0.5 * n * d * tf.math.log(beta / (2.0 * np.pi))
            - d * tf.reduce_sum(tf.math.log(tf.linalg.diag_part(chol_b)))
            - 0.5 * beta * tf.reduce_sum(y**2)
            + 0.5 * beta**2 * tf.reduce_sum(c**2)
            - 0.5 * beta * d * (n * model.kernel.variance - tf.linalg.trace(a))
        )
        return fit - 0.5 * tf.reduce_sum(mean**2 + var - tf.math.log(var) - 1.0)

    return evaluation(model, bound, 1.0)


def fit(case):
    model = gplvm(case, rbf(case))

    def optimise():
        options = {"maxiter": MAX_ITERATIONS}
        report = gpflow.optimizers.Scipy().minimize(model.training_loss, model.trainable_variables, options=options)
        return -report.fun, report.nit

    return timed_fit(optimise)


def exact(case):
    model = gpflow.models.GPR((case["x"], case["y"]), rbf(case), noise_variance=NOISE)
    return evaluation(model, model.training_loss)


def predict_exact(case):
    posterior = gpflow.models.GPR((case["x"], case["y"]), rbf(case), noise_variance=NOISE).posterior()
    predict = tf.function(posterior.predict_f)
    return best(lambda: predict(case["new"])[1].numpy().sum())


def predict_sparse(case):
    model = gpflow.models.SGPR((case["x"], case["y"]), rbf(case), case["z"].copy(), noise_variance=NOISE)
    predict = tf.function(model.posterior().predict_f)
    return best(lambda: predict(case["new"])[1].numpy().sum())


if __name__ == "__main__":
    main(
        {
            "bound_rbf": bound_rbf,
            "bound_matern32": bound_matern32,
            "fit": fit,
            "exact": exact,
            "predict_exact": predict_exact,
            "predict_sparse": predict_sparse,
        }
    )
