//! "To FP8 and Back Again: Quantifying Reduced Precision Effects on LLM Training Stability" (Lee et al., arXiv
//! 2405.18710): mantissa bits are cut off the operands of products until training breaks.

mod common;
mod exponent;
mod forecast;
mod formats;
mod lead;
mod margins;
mod mitigations;
mod noise;
mod ordering;
mod rates;
mod seeds;
mod surface;

use crate::study::papers::Paper;
use mitigations::{Arms, Kind};

/// The study.
pub const PAPER: Paper = Paper {
    name: "bit-reduction",
    title: "Cutting mantissa bits until training breaks",
    source: "after \"To FP8 and Back Again: Quantifying Reduced Precision Effects on LLM Training Stability\", Lee et al., arXiv 2405.18710",
    about: "The paper trains GPT-2 124M and Llama models of 120M and 7B; here the same recipes train models that \
            two cores finish in minutes. Small models are more stable than large ones, so learning rates are \
            stressed and fewer bits are tried than in the paper. Runs of one seed share initial weights and \
            batches in every precision.",
    figures: &[
        &seeds::Seeds,
        &surface::Surface,
        &formats::Diagram,
        &formats::Masked,
        &Arms { kind: Kind::MsAmp },
        &ordering::Ordering { large: false },
        &ordering::Ordering { large: true },
        &rates::Spikes,
        &forecast::Forecast,
        &noise::Noise,
        &exponent::Exponent,
        &margins::Rates,
        &Arms { kind: Kind::Mitigations },
        &rates::Roundings,
    ],
};
