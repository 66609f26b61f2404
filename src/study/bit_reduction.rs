//! "To FP8 and Back Again: Quantifying Reduced Precision Effects on LLM Training Stability" (Lee et al., arXiv
//! 2405.18710): mantissa bits are cut off the operands of products until training breaks.

mod e8;

use crate::study::papers::Paper;

/// The study.
pub const PAPER: Paper = Paper {
    name: "bit-reduction",
    title: "Cutting mantissa bits until training breaks",
    source: "after \"To FP8 and Back Again: Quantifying Reduced Precision Effects on LLM Training Stability\", Lee et al., arXiv 2405.18710",
    about: "The paper trains GPT-2 124M and Llama models of 120M and 7B; here the same recipes train models that \
            two cores finish in minutes. Small models are more stable than large ones, so learning rates are \
            stressed and fewer bits are tried than in the paper.",
    figures: &[&e8::Ordering],
};
