//! E11 to E20: patches of hot channels, and what each part of a recipe is worth.

use super::*;

pub(super) static PATCHES: Figure = Figure {
    id: "E11",
    title: "what patches of hot channels give back",
    source: "arXiv 2602.02047, comparison of patches, and the bounds that leave the product of both \
             residuals",
    says: "Where channels of a trained model are planted hot, times 16 or more, patches make its gap \
           smaller; nothing is trained after that. That the error of a product falls with the number of \
           patched channels, and that patching both residuals (O2-B) leaves less than patching either, \
           follows from how patches are defined: it is checked, and not judged.",
    grid: Grid { axes: &[Axis::new("recipe", &[BF16])], ..LONG },
    judged: Judged::Own { asks: patches::ASKS, effect: EffectSize::Unstated, find: patches::find },
    views: &[],
};

const UNPATCHED: Level = level("not patched", ALL_NVFP4);
const K32: Level = level("k = 32", Set::Recipe("nv-nvfp4+last=0+hcp=s-o2-b-k32"));
const PATCHED: [Level; 11] = [
    BF16,
    UNPATCHED,
    level("k = 16", Set::Recipe("nv-nvfp4+last=0+hcp=s-o2-b-k16")),
    K32,
    level("k = 64", Set::Recipe("nv-nvfp4+last=0+hcp=s-o2-b-k64")),
    level("k = 128", Set::Recipe("nv-nvfp4+last=0+hcp=s-o2-b-k128")),
    level("k = 32, chosen each step", Set::Recipe("nv-nvfp4+last=0+hcp=s-o2-b-k32-r1")),
    level("k = 32, each 10 steps", Set::Recipe("nv-nvfp4+last=0+hcp=s-o2-b-k32-r10")),
    level("k = 32, once", Set::Recipe("nv-nvfp4+last=0+hcp=s-o2-b-k32-r1000000")),
    level("k = 32, frozen from step 300", Set::Recipe("nv-nvfp4+last=0+hcp=s-o2-b-k32-freeze300")),
    level("k = 32, backward patched", Set::Recipe("nv-nvfp4+last=0+hcp=s-o2-b-k32-dgrad-wgrad")),
];

pub static TRAINING: Figure = Figure {
    id: "E12",
    title: "patches in training with planted hot channels",
    source: "arXiv 2602.02047, hot-channel patches; neither the number of channels nor how often they are \
             chosen could be read",
    says: "Where four channels begin 16 times as large (function unchanged), patching the most channels \
           makes the gap smaller than without a patch, and choosing the channels once instead of every 10 \
           steps makes it no larger, by less than 0.36 points, what CHON gains in the paper; where only k = \
           32 is run, the first alone is judged. E11 has such channels in models that are not trained any \
           further.",
    grid: Grid {
        seeds: [1, 3, 1],
        sets: &[grids::USUAL, grids::PLANTED],
        axes: &[Axis {
            name: "recipe",
            levels: [&[BF16, UNPATCHED, K32], &[BF16, UNPATCHED, K32], &PATCHED],
        }],
        ..SHORT
    },
    // What is claimed of choosing once is that there is no difference: scatter that hides one says nothing.
    judged: Judged::By(Claim::new(Test::Where {
        level: "k = 128",
        test: &Test::All(&[
            narrower(&["k = 128"], &["not patched"]),
            Test::Bound {
                value: PerSeed::Less(GAP_TO_BF16, &["k = 32, once"], &["k = 32, each 10 steps"]),
                bound: 0.36,
                above: false,
            },
        ]),
        other: &narrower_by!(
            0.36,
            "0.36 points, what CHON gains",
            narrower(&["k = 32"], &["not patched"])
        ),
    })),
    views: &[
        View::Gaps {
            title: "Planted hot channels in training, patched and not",
            under: "gated linear attention, four channels planted",
            base: BASE,
        },
        View::Text(
            "Numbers of channels are of 128 and multiples of 16; 1, 2, 5 and 10 % would all be 16. Of the \
             planted channels training makes what it likes.",
        ),
    ],
};

pub(super) static PARTS: Figure = Figure {
    id: "E13",
    title: "what each part of the NVFP4 recipe is worth",
    source: "arXiv 2509.25149, Figures 4 and 8: 12B and 1.2B, parts removed and added",
    says: "With all blocks in NVFP4, rounding gradients to nearest instead of stochastically makes the gap \
           larger, and keeping the last block, or the last two, in bfloat16 makes it smaller. Rotations and \
           tiles may be null at this size, as the paper says of small models.",
    grid: Grid {
        axes: &[recipe_axis(&[
            BF16,
            level("all blocks NVFP4", ALL_NVFP4),
            level("without stochastic rounding", Set::Recipe("nv-nvfp4+last=0+sr=none")),
            level("without rotation", Set::Recipe("nv-nvfp4+last=0+rht=none")),
            level("without tiles", Set::Recipe("nv-nvfp4+last=0+weight-block=1x16")),
            level("last block bf16", Set::Recipe("nv-nvfp4+last=1")),
            level("last two blocks bf16", Set::Recipe("nv-nvfp4+last=2")),
        ])],
        ..SHORT
    },
    judged: Judged::By(Claim::new(Test::All(&[
        narrower(&["all blocks NVFP4"], &["without stochastic rounding"]),
        narrower(&["last block bf16"], &["all blocks NVFP4"]),
        narrower(&["last two blocks bf16"], &["all blocks NVFP4"]),
    ]))),
    views: &[gaps("Stochastic gradients and last blocks in bfloat16")],
};

