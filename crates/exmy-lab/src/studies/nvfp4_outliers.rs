//! "Dissecting Outlier Dynamics in LLM NVFP4 Pretraining" (Dong et al., arXiv 2602.02047) and the recipe it
//! starts from, "Pretraining Large Language Models with NVFP4" (NVIDIA, arXiv 2509.25149).
//!
//! They are about outliers of gated linear attention and of softmax attention, which parts of a recipe these
//! hurt, and what patching hot channels gives back.

pub mod abilities;
pub mod depth;
pub mod flushed;
mod grids;
pub mod hot_channels;
mod larger;
pub mod operators;
pub mod overhead;
pub mod patches;
mod product;
pub mod recipes;
pub mod rotations;
pub mod weights;

use crate::claim::{Claim, PerSeed, Test};
use crate::figure::{EffectSize, Figure, Judged};
use crate::finding::Paper;
use crate::grid::{After, Axis, Grid, Level, Set, level, number};
use crate::measure::{Metric, Probed, at_the_end, of_inputs, of_parts};
use crate::view::{Column, Show, Shown, Usual, View, by_point, column, level_of, shown};
use exmy_train::nn::site::{Operand, Operator};
use grids::{
    ALIGNED, ATTENTION, BF16, BOTH, CHON, GATES, HEAD_NORM, LONG, MEMORY, NO_NORM, NVFP4, SETUPS,
    SHORT, SILENT, late,
};
pub(crate) use grids::{FROZEN, GLA_BRANCHES, OPERATORS, SA_BRANCHES};
use larger::LARGER;
use recipes::{
    ABILITIES, BLOCKS, FORMATS, OVERHEAD, PARTS, PATCHES, ROTATIONS, STOCHASTIC, SWITCH, TRAINING,
};

/// The study.
pub(crate) const PAPER: Paper = Paper {
    name: "nvfp4-outliers",
    title: "Outliers in NVFP4 training, and patches for hot channels",
    source: "after \"Dissecting Outlier Dynamics in LLM NVFP4 Pretraining\", Dong et al., arXiv 2602.02047, \
             and \"Pretraining Large Language Models with NVFP4\", NVIDIA, arXiv 2509.25149",
    about: "The papers train models of 0.3 to 12 billion parameters on up to ten trillion tokens. Here the \
            same recipes train pairs of models of some 0.9 million parameters, one with gated linear \
            attention (GLA), one with softmax attention (SA), on a small artificial language with a learned \
            vector at the first position: 1500 steps of 512 tokens at a stressed rate where outliers are \
            looked for, 600 at half of it where recipes are compared, then with all blocks in NVFP4. Gaps \
            are 100 (L - L_bf16) / L_bf16 of mean training losses of the last tenth of the steps, of runs \
            with the same seed: same initial weights, same batches. Intervals are Student's at 95 % over \
            seeds; an ordering is claimed only where the interval of the paired difference excludes 0.",
    figures: &[
        &GAP,
        &SENSITIVITY,
        &TAILS,
        &SPIKES,
        &PERSISTENCE,
        &GATE,
        &SOFTMAX,
        &FLUSHED,
        &DEPTH,
        &ALIGNMENT,
        &PATCHES,
        &TRAINING,
        &PARTS,
        &STOCHASTIC,
        &ROTATIONS,
        &BLOCKS,
        &SWITCH,
        &FORMATS,
        &OVERHEAD,
        &ABILITIES,
        &LARGER,
    ],
};

/// The baseline of gaps.
const BASE: &[&str] = &["bf16"];
const GAP_TO_BF16: Metric = Metric::Gap(BASE);

/// The same, and by how many points it is in the paper.
macro_rules! narrower_by {
    ($points:literal, $words:literal, $test:expr) => {
        Test::Sized { size: $points, words: $words, test: &$test }
    };
}

use narrower_by;

/// That the gap of one recipe is below that of another.
const fn narrower(of: &'static [&'static str], over: &'static [&'static str]) -> Test {
    Test::Bound { value: PerSeed::Less(GAP_TO_BF16, of, over), bound: 0.0, above: false }
}

/// Recipes of short runs of gated linear attention, not at small.
const fn recipe_axis(levels: &'static [Level]) -> Axis {
    Axis { name: "recipe", levels: [levels, &[], levels] }
}

/// Gaps of recipes of gated linear attention.
const fn gaps(title: &'static str) -> View {
    View::Gaps { title, under: "gated linear attention", base: BASE }
}

/// The mean and the range over seeds of what a probe measured.
const fn spread(head: &'static str, probed: Probed) -> Column {
    column(head, Show::Spread(probed))
}

