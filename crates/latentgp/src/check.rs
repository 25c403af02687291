//! The laws as functions: what every kernel, every rule and every model must satisfy, to be called by tests and by
//! whoever writes one of their own.

use crate::error::{Error, Result};
use crate::expectation::{Expectation, Gaussians, Psi, PsiGrad, Rule};
use crate::kernel::{Kernel, KernelGrad, PointGrad};
use crate::linalg;
use crate::mat::Mat;
use crate::model::Model;
use crate::model::prior::{InputPrior, KlGrad};
use crate::param::{self, Param, Parameterized};

/// ∂f/∂u by central differences with Richardson's correction; the step is relative to |u_i|.
pub fn differences(u: &[f64], mut f: impl FnMut(&[f64]) -> f64) -> Vec<f64> {
    let mut at = u.to_vec();
    let mut central = |i: usize, h: f64| {
        at[i] = u[i] + h;
        let up = f(&at);
        at[i] = u[i] - h;
        let down = f(&at);
        at[i] = u[i];
        (up - down) / (2.0 * h)
    };
    (0..u.len())
        .map(|i| {
            let h = 1e-3 * (1.0 + u[i].abs()).min(u[i].abs().max(1e-2));
            (4.0 * central(i, 0.5 * h) - central(i, h)) / 3.0
        })
        .collect()
}

/// The largest |a − b| relative to the largest of |b|, and to `floor`.
pub fn relative_error(a: &[f64], b: &[f64], floor: f64) -> f64 {
    let scale = b.iter().fold(floor, |s, v| s.max(v.abs()));
    a.iter().zip(b).fold(0.0, |worst: f64, (a, b)| {
        let error = (a - b).abs() / scale;
        if error.is_nan() { f64::INFINITY } else { worst.max(error) }
    })
}

fn require(what: &str, error: f64, tolerance: f64) -> Result<()> {
    if error <= tolerance {
        return Ok(());
    }
    Err(Error::Invalid {
        what: what.to_string(),
        expected: format!("a relative error of at most {tolerance:e}"),
        found: format!("{error:e}"),
    })
}

/// The laws of a kernel at the points x and z: parameters in one [`order`], symmetric, positive semi-definite, block
/// methods that agree with `eval`, adjoints that agree with central differences to `tolerance` (1e-7 suits smooth kernels).
///
/// ```
/// use latentgp::{Mat, check, kernel::Rbf};
/// let x = Mat::from_fn(5, 2, |i, j| (i * 2 + j) as f64 * 0.3);
/// let z = Mat::from_fn(4, 2, |i, j| 1.0 - (i + 3 * j) as f64 * 0.2);
/// check::kernel(&Rbf::new(2), &x, &z, 1e-7)?;
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn kernel(kernel: &dyn Kernel, x: &Mat, z: &Mat, tolerance: f64) -> Result<()> {
    order(&mut *kernel.boxed())?;
    let (n, m) = (x.rows(), z.rows());
    let mut cross = Mat::zeros(n, m);
    kernel.cross(x, z, &mut cross);
    let slow = Mat::from_fn(n, m, |i, j| kernel.eval(x.row(i), z.row(j)));
    let swapped = Mat::from_fn(n, m, |i, j| kernel.eval(z.row(j), x.row(i)));
    require("cross against eval", relative_error(cross.as_slice(), slow.as_slice(), 1e-12), 1e-12)?;
    require("k(x, z) against k(z, x)", relative_error(swapped.as_slice(), slow.as_slice(), 1e-12), 1e-12)?;

    let (mut gram, mut diag) = (Mat::zeros(n, n), vec![0.0; n]);
    kernel.gram(x, &mut gram);
    kernel.diag(x, &mut diag);
    let found: Vec<f64> = (0..n).map(|i| gram[(i, i)]).collect();
    require("diag against gram", relative_error(&diag, &found, 1e-12), 1e-12)?;
    let off = |g: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        (0..n).flat_map(|i| (0..i).map(move |j| (i, j))).map(|(i, j)| g(i, j)).collect()
    };
    let eval = off(&|i, j| kernel.eval(x.row(i), x.row(j)));
    require("gram against eval", relative_error(&off(&|i, j| gram[(i, j)]), &eval, 1e-12), 1e-12)?;
    if let Some(place) = kernel.factor() {
        let mut twice = kernel.boxed();
        let mut theta = param::values(&*twice);
        theta[place] *= 2.0;
        param::set_values(&mut *twice, &theta);
        let doubled = Mat::from_fn(n, m, |i, j| 0.5 * twice.eval(x.row(i), z.row(j)));
        require(
            "the factor of the kernel",
            relative_error(doubled.as_slice(), slow.as_slice(), 1e-12),
            1e-12,
        )?;
    }
    let lowest = linalg::eigh(&gram)?.0[0];
    let scale = diag.iter().fold(0.0f64, |a, b| a.max(b.abs()));
    require("the most negative eigenvalue of k(x, x)", (-lowest / scale.max(1e-300)).max(0.0), 1e-10)?;

    adjoints(kernel, x, z, tolerance)
}

