//! Dates in order: what comes after them, which are missing, and which rows belong to which step.
//!
//! Known are years (`1960`), months (`1960-12`) and days (`1960-12-31`). Their [`Calendar`] counts them: by months, where
//! all days are the same or the last of their months, by days, or by days from Monday to Friday.

use std::cmp::Reverse;

/// What is counted from a date to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Calendar {
    Years,
    /// Months, at this day of each.
    Months(i64),
    /// Months, at the last day of each.
    MonthEnds,
    Days,
    /// Days from Monday to Friday.
    Workdays,
}

type Date = [i64; 3];

/// Dates that are evenly apart, but for some that are missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grid {
    calendar: Calendar,
    width: usize,
    step: i64,
    /// Where each date is in the calendar.
    at: Vec<i64>,
}

/// What is wrong with the order of dates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// They grow from row to row, as far as they are dates.
    Sorted,
    /// Rows, the oldest first.
    Unsorted(Vec<usize>),
    /// Two rows have the same date.
    Double(usize, usize),
}

/// The order of dates; what is no date is [`Order::Sorted`].
pub fn order(dates: &[String]) -> Order {
    let Some((parts, _)) = all(dates) else { return Order::Sorted };
    let mut rows: Vec<usize> = (0..parts.len()).collect();
    rows.sort_by_key(|&i| parts[i]);
    match rows.windows(2).find(|w| parts[w[0]] == parts[w[1]]) {
        Some(w) => Order::Double(w[0], w[1]),
        None if rows.windows(2).all(|w| w[0] < w[1]) => Order::Sorted,
        None => Order::Unsorted(rows),
    }
}

impl Grid {
    /// Of dates that grow; `None` where they have no even steps in any calendar.
    pub fn of(dates: &[String]) -> Option<Grid> {
        let (parts, width) = all(dates)?;
        if parts.len() < 2 || !parts.windows(2).all(|w| w[0] < w[1]) {
            return None;
        }
        let same_day = parts.iter().all(|d| d[2] == parts[0][2] && d[2] <= 28);
        let ends = parts.iter().all(|&[y, m, d]| d == length(y, m));
        let calendars = [
            (Calendar::Years, width == 1),
            (Calendar::Months(1), width == 2),
            (Calendar::Months(parts[0][2]), width == 3 && same_day),
            (Calendar::MonthEnds, width == 3 && ends),
            (Calendar::Days, width == 3),
            (Calendar::Workdays, width == 3 && parts.iter().all(|d| weekday(days(*d)) < 5)),
        ];
        let grids = calendars.into_iter().filter(|(_, fits)| *fits).filter_map(|(calendar, _)| {
            let at: Vec<i64> = parts.iter().map(|d| calendar.index(*d)).collect();
            let step = at.windows(2).map(|w| w[1] - w[0]).min()?;
            let even = at.windows(2).all(|w| (w[1] - w[0]) % step == 0);
            even.then_some(Grid { calendar, width, step, at })
        });
        // The calendar with the fewest gaps; the first of those that have as few.
        grids.min_by_key(Grid::missing).filter(|grid| grid.missing() <= parts.len())
    }

    /// How many dates are missing between the first and the last.
    pub fn missing(&self) -> usize {
        ((self.at[self.at.len() - 1] - self.at[0]) / self.step) as usize + 1 - self.at.len()
    }

    /// The row of each date from the first to the last; none where it is missing.
    pub fn rows(&self) -> Vec<Option<usize>> {
        let place = |at: &i64| ((at - self.at[0]) / self.step) as usize;
        let mut rows = vec![None; self.at.len() + self.missing()];
        self.at.iter().enumerate().for_each(|(i, at)| rows[place(at)] = Some(i));
        rows
    }

    /// The date so many steps after the first.
    pub fn date(&self, steps: usize) -> String {
        text(self.calendar.date(self.at[0] + steps as i64 * self.step), self.width)
    }
}

/// What comes after the dates given, `count` times; `None` where they are not evenly apart or not dates.
pub fn after(dates: &[String], count: usize) -> Option<Vec<String>> {
    let grid = Grid::of(dates).filter(|grid| grid.missing() == 0)?;
    Some((0..count).map(|k| grid.date(dates.len() + k)).collect())
}

impl Calendar {
    fn index(self, date: Date) -> i64 {
        let [y, m, _] = date;
        match self {
            Calendar::Years => y,
            Calendar::Months(_) | Calendar::MonthEnds => 12 * y + m - 1,
            Calendar::Days => days(date),
            Calendar::Workdays => {
                let day = days(date);
                5 * (day - weekday(day)).div_euclid(7) + weekday(day)
            }
        }
    }

    fn date(self, index: i64) -> Date {
        let month = |at: i64| (at.div_euclid(12), at.rem_euclid(12) + 1);
        match self {
            Calendar::Years => [index, 1, 1],
            Calendar::Months(day) => {
                let (y, m) = month(index);
                [y, m, day]
            }
            Calendar::MonthEnds => {
                let (y, m) = month(index);
                [y, m, length(y, m)]
            }
            Calendar::Days => day(index),
            Calendar::Workdays => day(7 * index.div_euclid(5) + index.rem_euclid(5) + MONDAY),
        }
    }
}