const ALL_NVFP4: Set = Set::Recipe("nv-nvfp4+last=0");

pub static GAP: Figure = Figure {
    id: "E1",
    title: "CHON narrows the gap between NVFP4 and bfloat16",
    source: "arXiv 2602.02047, abstract and Table 2: GLA-1.3B, 60 G tokens, gaps 0.94 % (NVFP4) and 0.58 % \
             (CHON)",
    says: "The gap of CHON is below that of the NVFP4 recipe. Judged with all blocks in NVFP4: in a model of \
           four blocks the last one and the head, which the recipe leaves in bfloat16, are a quarter of all \
           products. Steps, rate and blocks are not those that were planned: they were changed after results \
           had been seen.",
    grid: Grid {
        axes: &[Axis::new(
            "recipe",
            &[
                BF16,
                level("NVFP4", ALL_NVFP4),
                level("post-QK", Set::Recipe("nv-post-qk+last=0")),
                level("HCP", Set::Recipe("nv-hcp+last=0")),
                level("CHON", Set::Recipe("chon+last=0")),
                level("NVFP4, last", Set::Recipe("nv-nvfp4")),
                level("CHON, last", Set::Recipe("chon")),
            ],
        )],
        ..SHORT
    },
    judged: Judged::By(Claim::new(narrower_by!(
        0.36,
        "0.36 points",
        narrower(&["CHON"], &["NVFP4"])
    ))),
    views: &[
        gaps("What patches and protected operators leave of the gap of NVFP4"),
        View::Pairs {
            caption: "differences of gaps, points, paired by seed, with 95 % intervals: what each part of \
                      CHON does",
            metric: GAP_TO_BF16,
            pairs: &[
                ["post-QK", "NVFP4"],
                ["HCP", "NVFP4"],
                ["CHON", "NVFP4"],
                ["CHON", "post-QK"],
                ["CHON", "HCP"],
                ["CHON, last", "NVFP4, last"],
            ],
        },
        View::Text(
            "post-QK: o_proj and the decay gate in bfloat16; HCP: hot channels patched; CHON: both; last: \
             the last 15 % of the blocks in bfloat16, as the recipes have it. The paper's gaps are 0.94 % \
             (NVFP4) and 0.58 % (CHON), 0.62 of it. What is in bfloat16 takes products away from NVFP4; \
             patches do not.",
        ),
    ],
};

static SENSITIVITY: Figure = Figure {
    id: "E2",
    title: "which operators NVFP4 hurts most",
    source: "arXiv 2602.02047, Table 3, by what readers report: o_proj 0.058 and down_proj 0.012 (GLA), \
             v_proj 0.143 and down_proj 0.020 (Qwen)",
    says: "Per parameter, o_proj (GLA) and v_proj (SA) are among the most sensitive third of operators and \
           down_proj among the least. Sensitivity: 100 (L_op - L_bf16) / L_bf16 over the operator's share of \
           parameters. The paper trains on with one type of operator in NVFP4; here two hundred steps of \
           that scatter losses by more than one operator changes, so nothing is trained for the verdict: it \
           is of the validation loss of the same weights, with one type of operator in NVFP4 and with none. \
           The training losses of branches are shown, too. Each kind of model has a verdict of its own.",
    grid: Grid { also: &[&SA_BRANCHES, &FROZEN], ..GLA_BRANCHES },
    judged: Judged::Own {
        asks: operators::ASKS,
        effect: EffectSize::Stated,
        find: operators::find,
    },
    views: &[],
};

const NORMAL: Option<(Usual, &str)> = Some((Usual::Of(0.0), "normal"));
const KURTOSIS: Probed = of_inputs("excess kurtosis of inputs", "kurtosis", "");
const fn tail_of(operator: Operator) -> Probed {
    of_inputs("kurtosis of one operator's inputs", "kurtosis", "").of_operator(operator)
}
const RECIPES: Axis = Axis::new("recipe", &[BF16, level("nvfp4", NVFP4.set)]);

