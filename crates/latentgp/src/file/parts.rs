//! Parts that several models have in a model file: what is written by one function is read by the one beside it.

use super::params::{ParamSpec, put_params, take_params};
use super::report::Report;
use super::unfinished::Unfinished;
use super::{ModelFile, damaged};
use crate::budget;
use crate::data::Scaling;
use crate::error::{Error, Result};
use crate::expectation::{self, Expectation};
use crate::kernel::{Kernel, Own};
use crate::likelihood::Observations;
use crate::mat::Mat;
use crate::model::{Jitter, Supervised};
use crate::param::{Param, Parameterized};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// An expectation in a header.
#[derive(Serialize, Deserialize)]
pub(super) struct ExpectationSpec {
    pub(super) expression: String,
    pub(super) max_nodes: Option<usize>,
    step: u64,
}

impl ExpectationSpec {
    pub(super) fn of(expectation: &dyn Expectation) -> Self {
        ExpectationSpec {
            expression: expectation.expression(),
            max_nodes: expectation.max_nodes(),
            step: expectation.step(),
        }
    }

    pub(super) fn parse(&self) -> Result<Box<dyn Expectation>> {
        // A file does not decide how much work reading it may be.
        let most = budget::max_nodes()?;
        if let Some(asked) = self.max_nodes.filter(|asked| *asked > most) {
            return Err(damaged(format!(
                "its expectation may use up to {asked} nodes a point, above the limit of {most}; to trust it, set {}={asked} \
                 in the environment",
                budget::MAX_NODES
            )));
        }
        let mut expectation = expectation::parse(&self.expression)?;
        self.max_nodes.into_iter().for_each(|limit| expectation.set_max_nodes(limit));
        expectation.renew(self.step);
        Ok(expectation)
    }
}

impl ModelFile {
    /// Puts an array.
    pub fn put(&mut self, name: &str, of: &Mat) {
        self.tensors.insert(name.into(), of.clone());
    }

    /// Sets a field of the header.
    pub fn set(&mut self, key: &str, value: impl Serialize) -> Result<()> {
        self.header[key] =
            serde_json::to_value(value).map_err(|e| Error::data("model file", e.to_string()))?;
        Ok(())
    }

    /// A field of the header; errs when it is missing, unless that says nothing, or is of another type.
    pub fn field<T: DeserializeOwned>(&self, key: &str) -> Result<T> {
        let value = self.header.get(key).cloned().unwrap_or_default();
        serde_json::from_value(value).map_err(|e| damaged(format!("in the header, `{key}`: {e}")))
    }

    /// Puts the parameters of a model.
    pub(crate) fn put_parameters(&mut self, of: &(impl Parameterized + ?Sized)) -> Result<()> {
        let specs = put_params(of, self);
        self.set("params", specs)
    }

    /// Sets the parameters of a model to what was put.
    pub(crate) fn take_parameters(&mut self, of: &mut (impl Parameterized + ?Sized)) -> Result<()> {
        let specs: Vec<ParamSpec> = self.field("params")?;
        take_params(of, &specs, self)
    }

    /// Puts how the model was trained: the report as the header has it, and its trace.
    pub(super) fn put_report(&mut self, of: &Report, header: impl Serialize) -> Result<()> {
        self.put("trace", &Mat::from_vec(1, of.trace.len(), of.trace.clone())?);
        self.set("report", header)
    }

    /// How the model was trained.
    pub(super) fn take_report(&self) -> Result<Report> {
        let mut report: Report = self.field("report")?;
        report.trace = self.tensor("trace")?.as_slice().to_vec();
        Ok(report)
    }

    /// Puts what is needed to go on with a training that is not over; nothing where it is.
    pub(super) fn put_unfinished(&mut self, of: Option<&Unfinished>) -> Result<()> {
        of.map_or(Ok(()), |unfinished| {
            let spec = unfinished.put(self);
            self.set("unfinished", spec)
        })
    }

    /// The noise of so many outputs: one of all, or one of each.
    pub(crate) fn noise(&self, outputs: usize) -> Result<Param> {
        let value = self.tensor("noise")?;
        match value.rows() == 1 && [1, outputs].contains(&value.cols()) {
            true => Ok(Param::positive(value.clone())),
            false => Err(damaged("its noise does not fit its columns")),
        }
    }

    /// The fitted kernel, of `dim` columns.
    pub(crate) fn kernel(&self, own: &Own, dim: usize) -> Result<Box<dyn Kernel>> {
        own.parse(&self.field::<String>("kernel")?, dim)
    }

    pub(crate) fn set_expectation(&mut self, of: &dyn Expectation) -> Result<()> {
        self.set("expectation", ExpectationSpec::of(of))
    }

