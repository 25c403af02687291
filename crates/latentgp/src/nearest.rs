//! The known word that a mistyped one most likely means.

/// The word of `of` that is nearest to `word`, or `None` when none is near.
///
/// Case, `-` and `_` do not count. A beginning of at least two letters is as good as the word; otherwise
/// at most a third of the letters (at least one) may be added, dropped, replaced or exchanged with their
/// neighbour. Among equals the first wins.
///
/// ```
/// use latentgp::data::nearest;
/// assert_eq!(nearest("oilflow", &["oil-flow", "iris"]), Some("oil-flow"));
/// assert_eq!(nearest("zebra", &["oil-flow", "iris"]), None);
/// ```
pub fn nearest<'a>(word: &str, of: &[&'a str]) -> Option<&'a str> {
    let typed = plain(word);
    let score = |known: &str| {
        let known = plain(known);
        if typed.len() >= 2 && known.starts_with(&typed) {
            return Some(0);
        }
        let limit = (known.len() / 3).max(1);
        // The distance is at least the difference in length, which spares the work for very long words.
        if typed.len().abs_diff(known.len()) > limit {
            return None;
        }
        Some(distance(&typed, &known)).filter(|&d| d <= limit && d < known.len())
    };
    of.iter()
        .filter_map(|&known| Some((score(known)?, known)))
        .min_by_key(|&(d, _)| d)
        .map(|(_, known)| known)
}

fn plain(word: &str) -> Vec<char> {
    word.chars().filter(|c| !"-_ ".contains(*c)).flat_map(char::to_lowercase).collect()
}

/// Edit distance with exchanges of neighbours (optimal string alignment).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 6] = ["rbf", "matern12", "matern32", "periodic", "linear", "rational_quadratic"];

    #[test]
    fn distances_are_those_counted_by_hand() {
        let d = |a: &str, b: &str| distance(&plain(a), &plain(b));
        assert_eq!(d("kitten", "sitting"), 3);
        assert_eq!(d("linaer", "linear"), 1);
        assert_eq!((d("", "abc"), d("abc", ""), d("", "")), (3, 3, 0));
    }

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        for (typed, meant) in [
            ("RBF", "rbf"),
            ("rbff", "rbf"),
            ("Matern-32", "matern32"),
            ("matern3", "matern32"),
            ("peridoic", "periodic"),
            ("rational", "rational_quadratic"),
            ("lineal", "linear"),
        ] {
            assert_eq!(nearest(typed, &KNOWN), Some(meant), "{typed}");
        }
        for typed in ["", "x", "banana", "é", &"r".repeat(10_000)] {
            assert_eq!(nearest(typed, &KNOWN), None, "{typed}");
        }
        assert_eq!(nearest("rbf", &[]), None);
    }
}
