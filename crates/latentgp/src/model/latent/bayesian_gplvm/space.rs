//! The Bayesian GPLVM as one of the latent spaces, and its part of a model file.

use super::{BayesianGplvm, Certificate};
use crate::data::Scaling;
use crate::error::Result;
use crate::expectation::Gaussians;
use crate::file::{ModelFile, damaged, written};
use crate::kernel::{Kernel, Own};
use crate::mat::Mat;
use crate::model::shared::prior::{USUAL, put_prior, take_prior};
use crate::model::{LatentSpace, Model, Outputs, Placed, noise_at_floor};
use crate::param::Parameterized;
use crate::posterior::{Posterior, Prediction};
use std::sync::OnceLock;

/// A fitted Bayesian GPLVM, and what it predicts from once that was asked for.
#[derive(Clone)]
pub struct BayesianSpace {
    model: BayesianGplvm,
    posterior: OnceLock<Posterior>,
}

impl From<BayesianGplvm> for BayesianSpace {
    fn from(model: BayesianGplvm) -> Self {
        BayesianSpace { model, posterior: OnceLock::new() }
    }
}

impl BayesianSpace {
    /// The model.
    pub fn model(&self) -> &BayesianGplvm {
        &self.model
    }

    /// What it predicts from. Nobody waits for another one's: those who ask at the same time make the same posterior, and the
    /// first of them is kept.
    pub fn posterior(&self) -> Result<&Posterior> {
        match self.posterior.get() {
            Some(made) => Ok(made),
            None => {
                let made = self.model.posterior()?;
                Ok(self.posterior.get_or_init(|| made))
            }
        }
    }

    /// The inverse of [`store`](LatentSpace::store) for data and their units.
    pub(crate) fn restore(file: &mut ModelFile, own: &Own, y: Mat, scaling: Scaling) -> Result<Self> {
        let (latent_dim, inducing): (usize, usize) = (file.field("latent_dim")?, file.field("inducing")?);
        let (kernel, expectation) = (file.kernel(own, latent_dim)?, file.expectation()?);
        let [mean, var] = ["mean", "var"].map(|name| file.tensor(name).cloned());
        let q = Gaussians::new(mean?, var?)?;
        let (z, noise) = (file.tensor("z")?.clone(), file.noise(y.cols())?);
        if (q.dim(), z.rows()) != (latent_dim, inducing) {
            return Err(damaged("the sizes in its header are not those of its arrays"));
        }
        let n = y.rows();
        let mut model = BayesianGplvm::new(Outputs::new(y), scaling, kernel, expectation, q, z, noise.get())?;
        model.noise = noise;
        let prior: Option<String> = file.field("prior")?;
        let prior = prior.as_deref().unwrap_or(USUAL);
        model.set_prior(take_prior(prior, "prior", (n, latent_dim), file)?)?;
        file.take_parameters(&mut model)?;
        model.jitter = file.jitter()?;
        Ok(model.into())
    }
}

