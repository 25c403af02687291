//! Threads that stay awake during a step of computation.
//!
//! A thread of a rayon pool that finds no work sleeps after some ten microseconds. Waking it takes nearly a hundred on a virtual
//! machine, as long as several parts of a step. A step alternates between short parallel pieces and short serial ones. During
//! the serial ones its helper threads spin, and so they take the parts of the next piece at once. Helpers of many steps in a
//! row also spin while the optimiser works between two steps.
//!
//! Which thread takes a part makes no difference to the result: each part has a slot of its own. A part must not wait for the
//! pool: a thread that does may start another step first, and the leader would wait for that.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A helper that finds no part to take for this long goes back to its pool.
const PATIENCE: Duration = Duration::from_micros(500);
/// A thread that waits reads the clock once in this many spins.
const SPINS: usize = 64;
/// After this long it yields, as there may be more threads than cores.
const YIELD_AFTER: Duration = Duration::from_micros(50);
/// After this long it sleeps between spins.
const SLEEP_AFTER: Duration = Duration::from_millis(1);
const SLEEP: Duration = Duration::from_micros(50);
/// A helper of steps in a row returns to the pool after this long, and comes back if the pool has no other work for it.
const TERM: Duration = Duration::from_millis(1);

/// The part that a thread plays in a team.
#[derive(Clone, Copy)]
enum Role {
    None,
    /// It leads this team.
    Leader(*const Team),
    /// It is working on a part, or waiting for one as a helper.
    Busy,
}

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::None) };
}

/// Gives the thread a role until it is dropped.
struct Playing {
    before: Role,
}

impl Playing {
    fn new(role: Role) -> Self {
        Playing { before: ROLE.replace(role) }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        ROLE.set(self.before);
    }
}

/// The function to call with the number of each part, and the number of parts.
type Work = (*const (dyn Fn(usize) + Sync), usize);

/// A counter on cache lines of its own, so that spinning on it does not slow down access to others.
#[repr(align(128))]
struct OwnLine(AtomicUsize);