/// Errs unless parameters are visited in the order of `params()`, with and without names.
pub fn order(of: &mut (impl Parameterized + ?Sized)) -> Result<()> {
    let named: Vec<*const Param> = of.params().into_iter().map(|(_, p)| p as *const Param).collect();
    let to_write: Vec<*const Param> = of.params_mut().into_iter().map(|(_, p)| &*p as *const Param).collect();
    let (mut visited, mut visited_to_write) = (Vec::new(), Vec::new());
    of.each_param(&mut |p| visited.push(p as *const Param));
    of.each_param_mut(&mut |p| visited_to_write.push(&*p as *const Param));
    for (what, found) in
        [("params_mut", to_write), ("each_param", visited), ("each_param_mut", visited_to_write)]
    {
        let same = named.iter().zip(&found).take_while(|(a, b)| a == b).count();
        if same < named.len().max(found.len()) {
            let expected = format!("the {} parameters of `params`, in that order", named.len());
            return Err(Error::invalid(what, expected, format!("another after {same} of {}", found.len())));
        }
    }
    Ok(())
}

/// A fixed matrix without structure, to weigh entries with.
fn weights(rows: usize, cols: usize) -> Mat {
    Mat::from_fn(rows, cols, |i, j| (1.7 * i as f64 + 0.9 * j as f64 + 0.3).sin() + 0.1)
}

fn with_theta(kernel: &dyn Kernel, theta: &[f64]) -> Box<dyn Kernel> {
    let mut moved = kernel.boxed();
    param::set_values(&mut *moved, theta);
    moved
}

fn adjoints(kernel: &dyn Kernel, x: &Mat, z: &Mat, tolerance: f64) -> Result<()> {
    let theta = param::values(kernel);
    let parts = [theta.len(), x.len(), z.len()];
    let join = |a: &[f64], b: &[f64], c: &[f64]| [a, b, c].concat();
    let u = join(&theta, x.as_slice(), z.as_slice());
    let split = |u: &[f64]| {
        let (theta, rest) = u.split_at(parts[0]);
        let (xs, zs) = rest.split_at(parts[1]);
        let x = Mat::from_vec(x.rows(), x.cols(), xs.to_vec()).expect("as many as before");
        let z = Mat::from_vec(z.rows(), z.cols(), zs.to_vec()).expect("as many as before");
        (with_theta(kernel, theta), x, z)
    };
    let zeros = || (vec![0.0; parts[0]], Mat::zeros(x.rows(), x.cols()), Mat::zeros(z.rows(), z.cols()));

    let bar = weights(x.rows(), z.rows());
    let (mut gt, mut gx, mut gz) = zeros();
    kernel.cross_adjoint(x, z, &bar, KernelGrad { theta: &mut gt, x: Some(&mut gx), z: Some(&mut gz) });
    let cross = |u: &[f64]| {
        let (k, x, z) = split(u);
        let mut out = Mat::zeros(x.rows(), z.rows());
        k.cross(&x, &z, &mut out);
        out.dot(&bar)
    };
    let ours = join(&gt, gx.as_slice(), gz.as_slice());
    require("cross_adjoint", relative_error(&ours, &differences(&u, cross), 1e-3), tolerance)?;

    let (mut gt, mut gx, mut gz) = zeros();
    for i in 0..x.rows() {
        for j in 0..z.rows() {
            let (mut px, mut pz) = (vec![0.0; x.cols()], vec![0.0; z.cols()]);
            let point = PointGrad { theta: &mut gt, x: &mut px, z: &mut pz };
            kernel.eval_adjoint(x.row(i), z.row(j), bar[(i, j)], point);
            gx.row_mut(i).iter_mut().zip(&px).for_each(|(a, b)| *a += b);
            gz.row_mut(j).iter_mut().zip(&pz).for_each(|(a, b)| *a += b);
        }
    }
    let slow = join(&gt, gx.as_slice(), gz.as_slice());
    require("eval_adjoint against cross_adjoint", relative_error(&slow, &ours, 1e-3), 1e-10)?;

    let u = join(&theta, x.as_slice(), &[]);
    let split = |u: &[f64]| {
        let x = Mat::from_vec(x.rows(), x.cols(), u[parts[0]..].to_vec()).expect("as many as before");
        (with_theta(kernel, &u[..parts[0]]), x)
    };
    let bar = weights(x.rows(), x.rows());
    let (mut gt, mut gx, _) = zeros();
    kernel.gram_adjoint(x, &bar, KernelGrad { theta: &mut gt, x: Some(&mut gx), z: None });
    let gram = |u: &[f64]| {
        let (k, x) = split(u);
        let mut out = Mat::zeros(x.rows(), x.rows());
        k.gram(&x, &mut out);
        out.dot(&bar)
    };
    let ours = join(&gt, gx.as_slice(), &[]);
    require("gram_adjoint", relative_error(&ours, &differences(&u, gram), 1e-3), tolerance)?;

    let bar = weights(1, x.rows()).into_vec();
    let (mut gt, mut gx, _) = zeros();
    kernel.diag_adjoint(x, &bar, KernelGrad { theta: &mut gt, x: Some(&mut gx), z: None });
    let diag = |u: &[f64]| {
        let (k, x) = split(u);
        let mut out = vec![0.0; x.rows()];
        k.diag(&x, &mut out);
        out.iter().zip(&bar).map(|(a, b)| a * b).sum()
    };
    let ours = join(&gt, gx.as_slice(), &[]);
    require("diag_adjoint", relative_error(&ours, &differences(&u, diag), 1e-3), tolerance)
}

