//! The probes that have names: what each measures, and what it costs.
//!
//! A name is a word, or a word, a colon and an argument: `sharpness`, `sharpness:5e-4`,
//! `lastbin.gamma:e2m3`. Names that earlier versions had are read, too ([`old`](crate::train::old)).

use super::attention::Attention;
use super::bias::{Bias, By};
use super::hot::Hot;
use super::last_bin::{LastBin, Of};
use super::places::{Gates, Logits, Spread};
use super::products::Products;
use super::rounding::RoundingProbe;
use super::sharpness::Sharpness;
use super::tails::{Kind, Tails};
use super::weights::{Gamma, Norms, Swiglu};
use super::{Argument, Probe};
use crate::nn::model;
use crate::nn::parameters::Role;
use crate::train::old::modern;
use exmy::error::{Error, Result};

type NewProbe = std::result::Result<Box<dyn Probe>, String>;

/// A kind of probe.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The word before the colon.
    pub name: &'static str,
    /// Whether it measures something at each step that is due, whatever the recipe. Others may have no value:
    /// `rounding` where nothing is rounded, comparisons of gradients where one is 0.
    pub steady: bool,
    /// What may follow it; empty if nothing may.
    pub argument: &'static str,
    /// What is measured.
    pub measures: &'static str,
    /// What it takes besides the step.
    pub cost: &'static str,
    make: fn(&str, Argument<'_>, &model::Config) -> NewProbe,
}

/// All of them.
pub const ALL: &[Entry] = &[
    Entry {
        name: "lastbin.gamma",
        steady: true,
        argument: "FORMAT",
        measures: "share of the gains of all norms in the last bin of their block; parts: each norm",
        cost: "almost nothing",
        make: |name, argument, model| {
            has_gains(model)?;
            boxed(LastBin::new(Of::Gamma, name, argument))
        },
    },
    Entry {
        name: "lastbin.weights",
        steady: true,
        argument: "FORMAT",
        measures: "the same of all weight matrices; parts: each",
        cost: "a pass over the weights",
        make: |name, argument, _| boxed(LastBin::new(Of::Weights, name, argument)),
    },
    Entry {
        name: "lastbin.activations",
        steady: true,
        argument: "FORMAT",
        measures: "the same of the outputs of norms, activation functions and blocks; parts: each",
        cost: "a pass over these activations",
        make: |name, argument, _| boxed(LastBin::new(Of::Activations, name, argument)),
    },
    Entry {
        name: "rho_same",
        steady: false,
        argument: "",
        measures: "relative distance of the gradient from that of f32, same weights; parts: each tensor",
        cost: "another step, in f32",
        make: |name, argument, _| plain(name, argument, Ok(Bias { by: By::Rho, twin: false })),
    },
    Entry {
        name: "rho_traj",
        steady: false,
        argument: "",
        measures: "the same from the gradient of a run in f32 from the beginning; parts: each tensor",
        cost: "a second run in f32 and its memory; a resume begins it anew",
        make: |name, argument, _| plain(name, argument, Ok(Bias { by: By::Rho, twin: true })),
    },
    Entry {
        name: "cos_same",
        steady: false,
        argument: "",
        measures: "cosine of the angle between the gradients of `rho_same`; parts: each tensor",
        cost: "another step, in f32",
        make: |name, argument, _| plain(name, argument, Ok(Bias { by: By::Cos, twin: false })),
    },
    Entry {
        name: "cos_traj",
        steady: false,
        argument: "",
        measures: "the same of `rho_traj`; parts: each tensor",
        cost: "a second run in f32 and its memory; a resume begins it anew",
        make: |name, argument, _| plain(name, argument, Ok(Bias { by: By::Cos, twin: true })),
    },
    Entry {
        name: "eps_same",
        steady: false,
        argument: "",
        measures: "difference of the means of the gradients of `rho_same`; parts: each tensor",
        cost: "another step, in f32",
        make: |name, argument, _| plain(name, argument, Ok(Bias { by: By::Eps, twin: false })),
    },
    Entry {
        name: "eps_traj",
        steady: false,
        argument: "",
        measures: "the same of `rho_traj`; parts: each tensor",
        cost: "a second run in f32 and its memory; a resume begins it anew",
        make: |name, argument, _| plain(name, argument, Ok(Bias { by: By::Eps, twin: true })),
    },
    Entry {
        name: "norms",
        steady: true,
        argument: "",
        measures: "l2 norms of gradient and weights; parts: each tensor",
        cost: "a pass over both",
        make: |name, argument, _| plain(name, argument, Ok(Norms)),
    },
    Entry {
        name: "gamma",
        steady: false,
        argument: "",
        measures: "mean, deviation and range of the gains of each norm",
        cost: "almost nothing",
        make: |name, argument, model| plain(name, argument, has_gains(model).map(|()| Gamma)),
    },
    Entry {
        name: "rounding",
        steady: false,
        argument: "",
        measures: "noise, saturation and flushing of each operand of each product",
        cost: "a pass over each operand, and quantizing it twice more",
        make: |name, argument, _| plain(name, argument, Ok(RoundingProbe::default())),
    },
    Entry {
        name: "kurtosis",
        steady: true,
        argument: "",
        measures: "excess kurtosis of inputs, weights and output gradients of linear operators",
        cost: "a pass over each",
        make: |name, argument, _| plain(name, argument, Ok(Tails::new(Kind::Kurtosis))),
    },
    Entry {
        name: "channels",
        steady: true,
        argument: "",
        measures: "largest magnitudes of input channels and outputs of linear operators",
        cost: "a pass over each, and sorting it",
        make: |name, argument, _| plain(name, argument, Ok(Tails::new(Kind::Channels))),
    },
    Entry {
        name: "spikes",
        steady: true,
        argument: "",
        measures: "largest magnitudes of blocks over their root mean square and the median block's",
        cost: "a pass over each operand",
        make: |name, argument, _| plain(name, argument, Ok(Tails::new(Kind::Spikes))),
    },
    Entry {
        name: "hot",
        steady: true,
        argument: "COUNT",
        measures: "input channels with the largest rounding errors and magnitudes; overlap of the two",
        cost: "a pass over each operand, and quantizing it once more",
        make: |name, argument, _| boxed(Hot::new(name, argument)),
    },
    Entry {
        name: "products",
        steady: true,
        argument: "",
        measures: "error of each product against that of its unrounded operands",
        cost: "a further f32 product for each, and memory for its operands",
        make: |name, argument, _| plain(name, argument, Ok(Products::default())),
    },
    Entry {
        name: "attention",
        steady: true,
        argument: "",
        measures: "entropy, logits and sink of the softmax of each layer",
        cost: "attention of four sequences, in f64",
        make: |name, argument, model| plain(name, argument, Attention::new(model)),
    },
    Entry {
        name: "gates",
        steady: true,
        argument: "",
        measures: "range of the decay gates of gated linear attention",
        cost: "sorting them",
        make: |name, argument, model| plain(name, argument, Gates::new(model)),
    },
    Entry {
        name: "swiglu",
        steady: true,
        argument: "",
        measures: "alignment of gate and up, and the tail of their product",
        cost: "a pass over both weights and activations",
        make: |name, argument, model| plain(name, argument, Swiglu::new(model)),
    },
    Entry {
        name: "activations",
        steady: true,
        argument: "",
        measures: "mean and deviation of the outputs of norms, activation functions and blocks",
        cost: "a pass over these activations",
        make: |name, argument, _| plain(name, argument, Ok(Spread::default())),
    },
    Entry {
        name: "logits",
        steady: true,
        argument: "",
        measures: "largest magnitude of the head's logits, and their logsumexp",
        cost: "a pass over them",
        make: |name, argument, model| match model.decoder() {
            Some(_) => plain(name, argument, Ok(Logits::default())),
            None => Err("it is of the logits of a model of tokens; the proxy has none".into()),
        },
    },
    Entry {
        name: "sharpness",
        steady: true,
        argument: "EPS",
        measures: "sharpness of the loss in the last tokens' logits, in percent, in closed form; part: each",
        cost: "forward passes of 32 sequences",
        make: |name, argument, model| match model.decoder() {
            Some(_) => boxed(Sharpness::new(name, argument)),
            None => Err("it is of the logits of a model of tokens; the proxy has none".into()),
        },
    },
    Entry {
        name: "sharpness_lbfgsb",
        steady: true,
        argument: "ITERATIONS",
        measures: "the same by ten iterations of L-BFGS-B, as published; parts: iterations, loss",
        cost: "forward passes of 32 sequences, and the search",
        make: |name, argument, model| match model.decoder() {
            Some(_) => boxed(Sharpness::searched(name, argument)),
            None => Err("it is of the logits of a model of tokens; the proxy has none".into()),
        },
    },
];

