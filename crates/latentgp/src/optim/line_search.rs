//! A line search for the strong Wolfe conditions, seen from the line alone: φ(t) = f(u + t·d).
//!
//! ```text
//! sufficient decrease   φ(t) ≤ φ(0) + c₁ t φ'(0)
//! curvature             |φ'(t)| ≤ c₂ |φ'(0)|
//! ```
//!
//! The method is that of Moré and Thuente, "Line search algorithms with guaranteed sufficient decrease",
//! ACM TOMS 20 (1994): an interval that holds an acceptable point shrinks by safeguarded cubic and
//! quadratic interpolation. It is extended here by points where φ cannot be evaluated: they shorten the
//! step, and bound every later one.

/// The first interval grows to this many times the last advance when the minimum lies beyond.
const GROW: (f64, f64) = (1.1, 4.0);
/// An interval that kept more than this share of its width in two rounds is halved instead.
const SHRINK: f64 = 0.66;
/// A bracket narrower than this part of its far end is not worth another evaluation.
const NARROW: f64 = 0.1;
/// After this many trials that cannot be evaluated, the step is 2⁻⁷⁸ of the first one: there is no way on.
const MAX_FAILURES: i32 = 12;
/// The longest step, in units of the search direction.
const MAX_STEP: f64 = 1e10;

/// A point of the line: t, φ(t), φ'(t).
#[derive(Clone, Copy, Debug)]
struct Sample {
    t: f64,
    value: f64,
    slope: f64,
}

impl Sample {
    /// This point on the graph of φ(t) − tilt·t.
    fn tilted(self, tilt: f64) -> Self {
        Sample { t: self.t, value: self.value - tilt * self.t, slope: self.slope - tilt }
    }
}

/// What to do after a trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    /// Evaluate at this t.
    Try(f64),
    /// The last trial will do.
    Accept,
    /// No further trial would help; the lowest point seen is all there is.
    Exhausted,
}

/// The state of one search; [`observe`](Self::observe) or [`fail`](Self::fail) after each trial.
#[derive(Clone, Debug)]
pub(super) struct LineSearch {
    start: Sample,
    decrease: f64,
    curvature: f64,
    best: Sample,
    other: Sample,
    bracketed: bool,
    /// While no trial has both decreased enough and passed the minimum, φ(t) − c₁ φ'(0) t is searched.
    first_stage: bool,
    /// Widths of the last two brackets, the older one last.
    widths: (f64, f64),
    /// Where an unbracketed step may go next.
    reach: (f64, f64),
    limit: f64,
    trial: f64,
    failures: i32,
}

impl LineSearch {
    /// A search from φ(0) = `value` with φ'(0) = `slope` < 0; the first trial is `trial` > 0.
    pub(super) fn new(value: f64, slope: f64, trial: f64, decrease: f64, curvature: f64) -> Self {
        let start = Sample { t: 0.0, value, slope };
        let trial = trial.min(MAX_STEP);
        LineSearch {
            start,
            decrease,
            curvature,
            best: start,
            other: start,
            bracketed: false,
            first_stage: true,
            widths: (f64::INFINITY, f64::INFINITY),
            reach: (0.0, trial + GROW.1 * trial),
            limit: MAX_STEP,
            trial,
            failures: 0,
        }
    }

    /// How many trials could not be evaluated.
    pub(super) fn failures(&self) -> i32 {
        self.failures
    }

    /// Takes φ and φ' of the trial, both finite.
    pub(super) fn observe(&mut self, value: f64, slope: f64) -> Verdict {
        let new = Sample { t: self.trial, value, slope };
        let descent = self.decrease * self.start.slope;
        let enough = value <= self.start.value + new.t * descent;
        let flat = slope.abs() <= -self.curvature * self.start.slope;
        let at_limit = new.t >= self.limit && slope <= descent;
        if enough && (flat || at_limit) {
            return Verdict::Accept;
        }
        self.first_stage &= !(enough && slope >= 0.0);
        let tilt = if self.first_stage && value <= self.best.value && !enough { descent } else { 0.0 };
        let t = self.advance(new, tilt);
        self.guard(t)
    }

    /// Takes note that φ cannot be evaluated at the trial: the next one is nearer to the best point, by a
    /// half at first and by more each time, so that a wall far inside the step is found in few trials.
    pub(super) fn fail(&mut self) -> Verdict {
        self.failures += 1;
        if self.failures > MAX_FAILURES {
            return Verdict::Exhausted;
        }
        let t = self.best.t + (self.trial - self.best.t) * 0.5f64.powi(self.failures);
        if self.trial > self.best.t {
            self.limit = self.limit.min(t);
        }
        self.reach = (self.best.t, t);
        self.propose(t)
    }

