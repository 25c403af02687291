//! Threads that stay awake while a step goes on.
//!
//! A thread of a pool that finds no work sleeps after some ten microseconds, and to wake it takes a virtual machine nearly a
//! hundred, as long as several parts of a step. The pieces of work that all threads share in a step are short, and so is what
//! one thread does alone between them: meanwhile its helpers wait awake, and take the parts of the next one as it comes. So do
//! those of many steps in a row, if what an optimiser does between two of them is short too.
//!
//! Who takes a part does not matter: what comes out of it has a place of its own. A team is for parts that do not wait for the
//! pool: a thread that does may find a whole other step to do first, and its leader waits for it.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A helper that was not needed for so long goes back to its pool.
const PATIENCE: Duration = Duration::from_micros(500);
/// Times that a thread looks before it looks at the clock.
const LOOKS: usize = 64;
/// From then on it lets others go first, if there are more threads than cores.
const POLITE: Duration = Duration::from_micros(50);
/// A leader that waits for so long does not wait for what is short, and sleeps for a while before it looks again.
const LONG: Duration = Duration::from_millis(1);
const WHILE: Duration = Duration::from_micros(50);
/// A helper of steps in a row goes after so long, and comes again if others of its pool have no work for it.
const TERM: Duration = Duration::from_millis(1);

/// What a thread has to do with teams.
#[derive(Clone, Copy)]
enum Role {
    None,
    /// It does steps with such a team.
    Leader(*const Team),
    /// It takes parts of another's step, or a part of its own.
    Busy,
}

thread_local! {
    static ROLE: Cell<Role> = const { Cell::new(Role::None) };
}

/// Takes a role until it is dropped.
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

/// What is to be done with a part, and how many there are.
type Work = (*const (dyn Fn(usize) + Sync), usize);

/// On lines of the cache of its own, so that who looks at it is not in the way of others.
#[repr(align(128))]
struct Apart(AtomicUsize);

