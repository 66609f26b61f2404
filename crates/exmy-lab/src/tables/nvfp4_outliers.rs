//! "Dissecting Outlier Dynamics in LLM NVFP4 Pretraining" (Dong et al., arXiv 2602.02047) and the recipe it
//! starts from, "Pretraining Large Language Models with NVFP4" (NVIDIA, arXiv 2509.25149): outliers of
//! gated linear attention and of softmax attention, which parts of a recipe they hurt, and what patching
//! hot channels gives back.

mod runs;

use crate::analyses::{
    abilities, depth, flushed, hot_channels, operators, overhead, patches, rotations,
};
use crate::claim::{Claim, Test, Value};
use crate::figure::{Figure, Judged};
use crate::grid::{After, Axis, Grid, Level, Set, level, number};
use crate::measure::{Metric, Probed, at_the_end, of_inputs, of_parts};
use crate::papers::Paper;
use crate::view::{Show, Shown, Usual, View, column, shown};
use exmy_train::nn::site::{Operand, Operator};
use runs::{
    ALIGNED, ATTENTION, BF16, BOTH, CHON, GATES, HEAD_NORM, LONG, MEMORY, NO_NORM, NVFP4, SETUPS,
    SHORT, SILENT, late,
};
pub(crate) use runs::{FROZEN, GLA_BRANCHES, OPERATORS, SA_BRANCHES};

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

/// That the gap of one recipe is below that of another.
const fn narrower(of: &'static [&'static str], over: &'static [&'static str]) -> Test {
    Test::Bound { value: Value::Less(GAP_TO_BF16, of, over), bound: 0.0, above: false }
}

/// Recipes of short runs of gated linear attention, not at small.
const fn beside(levels: &'static [Level]) -> Axis {
    Axis { name: "recipe", levels: [levels, &[], levels] }
}

const ALL_NVFP4: Set = Set::Recipe("nv-nvfp4+last=0");

static GAP: Figure = Figure {
    id: "E1",
    title: "CHON narrows the gap between NVFP4 and bfloat16",
    source: "arXiv 2602.02047, abstract and Table 2: GLA-1.3B, 60 G tokens, gaps 0.94 % (NVFP4) and 0.58 % \
             (CHON)",
    says: "The gap of CHON is below that of the NVFP4 recipe. Judged with all blocks in NVFP4: in a model of \
           four blocks the last one and the head, which the recipe leaves in bfloat16, are a quarter of all \
           products. Steps, rate and blocks are not those that were planned: they were changed after results had \
           been seen.",
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
        View::Gaps {
            title: "What patches and protected operators leave of the gap of NVFP4",
            under: "gated linear attention",
            base: BASE,
        },
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
    source: "arXiv 2602.02047, Table 3, by notes of readers: o_proj 0.058 and down_proj 0.012 (GLA), v_proj \
             0.143 and down_proj 0.020 (Qwen)",
    says: "Per parameter, o_proj (GLA) and v_proj (SA) are among the most sensitive third of operators and \
           down_proj among the least. Sensitivity: 100 (L_op - L_bf16) / L_bf16 over the operator's share of \
           parameters. The paper trains on with one type of operator in NVFP4; here two hundred steps of \
           that scatter losses by more than one operator changes, so the validation loss of the same weights \
           is judged, with one type of operator in NVFP4 and with none, and the training losses of branches \
           are shown beside it.",
    grid: Grid { also: &[&SA_BRANCHES, &FROZEN], ..GLA_BRANCHES },
    judged: Judged::Own { asks: operators::ASKS, find: operators::find },
    views: &[],
};

const KURTOSIS: Probed = of_inputs("excess kurtosis of inputs", "kurtosis", "");
const fn tail_of(operator: Operator) -> Probed {
    of_inputs("kurtosis of one operator's inputs", "kurtosis", "").of_operator(operator)
}
const RECIPES: Axis = Axis::new("recipe", &[BF16, level("nvfp4", NVFP4.set)]);