    /// Moves the interval and returns the interpolated next trial.
    fn advance(&mut self, new: Sample, tilt: f64) -> f64 {
        let (best, other, last) = (self.best.tilted(tilt), self.other.tilted(tilt), new.tilted(tilt));
        let worse = last.value > best.value;
        let crossed = last.slope * best.slope.signum() < 0.0;
        let t = if worse {
            beyond(best, last)
        } else if crossed {
            between(best, last)
        } else if last.slope.abs() < best.slope.abs() {
            self.onward(best, other, last)
        } else if self.bracketed {
            cubic(last, other).unwrap_or(0.5 * (last.t + other.t))
        } else {
            self.reach.1
        };
        self.bracketed |= worse || crossed;
        if worse {
            self.other = new;
        } else {
            if crossed {
                self.other = self.best;
            }
            self.best = new;
        }
        t
    }

    /// The slope has the same sign and is less steep: the minimum lies beyond `last`.
    fn onward(&self, best: Sample, other: Sample, last: Sample) -> f64 {
        let far = if last.t > best.t { self.reach.1 } else { self.reach.0 };
        let cubic = cubic(best, last).filter(|t| (t - last.t) * (last.t - best.t) > 0.0).unwrap_or(far);
        let secant = secant(best, last);
        let cubic_is_nearer = (cubic - last.t).abs() < (secant - last.t).abs();
        if self.bracketed {
            let t = if cubic_is_nearer { cubic } else { secant };
            let most = last.t + SHRINK * (other.t - last.t);
            if last.t > best.t { t.min(most) } else { t.max(most) }
        } else {
            let t = if cubic_is_nearer { secant } else { cubic };
            t.max(self.reach.0).min(self.reach.1)
        }
    }

    /// Keeps the next trial inside the bracket or the reach, and the bracket shrinking.
    fn guard(&mut self, mut t: f64) -> Verdict {
        let (best, other) = (self.best.t, self.other.t);
        if self.bracketed {
            let width = (other - best).abs();
            if width >= SHRINK * self.widths.1 || !t.is_finite() {
                t = best + 0.5 * (other - best);
            }
            self.widths = (width, self.widths.0);
            let (low, high) = (best.min(other), best.max(other));
            if t <= low || t >= high || high - low <= NARROW * high {
                return Verdict::Exhausted;
            }
        } else {
            if !t.is_finite() {
                t = self.reach.1;
            }
            self.reach = (t + GROW.0 * (t - best), t + GROW.1 * (t - best));
        }
        self.propose(t)
    }

    fn propose(&mut self, t: f64) -> Verdict {
        let t = t.min(self.limit);
        if t == self.best.t || t <= 0.0 {
            return Verdict::Exhausted;
        }
        self.trial = t;
        Verdict::Try(t)
    }
}

/// The trial is higher: between the two, the cubic's minimum or half way to the quadratic's.
fn beyond(best: Sample, last: Sample) -> f64 {
    let step = last.t - best.t;
    let chord = (last.value - best.value) / step;
    let quadratic = best.t + 0.5 * step * best.slope / (best.slope - chord);
    match cubic(best, last) {
        Some(cubic) if (cubic - best.t).abs() < (quadratic - best.t).abs() => cubic,
        Some(cubic) => cubic + 0.5 * (quadratic - cubic),
        None => quadratic,
    }
}

/// The slope changed sign: the cubic's or the secant's minimum, whichever is farther from the trial.
fn between(best: Sample, last: Sample) -> f64 {
    let secant = secant(best, last);
    match cubic(best, last) {
        Some(cubic) if (cubic - last.t).abs() > (secant - last.t).abs() => cubic,
        _ => secant,
    }
}

/// Where the line through the two slopes is zero.
fn secant(a: Sample, b: Sample) -> f64 {
    b.t + (b.slope / (b.slope - a.slope)) * (a.t - b.t)
}

/// The minimum of the cubic through values and slopes of two points, if it has one.
fn cubic(a: Sample, b: Sample) -> Option<f64> {
    let mid = a.slope + b.slope - 3.0 * (b.value - a.value) / (b.t - a.t);
    // Scaled, as the squares of steep slopes would overflow.
    let scale = mid.abs().max(a.slope.abs()).max(b.slope.abs());
    let square = (mid / scale).powi(2) - (a.slope / scale) * (b.slope / scale);
    if square < 0.0 {
        return None;
    }
    let root = (b.t - a.t).signum() * scale * square.sqrt();
    let t = b.t - (b.t - a.t) * ((b.slope + root - mid) / (b.slope - a.slope + 2.0 * root));
    t.is_finite().then_some(t)
}