/// A leader and its helpers.
struct Team {
    /// Odd while there are parts to take.
    turn: OwnLine,
    /// The number of the next part to be taken.
    next: OwnLine,
    /// Helpers that may be reading `work`.
    inside: AtomicUsize,
    /// Helpers that have not left, whether they have arrived or not; all of them at the start.
    remaining: AtomicUsize,
    helpers: usize,
    patience: Duration,
    term: Duration,
    over: AtomicBool,
    /// Valid while `turn` is odd or a helper is `inside`.
    work: UnsafeCell<Option<Work>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: all fields but `work` are `Sync`. `share` is the only function that writes `work`, on the leader's thread, while `turn`
// is even and nobody is `inside`; `stay` reads it only after it has counted itself `inside` and then seen the odd `turn`, and
// `share` does not return before `inside` is 0.
unsafe impl Sync for Team {}
// SAFETY: the pointer in `work` is to a `Sync` function, and all other fields are `Send`.
unsafe impl Send for Team {}

/// Waits until `done`: spins, then yields, then sleeps. False where it takes longer than `most`.
fn wait(most: Duration, mut done: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    loop {
        for _ in 0..SPINS {
            if done() {
                return true;
            }
            spin_loop();
        }
        match since.elapsed() {
            long if long > most => return false,
            long if long > SLEEP_AFTER => thread::sleep(SLEEP),
            long if long > YIELD_AFTER => thread::yield_now(),
            _ => {}
        }
    }
}

/// Calls its function when it is dropped, also by a panic.
struct Finally<F: FnMut()>(F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Team {
    /// A helper leaves after a `term`; one that is shorter than the step is for leaders that do not wait for their helpers.
    fn new(helpers: usize, patience: Duration, term: Duration) -> Self {
        Team {
            turn: OwnLine(AtomicUsize::new(0)),
            next: OwnLine(AtomicUsize::new(0)),
            inside: AtomicUsize::new(0),
            remaining: AtomicUsize::new(helpers),
            helpers,
            patience,
            term,
            over: AtomicBool::new(false),
            work: UnsafeCell::new(None),
            panic: Mutex::new(None),
        }
    }

    /// Runs a step with up to `helpers` other threads of the pool as helpers, and waits for these at the end.
    fn lead<T: Send>(&self, helpers: usize, step: impl FnOnce() -> T + Send) -> T {
        if helpers > 0 {
            return rayon::join(|| self.lead(helpers - 1, step), || self.help()).0;
        }
        let _over = Finally(|| self.over.store(true, SeqCst));
        let _role = Playing::new(Role::Leader(self));
        step()
    }

    /// Whether any helper has left, or all of them should.
    fn has_ended(&self) -> bool {
        self.over.load(SeqCst) || self.remaining.load(SeqCst) < self.helpers
    }

    /// Takes parts until the steps are over or there was none for `patience`; true where the term ended before.
    fn help(&self) -> bool {
        // A thread that is waiting in a step of its own must stay free to go on with it.
        let comes_back = matches!(ROLE.get(), Role::None) && {
            let _role = Playing::new(Role::Busy);
            self.stay()
        };
        if !comes_back {
            self.remaining.fetch_sub(1, SeqCst);
        }
        comes_back
    }

    /// Helps for one term after another. Between two of them the thread is the pool's: for other work, or to go on with what it
    /// was waiting for when it was called.
    fn help_in_terms(self: Arc<Self>) {
        if self.help() {
            rayon::yield_now();
            rayon::spawn(move || self.help_in_terms());
        }
    }

    /// Does what [`help`](Self::help) says.
    fn stay(&self) -> bool {
        let (mut seen, mut turn, since) = (0, 0, Instant::now());
        loop {
            let found = wait(self.patience, || {
                turn = self.turn.0.load(SeqCst);
                (turn % 2 == 1 && turn != seen) || self.over.load(SeqCst)
            });
            if !found || self.over.load(SeqCst) {
                return false;
            }
            {
                self.inside.fetch_add(1, SeqCst);
                let _inside = Finally(|| {
                    self.inside.fetch_sub(1, SeqCst);
                });
                // A leader that did not see this helper inside may have gone on to another turn.
                if self.turn.0.load(SeqCst) == turn {
                    self.take_parts();
                }
            }
            seen = turn;
            if since.elapsed() > self.term {
                return true;
            }
        }
    }

    /// Takes parts as long as there are any; stops at one that panics.
    fn take_parts(&self) {
        // SAFETY: the caller, `stay`, is `inside` an odd turn: `share` neither writes `work` nor returns before it leaves.
        let Some((work, count)) = (unsafe { *self.work.get() }) else { return };
        // SAFETY: as above; the function that `work` points to is borrowed by `share` until it returns.
        let each = || self.each_part(count, unsafe { &*work });
        if let Err(cause) = catch_unwind(AssertUnwindSafe(each)) {
            *self.cause() = Some(cause);
        }
    }

    /// Calls `work` for parts that are left; for no more of them after a panic.
    fn each_part(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        let _none_left = Finally(|| self.next.0.store(count, SeqCst));
        loop {
            let part = self.next.0.fetch_add(1, SeqCst);
            if part >= count {
                return;
            }
            work(part);
        }
    }

    fn cause(&self) -> MutexGuard<'_, Option<Box<dyn Any + Send>>> {
        self.panic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `work` for `count` parts, with the helpers that have arrived.
    fn share(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: this only changes the lifetime. `_end` below waits for every helper that may use the pointer, also by a panic.
        let kept: *const (dyn Fn(usize) + Sync) =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work) };
        // SAFETY: `turn` is even, and the last call of this function waited until no helper was inside.
        unsafe { *self.work.get() = Some((kept, count)) };
        self.next.0.store(0, SeqCst);
        *self.cause() = None;
        {
            let _role = Playing::new(Role::Busy);
            self.turn.0.fetch_add(1, SeqCst);
            let _end = Finally(|| {
                self.turn.0.fetch_add(1, SeqCst);
                wait(Duration::MAX, || self.inside.load(SeqCst) == 0);
            });
            self.each_part(count, work);
        }
        let cause = self.cause().take();
        if let Some(cause) = cause {
            resume_unwind(cause);
        }
    }
}

/// Runs a step on a thread of the pool, with at most `most` others as helpers.
pub(super) fn step<T: Send>(most: usize, step: impl FnOnce() -> T + Send) -> T {
    step_with(PATIENCE, most, step)
}

fn step_with<T: Send>(patience: Duration, most: usize, step: impl FnOnce() -> T + Send) -> T {
    let (helpers, has_team) = (helpers(most), has_team());
    if helpers == 0 || has_team {
        return rayon::scope(|_| step());
    }
    Team::new(helpers, patience, Duration::MAX).lead(helpers, step)
}