static TAILS: Figure = Figure {
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
            value: Value::Less(Metric::Probed(KURTOSIS), &["GLA"], &["SA"]),
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
                    label: "excess kurtosis of inputs, bf16",
                    probed: KURTOSIS,
                    pick: &["bf16"],
                    rule: Some((Usual::Of(0.0), "normal")),
                },
                Shown {
                    label: "excess kurtosis of inputs, nvfp4",
                    probed: KURTOSIS,
                    pick: &["nvfp4"],
                    rule: Some((Usual::Of(0.0), "normal")),
                },
            ],
        },
        View::Table {
            caption: "excess kurtosis of inputs by operator, last third (mean over layers, and range over seeds)",
            rows: &[],
            columns: &[
                column("model", Show::Level("model")),
                column("recipe", Show::Level("recipe")),
                column("q, k, v", Show::Spread(tail_of(Operator::Q))),
                column("o", Show::Spread(tail_of(Operator::O))),
                column("gate, up", Show::Spread(tail_of(Operator::Gate))),
                column("down", Show::Spread(tail_of(Operator::Down))),
            ],
        },
        View::Table {
            caption: "excess kurtosis of the last third (mean and range over seeds), by operand",
            rows: &[],
            columns: &[
                column("model", Show::Level("model")),
                column("recipe", Show::Level("recipe")),
                column("inputs", Show::Spread(KURTOSIS)),
                column(
                    "weights",
                    Show::Spread(
                        of_parts("kurtosis of weights", "kurtosis", "").of_operand(Operand::Weight),
                    ),
                ),
                column(
                    "output gradients",
                    Show::Spread(
                        of_parts("kurtosis of gradients", "kurtosis", "")
                            .of_operand(Operand::GradOutput),
                    ),
                ),
                column(
                    "largest channel of inputs",
                    Show::Spread(of_inputs(
                        "largest kurtosis of channels",
                        "kurtosis",
                        "channels_max",
                    )),
                ),
            ],
        },
    ],
};

const SPIKE: Probed = of_inputs("spike of inputs", "spikes", "rms_p99");

static SPIKES: Figure = Figure {
    id: "E4",
    title: "spikes of blocks remain in linear attention",
    source: "arXiv 2602.02047, Figure 4: largest magnitudes of blocks of 16 x 16 in four architectures",
    says: "The 99th percentile of amax / rms over blocks of 16 x 16 of inputs is in GLA at least 0.7 of that in \
           softmax attention (last third). By definition amax / rms of such a block is at most 16. That its \
           kurtosis is lower all the same is E3's claim, and is judged there.",
    grid: Grid { axes: &[RECIPES, BOTH], ..LONG },
    judged: Judged::By(Claim::new(Test::Every {
        axis: "recipe",
        test: &Test::Bound {
            value: Value::Over(Metric::Probed(SPIKE), &["GLA"], &["SA"]),
            bound: 0.7,
            above: true,
        },
    })),
    views: &[
        View::Probed {
            title: "Spikes within blocks, softmax attention and GLA",
            under: "mean over layers and the inputs of q, o, gate and down; bands: range of seeds",
            panels: &[
                Shown {
                    label: "p99 of amax / rms, bf16",
                    probed: SPIKE,
                    pick: &["bf16"],
                    rule: None,
                },
                Shown {
                    label: "p99 of amax / rms, nvfp4",
                    probed: SPIKE,
                    pick: &["nvfp4"],
                    rule: None,
                },
            ],
        },
        View::Table {
            caption: "blocks of 16 x 16, last third (mean and range over seeds)",
            rows: &[],
            columns: &[
                column("model", Show::Level("model")),
                column("recipe", Show::Level("recipe")),
                column("amax / rms: p99", Show::Spread(SPIKE)),
                column("largest", Show::Spread(of_inputs("", "spikes", "rms_max"))),
                column(
                    "amax / median amax: p99",
                    Show::Spread(of_inputs("", "spikes", "median_p99")),
                ),
                column("largest", Show::Spread(of_inputs("", "spikes", "median_max"))),
            ],
        },
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
           those with the largest rounding errors of input and weight, which patches follow, stand beside \
           them. Judged on small models, many tokens and a constant rate: the usual runs of 1500 steps end \
           before channels settle, and where the rate falls to a hundredth, which was tried last, they stay \
           because weights do.",
    grid: Grid { axes: &[SETUPS], ..LONG },
    judged: Judged::Own { asks: hot_channels::ASKS, find: hot_channels::find },
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
            value: Value::Beyond(
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
        View::Table {
            caption: "largest output of each component, mean over layers, last third (mean and range over \
                      seeds)",
            rows: &[],
            columns: &[
                column("recipe", Show::Level("recipe")),
                column("q_proj", Show::Spread(Q_TOP)),
                column("k_proj", Show::Spread(K_TOP)),
                column("v_proj", Show::Spread(V_TOP)),
                column("g_proj", Show::Spread(G_TOP)),
                column("gk_proj.1", Show::Spread(GATE_TOP)),
                column("o_proj", Show::Spread(O_TOP)),
                column("gate_proj", Show::Spread(GATE_PROJ_TOP)),
                column("up_proj", Show::Spread(UP_TOP)),
                column("down_proj", Show::Spread(DOWN_TOP)),
            ],
        },
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
            under: "bfloat16, mean over layers; bands: range of seeds",
            panels: &[
                shown("entropy of the softmax, nats", ENTROPY),
                shown("excess kurtosis of the logits", LOGIT_KURTOSIS),
                shown("mean largest logit", LOGIT_MAX),
                shown("share of the first key", SINK),
            ],
        },
        View::Table {
            caption: "last third of the run, mean over layers (mean and range over seeds)",
            rows: &[],
            columns: &[
                column("model", Show::Level("model")),
                column("entropy of the softmax, nats", Show::Spread(ENTROPY)),
                column("excess kurtosis of the logits", Show::Spread(LOGIT_KURTOSIS)),
                column("mean largest logit", Show::Spread(LOGIT_MAX)),
                column("share of the first key", Show::Spread(SINK)),
            ],
        },
    ],
};

