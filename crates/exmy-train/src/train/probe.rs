//! What is measured of a network in training in addition to its loss, each under a name.
//!
//! A probe changes nothing and draws no random bits, so a run has the same weights and the same
//! metrics with and without it. `record.probes` switches probes on; what they measure every
//! `record.probe_every` steps goes to `probes.jsonl`, a [`Line`] each time. A probe that a rule of `[[when]]`
//! names is on by itself, and its value stands in the line of its step in `metrics.jsonl`, as rules
//! decide on what is recorded there.
//!
//! A probe is one type in one file. It looks at what a step leaves ([`Snapshot`]), and, if it gives an
//! [observer](Probe::observer), at every operand, output and tensor of the steps that are measured.
//! [`registry`] lists those that have names; [`run::train_probed`](crate::train::run::train_probed)
//! takes any others as well.

#[doc(hidden)]
pub mod attention;
#[doc(hidden)]
pub mod bias;
#[doc(hidden)]
pub mod hot;
pub mod key;
#[doc(hidden)]
pub mod last_bin;
mod line;
#[doc(hidden)]
pub mod moments;
#[doc(hidden)]
pub mod places;
#[doc(hidden)]
pub mod products;
pub mod registry;
#[doc(hidden)]
pub mod rounding;
#[doc(hidden)]
pub mod sharpness;
#[doc(hidden)]
pub mod tails;
#[doc(hidden)]
pub mod weights;

pub use key::{Key, Of};
pub(super) use line::lines_up_to;
pub use line::{Line, Lines, Value, Values, read};
pub use registry::by_name;

use crate::nn::model;
use crate::nn::parameters::Layout;
use crate::recipe::Observer;

/// What follows the colon of a probe's name.
type Argument<'a> = Option<&'a str>;

/// What a probe sees after a step.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// Steps done.
    pub step: u64,
    /// The sizes of the model.
    pub model: &'a model::Config,
    /// Which part of the weights is which tensor.
    pub layout: &'a Layout,
    /// The weights after the step.
    pub params: &'a [f32],
    /// The gradient the step was made by, before clipping; zeros before the first. With
    /// `train.accumulate` above 1 it is the mean over the parts, as the two below are.
    pub grads: &'a [f32],
    /// The gradient that the same batch has at the weights before the step where all is computed in
    /// f32, if a probe [needs](Needs::shadow) it and there was a step.
    pub shadow: Option<&'a [f32]>,
    /// The gradient of the same step of a run that differs in being in f32 from the beginning, if a
    /// probe [needs](Needs::twin) it and there was a step.
    pub twin: Option<&'a [f32]>,
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

/// What is measured for probes in addition to what a step leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// [`Snapshot::shadow`]: another step's time whenever it is measured.
    pub shadow: bool,
    /// [`Snapshot::twin`]: another run's time and memory, beginning anew with every resume.
    pub twin: bool,
    /// [`Snapshot::endings`]: of 32 sequences, evenly spaced over the validation text.
    pub endings: bool,
}

impl Needs {
    /// What this or the other needs.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            shadow: self.shadow | other.shadow,
            twin: self.twin | other.twin,
            endings: self.endings | other.endings,
        }
    }
}

/// Measures something of a network in training.
pub trait Probe {
    /// The name under which it is recorded.
    fn name(&self) -> &str;

    /// What it looks at in addition to weights and gradient.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Who watches the steps after which this probe measures: most often the probe itself. Of a step
    /// whose batch is divided (`train.accumulate`) the first part is shown, of the evaluations nothing.
    fn observer(&mut self) -> Option<&mut dyn Observer> {
        None
    }

    /// Notes what there is after a step. Whatever was observed belongs to this step; what the probe
    /// keeps beyond that is lost where a run is interrupted, so that values must not depend on it.
    fn measure(&mut self, seen: &Snapshot<'_>, values: &mut Values);
}

/// Whether a name begins as that of a probe does.
pub fn exists(name: &str) -> bool {
    registry::find(name).is_some()
}