/// Runs many steps in a row on this thread of a pool, with at most `most` others of it as helpers. When these have left, each
/// step calls its own.
pub(super) fn steps<T>(most: usize, work: impl FnOnce() -> T) -> T {
    steps_with(PATIENCE, most, work)
}

fn steps_with<T>(patience: Duration, most: usize, work: impl FnOnce() -> T) -> T {
    let helpers = helpers(most);
    if helpers == 0 || has_team() {
        return work();
    }
    // Helpers that arrive after the end find a team that is over.
    let team = Arc::new(Team::new(helpers, patience, TERM));
    for _ in 0..helpers {
        let team = team.clone();
        rayon::spawn(move || team.help_in_terms());
    }
    let _over = Finally(|| team.over.store(true, SeqCst));
    let _role = Playing::new(Role::Leader(&*team));
    work()
}

/// The number of other threads of the pool, but at most `most`.
fn helpers(most: usize) -> usize {
    (rayon::current_num_threads() - 1).min(most)
}

/// Whether this thread leads a team that is still there, or works in another's.
fn has_team() -> bool {
    match ROLE.get() {
        Role::None => false,
        // SAFETY: `lead` and `steps_with` set this role while they borrow the team, and `Playing` resets it before they return.
        Role::Leader(team) => !unsafe { &*team }.has_ended(),
        Role::Busy => true,
    }
}

/// Sends the helpers of this thread back to their pool, if it has any.
pub(super) fn dismiss() {
    if let Role::Leader(team) = ROLE.get() {
        // SAFETY: `lead` and `steps_with` set this role while they borrow the team, and `Playing` resets it before they return.
        unsafe { &*team }.over.store(true, SeqCst);
    }
}

/// Whether this thread works on a part: whatever that part does, this thread does alone.
pub(super) fn is_busy() -> bool {
    matches!(ROLE.get(), Role::Busy)
}