pub(super) static STOCHASTIC: Figure = Figure {
    id: "E14",
    title: "stochastic rounding belongs to gradients",
    source: "arXiv 2509.25149, Figure 10: 1.2B, of activations or weights it diverges",
    says: "Rounding activations or weights stochastically makes the gap larger than rounding everything to \
           nearest.",
    grid: Grid {
        axes: &[recipe_axis(&[
            BF16,
            level("none", Set::Recipe("nv-nvfp4+last=0+sr=none")),
            level("gradients", ALL_NVFP4),
            level("activations", Set::Recipe("nv-nvfp4+last=0+sr=act")),
            level("weights", Set::Recipe("nv-nvfp4+last=0+sr=weight")),
            level("all of backward", Set::Recipe("nv-nvfp4+last=0+sr=bwd")),
        ])],
        ..SHORT
    },
    judged: Judged::By(Claim::new(Test::All(&[
        narrower(&["none"], &["activations"]),
        narrower(&["none"], &["weights"]),
    ]))),
    views: &[gaps("Stochastic rounding by tensor")],
};

pub(super) static ROTATIONS: Figure = Figure {
    id: "E15",
    title: "rotations: where, of what size, with which signs",
    source: "arXiv 2509.25149, Figures 11 to 13: on weight gradients they help, elsewhere they hurt; sizes \
             and signs matter at 12B alone",
    says: "Judged is a hypothesis of our own about why: where columns of activations have spikes along the \
           tokens, rotating the operands of the weight gradient by 16 raises its ratio of signal to noise. \
           The paper speaks of losses. Those are shown and not judged: in models so small differences are \
           expected to be null.",
    grid: Grid { seeds: [1, 3, 1], axes: &[recipe_axis(&ROTATED)], ..SHORT },
    judged: Judged::Computed {
        asks: rotations::ASKS,
        effect: EffectSize::Incomparable("the hypothesis is ours, and has no size"),
        find: rotations::find,
    },
    views: &[gaps("Rotations in training")],
};

/// Recipes by their rotations, the baseline first.
const ROTATED: [Level; 10] = [
    BF16,
    UNROTATED,
    BY_16,
    level("forward, 16", Set::Recipe("nv-nvfp4+last=0+rht=fprop")),
    level("input gradient, 16", Set::Recipe("nv-nvfp4+last=0+rht=dgrad")),
    OTHERWISE[0],
    OTHERWISE[1],
    OTHERWISE[2],
    OTHERWISE[3],
    OTHERWISE[4],
];
pub(super) const UNROTATED: Level = level("none", Set::Recipe("nv-nvfp4+last=0+rht=none"));
/// As the recipe does it: the operands of the weight gradient.
pub(super) const BY_16: Level = level("weight gradient, 16", ALL_NVFP4);
/// The same operands by other sizes or signs.
pub(super) const OTHERWISE: [Level; 5] = [
    level("weight gradient, 4", Set::Recipe("nv-nvfp4+last=0+rht-size=4")),
    level("weight gradient, 64", Set::Recipe("nv-nvfp4+last=0+rht-size=64")),
    level("weight gradient, 128", Set::Recipe("nv-nvfp4+last=0+rht-size=128")),
    level("weight gradient, 16, no signs", Set::Recipe("nv-nvfp4+last=0+rht-signs=none")),
    level("weight gradient, 16, fresh signs", Set::Recipe("nv-nvfp4+last=0+rht-signs=fresh")),
];

pub(super) static BLOCKS: Figure = Figure {
    id: "E16",
    title: "weights should be the same numbers in both products",
    source: "arXiv 2509.25149, Figure 14: 1.2B, blocks of weights",
    says: "Blocks of 16 along the same dimension in both products that read a weight, and tiles of 16 x 16, \
           have smaller gaps than blocks along each product's own sum.",
    grid: Grid {
        axes: &[recipe_axis(&[
            BF16,
            level("1x16, same dimension", Set::Recipe("nv-nvfp4+last=0+weight-block=1x16-same")),
            level("16x16", ALL_NVFP4),
            level("1x16, different dimensions", Set::Recipe("nv-nvfp4+last=0+weight-block=1x16")),
        ])],
        ..SHORT
    },
    judged: Judged::By(Claim::new(Test::All(&[
        narrower(&["1x16, same dimension"], &["1x16, different dimensions"]),
        narrower(&["16x16"], &["1x16, different dimensions"]),
    ]))),
    views: &[gaps("Blocks of weights: one dimension, tiles, two dimensions")],
};

