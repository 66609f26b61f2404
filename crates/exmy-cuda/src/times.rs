//! How long each kernel takes: off, unless [`begin`] is called. Then every launch is waited for, so that a
//! step takes longer than its kernels do together; the times of the kernels are the device's own.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::{Device, Result};

static IS_ON: AtomicBool = AtomicBool::new(false);
static TIMES: Mutex<BTreeMap<&'static str, (u64, f64)>> = Mutex::new(BTreeMap::new());

/// From now on launches of all devices are timed.
pub fn begin() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// Whether launches are timed.
pub(crate) fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Starts a kernel by `launch`, timed.
pub(crate) fn of(
    name: &'static str,
    device: &Device,
    launch: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let mut launch = Some(launch);
    let milliseconds = device.time(|| launch.take().map_or(Ok(()), |launch| launch()))?;
    let mut times = TIMES.lock().unwrap_or_else(PoisonError::into_inner);
    let (count, sum) = times.entry(name).or_default();
    *count += 1;
    *sum += f64::from(milliseconds);
    Ok(())
}

/// A table of the kernels that were timed since the last one, those of the most time first; empty if there
/// are none.
pub fn table() -> String {
    let times = std::mem::take(&mut *TIMES.lock().unwrap_or_else(PoisonError::into_inner));
    let total: f64 = times.values().map(|(_, sum)| sum).sum();
    let mut rows: Vec<_> = times.iter().collect();
    rows.sort_by(|(_, (_, a)), (_, (_, b))| b.total_cmp(a));
    let mut text = String::new();
    if !rows.is_empty() {
        let _ = writeln!(
            text,
            "{:<28} {:>8} {:>10} {:>9} {:>7}",
            "kernel", "launches", "ms", "us each", "share"
        );
    }
    for (name, (count, sum)) in rows {
        let (each, share) = (1e3 * sum / *count as f64, 100.0 * sum / total);
        let _ = writeln!(text, "{name:<28} {count:>8} {sum:>10.2} {each:>9.1} {share:>6.1} %");
    }
    text
}