/// The laws of a rule in `dim` dimensions: as many weights and nodes as it says, weights that sum to 1,
/// nodes of mean 0 and covariance I within `tolerance` (1e-12 for a deterministic rule).
pub fn rule(rule: &impl Rule, dim: usize, tolerance: f64) -> Result<()> {
    let (weights, xi) = (rule.weights(dim), rule.nodes(dim));
    if weights.len() as f64 != rule.count(dim) || xi.rows() != weights.len() || xi.cols() != dim {
        let found = format!("{} weights, {} nodes", weights.len(), xi.shape());
        return Err(Error::shape(Rule::expression(rule), format!("{} nodes", rule.count(dim)), found));
    }
    require("sum of the weights", (weights.iter().sum::<f64>() - 1.0).abs(), 1e-11)?;
    for p in 0..dim {
        let mean: f64 = weights.iter().enumerate().map(|(s, w)| w * xi[(s, p)]).sum();
        require("mean of the nodes", mean.abs(), tolerance)?;
        for q in 0..=p {
            let cov: f64 = weights.iter().enumerate().map(|(s, w)| w * xi[(s, p)] * xi[(s, q)]).sum();
            require("covariance of the nodes", (cov - f64::from(p == q)).abs(), tolerance)?;
        }
    }
    Ok(())
}

/// The adjoint of Ψ-statistics against central differences in θ, Z, μ and S.
pub fn psi_adjoint(
    expectation: &dyn Expectation,
    kernel: &dyn Kernel,
    q: &Gaussians,
    z: &Mat,
    tolerance: f64,
) -> Result<()> {
    let bar = Psi { psi0: 0.7, psi1: weights(q.n(), z.rows()), psi2: weights(z.rows(), z.rows()) };
    let theta = param::values(kernel);
    let mut theta_bar = vec![0.0; theta.len()];
    let zeros = |a: &Mat| Mat::zeros(a.rows(), a.cols());
    let (mut z_bar, mut mean_bar, mut var_bar) = (zeros(z), zeros(&q.mean), zeros(&q.var));
    let grad = PsiGrad { theta: &mut theta_bar, z: &mut z_bar, mean: &mut mean_bar, var: &mut var_bar };
    expectation.psi_adjoint(kernel, q, z, &bar, grad)?;
    let ours = [&theta_bar[..], z_bar.as_slice(), mean_bar.as_slice(), var_bar.as_slice()].concat();
    let u = [&theta[..], z.as_slice(), q.mean.as_slice(), q.var.as_slice()].concat();
    let mut failed = None;
    let value = |u: &[f64]| {
        let (theta, rest) = u.split_at(theta_bar.len());
        let (zs, rest) = rest.split_at(z.len());
        let (means, vars) = rest.split_at(q.mean.len());
        let mat = |like: &Mat, from: &[f64]| {
            Mat::from_vec(like.rows(), like.cols(), from.to_vec()).expect("as many as before")
        };
        let moved = Gaussians { mean: mat(&q.mean, means), var: mat(&q.var, vars) };
        match expectation.psi(&*with_theta(kernel, theta), &moved, &mat(z, zs)) {
            Ok(psi) => bar.psi0 * psi.psi0 + bar.psi1.dot(&psi.psi1) + bar.psi2.dot(&psi.psi2),
            Err(e) => {
                failed = Some(e);
                f64::NAN
            }
        }
    };
    let slow = differences(&u, value);
    if let Some(e) = failed {
        return Err(e);
    }
    require("psi_adjoint", relative_error(&ours, &slow, 1e-3), tolerance)
}

