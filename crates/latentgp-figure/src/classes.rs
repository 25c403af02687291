//! Points sorted into classes by their labels, and how each class looks.

use std::collections::BTreeMap;

use super::canvas::num;
use super::marker::{self, COLOURS, OTHER, Shape};

/// A class: its name, its points, its look.
pub struct Class {
    /// Its name; empty if there are no labels.
    pub name: String,
    /// Its points.
    pub points: Vec<usize>,
    /// Its colour.
    pub colour: &'static str,
    /// The shape of its markers.
    pub shape: Shape,
}

impl Class {
    /// The attributes of its markers, with a white outline of this width.
    pub fn style(&self, width: f64) -> String {
        format!("fill=\"{}\" stroke=\"#ffffff\" stroke-width=\"{}\"", self.colour, num(width))
    }
}

/// The classes by name, numbers by value; beyond the colours, the rarer ones become one, the last.
pub fn classes(n: usize, labels: &[String]) -> Vec<Class> {
    let mut points: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for n in 0..n {
        points.entry(labels.get(n).map_or("", |l| l.as_str())).or_default().push(n);
    }
    let mut groups: Vec<(&str, Vec<usize>)> = points.into_iter().collect();
    if groups.iter().all(|g| g.0.parse::<f64>().is_ok_and(f64::is_finite)) {
        let value = |name: &str| name.parse::<f64>().unwrap_or(0.0);
        groups.sort_by(|a, b| value(a.0).total_cmp(&value(b.0)));
    } else {
        groups.sort_by_cached_key(|g| counted(g.0));
    }
    let mut rest = Vec::new();
    if groups.len() > COLOURS.len() {
        let mut sizes: Vec<usize> = groups.iter().map(|g| g.1.len()).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let limit = sizes[COLOURS.len() - 1];
        let mut kept = 0;
        let (large, small): (Vec<_>, Vec<_>) = groups.into_iter().partition(|g| {
            let keep = g.1.len() > limit || (g.1.len() == limit && kept < COLOURS.len() - 1);
            kept += usize::from(keep);
            keep && kept < COLOURS.len()
        });
        (groups, rest) = (large, small);
    }
    let mut classes: Vec<Class> = groups
        .into_iter()
        .enumerate()
        .map(|(k, (name, points))| Class {
            name: name.to_owned(),
            points,
            colour: COLOURS[k],
            shape: marker::shape(k),
        })
        .collect();
    if !rest.is_empty() {
        let name = format!("{} others", rest.len());
        let points = rest.into_iter().flat_map(|g| g.1).collect();
        classes.push(Class { name, points, colour: OTHER, shape: Shape::Disc });
    }
    classes
}

/// A key that sorts "class 2" before "class 10": runs of digits are filled up with zeros.
fn counted(name: &str) -> String {
    let runs: Vec<char> = name.chars().collect();
    let mut key = String::new();
    for run in runs.chunk_by(|a, b| a.is_ascii_digit() == b.is_ascii_digit()) {
        if run[0].is_ascii_digit() {
            key.extend(std::iter::repeat_n('0', 20_usize.saturating_sub(run.len())));
        }
        key.extend(run);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(labels: &[&str]) -> Vec<String> {
        let labels: Vec<String> = labels.iter().map(|l| l.to_string()).collect();
        classes(labels.len(), &labels).into_iter().map(|c| c.name).collect()
    }

    #[test]
    fn numbers_in_labels_sort_by_value() {
        assert_eq!(names(&["10", "9", "-1"]), ["-1", "9", "10"]);
        assert_eq!(names(&["class 10", "class 9", "b"]), ["b", "class 9", "class 10"]);
        assert_eq!(classes(3, &[]).len(), 1);
    }

    #[test]
    fn many_classes_keep_the_large_ones_and_join_the_rest() {
        for count in [12, 13, 40] {
            let mut labels: Vec<String> = (0..400).map(|k| format!("c{}", k % count)).collect();
            assert_eq!(classes(400, &labels).len(), 12);
            labels.extend(std::iter::repeat_n("big".to_string(), 40));
            let all = classes(440, &labels);
            assert_eq!(all.len(), 12);
            assert_eq!(all.iter().map(|c| c.points.len()).sum::<usize>(), 440);
            assert!(all.iter().any(|c| c.name == "big"));
            assert_eq!(all[11].name, format!("{} others", count + 1 - 11));
        }
    }
}
