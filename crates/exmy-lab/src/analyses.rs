//! What is more than a comparison of grid points: analyses that figures name, one file each.

pub(super) mod abilities;
pub(super) mod bias;
pub(super) mod blocks;
pub(super) mod depth;
pub(super) mod flushed;
pub(super) mod forecast;
pub(super) mod hot_channels;
pub(super) mod hyperparameters;
pub(super) mod interventions;
pub(super) mod last_bin;
pub(super) mod laws;
pub(super) mod lead;
pub(super) mod margins;
pub(super) mod new_seeds;
pub(super) mod operators;
pub(super) mod overhead;
pub(super) mod pairs;
pub(super) mod patches;
pub(super) mod products;
pub(super) mod recall;
pub(super) mod rotations;
pub(super) mod search;
pub(super) mod strategies;
pub(super) mod surface;
pub(super) mod weights;

use crate::finding::Verdict;

/// The verdict of the first of several settings, with what was seen in the others.
fn first_of(verdicts: &[Verdict]) -> Verdict {
    let Some((first, others)) = verdicts.split_first() else {
        return Verdict::NotSeen("nothing was tried".into());
    };
    let mut text = first.reason().to_owned();
    for other in others {
        text += &format!("; not judged ({}): {}", other.word(), other.reason());
    }
    first.with(text)
}

/// The verdict on a claim that rests on a detector: whatever it says of the runs, nothing is seen unless it
/// fires where it must.
fn controlled(fired: bool, control: &str, verdict: Verdict) -> Verdict {
    let text = format!("{}; positive control: {control}", verdict.reason());
    if fired { verdict.with(text) } else { Verdict::NotSeen(format!("{text}, which did not fire")) }
}