#[cfg(test)]
mod tests {
    use super::*;

    const C1: f64 = 1e-3;
    const C2: f64 = 0.5;
    const MOST: usize = 40;

    /// Runs a search; returns t and the number of trials. `None` of φ is a failed evaluation.
    fn run(phi: impl Fn(f64) -> Option<(f64, f64)>, first: f64) -> (Verdict, f64, usize) {
        let (value, slope) = phi(0.0).unwrap();
        let mut search = LineSearch::new(value, slope, first, C1, C2);
        let mut t = search.trial;
        for trials in 1..=MOST {
            let verdict = match phi(t) {
                Some((value, slope)) => search.observe(value, slope),
                None => search.fail(),
            };
            match verdict {
                Verdict::Try(next) => t = next,
                done => return (done, t, trials),
            }
        }
        panic!("no verdict in {MOST} trials")
    }

    fn assert_wolfe(phi: impl Fn(f64) -> (f64, f64), t: f64) {
        let ((f0, g0), (f, g)) = (phi(0.0), phi(t));
        assert!(f <= f0 + C1 * t * g0, "decrease at {t}");
        assert!(g.abs() <= -C2 * g0, "curvature at {t}");
    }

    #[test]
    fn ends_at_a_wolfe_point_from_any_first_trial() {
        // Function 5.1 of Moré and Thuente, a wall of an exponential, and a quartic, flat at its minimum.
        let first = |t: f64| (-t / (t * t + 2.0), (t * t - 2.0) / (t * t + 2.0).powi(2));
        let second = |t: f64| ((t / 3.0).exp() - 2.0 * t, (t / 3.0).exp() / 3.0 - 2.0);
        let third = |t: f64| ((t - 3.0).powi(4), 4.0 * (t - 3.0).powi(3));
        for phi in [&first as &dyn Fn(f64) -> (f64, f64), &second, &third] {
            for start in [1e-3, 0.1, 1.0, 10.0, 100.0] {
                let (verdict, t, trials) = run(|t| Some(phi(t)), start);
                assert_eq!(verdict, Verdict::Accept, "from {start}");
                assert_wolfe(phi, t);
                assert!(trials <= 13, "{trials} trials from {start}");
            }
        }
    }

    #[test]
    fn a_narrow_bracket_around_the_minimum_is_enough() {
        // Function 5.2 of Moré and Thuente: so flat at 0 that the curvature condition asks for 8 digits of t.
        let phi = |t: f64| {
            let s = t + 0.004;
            (s.powi(5) - 2.0 * s.powi(4), 5.0 * s.powi(4) - 8.0 * s.powi(3))
        };
        for start in [1e-3, 0.1, 1.0, 10.0, 1e3] {
            let (verdict, t, trials) = run(|t| Some(phi(t)), start);
            assert_ne!(verdict, Verdict::Try(t));
            assert!((t - 1.596).abs() < 2.0 * NARROW * 1.6 && trials <= 15, "{t} in {trials} from {start}");
        }
    }

    #[test]
    fn finds_the_minimum_of_a_parabola_in_two_trials() {
        for start in [0.5, 7.0, 1e4] {
            let (verdict, t, trials) = run(|t| Some(((t - 2.0).powi(2), 2.0 * (t - 2.0))), start);
            assert_eq!((verdict, trials), (Verdict::Accept, 2), "from {start}");
            assert!((t - 2.0).abs() < 1e-6 * start.max(1.0), "{t}");
        }
    }

    #[test]
    fn steps_back_from_a_wall_and_stays_before_it() {
        let phi = |t: f64| (t < 1e-3).then(|| (-t, -1.0));
        let (verdict, t, trials) = run(phi, 1.0);
        assert_eq!(verdict, Verdict::Accept);
        assert!(t > 0.0 && t < 1e-3 && trials <= 6, "{t} in {trials}");
        let behind = |t: f64| (t < 2.5).then(|| ((t - 2.0).powi(2), 2.0 * (t - 2.0)));
        let (verdict, t, trials) = run(behind, 10.0);
        assert_eq!((verdict, t, trials), (Verdict::Accept, 1.25, 3));
    }

    #[test]
    fn gives_up_where_nothing_can_be_evaluated() {
        let (verdict, _, trials) = run(|t| (t == 0.0).then_some((0.0, -1.0)), 1.0);
        assert_eq!(verdict, Verdict::Exhausted);
        assert!(trials < MOST);
    }

    #[test]
    fn a_falling_line_ends_at_the_longest_step() {
        let (verdict, t, _) = run(|t| Some((-t, -1.0)), 1.0);
        assert_eq!((verdict, t), (Verdict::Accept, MAX_STEP));
    }
}
