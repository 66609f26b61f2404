//! The memory that a run can take.
//!
//! Linux says how much could be had without swapping (`MemAvailable`), or less where the
//! process's control group or its limit of addresses (`ulimit -v`) allows less. Elsewhere nothing is known.

use std::fs::read_to_string;

use exmy::error::{Error, Result};
use exmy::reserve::reserve;

/// Bytes that the process may take, where the system says it.
pub fn available() -> Option<u64> {
    let info = read_to_string("/proc/meminfo").ok();
    let free = info.as_deref().and_then(free);
    // Version 2 and 1 of control groups, as a container sees its own.
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let group = groups.iter().find_map(|path| read_to_string(path).ok()?.trim().parse().ok());
    let limits = read_to_string("/proc/self/limits").ok();
    let addresses = limits.as_deref().and_then(addresses);
    [free, group, addresses].into_iter().flatten().min()
}

/// Bytes that the process has allocated by now, and those of its program and libraries as far as they may
/// come into memory, where the system says it.
pub fn held() -> Option<u64> {
    let [allocated, libraries] = ["RssAnon:", "VmLib:"].map(status);
    let program = std::fs::metadata("/proc/self/exe").ok()?.len();
    Some(allocated? + libraries? + program)
}

/// A number of bytes that Linux reports of this process.
pub(in crate::train) fn status(key: &str) -> Option<u64> {
    let status = read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

/// Whether the process may have so many addresses and no more.
pub fn is_limited() -> bool {
    let limits = read_to_string("/proc/self/limits").ok();
    limits.as_deref().and_then(addresses).is_some()
}

/// How many of so many bytes can be had now. They are asked for and given back untouched: what the process
/// has mapped says less, for the allocator reserves addresses for each thread that it still gives out.
pub fn had(most: u64) -> u64 {
    const LEAST: u64 = 1 << 20;
    let mut piece = (most / 256).clamp(LEAST, 1 << 30);
    let (mut pieces, mut sum) = (Vec::new(), 0);
    while sum < most && piece >= LEAST {
        let mut buffer = Vec::<u8>::new();
        let asked = reserve(&mut buffer, piece as usize);
        if asked.is_err() || reserve(&mut pieces, 1).is_err() {
            piece /= 2;
            continue;
        }
        pieces.push(buffer);
        sum += piece;
    }
    sum.min(most)
}

/// Refuses numbers that memory does not hold, where asking for them would end the process.
///
/// # Errors
/// If as many cannot be had at once.
pub fn ensure(numbers: usize, what: &str) -> Result<()> {
    reserve(&mut Vec::<f32>::new(), numbers).map_err(|_| {
        let bytes = size(4 * numbers as u64);
        Error::new(format!("{what} need {bytes} of memory, which cannot be had"))
            .hint("free some, raise the limit (ulimit -v), or take a machine with more")
    })
}

/// What `/proc/meminfo` says is available.
pub fn free(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes << 10)
}

/// The soft limit of `/proc/self/limits`, if it is one.
pub fn addresses(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Bytes as a person reads them.
pub fn size(bytes: u64) -> String {
    let mebibytes = bytes as f64 / f64::from(1 << 20);
    match mebibytes < 1024.0 {
        true => format!("{mebibytes:.1} MiB"),
        false => format!("{:.1} GiB", mebibytes / 1024.0),
    }
}
