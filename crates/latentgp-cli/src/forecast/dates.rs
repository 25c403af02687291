//! Dates that go on: `1960-12` is followed by `1961-01`, where all dates before it are as far apart.
//!
//! Known are years, months (`1960-12`) and days (`1960-12-31`), months or a number of days apart; days at the ends of
//! months stay there.

/// The longest step between two days.
const MOST_DAYS: usize = 400;

/// What comes after the dates given, `count` times; `None` where they are not evenly apart or not dates.
pub fn after(dates: &[String], count: usize) -> Option<Vec<String>> {
    if dates.len() < 2 {
        return None;
    }
    let parts = dates.iter().map(|d| numbers(d)).collect::<Option<Vec<_>>>()?;
    let (last, width) = (*parts.last()?, parts[0].1);
    if parts.iter().any(|p| p.1 != width) {
        return None;
    }
    let date = |p: &([i64; 3], usize)| p.0;
    let even =
        |next: &dyn Fn([i64; 3]) -> [i64; 3]| parts.windows(2).all(|w| next(date(&w[0])) == date(&w[1]));
    let next = step(date(&parts[0]), date(&parts[1]), width)?;
    if !even(&*next) {
        return None;
    }
    let mut at = date(&last);
    let mut on = || {
        at = next(at);
        text(at, width)
    };
    Some((0..count).map(|_| on()).collect())
}

/// Whether the dates run from the newest to the oldest.
pub fn backward(dates: &[String]) -> bool {
    let parts: Option<Vec<_>> = dates.iter().map(|d| numbers(d)).collect();
    parts.is_some_and(|p| p.len() > 1 && p.windows(2).all(|w| w[0].0 > w[1].0))
}

type Next = Box<dyn Fn([i64; 3]) -> [i64; 3]>;

/// How the second date follows from the first.
fn step(a: [i64; 3], b: [i64; 3], width: usize) -> Option<Next> {
    let months = 12 * (b[0] - a[0]) + b[1] - a[1];
    let ends = |[y, m, d]: [i64; 3]| d == length(y, m);
    if width == 3 && months > 0 && ends(a) && ends(b) {
        return Some(Box::new(move |[y, m, _]: [i64; 3]| {
            let at = 12 * y + m - 1 + months;
            let (y, m) = (at.div_euclid(12), at.rem_euclid(12) + 1);
            [y, m, length(y, m)]
        }));
    }
    if width < 3 || (a[2] == b[2] && a[2] <= 28) {
        return (months > 0).then(|| {
            Box::new(move |[y, m, d]: [i64; 3]| {
                let at = 12 * y + m - 1 + months;
                [at.div_euclid(12), at.rem_euclid(12) + 1, d]
            }) as Next
        });
    }
    let mut at = a;
    let days = (1..=MOST_DAYS).find(|_| {
        at = tomorrow(at);
        at == b
    })?;
    Some(Box::new(move |from| (0..days).fold(from, |at, _| tomorrow(at))))
}

/// Year, month and day, and how many of them the text has.
fn numbers(text: &str) -> Option<([i64; 3], usize)> {
    let parts: Vec<&str> = text.trim().split('-').collect();
    let digits =
        |t: &str, n: usize| (t.len() == n && t.bytes().all(|b| b.is_ascii_digit())).then(|| t.parse().ok());
    let mut date = [0, 1, 1];
    for (i, part) in parts.iter().enumerate() {
        *date.get_mut(i)? = digits(part, if i == 0 { 4 } else { 2 })??;
    }
    let valid = (1..=12).contains(&date[1]) && (1..=length(date[0], date[1])).contains(&date[2]);
    valid.then_some((date, parts.len()))
}

fn length(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn tomorrow([y, m, d]: [i64; 3]) -> [i64; 3] {
    match (d < length(y, m), m) {
        (true, _) => [y, m, d + 1],
        (false, 12) => [y + 1, 1, 1],
        (false, _) => [y, m + 1, 1],
    }
}

fn text([y, m, d]: [i64; 3], width: usize) -> String {
    match width {
        1 => format!("{y:04}"),
        2 => format!("{y:04}-{m:02}"),
        _ => format!("{y:04}-{m:02}-{d:02}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn go(dates: &[&str], count: usize) -> Option<Vec<String>> {
        after(&dates.iter().map(|d| d.to_string()).collect::<Vec<_>>(), count)
    }

    #[test]
    fn years_months_and_days_go_on() {
        for (dates, next) in [
            (vec!["1998", "1999"], ["2000", "2001"]),
            (vec!["1960-10", "1960-11", "1960-12"], ["1961-01", "1961-02"]),
            (vec!["1960-07", "1960-10"], ["1961-01", "1961-04"]),
            (vec!["2024-02-27", "2024-02-28"], ["2024-02-29", "2024-03-01"]),
            (vec!["2023-12-17", "2023-12-24"], ["2023-12-31", "2024-01-07"]),
            (vec!["2023-11-15", "2023-12-15"], ["2024-01-15", "2024-02-15"]),
            (vec!["2023-11-30", "2023-12-31"], ["2024-01-31", "2024-02-29"]),
            (vec!["2023-02-28", "2023-03-31"], ["2023-04-30", "2023-05-31"]),
        ] {
            assert_eq!(go(&dates, 2).unwrap(), next, "{dates:?}");
        }
    }

    #[test]
    fn the_newest_first_is_seen() {
        let dates = |all: &[&str]| all.iter().map(|d| d.to_string()).collect::<Vec<_>>();
        assert!(backward(&dates(&["2024-02-01", "2024-01-31", "2023-05-01"])));
        assert!(!backward(&dates(&["2023-01-01", "2023-01-02"])) && !backward(&dates(&["b", "a"])));
    }

    #[test]
    fn what_is_uneven_or_no_date_does_not() {
        for dates in [
            vec!["1960-12"],
            vec!["1960-10", "1960-11", "1961-01"],
            vec!["1960-12", "1960-11"],
            vec!["1960-12", "1960-12"],
            vec!["a", "b"],
            vec!["1960-13", "1960-14"],
            vec!["2023-02-29", "2023-03-01"],
            vec!["1960-10", "1960-11-01"],
            vec!["12/1960", "01/1961"],
            vec!["", ""],
        ] {
            assert_eq!(go(&dates, 1), None, "{dates:?}");
        }
    }
}
