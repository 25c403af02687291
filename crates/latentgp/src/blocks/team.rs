//! Threads that stay awake while a step goes on.
//!
//! A thread of a pool that finds no work sleeps after some ten microseconds, and to wake it takes a virtual machine nearly a
//! hundred, as long as several parts of a step. The pieces of work that all threads share in a step are short, and so is what
//! one thread does alone between them: meanwhile its helpers wait awake, and take the parts of the next one as it comes.
//!
//! Who takes a part does not matter: what comes out of it has a place of its own.

use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A helper that was not needed for so long goes back to its pool.
const PATIENCE: Duration = Duration::from_micros(500);
/// Times that a helper looks for work before it looks at the clock.
const LOOKS: usize = 64;

/// What a thread has to do with teams.
#[derive(Clone, Copy)]
enum Role {
    None,
    /// It does a step with such a team.
    Leader(*const Team),
    /// It takes parts of another's step, or does one of its own.
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

/// A leader and its helpers.
pub(super) struct Team {
    /// Odd while there are parts to take.
    turn: AtomicUsize,
    /// Valid while `turn` is odd or a helper is inside.
    work: UnsafeCell<Option<Work>>,
    /// The next part that nobody has taken.
    next: AtomicUsize,
    /// Helpers that take parts, or look whether they may.
    inside: AtomicUsize,
    /// Helpers that have not gone, whether they have come or not.
    left: AtomicUsize,
    over: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `work` is written by the leader alone, while `turn` is even, and read by helpers that were inside when they saw it odd;
// the leader waits for those before it goes on.
unsafe impl Sync for Team {}

impl Team {
    fn new(helpers: usize) -> Self {
        Team {
            turn: AtomicUsize::new(0),
            work: UnsafeCell::new(None),
            next: AtomicUsize::new(0),
            inside: AtomicUsize::new(0),
            left: AtomicUsize::new(helpers),
            over: AtomicBool::new(false),
            panic: Mutex::new(None),
        }
    }

    /// Does a step, with so many other threads of the pool at hand as come.
    fn lead<T: Send>(&self, helpers: usize, step: impl FnOnce() -> T + Send) -> T {
        if helpers > 0 {
            return rayon::join(|| self.lead(helpers - 1, step), || self.help()).0;
        }
        /// The helpers go when the step ends, by whatever way.
        struct Over<'t>(&'t AtomicBool);
        impl Drop for Over<'_> {
            fn drop(&mut self) {
                self.0.store(true, SeqCst);
            }
        }
        let _over = Over(&self.over);
        let _role = Playing::new(Role::Leader(self));
        step()
    }

    /// Takes parts until the step is over, or has had none for long.
    fn help(&self) {
        // A thread that waits somewhere in a step of its own has to go on with that when it can.
        if matches!(ROLE.get(), Role::None) {
            let _role = Playing::new(Role::Busy);
            self.stay();
        }
        self.left.fetch_sub(1, SeqCst);
    }

    fn stay(&self) {
        let (mut seen, mut since) = (0, Instant::now());
        while !self.over.load(SeqCst) {
            let turn = self.turn.load(SeqCst);
            if turn % 2 == 1 && turn != seen {
                self.inside.fetch_add(1, SeqCst);
                // A leader that has not seen this helper inside has gone on to another turn.
                if self.turn.load(SeqCst) == turn {
                    self.take_parts();
                }
                self.inside.fetch_sub(1, SeqCst);
                (seen, since) = (turn, Instant::now());
                continue;
            }
            (0..LOOKS).for_each(|_| {
                if self.turn.load(SeqCst) == turn {
                    spin_loop();
                }
            });
            if since.elapsed() > PATIENCE {
                break;
            }
        }
    }

    /// Takes parts as long as there are any; one that panics is the last.
    fn take_parts(&self) {
        // SAFETY: the turn has not ended, and does not before this helper leaves.
        let Some((work, count)) = (unsafe { *self.work.get() }) else { return };
        let each = || {
            loop {
                let part = self.next.fetch_add(1, SeqCst);
                if part >= count {
                    break;
                }
                // SAFETY: likewise, and the leader keeps what it refers to.
                unsafe { (*work)(part) };
            }
        };
        if let Err(cause) = catch_unwind(AssertUnwindSafe(each)) {
            self.next.store(count, SeqCst);
            *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
        }
    }