pub static TAILS: Figure = Figure {
    id: "E3",
    title: "activations of softmax attention have heavier tails",
    source: "arXiv 2602.02047, Figure 1: kurtosis of GLA and of Qwen over training",
    says: "The excess kurtosis of the inputs of linear operators, averaged over layers and operators and the \
           last third of the run, is higher in softmax attention than in gated linear attention, under \
           bfloat16 and under NVFP4. A table has each operator by itself.",
    grid: Grid { axes: &[RECIPES, BOTH], ..LONG },
    judged: Judged::By(Claim::new(Test::Every {
        axis: "recipe",
        test: &Test::Bound {
            value: PerSeed::Less(Metric::Probed(KURTOSIS), &["GLA"], &["SA"]),
            bound: 0.0,
            above: false,
        },
    })),
    views: &[
        View::Probed {
            title: "Tails of activations: softmax attention and GLA",
            under: "mean over layers and the inputs of q, o, gate and down; bands: range of seeds",
            panels: &[
                Shown {
                    pick: &["bf16"],
                    rule: NORMAL,
                    ..shown("excess kurtosis of inputs, bf16", KURTOSIS)
                },
                Shown {
                    pick: &["nvfp4"],
                    rule: NORMAL,
                    ..shown("excess kurtosis of inputs, nvfp4", KURTOSIS)
                },
            ],
        },
        by_point(
            "excess kurtosis of inputs by operator, last third (mean over layers, and range over \
                      seeds)",
            &[
                level_of("model"),
                level_of("recipe"),
                spread("q, k, v", tail_of(Operator::Q)),
                spread("o", tail_of(Operator::O)),
                spread("gate, up", tail_of(Operator::Gate)),
                spread("down", tail_of(Operator::Down)),
            ],
        ),
        by_point(
            "excess kurtosis of the last third (mean and range over seeds), by operand",
            &[
                level_of("model"),
                level_of("recipe"),
                spread("inputs", KURTOSIS),
                spread(
                    "weights",
                    of_parts("kurtosis of weights", "kurtosis", "").of_operand(Operand::Weight),
                ),
                spread(
                    "output gradients",
                    of_parts("kurtosis of gradients", "kurtosis", "")
                        .of_operand(Operand::GradOutput),
                ),
                spread(
                    "largest channel of inputs",
                    of_inputs("largest kurtosis of channels", "kurtosis", "channels_max"),
                ),
            ],
        ),
    ],
};

const SPIKE: Probed = of_inputs("spike of inputs", "spikes", "rms_p99");

pub static SPIKES: Figure = Figure {
    id: "E4",
    title: "spikes of blocks remain in linear attention",
    source: "arXiv 2602.02047, Figure 4: largest magnitudes of blocks of 16 x 16 in four architectures",
    says: "The 99th percentile of amax / rms over blocks of 16 x 16 of inputs is in GLA at least 0.7 of that \
           in softmax attention (last third). By definition amax / rms of such a block is at most 16. That \
           its kurtosis is lower all the same is E3's claim, and is judged there.",
    grid: Grid { axes: &[RECIPES, BOTH], ..LONG },
    judged: Judged::By(Claim::new(Test::Every {
        axis: "recipe",
        test: &Test::Bound {
            value: PerSeed::Over(Metric::Probed(SPIKE), &["GLA"], &["SA"]),
            bound: 0.7,
            above: true,
        },
    })),
    views: &[
        View::Probed {
            title: "Spikes within blocks, softmax attention and GLA",
            under: "mean over layers and the inputs of q, o, gate and down; bands: range of seeds",
            panels: &[
                Shown { pick: &["bf16"], ..shown("p99 of amax / rms, bf16", SPIKE) },
                Shown { pick: &["nvfp4"], ..shown("p99 of amax / rms, nvfp4", SPIKE) },
            ],
        },
        by_point(
            "blocks of 16 x 16, last third (mean and range over seeds)",
            &[
                level_of("model"),
                level_of("recipe"),
                spread("amax / rms: p99", SPIKE),
                spread("largest", of_inputs("", "spikes", "rms_max")),
                spread("amax / median amax: p99", of_inputs("", "spikes", "median_p99")),
                spread("largest", of_inputs("", "spikes", "median_max")),
            ],
        ),
    ],
};

static PERSISTENCE: Figure = Figure {
    id: "E5",
    title: "hot channels drift, then stay",
    source: "arXiv 2602.02047, Figures 5 and 8: spikes drift at steps 400 to 5 400 and are fixed by some 15 \
             000",
    says: "The Jaccard index of consecutive sets of hot channels rises over the run, and that with the final \
           set is below 0.4 in the first quarter and above 0.7 in the last. Hot are the twentieth of an \
           operator's input channels, at least 16, with the largest magnitudes, as in the paper's pictures; \
           those with the largest rounding errors of input and weight, which patches follow, are shown with \
           them. Judged on small models, many tokens and a constant rate: the usual runs of 1500 steps end \
           before channels settle, and where the rate falls to a hundredth, which was tried last, they stay \
           because weights do.",
    grid: Grid { axes: &[SETUPS], ..LONG },
    judged: Judged::Own {
        asks: hot_channels::ASKS,
        effect: EffectSize::Unstated,
        find: hot_channels::find,
    },
    views: &[],
};

