//! In what the runs of one picture differ, apart from what their names say: curves of other data, sizes or
//! batches share an axis and are not to be compared.

use crate::gather::RecordedRun;
use crate::keys::different;

/// Keys that are named before the rest is counted.
const MOST: usize = 5;

/// In what runs differ in addition to recipe and seed, in words; nothing where they do not.
pub(super) fn unlike(runs: &[&RecordedRun]) -> Option<String> {
    said(&different(runs.iter().map(|run| &run.config)))
}

pub fn said(keys: &[String]) -> Option<String> {
    let (named, more) = keys.split_at(keys.len().min(MOST));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    (!keys.is_empty()).then(|| format!("the runs also differ in {}{more}", named.join(", ")))
}