static FLUSHED: Figure = Figure {
    id: "E8",
    title: "what is flushed to zero",
    source: "arXiv 2602.02047, flush-to-zero ratios over training, by notes of readers",
    says: "More of the activations than of the weights is flushed to zero by NVFP4, and CHON lowers the \
           share of the activations. Shares are of elements that were not zero and decode to zero, over the \
           operators that both recipes quantize and over the records of the run. That patched channels lose \
           nothing is not counted there: see the table.",
    grid: Grid { axes: &[Axis::new("recipe", &[NVFP4, CHON])], ..LONG },
    judged: Judged::Own { asks: flushed::ASKS, find: flushed::find },
    views: &[],
};

static DEPTH: Figure = Figure {
    id: "E9",
    title: "outliers gather in the last layers",
    source: "arXiv 2602.02047, by notes of readers: outliers accumulate in the last four layers or so",
    says: "In the last quarter of the layers the kurtosis of the inputs of linear operators, and their \
           largest magnitude, exceed those of the other layers (last third of the run).",
    grid: Grid { axes: &[BOTH, Axis::new("recipe", &[BF16])], ..LONG },
    judged: Judged::Own { asks: depth::ASKS, find: depth::find },
    views: &[],
};

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
            Test::Bound { value: Value::Beyond(COSINE, &[NULL], &[]), bound: 0.0, above: true },
            Test::Rising { probed: COSINE, of: &[], falls: false },
        ]),
    })),
    views: &[
        View::Probed {
            title: "Alignment in SwiGLU over training",
            under: "softmax attention, bfloat16; bands: range of seeds",
            panels: &[
                Shown {
                    label: "mean |cos| of gate and up",
                    probed: COSINE,
                    pick: &[],
                    rule: Some((Usual::Probed(NULL), "random directions")),
                },
                shown("largest magnitude of what enters down", TAIL_TOP),
            ],
        },
        View::Table {
            caption: "at the end of the run (mean and range over seeds; mean over layers)",
            rows: &[],
            columns: &[
                column("weight decay", Show::Number("decay")),
                column("mean |cos|", Show::Spread(COSINE)),
                column("random directions", Show::Spread(NULL)),
                column("99th percentile", Show::Spread(at_the_end("", "swiglu", "cos_p99"))),
                column(
                    "correlation of outputs",
                    Show::Spread(at_the_end("", "swiglu", "correlation")),
                ),
                column(
                    "kurtosis of what enters down",
                    Show::Spread(at_the_end("", "swiglu", "tail_kurtosis")),
                ),
                column("its largest magnitude", Show::Spread(TAIL_TOP)),
            ],
        },
    ],
};

