//! How many runs are on a GPU at once: small ones share it, large ones take turns.
//!
//! A run needs at most twice what [`MemoryNeed`] counts. It is small if an eighth of the memory that is
//! free at the start is enough for that; a large one has the device for itself.

use exmy_train::train::config::Config;
use exmy_train::train::profile::MemoryNeed;
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Runs that share a device at most: more streams than that are no faster.
pub const MOST: usize = 16;

/// What a run holds on a device besides its numbers: its stream, and memory that waits to be used again.
const BESIDES: u64 = 64 << 20;

/// How often who waits looks whether to go on.
const LOOK: Duration = Duration::from_millis(50);

/// Memory that runs share.
#[derive(Debug)]
pub struct DeviceSlots {
    /// Bytes; `None` where nobody waits.
    memory: Option<u64>,
    held: Mutex<u64>,
    freed: Condvar,
}

/// Room for a run, until it is dropped.
#[derive(Debug)]
pub struct Slot<'a> {
    slots: &'a DeviceSlots,
    bytes: u64,
}

/// What a run needs at most.
pub fn need(config: &Config) -> u64 {
    2 * MemoryNeed::of_run(config).total() + BESIDES
}

impl DeviceSlots {
    /// Of so many free bytes; without a number nobody waits.
    pub fn new(memory: Option<u64>) -> Self {
        Self { memory, held: Mutex::new(0), freed: Condvar::new() }
    }

    /// Waits until there is room for a run that needs so much; `None` once `goes_on` is false.
    pub fn take(&self, need: u64, goes_on: impl Fn() -> bool) -> Option<Slot<'_>> {
        let Some(memory) = self.memory else { return Some(Slot { slots: self, bytes: 0 }) };
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
        Some(Slot { slots: self, bytes })
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        *self.slots.held.lock().unwrap_or_else(PoisonError::into_inner) -= self.bytes;
        self.slots.freed.notify_all();
    }
}
