//! What is measured of a network in training beside its loss, each under a name.
//!
//! A probe changes nothing and draws no random bits, so a run has the same bits with and without
//! it. What it measured stands in the line of its step, under its name, and `[[when]]` can decide
//! on it. `record.probes` switches probes on; those that rules name are on by themselves.
//!
//! | name | is |
//! |---|---|
//! | `lastbin.gamma` | share of the gains of all norms that E4M3 blocks of 32 would saturate |
//! | `lastbin.gamma:FORMAT` | the same for blocks of another element format, `lastbin.gamma:e2m3` |
//! | `rho_same`, `cos_same` | how far the step's gradient is from that of f32 at the same weights, see `probe/bias.rs`; takes another step's time |
//! | `phi` | [sharpness](Ending) of the loss in the last tokens' logits, see `probe/sharpness.rs`; takes forward passes of 32 sequences |

mod bias;
mod sharpness;

use bias::Same;
use sharpness::Sharpness;

use crate::format::{Format, Sign};
use crate::nn::parameters::{Layout, Role};

/// What a probe sees after a step.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Steps done.
    pub step: u64,
    /// Which part of the weights is which tensor.
    pub layout: &'a Layout,
    /// The weights after the step.
    pub params: &'a [f32],
    /// The gradient the step was made by, before clipping; zeros before the first.
    pub grads: &'a [f32],
    /// The gradient that the same batch has at the weights before the step where all is computed in
    /// f32, if a probe [needs](Needs::shadow) it and there was a step.
    pub shadow: Option<&'a [f32]>,
    /// Ends of sequences, if a probe [needs](Needs::endings) them and the model reads tokens.
    pub endings: Option<&'a [Ending]>,
}

/// The end of a sequence of the validation text as the model sees it under the recipe in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// The last token's logits.
    pub logits: Vec<f32>,
    /// The token that follows.
    pub target: u32,
}

/// What is measured for probes beside what a step leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`Seen::shadow`].
    pub shadow: bool,
    /// [`Seen::endings`]: of 32 sequences, evenly spaced over the validation text.
    pub endings: bool,
}

impl Needs {
    /// What this or the other needs.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self { shadow: self.shadow | other.shadow, endings: self.endings | other.endings }
    }
}

/// Measures one value.
pub trait Probe {
    /// Under which it is recorded, and known to `[[when]]`.
    fn name(&self) -> &str;

    /// What it looks at beside weights and gradient.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// The value after a step; `None` where there is nothing to measure. What is no finite number
    /// is not recorded.
    fn measure(&mut self, seen: &Seen<'_>) -> Option<f64>;
}

/// The probes there are, for suggestions and listings.
pub const NAMES: [&str; 4] = ["lastbin.gamma", "rho_same", "cos_same", "phi"];

/// Whether there is a probe of that name.
pub fn exists(name: &str) -> bool {
    by_name(name).is_some()
}

/// The probe of that name.
pub fn by_name(name: &str) -> Option<Box<dyn Probe>> {
    match name {
        "rho_same" => return Some(Box::new(Same { cosine: false })),
        "cos_same" => return Some(Box::new(Same { cosine: true })),
        "phi" => return Some(Box::new(Sharpness)),
        _ => {}
    }
    let rest = name.strip_prefix("lastbin.gamma")?;
    let format = match rest {
        "" => Format::E4M3FN,
        _ => rest.strip_prefix(':')?.parse().ok()?,
    };
    (format.sign() != Sign::Unsigned).then(|| {
        let probe = LastBin { name: name.to_owned(), limit: last_bin(format) };
        Box::new(probe) as Box<dyn Probe>
    })
}

/// The largest finite value of a format over its power of two: what a block's elements are
/// compared with, in units of the power of two of the block's maximum.
fn last_bin(format: Format) -> f64 {
    let max = format.max().to_f64();
    libm::ldexp(max, -libm::ilogb(max))
}

/// The share of norm gains in the last bin of their block ("Characterization and Mitigation of
/// Training Instabilities in Microscaling Formats", arXiv 2506.20752, section on the mechanism):
/// those above `limit * 2^floor(log2 m)`, with `m` the largest magnitude of their block of 32. The
/// OCP scale rule makes every one of them the format's largest value: the block loses what told
/// them apart.
struct LastBin {
    name: String,
    limit: f64,
}

/// Elements that share a scale.
const BLOCK: usize = 32;

/// How many of `values` are in the last bin of their block.
fn saturated(values: &[f32], limit: f64) -> usize {
    let blocks = values.chunks(BLOCK).map(|block| {
        let magnitudes = || block.iter().map(|value| f64::from(*value).abs());
        let max = magnitudes().fold(0.0, f64::max);
        if max == 0.0 {
            return 0;
        }
        let bin = libm::ldexp(limit, libm::ilogb(max));
        magnitudes().filter(|magnitude| *magnitude > bin).count()
    });
    blocks.sum()
}

impl Probe for LastBin {
    fn name(&self) -> &str {
        &self.name
    }