/// Calls `work` for `count` parts with the helpers of the step that this thread leads; false where it leads none. When one of
/// them has left, the others are sent away too: the pool then finds them all.
pub(super) fn share(count: usize, work: &(dyn Fn(usize) + Sync)) -> bool {
    let Role::Leader(team) = ROLE.get() else { return false };
    // SAFETY: `lead` and `steps_with` set this role while they borrow the team, and `Playing` resets it before they return.
    let team = unsafe { &*team };
    if team.has_ended() {
        team.over.store(true, SeqCst);
        return false;
    }
    team.share(count, work);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::collections::HashSet;

    /// More than any test takes.
    const NEVER: Duration = Duration::from_secs(3600);

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    /// A step whose helpers do not leave.
    fn patient<T: Send>(step: impl FnOnce() -> T + Send) -> T {
        step_with(NEVER, 31, step)
    }

    /// How often each part was done.
    fn counts(parts: usize) -> Vec<AtomicUsize> {
        (0..parts).map(|_| AtomicUsize::new(0)).collect()
    }

    #[test]
    fn every_part_is_done_once() {
        for threads in [2, 3, 5] {
            let done = counts(40);
            pool(threads).install(|| {
                for _ in 0..200 {
                    patient(|| {
                        for parts in [1, 40, 0, 7] {
                            assert!(share(parts, &|i| {
                                done[i].fetch_add(1, SeqCst);
                            }));
                        }
                    });
                }
            });
            let expected = |i: usize| 200 * if i == 0 { 3 } else { 1 + usize::from(i < 7) };
            assert!(done.iter().enumerate().all(|(i, n)| n.load(SeqCst) == expected(i)));
        }
    }

    #[test]
    fn helpers_take_parts() {
        pool(2).install(|| {
            patient(|| {
                let who = Mutex::new(HashSet::new());
                while who.lock().unwrap().len() < 2 {
                    assert!(share(8, &|_| {
                        who.lock().unwrap().insert(rayon::current_thread_index());
                        thread::sleep(Duration::from_micros(100));
                    }));
                }
            });
        });
    }

    #[test]
    fn helpers_stay_for_steps_in_a_row() {
        pool(2).install(|| {
            steps_with(NEVER, 31, || {
                let who = Mutex::new(HashSet::new());
                while who.lock().unwrap().len() < 2 {
                    let all = |_| {
                        who.lock().unwrap().insert(rayon::current_thread_index());
                        thread::sleep(Duration::from_micros(100));
                    };
                    step(31, || assert!(share(8, &all)));
                    assert!(share(8, &all));
                }
            });
            assert!(!share(1, &|_| {}));
        });
    }

    #[test]
    fn helpers_of_steps_in_a_row_do_what_others_ask_for() {
        let done = Arc::new(AtomicBool::new(false));
        pool(2).install(|| {
            steps_with(NEVER, 31, || {
                let asked = done.clone();
                rayon::spawn(move || asked.store(true, SeqCst));
                // The leader is busy with its own parts.
                let since = Instant::now();
                while !done.load(SeqCst) {
                    assert!(share(2, &|_| {}) && since.elapsed() < Duration::from_secs(60));
                }
            });
        });
    }

    #[test]
    fn a_panic_passes_through_steps_in_a_row() {
        let pool = pool(2);
        let found = catch_unwind(AssertUnwindSafe(|| {
            pool.install(|| steps_with(NEVER, 31, || share(3, &|i| assert!(i != 2, "part {i}"))))
        }));
        let cause = *found.unwrap_err().downcast::<String>().unwrap();
        assert!(cause.contains("part 2"), "{cause}");
        let free = pool.broadcast(|_| !share(1, &|_| {}) && !is_busy());
        assert_eq!(free, [true, true]);
    }

    #[test]
    fn steps_whose_helpers_have_left_call_their_own() {
        pool(3).install(|| {
            steps_with(NEVER, 31, || {
                assert!(share(1, &|_| {}));
                dismiss();
                assert!(!share(1, &|_| {}));
                patient(|| assert!(share(3, &|_| {})));
                assert!(!share(1, &|_| {}));
            });
            dismiss();
        });
        pool(1).install(|| steps(31, || assert!(!share(1, &|_| {}))));
    }

    #[test]
    fn when_one_helper_leaves_all_do() {
        pool(3).install(|| {
            step(31, || {
                while share(1, &|_| {}) {
                    thread::sleep(2 * PATIENCE);
                }
                assert!(!share(1, &|_| {}));
                // The others are back in the pool.
                let others = AtomicUsize::new(0);
                while others.load(SeqCst) == 0 {
                    rayon::join(
                        || thread::sleep(Duration::from_millis(1)),
                        || others.fetch_add(usize::from(matches!(ROLE.get(), Role::None)), SeqCst),
                    );
                }
            });
        });
    }

    #[test]
    fn there_is_no_team_outside_a_step_or_within_a_part() {
        pool(2).install(|| {
            assert!(!share(1, &|_| {}) && !is_busy());
            patient(|| {
                assert!(!is_busy());
                assert!(share(3, &|_| {
                    assert!(is_busy() && !share(1, &|_| {}));
                    step(31, || assert!(is_busy()));
                }));
                step(31, || assert!(!is_busy()));
            });
            assert!(!share(1, &|_| {}) && !is_busy());
        });
        pool(1).install(|| patient(|| assert!(!share(1, &|_| {}))));
    }

    #[test]
    fn a_panic_reaches_the_leader() {
        let pool = pool(3);
        for part in [0, 5, 30] {
            let found = catch_unwind(AssertUnwindSafe(|| {
                pool.install(|| {
                    patient(|| {
                        share(31, &|i| {
                            thread::sleep(Duration::from_micros(50));
                            assert!(i != part, "part {i}");
                        })
                    })
                })
            }));
            let cause = *found.unwrap_err().downcast::<String>().unwrap();
            assert!(cause.contains(&format!("part {part}")), "{cause}");
            pool.install(|| patient(|| assert!(share(2, &|_| {}))));
        }
    }

    /// Each leads steps of its own with one helper of three, waits for the pool in them, and meets the steps of others there.
    #[test]
    fn many_steps_at_a_time_all_end() {
        let done = AtomicUsize::new(0);
        let some = || {
            let one = |_| {
                done.fetch_add(1, SeqCst);
            };
            if !share(4, &one) {
                done.fetch_add(4, SeqCst);
            }
        };
        let each = || {
            for _ in 0..50 {
                step(1, || {
                    some();
                    let short = || thread::sleep(Duration::from_micros(20));
                    rayon::join(short, short);
                    some();
                });
            }
        };
        for in_a_row in [false, true] {
            pool(4).install(|| {
                (0..24).into_par_iter().for_each(|_| if in_a_row { steps(1, each) } else { each() });
            });
            assert_eq!(done.swap(0, SeqCst), 24 * 50 * 8);
        }
    }
}
