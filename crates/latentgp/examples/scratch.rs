use latentgp::*;
use latentgp::kernel::*;
use latentgp::expectation::*;
use latentgp::model::*;
use std::time::Instant;
fn main() {
    let text = std::fs::read_to_string("/tmp/oil.txt").unwrap();
    let rows: Vec<Vec<f64>> = text.lines().map(|l| l.split_whitespace().map(|v| v.parse().unwrap()).collect()).collect();
    let y = Mat::from_rows(&rows);
    let labels: Vec<usize> = std::fs::read_to_string("/tmp/oil_labels.txt").unwrap().lines().map(|l| l.trim().parse().unwrap()).collect();
    let args: Vec<String> = std::env::args().collect();
    let seeds: u64 = args.get(1).map_or(3, |v| v.parse().unwrap());
    let hold: usize = args.get(2).map_or(50, |v| v.parse().unwrap());
    let noise: f64 = args.get(3).map_or(0.01, |v| v.parse().unwrap());
    for (name, k, e) in [("rbf analytic", Rbf::new(5).boxed(), Box::new(Analytic) as Box<dyn Expectation>), ("rbf unscented", Rbf::new(5).boxed(), Box::new(Unscented)), ("m32 unscented", Matern32::new(5).boxed(), Box::new(Unscented))] {
        for seed in 0..seeds {
            let t = Training { latent_dim: 5, inducing: 20, expectation: e.clone(), scale: data::Scale::None, hold, noise, seed, max_iterations: 1400, ..Training::default() };
            let s = Instant::now();
            match t.fit(&y, &*k, &|_| std::ops::ControlFlow::Continue(())) {
                Ok(f) => {
                    let r = f.model.kernel.relevance().unwrap();
                    let mut o: Vec<usize> = (0..5).collect(); o.sort_by(|a,b| r[*b].total_cmp(&r[*a]));
                    let x = f.model.mean.value.select_cols(&o[..2]);
                    let acc = metrics::knn_accuracy(&x, &labels, 1, &metrics::kfold(100, 5, 0).unwrap()).unwrap();
                    println!("{name} seed {seed}: bound {:.2} its {} evals {} {} acc {:.1} {:.2}s cert {:.3} {:.3} {:.3}", f.bound, f.iterations, f.evaluations, f.stop_reason, 100.0*acc.mean, s.elapsed().as_secs_f64(), f.certificate.psi1, f.certificate.psi2, f.certificate.bound);
                }
                Err(e) => println!("{name} {seed}: {e}"),
            }
        }
    }
}
