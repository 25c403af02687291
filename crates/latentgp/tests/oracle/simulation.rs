//! Free simulation at fixed hyperparameters: the recursion of means and variances, step by step.

use super::Errors;
use super::bayesian_gplvm::by_name;
use super::read::{kernel, mat, number, numbers};
use latentgp::Mat;
use latentgp::data::Scale;
use latentgp::data::lags::Lags;
use latentgp::model::Jitter;
use latentgp::model::narx::{Narx, NarxOptions, Propagation, Simulation, StartVariance, UncertainTraining};
use serde_json::Value;

const VALUE: f64 = 1e-8;
/// The hyperparameters are an optimiser's end point, where Kuu is poorly conditioned.
const AIRLINE: f64 = 1e-5;

/// A model of the first `rows` values, at the hyperparameters given.
fn model(of: &Value, series: &[f64], rows: usize, lag: usize, scale: Scale) -> Narx {
    let options = NarxOptions { scale, ..Default::default() };
    let kernel = kernel(&of["kernel"], lag);
    let known = Mat::column(&series[..rows]);
    let mut model = Narx::new(&known, None, Lags::new(lag), kernel, &options).expect("a model");
    model.noise_mut().set(number(&of["noise_variance"]));
    model
}

fn propagated(name: &str, variance: f64, jitter: Jitter, start: StartVariance) -> Simulation {
    let training = Some(UncertainTraining { variance, jitter });
    Simulation { propagation: Propagation::Independent(by_name(name)), start, training }
}

pub fn run(file: &Value, errors: &mut Errors) {
    let series = numbers(&file["series"]);
    let lag = number(&file["lag"]) as usize;
    let model = model(file, &series, series.len(), lag, Scale::None);
    errors.compare("X", model.inputs().as_slice(), mat(&file["X"]).as_slice(), VALUE);
    let newest_first = numbers(&file["start_window"]);
    let history = Mat::from_fn(lag, 1, |i, _| newest_first[lag - 1 - i]);
    let steps = number(&file["steps"]) as usize;
    let jitter = Jitter { kzz: number(&file["jitter"]), b: 0.0 };
    let start = StartVariance::Value(number(&file["start_variance"]));
    let mut one = |name: &str, how: &Simulation, theirs: &Value| {
        let ours = model.simulate(&history, None, steps, how).expect("a simulation");
        errors.compare(&format!("{name} mean"), ours.mean.as_slice(), &numbers(&theirs["mean"]), VALUE);
        errors.compare(&format!("{name} var"), ours.var.as_slice(), &numbers(&theirs["var"]), VALUE);
    };
    one("no propagation", &Simulation::certain(), &file["no_propagation"]);
    for (name, theirs) in file["propagated"].as_object().expect("expectations") {
        let how = propagated(name, number(&file["training_input_variance"]), jitter, start);
        one(name, &how, theirs);
    }
}

pub fn airline(file: &Value, errors: &mut Errors) {
    let series = numbers(&file["series"]);
    let (lag, training) = (number(&file["lag"]) as usize, number(&file["n_train"]) as usize);
    let jitter = Jitter { kzz: number(&file["jitter_kuu"]), b: number(&file["jitter_b"]) };
    let (history, after) = (Mat::column(&series[..lag]), Mat::column(&series[lag..]));
    for (i, of) in file["models"].as_array().expect("models").iter().enumerate() {
        let model = model(of, &series, lag + training, lag, Scale::Standardize);
        errors.compare("target mean", &model.scaling.mean, &[number(&file["target_mean"])], VALUE);
        errors.compare("target scale", &model.scaling.scale, &[number(&file["target_scale"])], VALUE);
        let evidence = latentgp::model::Model::varying_evidence(&model, None).expect("an evidence");
        errors.compare("evidence", &[evidence], &[number(&of["log_marginal_likelihood"])], AIRLINE);
        for (name, theirs) in of["results"].as_object().expect("results") {
            let variance = number(&file["training_input_variance"]);
            let how = match name.as_str() {
                "gp_narx" => Simulation::certain(),
                _ => propagated(name, variance, jitter, StartVariance::Noise),
            };
            let ours = model.simulate(&history, None, after.rows(), &how).expect("a simulation");
            let score = ours.score(&after, training).expect("a score").remove(0);
            let label = |what: &str| format!("model {i} {name} {what}");
            errors.compare(&label("NLPD"), &[score.nlpd], &[number(&theirs["NLPD"])], AIRLINE);
            errors.compare(&label("RMSE"), &[score.rmse], &[number(&theirs["RMSE"])], AIRLINE);
            if theirs.get("mean").is_some() {
                errors.compare(&label("mean"), ours.mean.as_slice(), &numbers(&theirs["mean"]), AIRLINE);
                errors.compare(&label("var"), ours.var.as_slice(), &numbers(&theirs["var"]), AIRLINE);
            }
        }
    }
}