    /// Calls `work` for so many parts, with the helpers that are awake.
    fn share(&self, count: usize, work: &(dyn Fn(usize) + Sync)) {
        /// Ends the turn, and waits for the helpers that are inside.
        struct Turn<'t>(&'t Team);
        impl Drop for Turn<'_> {
            fn drop(&mut self) {
                self.0.turn.fetch_add(1, SeqCst);
                while self.0.inside.load(SeqCst) > 0 {
                    spin_loop();
                }
            }
        }
        // SAFETY: of the lifetime alone. `Turn` waits for whoever uses it.
        let kept: *const (dyn Fn(usize) + Sync) =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(work) };
        // SAFETY: there is no turn, and no helper inside.
        unsafe { *self.work.get() = Some((kept, count)) };
        self.next.store(0, SeqCst);
        {
            let _role = Playing::new(Role::Busy);
            self.turn.fetch_add(1, SeqCst);
            let _turn = Turn(self);
            loop {
                let part = self.next.fetch_add(1, SeqCst);
                if part >= count {
                    break;
                }
                work(part);
            }
        }
        let cause = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(cause) = cause {
            resume_unwind(cause);
        }
    }
}

/// Does a step on a thread of the pool, with the others as helpers, at most so many.
pub(super) fn step<T: Send>(most: usize, step: impl FnOnce() -> T + Send) -> T {
    let helpers = (rayon::current_num_threads() - 1).min(most);
    if helpers == 0 || !matches!(ROLE.get(), Role::None) {
        return rayon::scope(|_| step());
    }
    Team::new(helpers).lead(helpers, step)
}

/// Whether this thread does part of a step that others help with: what is below is its own.
pub(super) fn is_busy() -> bool {
    matches!(ROLE.get(), Role::Busy)
}

/// Calls `work` for so many parts with the helpers of the step that this thread leads; false where it leads none, or all of
/// those have gone.
pub(super) fn share(count: usize, work: &(dyn Fn(usize) + Sync)) -> bool {
    let Role::Leader(team) = ROLE.get() else { return false };
    // SAFETY: the role ends before the team.
    let team = unsafe { &*team };
    let some = team.left.load(SeqCst) > 0;
    if some {
        team.share(count, work);
    }
    some
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;
    use std::collections::HashSet;
    use std::thread;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
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
                    step(31, || {
                        for parts in [1, 40, 0, 7] {
                            assert!(share(parts, &|i| {
                                done[i].fetch_add(1, SeqCst);
                            }));
                        }
                    });
                }
            });
            let expected = |i: usize| {
                200 * if i == 0 {
                    3
                } else if i < 7 {
                    2
                } else {
                    1
                }
            };
            assert!(done.iter().enumerate().all(|(i, n)| n.load(SeqCst) == expected(i)));
        }
    }

    #[test]
    fn helpers_come_and_go() {
        pool(2).install(|| {
            step(31, || {
                let who = Mutex::new(HashSet::new());
                while who.lock().unwrap().len() < 2 {
                    assert!(share(8, &|_| {
                        who.lock().unwrap().insert(rayon::current_thread_index());
                        thread::sleep(Duration::from_micros(100));
                    }));
                }
                while share(1, &|_| {}) {
                    thread::sleep(20 * PATIENCE);
                }
            });
        });
    }

    #[test]
    fn there_is_no_team_outside_a_step_or_within_a_part() {
        pool(2).install(|| {
            assert!(!share(1, &|_| {}) && !is_busy());
            step(31, || {
                assert!(!is_busy());
                share(3, &|_| {
                    assert!(is_busy() && !share(1, &|_| {}));
                    step(31, || assert!(is_busy()));
                });
                step(31, || assert!(!is_busy()));
            });
            assert!(!share(1, &|_| {}) && !is_busy());
        });
        pool(1).install(|| step(31, || assert!(!share(1, &|_| {}))));
    }

    #[test]
    fn a_panic_reaches_the_leader() {
        let pool = pool(3);
        for part in [0, 5, 30] {
            let found = catch_unwind(AssertUnwindSafe(|| {
                pool.install(|| {
                    step(31, || {
                        share(31, &|i| {
                            thread::sleep(Duration::from_micros(50));
                            assert!(i != part, "part {i}");
                        })
                    })
                })
            }));
            let cause = *found.unwrap_err().downcast::<String>().unwrap();
            assert!(cause.contains(&format!("part {part}")), "{cause}");
            pool.install(|| step(31, || assert!(share(2, &|_| {}))));
        }
    }

    /// Each leads steps of its own, waits for the pool in them, and finds the others' steps while it waits.
    #[test]
    fn many_steps_at_a_time_all_end() {
        let done = counts(1);
        pool(3).install(|| {
            (0..24).into_par_iter().for_each(|_| {
                for _ in 0..50 {
                    step(31, || {
                        share(4, &|_| {
                            done[0].fetch_add(1, SeqCst);
                        });
                        let two = || thread::sleep(Duration::from_micros(5));
                        rayon::join(two, two);
                        if !share(4, &|_| {
                            done[0].fetch_add(1, SeqCst);
                        }) {
                            done[0].fetch_add(4, SeqCst);
                        }
                    });
                }
            });
        });
        assert_eq!(done[0].load(SeqCst), 24 * 50 * 8);
    }
}