/// Whether there are gains to look at.
fn has_gains(model: &model::Config) -> Result<(), String> {
    match model.layout().iter().any(|entry| entry.role == Role::Norm) {
        true => Ok(()),
        false => Err("it is of the gains of norms; the model has none".into()),
    }
}

fn boxed<P: Probe + 'static>(probe: std::result::Result<P, String>) -> NewProbe {
    Ok(Box::new(probe?))
}

/// A probe without argument.
fn plain<P: Probe + 'static>(
    name: &str,
    argument: Argument<'_>,
    probe: std::result::Result<P, String>,
) -> NewProbe {
    match argument {
        None => boxed(probe),
        Some(_) => Err(format!("`{}` takes no argument", name.split(':').next().unwrap_or(name))),
    }
}

/// The kind of probe a name begins with.
pub fn find(name: &str) -> Option<&'static Entry> {
    let name = modern(name);
    let word = name.split(':').next().unwrap_or(&name);
    ALL.iter().find(|entry| entry.name == word)
}

/// The words that names begin with.
pub fn names() -> Vec<&'static str> {
    ALL.iter().map(|entry| entry.name).collect()
}

/// The probe of that name for a model.
///
/// # Errors
/// If there is none, its argument is wrong, or the model has nothing for it to look at.
pub fn by_name(name: &str, model: &model::Config) -> Result<Box<dyn Probe>> {
    let unknown = || {
        Error::new(format!("there is no probe {name:?}"))
            .hint(format!("there are {}", names().join(", ")))
    };
    let entry = find(name).ok_or_else(unknown)?;
    let name = &modern(name);
    let argument = name.split_once(':').map(|(_, argument)| argument);
    (entry.make)(name, argument, model)
        .map_err(|reason| Error::new(format!("the probe {name:?} cannot be made: {reason}")))
}
