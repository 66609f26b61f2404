//! E21: the recipes of E1 in twelve layers and 36 million parameters, with the control that E1 lacks. CHON
//! keeps `o_proj` and the decay gate in bfloat16; the control keeps the output gate, which has as many
//! parameters as `o_proj`.
//!
//! Arms and criterion were written before the first run.

use super::*;
use crate::study_scale::StudyScale;
use exmy_train::train::config::Config;
use exmy_train::train::schedule::Schedule;

/// Gated linear attention of twelve layers, width 320 and contexts of 256 tokens, with norms, heads and
/// training of `gla-340m`. With a vocabulary of 32,768 tokens it has some 36 M parameters. A step has 16,384
/// tokens.
const SIZE: Set = Set::At([
    &[grids::USUAL],
    &[],
    &[Set::Planned, Set::Batch(64), Set::Change(short), Set::With("+sums=hopper:bf16")],
]);

fn short(config: &mut Config, _: StudyScale) {
    if let Some(model) = config.model.decoder_mut() {
        (model.layers, model.d_model, model.hidden, model.context) = (12, 320, 864, 256);
    }
    let (train, record) = (&mut config.train, &mut config.record);
    train.accumulate = 1;
    train.schedule = Schedule::Wsd { decay_fraction: 0.2 };
    (record.keep, record.eval_windows) = (1, 256);
}

pub(super) static LARGER: Figure = Figure {
    id: "E21",
    title: "CHON's parts and as many other parameters in bfloat16, in twelve layers",
    source: "arXiv 2602.02047, abstract and Table 2: GLA-1.3B, 60 G tokens, gaps 0.94 % (NVFP4) and 0.58 % \
             (CHON)",
    says: "The gap of CHON is below that of NVFP4; so is that of HCP, its patches alone; and bfloat16 after \
           queries and keys (post-QK) leaves less of the gap than bfloat16 in the output gate, which has \
           nearly as many parameters. All blocks are in NVFP4: the head is 41 % of all products, more than \
           the recipe leaves in bfloat16 with the last blocks. A model of twelve layers, width 320 and 36 M \
           parameters learns 52.4 M tokens of a vocabulary of 32 thousand; the paper's has 1.3 G and learns \
           60 G.",
    grid: Grid {
        model: ["gla-nano", "", "gla-340m"],
        steps: [10, 0, 3200],
        rate: [1e-3; 3],
        seeds: [1, 0, 5],
        sets: &[SIZE],
        axes: &[Axis::new(
            "recipe",
            &[
                BF16,
                level("NVFP4", ALL_NVFP4),
                level("post-QK", Set::Recipe("nv-post-qk+last=0")),
                level("output gate", Set::Recipe("nv-nvfp4+last=0+protect=g_proj")),
                level("HCP", Set::Recipe("nv-hcp+last=0")),
                level("CHON", Set::Recipe("chon+last=0")),
            ],
        )],
        ..Grid::NONE
    },
    judged: Judged::By(Claim::new(Test::All(&[
        narrower_by!(0.36, "0.36 points", narrower(&["CHON"], &["NVFP4"])),
        narrower(&["HCP"], &["NVFP4"]),
        narrower(&["post-QK"], &["output gate"]),
    ]))),
    views: &[
        gaps("What patches and protected operators leave of the gap in twelve layers"),
        View::Pairs {
            caption: "differences of gaps, points, paired by seed, with 95 % intervals",
            metric: GAP_TO_BF16,
            pairs: &[
                ["post-QK", "NVFP4"],
                ["output gate", "NVFP4"],
                ["post-QK", "output gate"],
                ["HCP", "NVFP4"],
                ["CHON", "NVFP4"],
                ["CHON", "post-QK"],
                ["CHON", "output gate"],
            ],
        },
    ],
};