const Z_MAX: Probed = of_parts("largest z", "gates", "max");
const Z_MIN: Probed = of_parts("smallest z", "gates", "min");
const GATE_TOP: Probed = top("largest output of gk_proj", Operator::DecayUp);

const fn top(what: &'static str, operator: Operator) -> Probed {
    of_parts(what, "channels", "output.top").of_operator(operator)
}

const Q_TOP: Probed = top("that of q_proj", Operator::Q);
const K_TOP: Probed = top("k_proj", Operator::K);
const V_TOP: Probed = top("v_proj", Operator::V);
const G_TOP: Probed = top("g_proj", Operator::OutputGate);
const O_TOP: Probed = top("o_proj", Operator::O);
const GATE_PROJ_TOP: Probed = top("gate_proj", Operator::Gate);
const UP_TOP: Probed = top("up_proj", Operator::Up);
const DOWN_TOP: Probed = top("down_proj", Operator::Down);

static GATE: Figure = Figure {
    id: "E6",
    title: "the decay gate has the largest outputs",
    source: "arXiv 2602.02047, Figure 6b: largest magnitude by component; z from about -120 to 80",
    says: "The largest output of gk_proj (second factor, without its bias; mean over layers, last third) \
           exceeds that of every other component of a block, and the range of the gate's z widens at both \
           ends, under NVFP4. At scale small the text is the embedded language, else the memory task, in \
           which gates have to close at every reset.",
    grid: GATES,
    judged: Judged::By(Claim::new(Test::All(&[
        Test::Bound {
            value: PerSeed::Beyond(
                GATE_TOP,
                &[Q_TOP, K_TOP, V_TOP, G_TOP, O_TOP, GATE_PROJ_TOP, UP_TOP, DOWN_TOP],
                &["NVFP4"],
            ),
            bound: 0.0,
            above: true,
        },
        Test::Rising { probed: Z_MAX, of: &["NVFP4"], falls: false },
        Test::Rising { probed: Z_MIN, of: &["NVFP4"], falls: true },
    ]))),
    views: &[
        View::Probed {
            title: "Range of the decay gate's z",
            under: "GLA, mean over layers; bands: range of seeds",
            panels: &[shown("largest z", Z_MAX), shown("smallest z", Z_MIN)],
        },
        by_point(
            "largest output of each component, mean over layers, last third (mean and range over \
                      seeds)",
            &[
                level_of("recipe"),
                spread("q_proj", Q_TOP),
                spread("k_proj", K_TOP),
                spread("v_proj", V_TOP),
                spread("g_proj", G_TOP),
                spread("gk_proj.1", GATE_TOP),
                spread("o_proj", O_TOP),
                spread("gate_proj", GATE_PROJ_TOP),
                spread("up_proj", UP_TOP),
                spread("down_proj", DOWN_TOP),
            ],
        ),
    ],
};

const ENTROPY: Probed = of_parts("entropy of the softmax", "attention", "entropy");
const LOGIT_KURTOSIS: Probed = of_parts("kurtosis of logits", "attention", "logit_kurtosis");
const LOGIT_MAX: Probed = of_parts("mean largest logit", "attention", "logit_max");
const SINK: Probed = of_parts("share of the first key", "attention", "sink");

static SOFTMAX: Figure = Figure {
    id: "E7",
    title: "softmax sharpens: entropy falls, logits grow tails",
    source: "arXiv 2602.02047, Figure 7: the mean largest logit grows from about 4 to 10",
    says: "Without norms of queries and keys the entropy of the softmax falls over training while the \
           kurtosis of its logits and their mean maximum rise. At scale small the text is the embedded \
           language, else the memory task.",
    grid: Grid {
        axes: &[Axis {
            name: "model",
            levels: [&[NO_NORM, HEAD_NORM], &[NO_NORM], &[NO_NORM, HEAD_NORM]],
        }],
        ..ATTENTION
    },
    judged: Judged::By(Claim::new(Test::All(&[
        Test::Rising { probed: ENTROPY, of: &["no norm"], falls: true },
        Test::Rising { probed: LOGIT_KURTOSIS, of: &["no norm"], falls: false },
        Test::Rising { probed: LOGIT_MAX, of: &["no norm"], falls: false },
    ]))),
    views: &[
        View::Probed {
            title: "Softmax attention over training",
            under: "bfloat16, mean over layers; no norm: queries and keys are not normalized; bands: range \
                    of seeds",
            panels: &[
                shown("entropy of the softmax, nats", ENTROPY),
                shown("excess kurtosis of the logits", LOGIT_KURTOSIS),
                shown("mean largest logit", LOGIT_MAX),
                shown("share of the first key", SINK),
            ],
        },
        by_point(
            "last third of the run, mean over layers (mean and range over seeds)",
            &[
                level_of("model"),
                spread("entropy of the softmax, nats", ENTROPY),
                spread("excess kurtosis of the logits", LOGIT_KURTOSIS),
                spread("mean largest logit", LOGIT_MAX),
                spread("share of the first key", SINK),
            ],
        ),
    ],
};