/// The laws of a prior at q(X): parameters in one [`order`], a KL that is not negative and the same with and without its
/// gradient, which agrees with central differences in μ, S and the prior's parameters.
///
/// ```
/// use latentgp::{Mat, check, expectation::Gaussians, model::prior::Normal};
/// let q = Gaussians::new(Mat::filled(4, 2, 0.3), Mat::filled(4, 2, 0.2))?;
/// check::prior(&Normal::standard(4, 2), &q, 1e-7)?;
/// # Ok::<(), latentgp::Error>(())
/// ```
pub fn prior(prior: &dyn InputPrior, q: &Gaussians, tolerance: f64) -> Result<()> {
    order(&mut *prior.boxed())?;
    if prior.sizes() != (q.n(), q.dim()) {
        return Err(Error::shape("rows of the prior", q.mean.shape(), format!("{:?}", prior.sizes())));
    }
    let theta = param::values(prior);
    let [mut mean, mut var] = [(); 2].map(|()| vec![0.0; q.mean.len()]);
    let mut params = vec![0.0; theta.len()];
    let grads = KlGrad { mean: &mut mean, var: &mut var, params: &mut params };
    let value = prior.kl(&q.mean, &q.var, Some(grads))?;
    require("KL with gradient", relative_error(&[value], &[prior.kl(&q.mean, &q.var, None)?], 1e-12), 1e-12)?;
    require("how far KL is below 0", (-value).max(0.0), 1e-10)?;
    let (mut moved, mut failed) = (prior.boxed(), None);
    let slow = differences(&[q.mean.as_slice(), q.var.as_slice(), &theta].concat(), |u| {
        let (means, rest) = u.split_at(q.mean.len());
        let (vars, theta) = rest.split_at(q.var.len());
        param::set_values(&mut *moved, theta);
        let mat = |from: &[f64]| Mat::from_vec(q.n(), q.dim(), from.to_vec()).expect("as many as before");
        moved.kl(&mat(means), &mat(vars), None).unwrap_or_else(|e| {
            failed = Some(e);
            f64::NAN
        })
    });
    if let Some(e) = failed {
        return Err(e);
    }
    let ours: Vec<f64> = [mean, var, params].concat().iter().map(|g| -g).collect();
    require("gradient of KL", relative_error(&ours, &slow, 1e-3), tolerance)
}

