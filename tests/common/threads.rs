//! Work on many items, shared between threads.

#![allow(unreachable_pub)]

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs the work on all items, with as many threads as there are cores.
pub fn on_all<T: Sync>(items: &[T], work: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(item) = items.get(next.fetch_add(1, Relaxed)) {
                    work(item);
                }
            });
        }
    });
}