    fn measure(&mut self, seen: &Seen<'_>) -> Option<f64> {
        let norms = seen.layout.iter().filter(|entry| entry.role == Role::Norm);
        let (mut found, mut all) = (0, 0);
        for entry in norms {
            found += saturated(&seen.params[entry.range.clone()], self.limit);
            all += entry.range.len();
        }
        (all > 0).then(|| found as f64 / all as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::parameters::Init;

    /// The bands are those of the paper's table: 1.75 for E4M3, E5M2 and E3M2, 1.875 for E2M3, 1.5
    /// for E2M1.
    #[test]
    fn bands() {
        let band = |name: &str| last_bin(name.parse().unwrap());
        assert_eq!(
            ["e4m3fn", "e5m2", "e3m2", "e2m3", "e2m1"].map(band),
            [1.75, 1.75, 1.75, 1.875, 1.5]
        );
    }

    #[test]
    fn blocks_by_hand() {
        // All of 0.90 to 0.99 lie above 0.875 = 1.75 / 2; one of 1.0 opens the next binade.
        let mut block: Vec<f32> = (0..32).map(|i| 0.90 + 0.0029 * i as f32).collect();
        assert_eq!(saturated(&block, 1.75), 32);
        block[7] = -1.0;
        assert_eq!(saturated(&block, 1.75), 0);
        assert_eq!(saturated(&[0.875; 32], 1.75), 0, "the limit itself is representable");
        assert_eq!(saturated(&[0.0; 32], 1.75), 0);
        // Blocks end with their tensor.
        assert_eq!(saturated(&[vec![1.0; 32], vec![0.95; 3]].concat(), 1.75), 3);
    }

    #[test]
    fn the_share_is_of_all_gains_and_of_gains_alone() {
        let mut layout = Layout::default();
        layout.push("a".into(), &[32], Role::Norm, Init::Ones);
        layout.push("w".into(), &[2, 32], Role::Matrix, Init::Ones);
        layout.push("b".into(), &[96], Role::Norm, Init::Ones);
        let mut params = vec![0.95; layout.len()];
        params[100..].fill(1.0);
        let grads = &params;
        let seen =
            Seen { step: 3, layout: &layout, params: &params, grads, shadow: None, endings: None };
        let mut probe = by_name("lastbin.gamma").unwrap();
        // 32 of the first tensor; the second one's first block has four below 1 and is saved by
        // the others.
        assert_eq!(probe.measure(&seen), Some(0.25));
        assert_eq!(by_name("lastbin.gamma:e2m3").unwrap().measure(&seen), Some(0.25));
        assert_eq!(by_name("lastbin.gamma:e2m3").unwrap().name(), "lastbin.gamma:e2m3");
        assert!(
            !exists("lastbin.gamma:e8m0")
                && !exists("lastbin.gama")
                && NAMES.iter().all(|n| exists(n))
        );
        assert!(NAMES.iter().all(|name| by_name(name).unwrap().name() == *name));
    }
}