impl LatentSpace for BayesianSpace {
    fn name(&self) -> &'static str {
        "bayesian-gplvm"
    }

    fn title(&self) -> &'static str {
        "Bayesian GPLVM"
    }

    fn objective(&self) -> &'static str {
        "bound"
    }

    fn kind(&self) -> &'static str {
        self.name()
    }

    fn y(&self) -> &Mat {
        &self.model.outputs.y
    }

    fn latent_dim(&self) -> usize {
        self.model.mean.value.cols()
    }

    fn scaling(&self) -> &Scaling {
        &self.model.scaling
    }

    fn noise(&self) -> &[f64] {
        self.model.noise.as_slice()
    }

    fn evidence(&self) -> Result<f64> {
        self.model.log_evidence(None)
    }

    fn latent(&self) -> Result<Gaussians> {
        Ok(self.model.latent())
    }

    fn transform(&self, y: &Mat) -> Result<Placed> {
        let placed = self.model.project_with(self.posterior()?, y)?;
        Ok(Placed { q: placed.q, log_density: placed.bound })
    }

    fn project(&self, y: &Mat) -> Result<Gaussians> {
        Ok(self.transform(y)?.q)
    }

    fn place(&self, y: &Mat) -> Result<Placed> {
        self.transform(y)
    }

    fn density(&self) -> &'static str {
        "bound"
    }

    fn log_density(&self, y: &Mat, samples: usize, seed: u64) -> Result<Vec<f64>> {
        self.model.log_density(self.posterior()?, y, samples, seed)
    }

    fn reconstruct(&self, q: &Gaussians) -> Result<Prediction> {
        self.model.reconstruct(self.posterior()?, q)
    }

    fn impute(&self, y: &Mat) -> Result<Prediction> {
        let filled = self.model.impute(self.posterior()?, y)?;
        Ok(Prediction { mean: filled.y, var: filled.var })
    }

    fn relevance(&self) -> Result<Vec<f64>> {
        // What the parameters of the kernel tell needs no posterior.
        match self.model.kernel.relevance() {
            Some(relevance) => Ok(relevance),
            None => self.model.relevance(self.posterior()?),
        }
    }

    fn store(&self, file: &mut ModelFile) -> Result<()> {
        let model = &self.model;
        let (.., q, m) = model.sizes();
        file.set("inducing", m)?;
        file.set("kernel", written(&*model.kernel, q)?)?;
        file.set_expectation(&*model.expectation)?;
        crate::expectation::parse(&model.expectation.expression())?;
        file.set_jitter(model.jitter)?;
        let prior = put_prior(&*model.prior, "prior", file);
        if prior != USUAL {
            file.set("prior", prior)?;
        }
        // Files have these whether there is something to say or not.
        ["id", "unfinished"].into_iter().try_for_each(|key| file.set(key, ()))?;
        file.put_parameters(model)
    }

    fn boxed(&self) -> Box<dyn LatentSpace> {
        Box::new(self.clone())
    }

    fn parameters(&self) -> Option<(&dyn Kernel, &dyn Parameterized)> {
        Some((&*self.model.kernel, &self.model))
    }

    fn decoder(&self) -> Result<Option<Posterior>> {
        Ok(Some(self.posterior()?.clone()))
    }

    fn inducing(&self) -> Option<&Mat> {
        Some(&self.model.z.value)
    }

    fn certificate(&self) -> Result<Option<Certificate>> {
        self.model.certificate().map(Some)
    }

    fn extra_jitter(&self) -> Result<Option<f64>> {
        self.model.extra_jitter().map(Some)
    }

    fn unused(&self) -> Vec<usize> {
        self.model.unused()
    }

    fn collapses(&self) -> Vec<String> {
        self.model.collapses().iter().map(ToString::to_string).collect()
    }

    fn noise_at_floor(&self) -> bool {
        noise_at_floor(&self.model.noise)
    }

    fn expectation(&self) -> String {
        self.model.expectation.expression()
    }

    fn sample(&self, n: usize, seed: u64) -> Result<(Mat, Mat)> {
        self.model.sample(self.posterior()?, n, seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expectation;
    use crate::file::{Labels, Report, Store, TrainedSpace, load, save};
    use crate::kernel::{Auto, Formula, Matern32, Scalar};
    use crate::model::Training;
    use crate::param::Param;
    use crate::recipe::Recipe;
    use serde_json::json;
    use std::ops::ControlFlow;

    fn trained(y: Mat, expectation: &str) -> TrainedSpace {
        let training = Training {
            latent_dim: 2,
            inducing: 4,
            hold: 2,
            max_iterations: 4,
            expectation: expectation::parse(expectation).unwrap(),
            ..Training::default()
        };
        let fit = training.fit(&y, &Matern32::new(2), &|_| ControlFlow::Continue(())).unwrap();
        let n = y.rows();
        let report = Report::new(&fit, &Recipe::of("bayesian-gplvm"), 0.5);
        let model: Box<dyn LatentSpace> = Box::new(BayesianSpace::from(fit.model));
        TrainedSpace {
            report: report.certified(&*model).unwrap(),
            model,
            columns: (0..y.cols()).map(|j| format!("c{j}")).collect(),
            labels: Some(Labels { name: "class".into(), of: (0..n).map(|i| format!("{}", i % 2)).collect() }),
            id: Some("id".into()),
            unfinished: None,
        }
    }

    fn change(of: &mut TrainedSpace, how: impl Fn(&mut BayesianGplvm)) {
        let mut model = restored(of.to_file().unwrap());
        how(&mut model);
        of.model = Box::new(BayesianSpace::from(model));
    }

    /// The model of a file.
    fn restored(mut file: ModelFile) -> BayesianGplvm {
        let (n, d) = (file.field("n").unwrap(), file.field("d").unwrap());
        let (y, scaling) = (file.take("y", n, d).unwrap(), file.scaling("scaling", d).unwrap());
        BayesianSpace::restore(&mut file, &Own::default(), y, scaling).unwrap().model
    }

    fn params(of: &TrainedSpace) -> Vec<(String, Param)> {
        let all = of.model.parameters().unwrap().1.params();
        all.into_iter().map(|(name, p)| (name, p.clone())).collect()
    }

    fn data(missing: bool) -> Mat {
        let mut y = Mat::from_fn(9, 3, |i, j| ((i * 3 + j * j) as f64).sin() * 10.0 + j as f64);
        if missing {
            (y[(2, 1)], y[(5, 0)]) = (f64::NAN, f64::NAN);
        }
        y
    }

    #[test]
    fn predictions_after_save_and_load_are_the_same_bits() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.lgp");
        for (missing, expectation) in [
            (false, "unscented"),
            (true, "auto"),
            (false, "monte_carlo(samples=5, seed=2, fresh=true)"),
            (true, "gauss_hermite(points=3)"),
        ] {
            let mut before = trained(data(missing), expectation);
            change(&mut before, |model| model.noise.fixed = true);
            save(&path, &before).unwrap();
            let after: TrainedSpace = load(&path).unwrap();
            let kernel = |of: &TrainedSpace| of.model.parameters().unwrap().0.boxed();
            assert_eq!(params(&after), params(&before));
            assert_eq!(*kernel(&after), *kernel(&before));
            assert_eq!((&after.labels, &after.report), (&before.labels, &before.report));
            assert_eq!((&after.columns, &after.id), (&before.columns, &before.id));
            let q = before.model.latent().unwrap();
            assert_eq!(after.model.reconstruct(&q), before.model.reconstruct(&q));
            let certain = Gaussians::certain(q.mean);
            assert_eq!(after.model.reconstruct(&certain), before.model.reconstruct(&certain));
            let new = Mat::from_rows(&[[0.3, f64::NAN, 2.0]]);
            assert_eq!(before.model.transform(&new), after.model.transform(&new));
            assert_eq!(before.model.evidence(), after.model.evidence());
        }
    }

    #[test]
    fn every_truncation_and_every_flipped_byte_is_refused() {
        let bytes = trained(data(true), "unscented").to_file().unwrap().to_bytes().unwrap();
        assert!(ModelFile::from_bytes(&bytes).is_ok());
        for at in 0..bytes.len() {
            assert!(ModelFile::from_bytes(&bytes[..at]).is_err(), "cut at {at}");
            let mut bad = bytes.clone();
            bad[at] ^= 0xff;
            assert!(ModelFile::from_bytes(&bad).is_err(), "byte {at}");
        }
    }

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let whole = trained(data(false), "unscented").to_file().unwrap();
        let names: Vec<String> = whole.tensors.keys().cloned().collect();
        for name in names {
            let mut file = whole.clone();
            file.tensors.remove(&name);
            assert!(TrainedSpace::from_file(file).is_err(), "without {name}");
            if name != "trace" {
                let mut file = whole.clone();
                let (rows, cols) = (file.tensors[&name].rows(), file.tensors[&name].cols());
                file.tensors.insert(name.clone(), Mat::filled(rows + 1, cols, 0.5));
                assert!(TrainedSpace::from_file(file).is_err(), "{name} too long");
                let mut file = whole.clone();
                file.tensors.insert(name.clone(), Mat::filled(rows, cols, f64::INFINITY));
                assert!(TrainedSpace::from_file(file).is_err(), "{name} infinite");
            }
        }
        for (key, value) in [
            ("n", json!(u64::MAX)),
            ("latent_dim", json!(0)),
            ("kernel", json!("linear")),
            ("kernel", json!("nonsense")),
            ("expectation", json!({ "expression": "x", "max_nodes": null, "step": 0 })),
            ("columns", json!(["a"])),
            ("scaling", json!({ "mean": [0.0], "scale": [1.0] })),
            ("params", json!([])),
            ("report", json!({})),
        ] {
            let mut file = whole.clone();
            file.header[key] = value;
            assert!(TrainedSpace::from_file(file).is_err(), "{key}");
        }
    }

    #[test]
    fn another_prior_is_stored_with_its_parameters() {
        let y = data(false);
        let days: Vec<f64> = (0..9).map(|i| if i == 4 { f64::NAN } else { 3.0 + 0.5 * i as f64 }).collect();
        let prior = crate::model::prior::parse("times(column=day, std=0.2, learn=true)").unwrap();
        let training = Training {
            inducing: 4,
            max_iterations: 8,
            prior: Some(prior.bind(9, 2, std::slice::from_ref(&days)).unwrap()),
            ..Training::default()
        };
        let fit = training.fit(&y, &Matern32::new(2), &|_| ControlFlow::Continue(())).unwrap();
        let mut before = trained(y, "auto");
        before.model = Box::new(BayesianSpace::from(fit.model.clone()));
        let before = (before, fit.model);
        let file = before.0.to_file().unwrap();
        assert_eq!(file.header["prior"], before.1.prior.expression());
        assert_ne!(file.header["prior"], "times(column=day, std=0.2, dim=0, learn=true)");
        let after =
            TrainedSpace::from_file(ModelFile::from_bytes(&file.to_bytes().unwrap()).unwrap()).unwrap();
        assert_eq!(params(&after), params(&before.0));
        assert_eq!(after.model.evidence(), before.1.log_evidence(None));
        let (again, posterior) = (restored(file.clone()), before.1.posterior().unwrap());
        let new = Mat::from_rows(&[[0.3, f64::NAN, 2.0]]);
        let known = |m: &BayesianGplvm| m.project_knowing(&posterior, &new, &[vec![4.0]]).unwrap();
        assert_eq!(known(&again), known(&before.1));
        assert_ne!(known(&again), again.project(&new).unwrap());
        assert_eq!(after.to_file().unwrap().to_bytes().unwrap(), file.to_bytes().unwrap());
        for name in ["prior.times", "prior.units", "prior.std"] {
            let mut file = file.clone();
            file.tensors.remove(name);
            assert!(TrainedSpace::from_file(file).is_err(), "without {name}");
        }
        for wrong in [json!("nonsense"), json!("normal"), json!("times(column=day, std=1, dim=2)")] {
            let mut file = file.clone();
            file.header["prior"] = wrong;
            assert!(TrainedSpace::from_file(file).is_err());
        }
    }

    #[derive(Clone)]
    struct Wave(&'static str);

    impl Formula for Wave {
        fn name(&self) -> &str {
            self.0
        }
        fn params(&self) -> Vec<(&'static str, Param)> {
            vec![("variance", Param::scalar(1.0))]
        }
        fn k<S: Scalar>(&self, x: &[S], z: &[S], theta: &[S]) -> S {
            theta[0] * (x[0] - z[0]).cos()
        }
    }

    fn with_wave(name: &'static str) -> TrainedSpace {
        let mut own = trained(data(false), "unscented");
        change(&mut own, |model| {
            model.kernel = Box::new(Auto::new(Wave(name), 2));
            model.kernel.params_mut()[0].1.set(2.5);
        });
        own
    }

    #[test]
    fn a_kernel_of_ones_own_is_read_by_who_has_it() {
        let file = with_wave("wave").to_file().unwrap();
        let missing = TrainedSpace::from_file(file.clone()).err().unwrap().to_string();
        assert!(missing.contains("unknown kernel `wave`"), "{missing}");
        let own = Own::new(vec![Box::new(Auto::new(Wave("wave"), 2))]).unwrap();
        let read = TrainedSpace::from_file_with(file, &own).unwrap();
        assert_eq!(read.model.parameters().unwrap().0.expression(), "wave(variance=2.5)");
    }

    #[test]
    fn a_kernel_that_cannot_be_read_back_is_not_written() {
        for name in ["two waves", "rbf"] {
            assert!(with_wave(name).to_file().err().unwrap().to_string().contains("(variance=2.5)"));
        }
    }
}