pub(super) static SWITCH: Figure = Figure {
    id: "E17",
    title: "switching forward products to bfloat16 late recovers the gap",
    source: "arXiv 2509.25149, Appendix D: at 82 % of the tokens 1.5 % become 0.5 % (forward alone), \
             backward alone gives nothing",
    says: "From 80 % of the steps on, where the learning rate begins to fall, forward products in bfloat16 \
           make the final gap smaller, and backward products alone recover less than half of that.",
    grid: Grid {
        axes: &[recipe_axis(&[
            BF16,
            level("never", NVFP4.set),
            level("forward from 60 %", late!(60, "nv-nvfp4+late=60%+late-scope=forward")),
            level("backward from 60 %", late!(60, "nv-nvfp4+late=60%+late-scope=backward")),
            level("both from 60 %", late!(60, "nv-nvfp4+late=60%")),
            level("forward from 80 %", late!(80, "nv-nvfp4+late=80%+late-scope=forward")),
            level("backward from 80 %", late!(80, "nv-nvfp4+late=80%+late-scope=backward")),
            level("both from 80 %", late!(80, "nv-nvfp4+late=80%")),
            level("forward from 95 %", late!(95, "nv-nvfp4+late=95%+late-scope=forward")),
            level("backward from 95 %", late!(95, "nv-nvfp4+late=95%+late-scope=backward")),
            level("both from 95 %", late!(95, "nv-nvfp4+late=95%")),
        ])],
        ..LONG
    },
    judged: Judged::By(Claim::new(Test::All(&[
        narrower_by!(1.0, "1 point", narrower(&["forward from 80 %"], &["never"])),
        // Recovered by backward, less half of that by forward.
        Test::Bound {
            value: PerSeed::Sum(&[
                (0.5, GAP_TO_BF16, &["never"]),
                (0.5, GAP_TO_BF16, &["forward from 80 %"]),
                (-1.0, GAP_TO_BF16, &["backward from 80 %"]),
            ]),
            bound: 0.0,
            above: false,
        },
    ]))),
    views: &[View::Gaps {
        title: "Products that go back to bfloat16 late",
        under: "gated linear attention, branches of one run a seed",
        base: BASE,
    }],
};

pub(super) static FORMATS: Figure = Figure {
    id: "E18",
    title: "NVFP4 loses less than MXFP4",
    source: "arXiv 2509.25149, Figure 6: 8B, 1 T tokens, relative errors of about 1.5 % and 2.5 %",
    says: "The gap of NVFP4 (blocks of 16, E4M3 scales, tensor scale) is below that of MXFP4 (blocks of 32, \
           scales rounded up to powers of two, rotations of 32) under the same recipe, in all blocks. Steps, \
           rate and blocks were changed after results had been seen, as in E1.",
    grid: Grid {
        axes: &[Axis::new(
            "recipe",
            &[BF16, level("NVFP4", ALL_NVFP4), level("MXFP4", Set::Recipe("nv-mxfp4+last=0"))],
        )],
        ..SHORT
    },
    judged: Judged::By(Claim::new(narrower_by!(1.0, "1 point", narrower(&["NVFP4"], &["MXFP4"])))),
    views: &[gaps("NVFP4 and MXFP4 against bfloat16")],
};

pub(super) static OVERHEAD: Figure = Figure {
    id: "E19",
    title: "what patches cost",
    source: "arXiv 2602.02047, by what readers report: training takes 9 to 13 % longer with fused kernels",
    says: "O2-B adds 2 k / K multiplications to a forward product of K channels, k of them patched. Counted \
           from the plans of the recipes; times are those of this program, which emulates formats, and say \
           nothing of hardware.",
    grid: Grid {
        axes: &[Axis::new(
            "recipe",
            &[
                level("nv-nvfp4+last=0", ALL_NVFP4),
                level("nv-post-qk+last=0", Set::Recipe("nv-post-qk+last=0")),
                level("nv-hcp+last=0", Set::Recipe("nv-hcp+last=0")),
                level("chon+last=0", Set::Recipe("chon+last=0")),
            ],
        )],
        ..SHORT
    },
    judged: Judged::Shown(overhead::find),
    views: &[],
};

pub(super) static ABILITIES: Figure = Figure {
    id: "E20",
    title: "recall and induction after training in NVFP4",
    source: "a question of our own, after \"downstream accuracy is maintained\" in the abstract of arXiv \
             2602.02047",
    says: "On the memory task (values of six keys, repetition of twelve letters, resets between episodes) a \
           model trained under CHON is at most 2 percentage points behind bfloat16.",
    grid: Grid { axes: &[BOTH, recipe_axis(&[BF16, NVFP4, CHON])], ..MEMORY },
    judged: Judged::Own {
        asks: abilities::ASKS,
        effect: EffectSize::Stated,
        find: abilities::find,
    },
    views: &[],
};
