//! What the page of a latent space asks for.
//!
//! ```text
//! model       what there is                              JSON
//! positions   means, then variances                      N×Q each, by dimension
//! column      a column of the data, or the outlier score N
//! decode      data at positions, with deviations         JSON
//! ground      the predictive variance on a grid          rows × columns
//! path        between two positions: straight, geodesic  JSON
//! rows        training rows with their cells             JSON
//! place       rows of a CSV: positions, filled cells     JSON
//! ```
//!
//! The outlier score of a row is the root mean square of its observed cells' distances from what is decoded at its
//! position, each in predictive standard deviations of an observation: about 1 is usual.

use crate::answer::{Refused, Reply, asked, list, number, rows, table};
use crate::metric::Metric;
use crate::static_page::Arrays;
use latentgp::data::table::{Column, Table};
use latentgp::expectation::Gaussians;
use latentgp::file::TrainedSpace;
use latentgp::posterior::{InputMap, Posterior, Prediction};
use latentgp::{Error, Mat, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// Most positions in one question.
const MOST_POSITIONS: usize = 1024;
/// Most columns and rows of a ground.
const MOST_GROUND: usize = 160;
/// Most cells that one answer lists.
const MOST_CELLS: usize = 4_000_000;
/// Most rows that are placed at once: each is an optimisation.
const MOST_PLACED: usize = 2000;
/// Rows whose outlier scores are worked out together.
const BLOCK: usize = 2048;

/// A latent space with what follows from its parameters.
pub struct Space {
    trained: TrainedSpace,
    latent: Gaussians,
    relevance: Vec<f64>,
    decoder: Option<Posterior>,
    noise: Vec<f64>,
    extra: Vec<Column>,
    images: Option<(usize, usize)>,
    outlier: OnceLock<Result<Vec<f64>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedColumn {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedDecode {
    x: Vec<Vec<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedGround {
    dims: [usize; 2],
    x: [f64; 2],
    y: [f64; 2],
    columns: usize,
    rows: usize,
    at: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedPath {
    from: Vec<f64>,
    to: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedRows {
    rows: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedPlace {
    name: String,
    text: String,
}

impl Space {
    /// Works out what follows from the parameters.
    pub fn new(trained: TrainedSpace, data: Option<&Table>, images: Option<(usize, usize)>) -> Result<Self> {
        let model = &trained.model;
        let (n, d, _) = model.sizes();
        if let Some((high, wide)) = images.filter(|(high, wide)| high.checked_mul(*wide) != Some(d)) {
            let expected = format!("HEIGHTxWIDTH with a pixel for each of the {d} columns of the model");
            return Err(Error::invalid("images", expected, format!("{high}x{wide}")));
        }
        let extra = match data {
            None => Vec::new(),
            Some(table) if table.rows() != n => {
                let found =
                    format!("{} in {}; drop new rows onto the page instead", table.rows(), table.source());
                return Err(Error::shape("rows of --data, one for each training row", n, found));
            }
            Some(table) => table.iter().filter(|c| !trained.columns.contains(&c.name)).cloned().collect(),
        };
        let decoder = model.decoder()?.filter(|p| p.map == InputMap::AsIs && p.inputs.is_none());
        Ok(Space {
            latent: model.latent()?,
            relevance: model.relevance()?,
            noise: model.noise_variance(),
            decoder,
            extra,
            images,
            outlier: OnceLock::new(),
            trained,
        })
    }

    /// Answers a question of the page.
    pub fn answer(&self, name: &str, body: &[u8]) -> std::result::Result<Reply, Refused> {
        match name {
            "positions" => Ok(Reply::floats(self.positions().into_iter())),
            "column" => self.column(&asked::<AskedColumn>(body)?.name),
            "decode" => self.decode(&asked::<AskedDecode>(body)?.x),
            "ground" => self.ground(&asked(body)?),
            "path" => self.path(&asked(body)?),
            "rows" => self.rows(&asked::<AskedRows>(body)?.rows),
            "place" => self.place(&asked(body)?),
            _ => Err(Refused::unknown(name)),
        }
    }

    /// What there is.
    pub fn about(&self) -> Value {
        let (model, report) = (&self.trained.model, &self.trained.report);
        let (n, d, q) = model.sizes();
        let mut order: Vec<usize> = (0..q).collect();
        order.sort_by(|&a, &b| self.relevance[b].total_cmp(&self.relevance[a]).then(a.cmp(&b)));
        let labels = self.trained.labels.as_ref().map(|l| json!({ "name": l.name, "of": l.of }));
        let word = |c: &Column| match c.as_numbers() {
            Some(_) => json!({ "name": c.name, "numbers": true }),
            None => {
                let of: Vec<String> = (0..n).map(|i| c.text(i)).collect();
                json!({ "name": c.name, "numbers": false, "of": of })
            }
        };
        json!({
            "kind": "space",
            "model": model.title(),
            "kernel": report.kernel,
            "objective": model.objective(),
            "evidence": report.evidence,
            "n": n, "d": d, "q": q,
            "missing": model.missing(),
            "columns": self.trained.columns,
            "scale": list(&model.scaling().scale),
            "range": list(&self.range()),
            "noise": list(&self.noise),
            "relevance": list(&self.relevance),
            "order": order,
            "certain": model.is_certain(),
            "inducing": model.inducing().map(table),
            "density": model.density(),
            "labels": labels,
            "extra": self.extra.iter().map(word).collect::<Value>(),
            "images": self.images.map(|(high, wide)| [high, wide]),
            "geodesic": self.decoder.is_some(),
        })
    }

    /// The arrays that a page without a server needs.
    pub fn arrays(&self) -> Result<Arrays> {
        let (n, d, _) = self.trained.model.sizes();
        let names = self.extra.iter().filter(|c| c.as_numbers().is_some());
        Ok(Arrays {
            positions: self.positions(),
            outlier: self.outlier()?.clone(),
            data: (n * d <= MOST_CELLS).then(|| self.data(0..n)),
            extra: names.map(|c| (c.name.clone(), c.as_numbers().unwrap_or_default().to_vec())).collect(),
            decoder: self.decoder.clone(),
            loadings: self.trained.model.loadings()?,
        })
    }

    /// The least and the largest cell.
    fn range(&self) -> [f64; 2] {
        let (y, s) = (self.trained.model.y(), self.trained.model.scaling());
        let cells =
            (0..y.rows()).flat_map(|i| y.row(i).iter().enumerate()).map(|(j, v)| v * s.scale[j] + s.mean[j]);
        let seen = cells.filter(|v| v.is_finite());
        let (lo, hi) = seen.fold((f64::INFINITY, f64::NEG_INFINITY), |(lo, hi), v| (lo.min(v), hi.max(v)));
        if lo <= hi { [lo, hi] } else { [0.0, 1.0] }
    }

    /// Means by dimension, then variances, where there are any.
    fn positions(&self) -> Vec<f64> {
        let by_dimension = |m: &Mat| (0..m.cols()).flat_map(|k| m.col(k)).collect::<Vec<f64>>();
        let mut all = by_dimension(&self.latent.mean);
        if !self.trained.model.is_certain() {
            all.extend(by_dimension(&self.latent.var));
        }
        all
    }

    /// Training rows in the units of the data.
    fn data(&self, rows: impl IntoIterator<Item = usize>) -> Mat {
        let (y, s) = (self.trained.model.y(), self.trained.model.scaling());
        let rows: Vec<Vec<f64>> = rows
            .into_iter()
            .map(|i| y.row(i).iter().enumerate().map(|(j, v)| v * s.scale[j] + s.mean[j]).collect())
            .collect();
        Mat::from_rows(&rows)
    }

    /// Data at certain positions, without the noise.
    fn predict(&self, x: &Mat) -> Result<Prediction> {
        match &self.decoder {
            Some(posterior) => posterior.predict(x),
            None => self.trained.model.reconstruct(&Gaussians::certain(x.clone())),
        }
    }

    /// How far rows are from what is decoded at their positions.
    fn scores(&self, y: &Mat, x: &Mat) -> Result<Vec<f64>> {
        let there = self.predict(x)?;
        let score = |i: usize| {
            let seen: Vec<f64> = (0..y.cols())
                .filter(|j| !y[(i, *j)].is_nan())
                .map(|j| (y[(i, j)] - there.mean[(i, j)]).powi(2) / (there.var[(i, j)] + self.noise[j]))
                .collect();
            if seen.is_empty() { f64::NAN } else { (seen.iter().sum::<f64>() / seen.len() as f64).sqrt() }
        };
        Ok((0..y.rows()).map(score).collect())
    }

    /// The outlier score of every training row.
    fn outlier(&self) -> Result<&Vec<f64>> {
        let all = || {
            let n = self.latent.n();
            let mut scores = Vec::with_capacity(n);
            for from in (0..n).step_by(BLOCK) {
                let to = (from + BLOCK).min(n);
                scores.extend(self.scores(&self.data(from..to), &self.latent.mean.slice_rows(from, to))?);
            }
            Ok(scores)
        };
        self.outlier.get_or_init(all).as_ref().map_err(Clone::clone)
    }

    fn column(&self, name: &str) -> std::result::Result<Reply, Refused> {
        if name == "outlier" {
            return Ok(Reply::floats(self.outlier()?.iter().copied()));
        }
        let Some((kind, name)) = name.split_once(':') else {
            return Err(Refused::wrong("expected `outlier`, `data:COLUMN` or `extra:COLUMN`"));
        };
        let found = match kind {
            "data" => self.trained.columns.iter().position(|c| c == name).map(|j| {
                let (y, s) = (self.trained.model.y(), self.trained.model.scaling());
                (0..y.rows()).map(|i| y[(i, j)] * s.scale[j] + s.mean[j]).collect::<Vec<f64>>()
            }),
            "extra" => {
                let column = self.extra.iter().find(|c| c.name == name);
                column.and_then(|c| c.as_numbers()).map(<[f64]>::to_vec)
            }
            _ => None,
        };
        let found = found.ok_or_else(|| Refused::wrong(format!("there is no column `{name}` of numbers")))?;
        Ok(Reply::floats(found.into_iter()))
    }

    fn decode(&self, x: &[Vec<f64>]) -> std::result::Result<Reply, Refused> {
        let x = rows(x, self.latent.dim(), MOST_POSITIONS)?;
        if x.rows() * self.noise.len() > MOST_CELLS {
            return Err(Refused::wrong(format!(
                "these are more than {MOST_CELLS} cells; ask for fewer positions"
            )));
        }
        let there = self.predict(&x)?;
        Ok(Reply::json(&json!({ "mean": table(&there.mean), "std": table(&there.var.map(f64::sqrt)) })))
    }

    /// The predictive variance, averaged over the scaled columns.
    fn ground(&self, of: &AskedGround) -> std::result::Result<Reply, Refused> {
        let q = self.latent.dim();
        if of.dims.iter().any(|k| *k >= q) || of.at.len() != q {
            return Err(Refused::wrong(format!("expected two of {q} dimensions and a position")));
        }
        if [of.columns, of.rows].iter().any(|k| !(2..=MOST_GROUND).contains(k)) {
            return Err(Refused::wrong(format!("expected 2 to {MOST_GROUND} columns and rows")));
        }
        let at =
            |[from, to]: [f64; 2], k: usize, count: usize| from + (to - from) * k as f64 / (count - 1) as f64;
        let [a, b] = of.dims;
        let x = Mat::from_fn(of.columns * of.rows, q, |i, k| match k {
            _ if k == a => at(of.x, i % of.columns, of.columns),
            _ if k == b => at(of.y, i / of.columns, of.rows),
            _ => of.at[k],
        });
        let scale = &self.trained.model.scaling().scale;
        let mut all = Vec::with_capacity(x.rows());
        for from in (0..x.rows()).step_by(BLOCK) {
            let var = self.predict(&x.slice_rows(from, (from + BLOCK).min(x.rows())))?.var;
            let average = |i: usize| {
                var.row(i).iter().zip(scale).map(|(v, s)| v / s / s).sum::<f64>() / scale.len() as f64
            };
            all.extend((0..var.rows()).map(average));
        }
        Ok(Reply::floats(all.into_iter()))
    }

    fn path(&self, of: &AskedPath) -> std::result::Result<Reply, Refused> {
        let ends = rows(&[of.from.clone(), of.to.clone()], self.latent.dim(), 2)?;
        let Some(decoder) = &self.decoder else {
            return Err(Refused::wrong(
                "the expected metric of a linear model is the same everywhere: paths are straight",
            ));
        };
        let metric = Metric::new(decoder);
        let most = self.relevance.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
        let weights: Vec<f64> = self.relevance.iter().map(|r| (r / most).max(1e-6)).collect();
        let told = |p: &crate::metric::Path| json!({ "x": table(&p.points), "length": number(p.length) });
        let straight = metric.straight(ends.row(0), ends.row(1));
        let geodesic = metric.geodesic(ends.row(0), ends.row(1), &self.latent.mean, &weights)?;
        Ok(Reply::json(&json!({ "straight": told(&straight), "geodesic": told(&geodesic) })))
    }

    /// Cells of training rows; missing ones as the model fills them, with their deviations.
    fn rows(&self, of: &[usize]) -> std::result::Result<Reply, Refused> {
        let (n, d, _) = self.trained.model.sizes();
        if let Some(bad) = of.iter().find(|i| **i >= n) {
            return Err(Refused::wrong(format!("expected rows below {n}, found {bad}")));
        }
        if of.len() * d > MOST_CELLS {
            return Err(Refused::wrong(format!("these are more than {MOST_CELLS} cells; select fewer rows")));
        }
        let y = self.data(of.iter().copied());
        let holed: Vec<usize> = (0..y.rows()).filter(|&i| y.row(i).iter().any(|v| v.is_nan())).collect();
        let mut filled = Vec::new();
        if !holed.is_empty() {
            let there = self
                .predict(&self.latent.mean.select_rows(&holed.iter().map(|&i| of[i]).collect::<Vec<_>>()))?;
            for (at, &i) in holed.iter().enumerate() {
                for j in (0..d).filter(|j| y[(i, *j)].is_nan()) {
                    let std = (there.var[(at, j)] + self.noise[j]).sqrt();
                    filled.push(json!([i, j, number(there.mean[(at, j)]), number(std)]));
                }
            }
        }
        Ok(Reply::json(&json!({ "values": table(&y), "filled": filled })))
    }

    fn place(&self, of: &AskedPlace) -> std::result::Result<Reply, Refused> {
        let data = Table::from_csv(of.text.as_bytes(), &of.name)?;
        let (y, by_name) = data.matched(&self.trained.columns)?;
        if y.rows() > MOST_PLACED {
            return Err(Refused::wrong(format!(
                "expected at most {MOST_PLACED} rows, found {}; `latentgp transform` places any number",
                y.rows()
            )));
        }
        let model = &self.trained.model;
        let placed = model.transform(&y)?;
        let scores = self.scores(&y, &placed.q.mean)?;
        let filled = model.impute(&y)?;
        let std = filled.var.map(f64::sqrt);
        let names: Vec<&Column> = data.iter().filter(|c| c.as_numbers().is_none()).collect();
        let texts = |i: usize| names.iter().map(|c| c.text(i)).collect::<Vec<_>>().join(" ");
        Ok(Reply::json(&json!({
            "by_name": by_name,
            "names": (0..y.rows()).map(texts).collect::<Vec<_>>(),
            "mean": table(&placed.q.mean),
            "var": table(&placed.q.var),
            "density": list(&placed.log_density),
            "outlier": list(&scores),
            "values": table(&filled.mean),
            "std": table(&std),
            "given": (0..y.rows()).map(|i| y.row(i).iter().map(|v| !v.is_nan()).collect()).collect::<Vec<Vec<bool>>>(),
        })))
    }
}
