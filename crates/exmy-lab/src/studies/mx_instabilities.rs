//! "Characterization and Mitigation of Training Instabilities in Microscaling Formats" (arXiv 2506.20752):
//! which runs in MX formats become unstable, why, and what helps.
//!
//! Figures and tables are numbered as in the study; `F-zeta` is its figure of the gradient bias, `Nb-1` and
//! `Nb-2` come from its published notebook, `Ext` answers what reviewers asked.

pub mod before;
pub mod bias;
pub mod causes;
pub mod grids;
pub mod interventions;
pub mod last_bin;
pub mod lasting;
pub mod laws;
pub mod leaving;
mod models;
pub mod new_seeds;
pub mod operands;
mod own_size;
pub mod pairs;
pub mod search;
mod strategies;
pub mod survival;

use crate::claim::{Claim, Test};
use crate::figure::{EffectSize, Figure, Judged, by};
use crate::finding::Paper;
use crate::grid::{Axis, Grid, Level, Set, level, number};
use crate::measure::{Metric, Pick};
use crate::study_scale::StudyScale;
use crate::view::columns::{DIVERGED, HIGH, LOSS, LOW, RUNS, SPIKE_COUNT, SPIKED};
use crate::view::{Show, View, by_point, column_of, level_of};
use before::BEFORE;
use causes::{CAUSES, ELEMENTS};
use exmy_train::nn::decoder::QkNorm;
use exmy_train::nn::model::Config as Model;
use exmy_train::nn::proxy::{Activation, Init, Loss};
use exmy_train::train::config::{Config, Method};
use grids::{
    BEYOND, BIAS, BIASED, FIXED, JUDGED, LANGUAGE, LONG, MODELS, NEW_SEEDS, PROXIES, PROXY_RATES,
    SEARCH, SEARCH_MX, SHORT, STUDENT, TENFOLD, UNSCALED, gains, text,
};
use lasting::LASTING;
use models::{
    DAMAGE, GAPS, HYPERPARAMETERS, LAWS, ONSETS, PAIRS, SEARCHED, SIMPLIFIED, VARIATIONS,
};
use operands::{
    OF_FORWARD_WEIGHTS, OF_LESS_NOISE, OF_NO_NOISE, OF_NOISY_F32, OF_NOISY_OTHERS,
    OF_OTHER_OPERANDS, OF_THE_WEIGHTS,
};
use own_size::{LONGER, OTHER_PROXIES, OTHER_RATES, OWN_SIZE};

/// The study.
pub(crate) const PAPER: Paper = Paper {
    name: "mx-instabilities",
    title: "Training instabilities in MX formats",
    source: "after \"Characterization and Mitigation of Training Instabilities in Microscaling Formats\", \
             Su et al., arXiv 2506.20752",
    about: "The study trains language models of up to 1.7 G parameters and student-teacher proxies of width \
            512 for thousands of steps of 2048 rows. Here the same recipes train models of minutes, so \
            instabilities that need size or length cannot show: rates are stressed, gains are put into the \
            clamp band, and what the search covered is part of the report.",
    figures: &[
        &BFLOAT16,
        &E5M2,
        &NORMS,
        &NO_NORMS,
        &OWN_SIZE,
        &CAUSES,
        &ELEMENTS,
        &OTHER_RATES,
        &OTHER_PROXIES,
        &LONGER,
        &OF_THE_WEIGHTS,
        &OF_OTHER_OPERANDS,
        &BEFORE,
        &OF_FORWARD_WEIGHTS,
        &OF_LESS_NOISE,
        &OF_NO_NOISE,
        &LASTING,
        &OF_NOISY_F32,
        &OF_NOISY_OTHERS,
        &LAST_BIN,
        &ZETA,
        &INTERVENTIONS,
        &GAPS,
        &HYPERPARAMETERS,
        &SEARCHED,
        &SIMPLIFIED,
        &LAWS,
        &DAMAGE,
        &PAIRS,
        &ONSETS,
        &VARIATIONS,
    ],
};

