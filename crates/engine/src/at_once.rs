//! Does the same with each of a few things, all at once, one thread for each: what waits for several disks must not wait for
//! one after the other. It knows nothing of what is done.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// What `act` returns for each of `items`, in their order. Where a thread cannot be started, the others do its part.
pub(crate) fn at_once<T: Send, R: Send>(items: Vec<T>, act: impl Fn(T) -> R + Sync) -> Vec<R> {
    let count = items.len();
    let left = Mutex::new(items.into_iter().enumerate());
    let done = Mutex::new(Vec::with_capacity(count));
    let work = || {
        loop {
            let Some((index, item)) = lock(&left).next() else { return };
            let result = act(item);
            lock(&done).push((index, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..count {
            if Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Condvar;
    use std::time::Duration;

    #[test]
    fn all_are_inside_at_the_same_time_and_answer_in_order() {
        assert_eq!(at_once(Vec::<u32>::new(), |item| item), [] as [u32; 0]);
        let (inside, changed) = (Mutex::new(0), Condvar::new());
        let answers = at_once(vec![3, 1, 2], |item| {
            let mut count = lock(&inside);
            *count += 1;
            changed.notify_all();
            let limit = Duration::from_secs(300);
            let (count, _) = changed.wait_timeout_while(count, limit, |count| *count < 3).unwrap();
            (item, *count)
        });
        assert_eq!(answers, [(3, 3), (1, 3), (2, 3)]);
    }
}