/// The gradient of a model's log evidence against central differences in all of its parameters, and that the value is the
/// same with and without it.
pub fn model(model: &(impl Model + Clone), tolerance: f64) -> Result<()> {
    order(&mut model.clone())?;
    let theta = param::values(model);
    let mut grad = vec![0.0; theta.len()];
    let value = model.log_evidence(Some(&mut grad))?;
    require(
        "log_evidence without gradient",
        relative_error(&[model.log_evidence(None)?], &[value], 0.0),
        1e-12,
    )?;
    let (mut moved, mut failed) = (model.clone(), None);
    let slow = differences(&theta, |theta| {
        param::set_values(&mut moved, theta);
        moved.log_evidence(None).unwrap_or_else(|e| {
            failed = Some(e);
            f64::NAN
        })
    });
    if let Some(e) = failed {
        return Err(e);
    }
    require("gradient of log_evidence", relative_error(&grad, &slow, 1e-3), tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation::{
        Analytic, Cubature5, GaussHermite, MinimalSkew, MonteCarlo, QuasiMonteCarlo, ScaledUnscented,
        Unscented,
    };
    use crate::kernel::{Matern12, Matern32, Matern52, RationalQuadratic, Rbf, Select};

    fn inputs(n: usize, dim: usize) -> Gaussians {
        let mean = Mat::from_fn(n, dim, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin());
        let var = Mat::from_fn(n, dim, |i, j| 0.3 + 0.25 * (1.7 * i as f64 - 0.4 * j as f64).cos());
        Gaussians::new(mean, var).unwrap()
    }

    #[test]
    fn another_order_is_refused() {
        struct Two([Param; 2], bool);
        impl Parameterized for Two {
            fn params(&self) -> Vec<(String, &Param)> {
                self.0.iter().enumerate().map(|(i, p)| (i.to_string(), p)).collect()
            }
            fn params_mut(&mut self) -> Vec<(String, &mut Param)> {
                self.0.iter_mut().enumerate().map(|(i, p)| (i.to_string(), p)).collect()
            }
            fn each_param_mut(&mut self, visit: &mut dyn FnMut(&mut Param)) {
                match self.1 {
                    true => self.0.iter_mut().for_each(visit),
                    false => self.0.iter_mut().rev().for_each(visit),
                }
            }
        }
        let two = || [Param::scalar(1.0), Param::scalar(2.0)];
        order(&mut Two(two(), true)).unwrap();
        let error = order(&mut Two(two(), false)).unwrap_err();
        assert!(error.to_string().contains("each_param_mut"), "{error}");
    }

    #[test]
    fn rules_obey_the_laws() {
        for dim in 1..=7 {
            rule(&Unscented, dim, 1e-12).unwrap();
            rule(&ScaledUnscented { alpha: 0.9, kappa: 1.5 }, dim, 1e-12).unwrap();
            rule(&MinimalSkew::default(), dim, 1e-12).unwrap();
            rule(&GaussHermite::new(2), dim, 1e-12).unwrap();
            rule(&GaussHermite::new(4), dim, 1e-12).unwrap();
            rule(&Cubature5, dim, 1e-12).unwrap();
            rule(&MonteCarlo::new(40_000, 3), dim, 0.03).unwrap();
            rule(&QuasiMonteCarlo::new(4096, 3), dim, 0.01).unwrap();
        }
    }

    #[test]
    fn psi_adjoints_of_an_rbf_agree_with_differences() {
        let z = Mat::from_fn(5, 3, |i, j| (1.3 * i as f64 - 0.7 * j as f64).cos());
        let mut k = Rbf::new(3);
        k.lengthscale.value.as_mut_slice().copy_from_slice(&[0.8, 1.3, 2.0]);
        k.variance.set(1.4);
        let sum = k.clone() + Select::new(Rbf::isotropic(2), &[2, 0], 3);
        let all: Vec<Box<dyn Expectation>> = vec![
            Box::new(Analytic),
            Box::new(Unscented),
            Box::new(GaussHermite::new(2)),
            Box::new(MonteCarlo::new(7, 1)),
        ];
        for e in &all {
            psi_adjoint(&**e, &k, &inputs(6, 3), &z, 1e-7).unwrap_or_else(|err| panic!("{e}: {err}"));
            psi_adjoint(&**e, &sum, &inputs(40, 3), &z, 1e-7).unwrap_or_else(|err| panic!("{e}: {err}"));
        }
    }

    #[test]
    fn quadrature_converges_to_the_closed_form() {
        let z = Mat::from_fn(5, 3, |i, j| (1.3 * i as f64 - 0.7 * j as f64).cos());
        let k = Rbf::new(3) + Select::new(Rbf::isotropic(2), &[2, 0], 3);
        let exact = Analytic.psi(&k, &inputs(9, 3), &z).unwrap();
        let close = GaussHermite::new(20).psi(&k, &inputs(9, 3), &z).unwrap();
        assert!((exact.psi0 - close.psi0).abs() < 1e-10);
        assert!(relative_error(close.psi1.as_slice(), exact.psi1.as_slice(), 0.0) < 1e-8);
        assert!(relative_error(close.psi2.as_slice(), exact.psi2.as_slice(), 0.0) < 1e-8);
    }

    #[test]
    fn stationary_kernels_and_their_compositions_obey_the_laws() {
        let x = Mat::from_fn(7, 3, |i, j| (2.3 * i as f64 + 1.1 * j as f64).sin());
        let z = Mat::from_fn(5, 3, |i, j| (1.3 * i as f64 - 0.7 * j as f64).cos());
        let mut rq = RationalQuadratic::new(3);
        rq.alpha.as_mut().unwrap().set(0.7);
        rq.lengthscale.value.as_mut_slice().copy_from_slice(&[0.8, 1.3, 2.0]);
        let all: Vec<Box<dyn Kernel>> = vec![
            Box::new(Rbf::new(3)),
            Box::new(Rbf::isotropic(3)),
            Box::new(Matern12::new(3)),
            Box::new(Matern32::new(3)),
            Box::new(Matern52::isotropic(3)),
            Box::new(rq.clone()),
            Box::new(rq * Matern32::new(3) + Select::new(Rbf::new(2), &[2, 0], 3)),
            Box::new((Rbf::new(3) + Matern32::new(3)) * Matern52::new(3) * Rbf::isotropic(3)),
        ];
        for k in &all {
            kernel(&**k, &x, &z, 1e-7).unwrap_or_else(|e| panic!("{k}: {e}"));
        }
    }
}