const BF16: Level = level("bf16", Set::Recipe("mxpaper-bf16"));
const LOSSES: &str =
    "final training losses (nats per byte, mean of the last tenth and of the seeds)";
const MIDDLE: &str = "median of the seeds and their range; moving average over 2 % of the steps";

const RATE: Axis = Axis {
    name: "rate",
    levels: [&[level("3e-3", Set::Rate(3e-3))], &[], &[level("2e-4", Set::Rate(2e-4))]],
};

static BFLOAT16: Figure = Figure {
    id: "F1a",
    title: "language models in bfloat16",
    source: "Fig. 1a: OLMo models of 20 M to 1.7 G parameters in bfloat16",
    says: "Training in bfloat16 is smooth.",
    grid: Grid { seeds: [1, 0, 1], axes: &[RATE, Axis::new("numbers", &[BF16])], ..MODELS },
    judged: by(Test::Smooth),
    views: LANGUAGE_VIEWS,
};

const LANGUAGE_VIEWS: &[View] = &[
    View::Outcomes {
        title: "Language models at learning rate {}",
        per: &["rate"],
        norms: true,
        under: MIDDLE,
    },
    by_point(LOSSES, &[level_of("numbers"), level_of("rate"), LOSS, DIVERGED, SPIKE_COUNT, RUNS]),
];

static E5M2: Figure = Figure {
    id: "F1b",
    title: "language models in MX E5M2",
    source: "Fig. 1b: OLMo models of 20 M to 1.7 G parameters, weights and activations in MX E5M2",
    says: "E5M2 in all products makes larger and longer-trained models spike, their gradient norm grow, and \
           they never recover. Judged are final losses.",
    grid: Grid {
        seeds: [1, 0, 1],
        axes: &[
            RATE,
            Axis::new(
                "numbers",
                &[
                    BF16,
                    level("MX E5M2", Set::Recipe("mxpaper-e5m2")),
                    level("MX E2M1, as stress", Set::Recipe("mxpaper-e2m1")),
                ],
            ),
        ],
        ..MODELS
    },
    judged: Judged::By(Claim::new(Test::Pooled {
        metric: Metric::Tail,
        of: &["MX E5M2"],
        over: &["bf16"],
        axes: &["rate"],
        below: false,
    })),
    views: LANGUAGE_VIEWS,
};

const CODE: Level = level(
    "MX E4M3",
    // The study's code leaves the student's GELU and ReLU alone, and rounds the steps of SwiGLU's SiLU.
    Set::All(&[
        Set::Recipe("mxpaper-e4m3+gelu=fp32"),
        Set::When("activation", "swiglu", &[Set::Recipe("mxpaper-e4m3")]),
    ]),
);
const TEXT: Level = level(
    "MX E4M3, gains too",
    Set::All(&[
        Set::Recipe(text!("e4m3")),
        Set::When("activation", "swiglu", &[Set::Recipe("mxpaper-e4m3+ln-affine=mx")]),
        Set::When("activation", "gelu", &[BIAS]),
    ]),
);
const F32: Level = level("f32", Set::Recipe("f32"));
const BETAS: Level = level("f32, fixed betas", Set::Recipe(FIXED));

const fn activation(name: &'static str, change: fn(&mut Config, StudyScale)) -> Level {
    level(name, Set::Change(change))
}
const GELU: Level = activation("gelu", |config, _| activate(config, Activation::Gelu));
const RELU: Level = activation("relu", |config, _| activate(config, Activation::Relu));
const SWIGLU: Level = activation("swiglu", |config, _| activate(config, Activation::Swiglu));

fn activate(config: &mut Config, activation: Activation) {
    if let Model::Proxy(model) = &mut config.model {
        model.activation = activation;
    }
}

const PROXY_LOSSES: &str = "final losses (mean squared error over the last tenth of the steps, mean of \
                            seeds); spikes and divergence: losses above ten times the lowest median of 50 \
                            steps";