    pub(crate) fn expectation(&self) -> Result<Box<dyn Expectation>> {
        let spec: Option<ExpectationSpec> = self.field("expectation")?;
        spec.ok_or_else(|| damaged("its expectation is missing"))?.parse()
    }

    pub(crate) fn set_jitter(&mut self, of: Jitter) -> Result<()> {
        self.set("jitter", [of.kzz, of.b])
    }

    pub(crate) fn jitter(&self) -> Result<Jitter> {
        let [kzz, b] = self.field("jitter")?;
        Ok(Jitter { kzz, b })
    }

    /// The units of so many columns, if there are any.
    pub(crate) fn units(&self, key: &str, columns: usize) -> Result<Option<Scaling>> {
        let Some(s) = self.field::<Option<Scaling>>(key)? else { return Ok(None) };
        let sound = s.mean.iter().all(|v| v.is_finite()) && s.scale.iter().all(|v| v.is_finite() && *v > 0.0);
        match s.mean.len() == columns && s.scale.len() == columns && sound {
            true => Ok(Some(s)),
            false => Err(damaged("its scaling does not fit its columns")),
        }
    }

    /// The units of so many columns.
    pub(crate) fn scaling(&self, key: &str, columns: usize) -> Result<Scaling> {
        self.units(key, columns)?.ok_or_else(|| damaged("its scaling does not fit its columns"))
    }

    /// N, Q and D of a regression.
    pub(crate) fn pair_sizes(&self) -> Result<(usize, usize, usize)> {
        Ok((self.field("n")?, self.field("q")?, self.field("d")?))
    }

    /// X and Y of a regression, taken out; NaN is a missing cell.
    pub(crate) fn take_pairs(&mut self) -> Result<(Mat, Mat)> {
        let (n, q, d) = self.pair_sizes()?;
        let (x, y) = (self.take("x", n, q)?, self.take("y", n, d)?);
        if x.is_empty() || y.is_empty() || x.as_slice().iter().chain(y.as_slice()).any(|v| v.is_infinite()) {
            return Err(damaged("its data are empty or infinite"));
        }
        Ok((x, y))
    }

    /// The same where no input may be missing.
    pub(crate) fn take_pairs_of_known_inputs(&mut self) -> Result<(Mat, Mat)> {
        let (x, y) = self.take_pairs()?;
        match x.is_finite() {
            true => Ok((x, y)),
            false => Err(damaged("an input is missing")),
        }
    }

    /// X and Y of a regression, with the units of Y and those of X where it has some.
    pub(crate) fn put_pairs(
        &mut self,
        x: &Mat,
        y: &Mat,
        of_y: &Scaling,
        of_x: Option<&Scaling>,
    ) -> Result<()> {
        self.put("x", x);
        self.put("y", y);
        self.set("scaling", of_y)?;
        self.set("input_scaling", of_x)
    }

    /// Inputs and targets of a projection, and the variances of the inputs where these have errors.
    pub(crate) fn put_supervised(&mut self, data: &Supervised, x_var: Option<&Mat>) -> Result<()> {
        x_var.iter().for_each(|r| self.put("x.var", r));
        self.put_pairs(&data.x, &data.y, &data.outputs, Some(&data.inputs))
    }

    pub(crate) fn take_supervised(&mut self) -> Result<(Supervised, Option<Mat>)> {
        let ((x, y), (n, q, d)) = (self.take_pairs()?, self.pair_sizes()?);
        if !(x.is_finite() && y.is_finite()) {
            return Err(damaged("its data are not finite"));
        }
        let (inputs, outputs) = (self.scaling("input_scaling", q)?, self.scaling("scaling", d)?);
        let data = Supervised { x, y, inputs, outputs };
        if !self.tensors.contains_key("x.var") {
            return Ok((data, None));
        }
        let r = self.take("x.var", n, q)?;
        match r.as_slice().iter().all(|v| *v >= 0.0 && v.is_finite()) {
            true => Ok((data, Some(r))),
            false => Err(damaged("the variances of its inputs are outside their domain")),
        }
    }

    /// Inputs and what was observed there, with the units of the inputs.
    pub(crate) fn put_observed(
        &mut self,
        x: &Mat,
        observations: &Observations,
        inputs: Option<&Scaling>,
    ) -> Result<()> {
        self.put("x", x);
        self.put("y", &observations.column());
        self.set("input_scaling", inputs)
    }

    pub(crate) fn take_observed(&mut self) -> Result<(Mat, Observations, Option<Scaling>)> {
        let (x, y) = self.take_pairs()?;
        let classes = self.field::<Vec<String>>("classes")?.len();
        let observations = Observations::restored(&self.field::<String>("likelihood")?, &y, classes)?;
        let inputs = self.units("input_scaling", x.cols())?;
        Ok((x, observations, inputs))
    }
}