/// A leader and its helpers.
struct Team {
    /// Odd while there are parts to take.
    turn: Apart,
    /// The next part that nobody has taken.
    next: Apart,
    /// Helpers that take parts, or look whether they may.
    inside: AtomicUsize,
    /// Helpers that have not gone, whether they have come or not; all of them at the start.
    remaining: AtomicUsize,
    helpers: usize,
    patience: Duration,
    term: Duration,
    over: AtomicBool,
    /// Valid while `turn` is odd or a helper is inside.
    work: UnsafeCell<Option<Work>>,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `work` is written by the leader alone, while `turn` is even, and read by helpers that were inside when they saw it odd;
// the leader waits for those before it goes on. Whoever drops the team last drops an address, and maybe a cause,
// which may be sent.
unsafe impl Sync for Team {}
// SAFETY: likewise.
unsafe impl Send for Team {}

/// Looks until `done`, with more patience the longer it takes; false where that is more than `most`.
fn wait(most: Duration, mut done: impl FnMut() -> bool) -> bool {
    let since = Instant::now();
    loop {
        for _ in 0..LOOKS {
            if done() {
                return true;
            }
            spin_loop();
        }
        match since.elapsed() {
            long if long > most => return false,
            long if long > LONG => thread::sleep(WHILE),
            long if long > POLITE => thread::yield_now(),
            _ => {}
        }
    }
}

/// Calls what it holds when it is dropped, by whatever way.
struct Finally<F: FnMut()>(F);

impl<F: FnMut()> Drop for Finally<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

impl Team {
    /// Helpers who go at the end of a `term` are for leaders who do not wait for them to come back.
    fn new(helpers: usize, patience: Duration, term: Duration) -> Self {
        Team {
            turn: Apart(AtomicUsize::new(0)),
            next: Apart(AtomicUsize::new(0)),
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

    /// Does a step, with so many other threads of the pool at hand as come, and waits for them.
    fn lead<T: Send>(&self, helpers: usize, step: impl FnOnce() -> T + Send) -> T {
        if helpers > 0 {
            return rayon::join(|| self.lead(helpers - 1, step), || self.help()).0;
        }
        let _over = Finally(|| self.over.store(true, SeqCst));
        let _role = Playing::new(Role::Leader(self));
        step()
    }

    /// Whether the helpers are back in their pool, or should be.
    fn has_gone(&self) -> bool {
        self.over.load(SeqCst) || self.remaining.load(SeqCst) < self.helpers
    }

    /// Takes parts until the steps are over or there was none for long; true where a term was over before.
    fn help(&self) -> bool {
        // A thread that waits somewhere in a step of its own has to go on with that when it can.
        let comes_again = matches!(ROLE.get(), Role::None) && {
            let _role = Playing::new(Role::Busy);
            self.stay()
        };
        if !comes_again {
            self.remaining.fetch_sub(1, SeqCst);
        }
        comes_again
    }

    /// Helps for a term at a time. Between two of them the pool has its thread: for what others ask for, or to go on with what
    /// it was waiting for when it was called.
    fn help_in_terms(self: Arc<Self>) {
        if self.help() {
            rayon::yield_now();
            rayon::spawn(move || self.help_in_terms());
        }
    }

    fn stay(&self) -> bool {
        let (mut seen, mut turn, since) = (0, 0, Instant::now());
        loop {
            let there_is_one = wait(self.patience, || {
                turn = self.turn.0.load(SeqCst);
                (turn % 2 == 1 && turn != seen) || self.over.load(SeqCst)
            });
            if !there_is_one || self.over.load(SeqCst) {
                return false;
            }
            {
                self.inside.fetch_add(1, SeqCst);
                let _inside = Finally(|| {
                    self.inside.fetch_sub(1, SeqCst);
                });
                // A leader that has not seen this helper inside has gone on to another turn.
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

    /// Takes parts as long as there are any; one that panics is the last.
    fn take_parts(&self) {
        // SAFETY: the turn has not ended, and does not before this helper leaves.
        let Some((work, count)) = (unsafe { *self.work.get() }) else { return };
        // SAFETY: likewise, and the leader keeps what it refers to.
        let each = || self.each_part(count, unsafe { &*work });
        if let Err(cause) = catch_unwind(AssertUnwindSafe(each)) {
            *self.cause() = Some(cause);
        }
    }

    /// Calls `work` for parts that nobody has taken; for no more of them after a panic.
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

    /// Calls `work` for so many parts, with the helpers that are awake.
    fn share(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        // SAFETY: of the lifetime alone. Whoever uses it is waited for below.
        let kept: *const (dyn Fn(usize) + Sync) =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work) };
        // SAFETY: there is no turn, and no helper inside.
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

/// Does a step on a thread of the pool, with the others as helpers, at most so many.
pub(super) fn step<T: Send>(most: usize, step: impl FnOnce() -> T + Send) -> T {
    step_with(PATIENCE, most, step)
}

fn step_with<T: Send>(patience: Duration, most: usize, step: impl FnOnce() -> T + Send) -> T {
    let (helpers, has_one) = (helpers(most), has_one());
    if helpers == 0 || has_one {
        return rayon::scope(|_| step());
    }
    Team::new(helpers, patience, Duration::MAX).lead(helpers, step)
}

/// Does steps one after the other on this thread, which is one of a pool, with others of it as helpers, at most so many. When
/// these have gone, each of the steps calls its own.
pub(super) fn steps<T>(most: usize, work: impl FnOnce() -> T) -> T {
    steps_with(PATIENCE, most, work)
}

fn steps_with<T>(patience: Duration, most: usize, work: impl FnOnce() -> T) -> T {
    let helpers = helpers(most);
    if helpers == 0 || has_one() {
        return work();
    }
    // Those that come late find a team that is over.
    let team = Arc::new(Team::new(helpers, patience, TERM));
    for _ in 0..helpers {
        let team = team.clone();
        rayon::spawn(move || team.help_in_terms());
    }
    let _over = Finally(|| team.over.store(true, SeqCst));
    let _role = Playing::new(Role::Leader(&*team));
    work()
}

/// The other threads of the pool, at most so many.
fn helpers(most: usize) -> usize {
    (rayon::current_num_threads() - 1).min(most)
}

/// Whether this thread leads a team that has not gone, or is in another's.
fn has_one() -> bool {
    match ROLE.get() {
        Role::None => false,
        // SAFETY: the role ends before the team.
        Role::Leader(team) => !unsafe { &*team }.has_gone(),
        Role::Busy => true,
    }
}

/// Sends the helpers of this thread back to their pool, if it has any.
pub(super) fn dismiss() {
    if let Role::Leader(team) = ROLE.get() {
        // SAFETY: the role ends before the team.
        unsafe { &*team }.over.store(true, SeqCst);
    }
}

/// Whether this thread does part of a step that others help with: what is below is its own.
pub(super) fn is_busy() -> bool {
    matches!(ROLE.get(), Role::Busy)
}

/// Calls `work` for so many parts with the helpers of the step that this thread leads; false where it leads none. When one of
/// them has gone the others go too, as all of them serve better where their pool finds them.
pub(super) fn share(count: usize, work: &(dyn Fn(usize) + Sync)) -> bool {
    let Role::Leader(team) = ROLE.get() else { return false };
    // SAFETY: the role ends before the team.
    let team = unsafe { &*team };
    if team.has_gone() {
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

    /// A step whose helpers do not go.
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
                // Who leads has no time for it.
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
    fn steps_whose_helpers_have_gone_call_their_own() {
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
    fn when_one_has_gone_all_go() {
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