static NORMS: Figure = Figure {
    id: "F2a",
    title: "the proxy with norms, by activation function",
    source: "Fig. 2a: student-teacher MLP, depth 4, width 512, batch 2048, learning rate 6e-4",
    says: "With layer norms MX does worse than FP32, in the study until it diverges, and SwiGLU fares worst. \
           Judged is the loss (divergence by AppC), of MX E4M3 with gains of norms in blocks against f32 \
           whose betas of norms stay 0 as those of the study's MX runs do.",
    grid: Grid {
        seeds: [1, 3, 3],
        axes: &[
            PROXY_RATES,
            Axis {
                name: "activation",
                levels: [&[GELU], &[GELU, RELU, SWIGLU], &[GELU, RELU, SWIGLU]],
            },
            Axis::new("numbers", &[F32, BETAS, CODE, TEXT]),
        ],
        ..PROXIES
    },
    judged: Judged::By(Claim::new(Test::All(&[
        Test::Pooled {
            metric: Metric::LogTail,
            of: &["MX E4M3, gains too"],
            over: &["f32, fixed betas"],
            axes: &["rate", "activation"],
            below: false,
        },
        Test::Given {
            axis: "activation",
            level: "swiglu",
            test: &Test::PooledWider {
                metric: Metric::LogTail,
                of: &["MX E4M3, gains too"],
                over: &["f32, fixed betas"],
                at: &["swiglu"],
                than: &["gelu"],
                axes: &["rate"],
            },
        },
    ]))),
    views: &[
        View::Outcomes {
            title: "Proxies with norms, learning rate and activation function {}",
            per: &["rate", "activation"],
            norms: false,
            under: MIDDLE,
        },
        by_point(
            PROXY_LOSSES,
            &[
                level_of("activation"),
                level_of("rate"),
                level_of("numbers"),
                LOSS,
                DIVERGED,
                SPIKED,
                RUNS,
            ],
        ),
    ],
};

static NO_NORMS: Figure = Figure {
    id: "F2b",
    title: "the proxy without norms",
    source: "Fig. 2b: the proxy of Fig. 2a without layer norms",
    says: "Without layer norms the final loss is lower, as the teacher has none: this half of the claim is \
           judged, and it says nothing of number formats. The other half, that MX becomes more stable and \
           FP32 less, is not judged: the table shows what became of the runs",
    grid: Grid {
        seeds: [1, 3, 3],
        axes: &[
            PROXY_RATES,
            // A reduced version where the hour is short.
            Axis { name: "activation", levels: [&[GELU], &[GELU], &[GELU, RELU, SWIGLU]] },
            // Without norms there are no gains, and text and code are the same.
            Axis::new("numbers", &[F32, CODE]),
            Axis::new(
                "norms",
                &[
                    level("without norms", Set::All(&[Set::Change(no_norms), NOTHING])),
                    level("with norms", Set::All(&[])),
                ],
            ),
        ],
        ..PROXIES
    },
    judged: Judged::By(Claim::new(Test::Pooled {
        metric: Metric::LogTail,
        of: &["without norms"],
        over: &["with norms"],
        axes: &["rate", "activation", "numbers"],
        below: true,
    })),
    views: &[
        View::Outcomes {
            title: "Proxies, learning rate and activation function {}",
            per: &["rate", "activation"],
            norms: false,
            under: MIDDLE,
        },
        View::Table {
            caption: PROXY_LOSSES,
            rows: &["rate", "activation", "numbers"],
            columns: &[
                level_of("activation"),
                level_of("rate"),
                level_of("numbers"),
                LOSS,
                column_of("with norms", &["with norms"], Show::Mean(Metric::Tail)),
                DIVERGED,
                SPIKED,
                RUNS,
            ],
        },
    ],
};

/// What a model without norms has no gains for is left out.
const NOTHING: Set = Set::Measured(&[], [6, 20, 50]);

fn no_norms(config: &mut Config, _: StudyScale) {
    if let Model::Proxy(model) = &mut config.model {
        model.norm = false;
    }
}