static FLUSHED: Figure = Figure {
    id: "E8",
    title: "what is flushed to zero",
    source: "arXiv 2602.02047, flush-to-zero ratios over training, by what readers report",
    says: "More of the activations than of the weights is flushed to zero by NVFP4, and CHON lowers the \
           share of the activations. Shares are of elements that were not zero and decode to zero, over the \
           operators that both recipes quantize and over the records of the run. That patched channels lose \
           nothing is not counted there: see the table.",
    grid: Grid { axes: &[Axis::new("recipe", &[NVFP4, CHON])], ..LONG },
    judged: Judged::Own { asks: flushed::ASKS, effect: EffectSize::Unstated, find: flushed::find },
    views: &[],
};

pub static DEPTH: Figure = Figure {
    id: "E9",
    title: "outliers gather in the last layers",
    source: "arXiv 2602.02047, by what readers report: outliers accumulate in the last four layers or so",
    says: "In the last quarter of the layers the kurtosis of the inputs of linear operators, and their \
           largest magnitude, exceed those of the other layers (last third of the run).",
    grid: Grid { axes: &[BOTH, Axis::new("recipe", &[BF16])], ..LONG },
    judged: Judged::By(Claim::new(Test::Every {
        axis: "model",
        test: &Test::All(&[above_one(depth::KURTOSIS), above_one(depth::LARGEST)]),
    })),
    views: &[View::Own(depth::draw)],
};

const fn above_one(ratio: Metric) -> Test {
    Test::Bound { value: PerSeed::Of(ratio, &[]), bound: 1.0, above: true }
}

const COSINE: Probed = at_the_end("mean |cos|", "swiglu", "cos_mean");
const NULL: Probed = at_the_end("that of random directions", "swiglu", "null");
const TAIL_TOP: Probed = at_the_end("largest magnitude", "swiglu", "tail_top");

static ALIGNMENT: Figure = Figure {
    id: "E10",
    title: "gate and up projections of SwiGLU align",
    source: "arXiv 2602.02047 after arXiv 2409.12517: the product of aligned gate and up makes outliers in \
             the input of down",
    says: "The mean |cos| between rows of the gate and the up projection of a hidden unit ends above that of \
           random directions and rises over training, at every weight decay (at scale small one of them, \
           0.1).",
    grid: Grid {
        axes: &[Axis { name: "decay", levels: [&DECAYS, &[DECAYS[1]], &DECAYS] }],
        ..ALIGNED
    },
    judged: Judged::By(Claim::new(Test::Every {
        axis: "decay",
        test: &Test::All(&[
            Test::Bound { value: PerSeed::Beyond(COSINE, &[NULL], &[]), bound: 0.0, above: true },
            Test::Rising { probed: COSINE, of: &[], falls: false },
        ]),
    })),
    views: &[
        View::Probed {
            title: "Alignment in SwiGLU over training",
            under: "softmax attention, bfloat16; bands: range of seeds",
            panels: &[
                Shown {
                    rule: Some((Usual::Probed(NULL), "random directions")),
                    ..shown("mean |cos| of gate and up", COSINE)
                },
                shown("largest magnitude of what enters down", TAIL_TOP),
            ],
        },
        by_point(
            "at the end of the run (mean and range over seeds; mean over layers)",
            &[
                column("weight decay", Show::Number("decay")),
                spread("mean |cos|", COSINE),
                spread("random directions", NULL),
                spread("99th percentile", at_the_end("", "swiglu", "cos_p99")),
                spread("correlation of outputs", at_the_end("", "swiglu", "correlation")),
                spread("kurtosis of what enters down", at_the_end("", "swiglu", "tail_kurtosis")),
                spread("its largest magnitude", TAIL_TOP),
            ],
        ),
    ],
};

const DECAYS: [Level; 3] = [
    number("weight decay 0", 0.0, grids::decay(0)),
    number("weight decay 0.1", 0.1, grids::decay(1)),
    number("weight decay 0.3", 0.3, grids::decay(2)),
];
