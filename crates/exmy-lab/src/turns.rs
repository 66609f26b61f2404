//! How many runs are on a GPU at once: small ones share it, large ones take turns.
//!
//! A run needs at most twice what is counted on [`Paper`]. It is small if an eighth of the memory that is
//! free at the start is enough for that; a large one has the device for itself.

use exmy_train::train::config::Config;
use exmy_train::train::profile::Paper;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Runs that share a device at most: more streams than that are no faster.
pub(crate) const MOST: usize = 16;

/// What a run holds on a device besides its numbers: its stream, and memory that waits to be used again.
const BESIDES: u64 = 64 << 20;

/// How often who waits looks whether to go on.
const LOOK: Duration = Duration::from_millis(50);

/// Memory that runs share.
#[derive(Debug)]
pub(crate) struct Turns {
    /// Bytes; `None` where nobody waits.
    memory: Option<u64>,
    held: Mutex<u64>,
    freed: Condvar,
}

/// Room for a run, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    bytes: u64,
}

/// What a run needs at most.
pub(crate) fn need(config: &Config) -> u64 {
    2 * Paper::of_run(config).total() + BESIDES
}

impl Turns {
    /// Of so many free bytes; without a number nobody waits.
    pub(crate) fn new(memory: Option<u64>) -> Self {
        Self { memory, held: Mutex::new(0), freed: Condvar::new() }
    }

    /// Waits until there is room for a run that needs so much; `None` once `goes_on` is false.
    pub(crate) fn take(&self, need: u64, goes_on: impl Fn() -> bool) -> Option<Turn<'_>> {
        let Some(memory) = self.memory else { return Some(Turn { turns: self, bytes: 0 }) };
        let bytes = if need <= memory / 8 { need } else { memory };
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        while *held > memory - bytes {
            let waited = self.freed.wait_timeout(held, LOOK);
            held = waited.unwrap_or_else(PoisonError::into_inner).0;
            if !goes_on() {
                return None;
            }
        }
        *held += bytes;
        Some(Turn { turns: self, bytes })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.turns.held.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.turns.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// The most runs of so many bytes that were at work at once, of 24 on 16 threads and 80 bytes.
    fn at_once(need: u64) -> usize {
        let (turns, now, most) = (Turns::new(Some(80)), AtomicUsize::new(0), AtomicUsize::new(0));
        let left = AtomicUsize::new(24);
        std::thread::scope(|scope| {
            for _ in 0..16 {
                scope.spawn(|| {
                    while left
                        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                        .is_ok()
                    {
                        let _turn = turns.take(need, || true).unwrap();
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(5));
                        now.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        most.into_inner()
    }

    #[test]
    fn small_runs_share_and_large_ones_take_turns() {
        assert!(at_once(1) > 1);
        assert!((2..=8).contains(&at_once(10)));
        assert_eq!((at_once(11), at_once(80), at_once(1000)), (1, 1, 1));
    }

    #[test]
    fn who_is_stopped_waits_no_longer() {
        let turns = Turns::new(Some(80));
        let all = turns.take(80, || true).unwrap();
        assert!(turns.take(1, || false).is_none());
        drop(all);
        assert!(turns.take(1, || false).is_some());
        assert!(Turns::new(None).take(u64::MAX, || false).is_some());
    }

    #[test]
    fn what_is_small() {
        use exmy_train::train::preset::preset;
        let (narrow, gpt) = (preset("proxy-nano").unwrap(), preset("gpt2-124m").unwrap());
        let hopper = 79_u64 << 30;
        assert!(need(&narrow) * MOST as u64 <= hopper && need(&gpt) > hopper / 8);
    }
}
