//! Names in messages: lists of them, and the nearest to one that was mistyped.

/// The first names of a list, and how many more there are.
pub(crate) fn list<S: AsRef<str>>(names: &[S]) -> String {
    const SHOWN: usize = 20;
    let mut text =
        names.iter().take(SHOWN).map(|n| format!("`{}`", n.as_ref())).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN {
        text += &format!(" and {} more", names.len() - SHOWN);
    }
    if text.is_empty() { "none".into() } else { text }
}

/// The beginning of a cell, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    const SHOWN: usize = 40;
    match text.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}

/// The name closest to what was asked for, if any is close: it contains it, or few letters differ, not all of them.
pub(crate) fn nearest<'a>(asked: &str, names: &[&'a str]) -> Option<&'a str> {
    let asked = asked.to_lowercase();
    let cost = |n: &str| {
        let n = n.to_lowercase();
        match edits(&asked, &n) {
            _ if !asked.is_empty() && n.contains(&asked) => 1,
            few if few < asked.chars().count() => few,
            _ => usize::MAX,
        }
    };
    let best = names.iter().copied().min_by_key(|n| cost(n))?;
    (cost(best) <= 1.max(asked.chars().count() / 3)).then_some(best)
}

/// Insertions, deletions and replacements that turn `a` into `b`.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edit_distance() {
        assert_eq!(edits("kitten", "sitting"), 3);
        assert_eq!(edits("", "abc"), 3);
        assert_eq!(edits("abc", "abc"), 0);
    }

    #[test]
    fn one_letter_is_near_to_no_other() {
        assert_eq!(nearest("1", &["x", "y"]), None);
        assert_eq!(nearest("1", &["x", "y1"]), Some("y1"));
        assert_eq!(nearest("yy", &["x", "y"]), Some("y"));
        assert_eq!(nearest("", &["x"]), None);
    }

    #[test]
    fn long_things_are_cut() {
        assert_eq!(list(&["a"; 23]).matches("`a`").count(), 20);
        assert!(list(&["a"; 23]).ends_with("and 3 more"));
        assert_eq!(list::<&str>(&[]), "none");
        assert_eq!(excerpt(&"é".repeat(50)).chars().count(), 41);
    }
}