/// All dates, and how many parts each has; `None` where one is no date or they differ in their parts.
fn all(dates: &[String]) -> Option<(Vec<Date>, usize)> {
    let parts = dates.iter().map(|d| numbers(d)).collect::<Option<Vec<_>>>()?;
    let width = parts.first()?.1;
    parts.iter().all(|p| p.1 == width).then(|| (parts.into_iter().map(|p| p.0).collect(), width))
}

/// Year, month and day, and how many of them the text has.
fn numbers(text: &str) -> Option<(Date, usize)> {
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

/// Days in so many whole years from year 0 on.
fn days_of_years(years: i64) -> i64 {
    let leap = |every: i64| (years + every - 1).div_euclid(every);
    365 * years + leap(4) - leap(100) + leap(400)
}

/// The number of a day; that of 1 January of year 0 is 0.
fn days([y, m, d]: Date) -> i64 {
    days_of_years(y) + (1..m).map(|m| length(y, m)).sum::<i64>() + d - 1
}

/// The day of a number.
fn day(number: i64) -> Date {
    let mut y = number.div_euclid(366);
    while days_of_years(y + 1) <= number {
        y += 1;
    }
    let (mut m, mut left) = (1, number - days_of_years(y));
    while left >= length(y, m) {
        left -= length(y, m);
        m += 1;
    }
    [y, m, left + 1]
}

/// The number of the first Monday of year 0.
const MONDAY: i64 = 2;

/// 0 on a Monday, 6 on a Sunday.
fn weekday(day: i64) -> i64 {
    (day - MONDAY).rem_euclid(7)
}

fn text([y, m, d]: Date, width: usize) -> String {
    match width {
        1 => format!("{y:04}"),
        2 => format!("{y:04}-{m:02}"),
        _ => format!("{y:04}-{m:02}-{d:02}"),
    }
}

/// The longest run of missing dates, as the rows before and behind it.
pub fn widest_gap(rows: &[Option<usize>]) -> Option<(usize, usize)> {
    let kept: Vec<usize> = (0..rows.len()).filter(|&k| rows[k].is_some()).collect();
    let gaps = kept.windows(2).map(|w| (w[0], w[1])).filter(|(a, b)| b - a > 1);
    gaps.min_by_key(|(a, b)| Reverse(b - a))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(dates: &[&str]) -> Vec<String> {
        dates.iter().map(|d| d.to_string()).collect()
    }

    fn go(dates: &[&str], count: usize) -> Option<Vec<String>> {
        after(&strings(dates), count)
    }

    #[test]
    fn days_are_counted_there_and_back() {
        assert_eq!((days([2024, 1, 1]) - MONDAY) % 7, 0, "1 January 2024 was a Monday");
        let mut at = days([1899, 12, 30]);
        for year in 1900..2105 {
            for month in 1..=12 {
                assert_eq!(day(days([year, month, 1])), [year, month, 1]);
                assert!(days([year, month, length(year, month)]) > at);
                at = days([year, month, length(year, month)]);
                assert_eq!(days(day(at + 1)), at + 1);
            }
        }
        for number in 0..800 {
            let workday = Calendar::Workdays.date(number);
            assert!(weekday(days(workday)) < 5);
            assert_eq!(Calendar::Workdays.index(workday), number);
        }
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
            // Thursday, Friday, Monday.
            (vec!["2024-01-04", "2024-01-05", "2024-01-08"], ["2024-01-09", "2024-01-10"]),
        ] {
            assert_eq!(go(&dates, 2).unwrap(), next, "{dates:?}");
        }
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

    #[test]
    fn gaps_are_found_in_the_calendar_that_has_fewest() {
        let grid = Grid::of(&strings(&["1960-10", "1960-11", "1961-02", "1961-03"])).unwrap();
        assert_eq!((grid.missing(), grid.rows()), (2, vec![Some(0), Some(1), None, None, Some(2), Some(3)]));
        assert_eq!((grid.date(2), grid.date(3)), ("1960-12".into(), "1961-01".into()));
        assert_eq!(widest_gap(&grid.rows()), Some((1, 4)));
        // Two weeks without a Wednesday: the weekends are no gaps.
        let work = ["2024-01-01", "2024-01-02", "2024-01-04", "2024-01-05", "2024-01-08", "2024-01-09"];
        let grid = Grid::of(&strings(&work)).unwrap();
        assert_eq!(
            (grid.calendar, grid.missing(), grid.date(2)),
            (Calendar::Workdays, 1, "2024-01-03".into())
        );
        // More gaps than dates are no grid.
        assert_eq!(Grid::of(&strings(&["1960-01", "1960-02", "1999-01"])), None);
        assert_eq!(Grid::of(&strings(&["2024-01-01", "2024-01-03", "2024-01-06"])), None);
    }

    #[test]
    fn order_is_restored_and_doubles_are_seen() {
        assert_eq!(order(&strings(&["1960-10", "1960-11"])), Order::Sorted);
        assert_eq!(order(&strings(&["1960-11", "1960-12", "1960-10"])), Order::Unsorted(vec![2, 0, 1]));
        assert_eq!(order(&strings(&["1961", "1960", "1961"])), Order::Double(0, 2));
        assert_eq!(order(&strings(&["b", "a"])), Order::Sorted);
        assert_eq!(order(&[]), Order::Sorted);
    }
}