const DECAYS: [Level; 3] = [
    number("weight decay 0", 0.0, runs::decay(0)),
    number("weight decay 0.1", 0.1, runs::decay(1)),
    number("weight decay 0.3", 0.3, runs::decay(2)),
];

static PATCHES: Figure = Figure {
    id: "E11",
    title: "what patches of hot channels give back",
    source: "arXiv 2602.02047, comparison of patches, and the bounds that leave the product of both \
             residuals",
    says: "The error of a product falls with the number of patched channels, and patching both residuals \
           (O2-B) leaves less than patching either; and where channels of a trained model are planted hot, \
           times 16 or more, patches make its gap smaller.",
    grid: Grid { axes: &[Axis::new("recipe", &[BF16])], ..LONG },
    judged: Judged::Own { asks: patches::ASKS, find: patches::find },
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

static TRAINING: Figure = Figure {
    id: "E12",
    title: "patches in training with planted hot channels",
    source: "arXiv 2602.02047, hot-channel patches; neither the number of channels nor how often they are \
             chosen could be read",
    says: "Where four channels begin 16 times as large (function unchanged), patching the most channels \
           makes the gap smaller than without a patch, and choosing the channels once instead of every 10 \
           steps makes it no larger, by less than 0.36 points, what CHON gains in the paper; where only k = \
           32 is run, the first alone is judged. This is the positive control of the patches: if they do not \
           help here, they do not work.",
    grid: Grid {
        seeds: [1, 3, 1],
        sets: &[runs::USUAL, runs::PLANTED],
        axes: &[Axis {
            name: "recipe",
            levels: [&[BF16, UNPATCHED, K32], &[BF16, UNPATCHED, K32], &PATCHED],
        }],
        ..SHORT
    },
    // What is claimed of choosing once is that there is no difference: scatter that hides one does not tell.
    judged: Judged::By(Claim::new(Test::Where {
        level: "k = 128",
        test: &Test::All(&[
            narrower(&["k = 128"], &["not patched"]),
            Test::Bound {
                value: Value::Less(GAP_TO_BF16, &["k = 32, once"], &["k = 32, each 10 steps"]),
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

static PARTS: Figure = Figure {
    id: "E13",
    title: "what each part of the NVFP4 recipe is worth",
    source: "arXiv 2509.25149, Figures 4 and 8: 12B and 1.2B, parts removed and added",
    says: "With all blocks in NVFP4, rounding gradients to nearest instead of stochastically makes the gap \
           larger, and keeping the last block, or the last two, in bfloat16 makes it smaller. Rotations and \
           tiles may be null at this size, as the paper says of small models.",
    grid: Grid {
        axes: &[beside(&[
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
    views: &[View::Gaps {
        title: "Stochastic gradients and last blocks in bfloat16",
        under: "gated linear attention",
        base: BASE,
    }],
};

static STOCHASTIC: Figure = Figure {
    id: "E14",
    title: "stochastic rounding belongs to gradients",
    source: "arXiv 2509.25149, Figure 10: 1.2B, of activations or weights it diverges",
    says: "Rounding activations or weights stochastically makes the gap larger than rounding everything to \
           nearest.",
    grid: Grid {
        axes: &[beside(&[
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
    views: &[View::Gaps {
        title: "Stochastic rounding by tensor",
        under: "gated linear attention",
        base: BASE,
    }],
};

static ROTATIONS: Figure = Figure {
    id: "E15",
    title: "rotations: where, of what size, with which signs",
    source: "arXiv 2509.25149, Figures 11 to 13: on weight gradients they help, elsewhere they hurt; sizes \
             and signs matter at 12B alone",
    says: "Judged is a hypothesis of our own about why: where columns of activations have spikes along the tokens, \
           rotating the operands of the weight gradient by 16 raises its ratio of signal to noise. The paper \
           speaks of losses. Those are shown and not judged: in models so small differences are expected to be \
           null.",
    grid: Grid { seeds: [1, 3, 1], axes: &[beside(&ROTATED)], ..SHORT },
    judged: Judged::Own { asks: rotations::ASKS, find: rotations::find },
    views: &[View::Gaps {
        title: "Rotations in training",
        under: "gated linear attention",
        base: BASE,
    }],
};

/// Recipes by their rotations, the baseline first.
pub(crate) const ROTATED: [Level; 10] = [
    BF16,
    level("none", Set::Recipe("nv-nvfp4+last=0+rht=none")),
    level("weight gradient, 16", ALL_NVFP4),
    level("forward, 16", Set::Recipe("nv-nvfp4+last=0+rht=fprop")),
    level("input gradient, 16", Set::Recipe("nv-nvfp4+last=0+rht=dgrad")),
    level("weight gradient, 4", Set::Recipe("nv-nvfp4+last=0+rht-size=4")),
    level("weight gradient, 64", Set::Recipe("nv-nvfp4+last=0+rht-size=64")),
    level("weight gradient, 128", Set::Recipe("nv-nvfp4+last=0+rht-size=128")),
    level("weight gradient, 16, no signs", Set::Recipe("nv-nvfp4+last=0+rht-signs=none")),
    level("weight gradient, 16, fresh signs", Set::Recipe("nv-nvfp4+last=0+rht-signs=fresh")),
];

static BLOCKS: Figure = Figure {
    id: "E16",
    title: "weights should be the same numbers in both products",
    source: "arXiv 2509.25149, Figure 14: 1.2B, blocks of weights",
    says: "Blocks of 16 along the same dimension in both products that read a weight, and tiles of 16 x 16, \
           have smaller gaps than blocks along each product's own sum.",
    grid: Grid {
        axes: &[beside(&[
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
    views: &[View::Gaps {
        title: "Blocks of weights: one dimension, tiles, two dimensions",
        under: "gated linear attention",
        base: BASE,
    }],
};

static SWITCH: Figure = Figure {
    id: "E17",
    title: "switching forward products to bfloat16 late recovers the gap",
    source: "arXiv 2509.25149, Appendix D: at 82 % of the tokens 1.5 % become 0.5 % (forward alone), \
             backward alone gives nothing",
    says: "From 80 % of the steps on, where the learning rate begins to fall, forward products in bfloat16 \
           make the final gap smaller, and backward products alone recover less than half of that.",
    grid: Grid {
        axes: &[beside(&[
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
            value: Value::Sum(&[
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

static FORMATS: Figure = Figure {
    id: "E18",
    title: "NVFP4 loses less than MXFP4",
    source: "arXiv 2509.25149, Figure 6: 8B, 1 T tokens, relative errors of about 1.5 % and 2.5 %",
    says: "The gap of NVFP4 (blocks of 16, E4M3 scales, tensor scale) is below that of MXFP4 (blocks of 32, \
           scales rounded up to powers of two, rotations of 32) under the same recipe, in all blocks. Steps, rate and blocks were changed after \
           results had been seen, as in E1.",
    grid: Grid {
        axes: &[Axis::new(
            "recipe",
            &[BF16, level("NVFP4", ALL_NVFP4), level("MXFP4", Set::Recipe("nv-mxfp4+last=0"))],
        )],
        ..SHORT
    },
    judged: Judged::By(Claim::new(narrower_by!(1.0, "1 point", narrower(&["NVFP4"], &["MXFP4"])))),
    views: &[View::Gaps {
        title: "NVFP4 and MXFP4 beside bfloat16",
        under: "gated linear attention",
        base: BASE,
    }],
};

static OVERHEAD: Figure = Figure {
    id: "E19",
    title: "what patches cost",
    source: "arXiv 2602.02047, by notes of readers: training takes 9 to 13 % longer with fused kernels",
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
    judged: Judged::Own { asks: "", find: overhead::find },
    views: &[],
};

static ABILITIES: Figure = Figure {
    id: "E20",
    title: "recall and induction after training in NVFP4",
    source: "a question of our own, after \"downstream accuracy is maintained\" in the abstract of arXiv \
             2602.02047",
    says: "On the memory task (values of six keys, repetition of twelve letters, resets between episodes) a \
           model trained under CHON is at most 2 percentage points behind bfloat16.",
    grid: Grid { axes: &[BOTH, beside(&[BF16, NVFP4, CHON])], ..MEMORY },
    judged: Judged::Own { asks: abilities::ASKS, find: abilities::find },
    views: &[],
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arm::{Scale, Setting};
    use crate::finding::Figure as _;
    use crate::grid::Cell;
    use crate::measure::Results;

    /// A mistake in a name would be found when the runs are read, after days of training.
    #[test]
    fn cells_that_claims_and_views_name_are_there() {
        let figures =
            [&GAP, &TAILS, &SPIKES, &TRAINING, &PARTS, &STOCHASTIC, &BLOCKS, &SWITCH, &FORMATS];
        for figure in figures {
            for scale in Scale::ALL {
                let setting = Setting::unread(scale);
                let results = Results::made(&setting, &figure.grid, &|_, seed, _| seed as f64);
                let Judged::By(claim) = &figure.judged else {
                    panic!("{} has no claim", figure.id)
                };
                if results.cells.is_empty() {
                    continue;
                }
                assert!(claim.verdict(&results).is_ok(), "{} at {scale}", figure.id);
                for view in figure.views {
                    assert_eq!(view.draw(&results).map_or(0, |parts| parts.len()).min(1), 1);
                }
                let asks = figure.criterion();
                assert!(asks.starts_with("Reproduced where ") && asks.ends_with('.'), "{asks}");
            }
        }
    }

    /// The word where the metrics of cells are so, by names of their levels and what is measured, and
    /// scatter little between seeds.
    fn word(figure: &Figure, made: impl Fn(&Cell, &str) -> f64) -> &'static str {
        let setting = Setting::unread(Scale::Small);
        let made = |cell: &Cell, seed: u64, metric: Metric| {
            made(cell, metric.name()) + 0.01 * (seed % 2) as f64
        };
        let results = Results::made(&setting, &figure.grid, &made);
        let Judged::By(claim) = &figure.judged else { panic!("{} has no claim", figure.id) };
        claim.verdict(&results).unwrap().word()
    }

    #[test]
    fn gaps_and_probes_reach_each_verdict() {
        const NOT: &str = "untested at this size";
        let gap = |chon: f64| word(&GAP, |cell, _| if cell.has("CHON") { chon } else { 1.0 });
        assert_eq!((gap(0.5), gap(1.5)), ("reproduced", "contradicted"));
        // A gap of the paper's size would have been seen: seeds scatter by a hundredth of a point.
        assert_eq!(gap(1.0), "not seen at this scale");
        let tails = |gla: f64, four: f64| {
            word(&TAILS, |cell, _| match (cell.has("GLA"), cell.has("nvfp4")) {
                (false, _) => 4.0,
                (true, false) => gla,
                (true, true) => four,
            })
        };
        assert_eq!((tails(1.0, 1.0), tails(1.0, 4.0)), ("reproduced", NOT));
        // The opposite at one of the recipes is enough.
        assert_eq!(tails(1.0, 5.0), "contradicted");
        // What is said of the kurtosis is E3's.
        let spikes = |spike: f64, kurtosis: f64| {
            word(&SPIKES, |cell, name| match (cell.has("GLA"), name) {
                (false, _) => 6.0,
                (true, "spike of inputs") => spike,
                (true, _) => kurtosis,
            })
        };
        assert_eq!((spikes(5.0, 9.0), spikes(2.0, 1.0)), ("reproduced", "contradicted"));
        assert_eq!(spikes(4.2, 1.0), NOT);
    }

    /// What is judged at the paper's size is that choosing once costs little, where that was run.
    #[test]
    fn what_is_not_run_is_not_judged() {
        let of = |patched: f64| {
            word(&TRAINING, |cell, _| if cell.has("k = 32") { patched } else { 2.0 })
        };
        assert_eq!((of(1.0), of(3.0)), ("reproduced", "contradicted"));
        let Judged::By(claim) = &TRAINING.judged else { panic!("no claim") };
        let sentence = claim.criterion();
        assert!(sentence.contains("where k = 128 is not run, the gap of k = 32"), "{sentence}");
    }
}
