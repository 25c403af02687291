//! Fits side by side, each on one thread of its own: small ones gain nothing from more.

use latentgp_terminal::failure::{Failure, Outcome};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `work` of 0, 1, … as many at a time as there are threads; what each yields, in order.
pub fn each<T: Send>(count: usize, work: impl Fn(usize) -> Outcome<T> + Sync) -> Vec<Outcome<T>> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    let one_by_one = || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().map_err(Failure::work);
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                return;
            }
            let found = match &pool {
                Ok(pool) => pool.install(|| work(i)),
                Err(failure) => Err(Failure::work(failure)),
            };
            done.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push((i, found));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..rayon::current_num_threads().min(count) {
            scope.spawn(one_by_one);
        }
    });
    let mut all = done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, found)| found).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_done_once_in_order_on_one_thread_each() {
        let found = each(20, |i| match i {
            7 => Err(Failure::work("seven")),
            _ => Ok((i, rayon::current_num_threads())),
        });
        assert_eq!(found.len(), 20);
        for (i, found) in found.into_iter().enumerate() {
            assert_eq!(found.ok(), (i != 7).then_some((i, 1)));
        }
        assert!(each(0, |_| Ok(())).is_empty());
    }
}
