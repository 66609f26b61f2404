//! "Dissecting Outlier Dynamics in LLM NVFP4 Pretraining" (Dong et al., arXiv 2602.02047) and the recipe it starts
//! from, "Pretraining Large Language Models with NVFP4" (NVIDIA, arXiv 2509.25149): outliers of gated linear
//! attention and of softmax attention, which parts of a recipe they hurt, and what patching hot channels
//! gives back.

mod ablations;
mod claim;
mod common;
mod e01;
mod e02;
mod e03;
mod e04;
mod e05;
mod e06;
mod e07;
mod e08;
mod e09;
mod e10;
mod e11;
mod e12;
mod e15;
mod e17;
mod e18;
mod e19;
mod e20;
mod frozen;
mod memory;
mod show;

use crate::papers::Paper;

/// The study.
pub const PAPER: Paper = Paper {
    name: "nvfp4-outliers",
    title: "Outliers in NVFP4 training, and patches for hot channels",
    source: "after \"Dissecting Outlier Dynamics in LLM NVFP4 Pretraining\", Dong et al., arXiv 2602.02047, and \
             \"Pretraining Large Language Models with NVFP4\", NVIDIA, arXiv 2509.25149",
    about: "The papers train models of 0.3 to 12 billion parameters on up to ten trillion tokens. Here the same \
            recipes train pairs of models of some 0.9 million parameters, one with gated linear attention (GLA), \
            one with softmax attention (SA), on a small artificial language with a learned vector at the \
            first position: 1500 steps of 512 tokens at a stressed rate where outliers are looked for, 600 at half of \
            it where recipes are compared, then with all blocks in NVFP4. Gaps are 100 (L - L_bf16) / L_bf16 of mean training losses of the last tenth of the \
            steps, of runs with the same seed: same initial weights, same batches. Intervals are Student's at 95 % \
            over seeds; an ordering is claimed only where the interval of the paired difference excludes 0.",
    figures: &[
        &e01::Gap,
        &e02::Sensitivity,
        &e03::Tails,
        &e04::Spikes,
        &e05::Persistence,
        &e06::Gates,
        &e07::Softmax,
        &e08::Flushed,
        &e09::Depth,
        &e10::Alignment,
        &e11::Patches,
        &e12::Training,
        &ablations::PARTS,
        &ablations::STOCHASTIC,
        &e15::Rotations,
        &ablations::BLOCKS,
        &e17::Switch,
        &e18::Formats,
        &e19::Overhead,
        &e20::Abilities,
    ],
};