static LAST_BIN: Figure = Figure {
    id: "F3",
    title: "gaps of the number format, and the last bin",
    source: "Fig. 3, left: relative gaps of E4M3; middle and right: shares of layer-norm gains and of \
             activations in the last bin of their blocks",
    says: "Gains of layer norms cluster, so that whole blocks of them enter the last bin of E4M3, where all \
           become one value; of the activations only a small share is there.",
    grid: Grid {
        steps: [40, 500, 9000],
        rate: [2e-2, 5e-3, 6e-4],
        seeds: [1, 3, 3],
        sets: &[
            STUDENT,
            Set::Measured(&["gamma", "lastbin.activations", "lastbin.gamma"], [5, 10, 50]),
            Set::At([
                &[Set::Layers(2), Set::Width(64), Set::Batch(32)],
                &[Set::Layers(2), Set::Width(128), Set::Batch(256)],
                &[],
            ]),
        ],
        axes: &[Axis::new(
            "run",
            &[
                level("natural", Set::Recipe(text!("e4m3"))),
                level("natural, gains in bfloat16", Set::Recipe("mxpaper-e4m3+gelu=fp32")),
                level(
                    "gains begin at 0.95",
                    Set::All(&[
                        Set::Recipe(text!("e4m3")),
                        Set::Change(|config, _| gains(config, 0.95, 0.02)),
                    ]),
                ),
            ],
        )],
        ..PROXIES
    },
    judged: Judged::Own {
        asks: last_bin::ASKS,
        effect: EffectSize::Unstated,
        find: last_bin::find,
    },
    views: &[],
};

static ZETA: Figure = Figure {
    id: "F-zeta",
    title: "bias of MX gradients before divergence",
    source: "the figure of the lower bound of the multiplicative gradient bias: |g - h| / |h| with the MX \
             gradient g and the FP32 gradient h, their cosine, and the loss",
    says: "The ratio rho = |g - h| / |h|, which bounds the norm of the multiplicative bias from below, is \
           small at first and drifts up while the cosine falls; the loss diverges after. Measured at the \
           same weights and between the trajectories of the MX run and of an f32 run of the same seed. The \
           MX runs of AppC's grid, measured 150 times each, are the search for other settings in which it \
           is.",
    grid: Grid {
        also: &[&BIASED, &JUDGED.mx, &SHORT.mx, &LONG.mx, &SEARCH_MX, &UNSCALED],
        ..Grid::NONE
    },
    judged: Judged::Own { asks: bias::ASKS, effect: EffectSize::Unstated, find: bias::find },
    views: &[],
};

static INTERVENTIONS: Figure = Figure {
    id: "F4",
    title: "interventions shortly and well before divergence",
    source: "Fig. 4: nine changes of precision at two distances from the divergence of an E4M3 proxy of \
             depth 4, width 512, at steps 4500 and 5080 of a run that diverges at 5090",
    says: "Taking norms, activations or the backward pass out of MX, or raising the exponent of blocks that \
           would saturate, averts divergence. no_gelu_q changes nothing in these recipes and is the control; \
           \"nothing\" raises the rate by 2^-22 of it, the null with which others are compared. Judged at \
           the steady rate, at which AppC's new seeds show whether MX diverges more often than f32. Two \
           settings that were tried before, ramps on which f32 diverges as well, are shown, too: there \
           divergence is partly chance, and any change averts some.",
    grid: Grid {
        also: &[
            &JUDGED.mx,
            &JUDGED.plain,
            &JUDGED.branches,
            &SHORT.mx,
            &SHORT.plain,
            &SHORT.branches,
            &LONG.mx,
            &LONG.plain,
            &LONG.branches,
            &TENFOLD,
        ],
        ..Grid::NONE
    },
    judged: Judged::Own {
        asks: interventions::ASKS,
        effect: EffectSize::Incomparable("the paper has one run a change, which is no share"),
        find: interventions::find,
    },
    views: &[],
};
