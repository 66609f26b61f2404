//! "Characterization and Mitigation of Training Instabilities in Microscaling Formats" (arXiv 2506.20752): which runs in MX
//! formats become unstable, why, and what helps.
//!
//! Figures and tables are numbered as in the study; `F-zeta` is its figure of the gradient bias, `Nb-1` and `Nb-2` come
//! from its published notebook, `Ext` answers what reviewers asked.

pub(crate) mod grids;

use crate::analyses::{
    bias, blocks, hyperparameters, interventions, last_bin, laws, pairs, search, strategies,
};
use crate::arm::Scale;
use crate::claim::{Claim, Test};
use crate::course;
use crate::figure::{Figure, Judged};
use crate::grid::{Axis, Grid, Level, Set, level, number};
use crate::measure::{Metric, Pick};
use crate::papers::Paper;
use crate::view::{Show, View, column, column_of};
use exmy_train::nn::decoder::QkNorm;
use exmy_train::nn::model::Config as Model;
use exmy_train::nn::proxy::{Activation, Init, Loss};
use exmy_train::train::config::{Config, Method};
use grids::{
    BEYOND, BIAS, BIASED, JUDGED, LANGUAGE, LONG, MODELS, NEW_SEEDS, PROXIES, PROXY_RATES, SEARCH,
    SEARCH_MX, SHORT, STILL, STUDENT, TENFOLD, UNSCALED, gains, text,
};

/// The study.
pub(crate) const PAPER: Paper = Paper {
    name: "mx-instabilities",
    title: "Training instabilities in MX formats",
    source: "Characterization and Mitigation of Training Instabilities in Microscaling Formats, arXiv 2506.20752",
    about: "The study trains language models of up to 1.7 G parameters and student-teacher proxies of width 512 \
            for thousands of steps of 2048 rows. Here the same recipes train models of minutes, so instabilities \
            that need size or length cannot show: rates are stressed, gains are put into the clamp band, and \
            what the search covered is part of the report.",
    figures: &[
        &BFLOAT16,
        &E5M2,
        &NORMS,
        &NO_NORMS,
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

/// Figures that are judged by claims.
#[cfg(test)]
pub(super) static CLAIMED: [&Figure; 7] =
    [&BFLOAT16, &E5M2, &NORMS, &NO_NORMS, &GAPS, &SIMPLIFIED, &VARIATIONS];

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
    judged: Judged::By(Claim {
        holds: Test::Own { asks: course::SMOOTH, judge: course::smooth_runs },
        opposite: None,
    }),
    views: LANGUAGE_VIEWS,
};

const LANGUAGE_VIEWS: &[View] = &[
    View::Courses {
        title: "Language models at learning rate {}",
        per: &["rate"],
        norms: true,
        under: MIDDLE,
    },
    View::Table {
        caption: LOSSES,
        rows: &[],
        columns: &[
            column("numbers", Show::Level("numbers")),
            column("rate", Show::Level("rate")),
            column("loss", Show::Mean(Metric::Tail)),
            column("diverged", Show::Sum(Metric::Diverged)),
            column("spikes", Show::Sum(Metric::SpikeCount)),
            column("seeds", Show::Runs),
        ],
    },
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
const BETAS: Level = level("f32, betas still", Set::Recipe(STILL));

const fn activation(name: &'static str, change: fn(&mut Config, Scale)) -> Level {
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

const PROXY_LOSSES: &str = "final losses (mean squared error over the last tenth of the steps, mean of seeds); spikes and \
                            divergence: losses above ten times the lowest median of 50 steps";

static NORMS: Figure = Figure {
    id: "F2a",
    title: "the proxy with norms, by activation function",
    source: "Fig. 2a: student-teacher MLP, depth 4, width 512, batch 2048, learning rate 6e-4",
    says: "With layer norms MX does worse than FP32, in the study until it diverges, and SwiGLU fares worst. Judged is the \
           loss (divergence by AppC), of MX E4M3 with gains of norms in blocks beside f32 whose betas of norms stay 0 as \
           those of the study's MX runs do.",
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
            over: &["f32, betas still"],
            axes: &["rate", "activation"],
            below: false,
        },
        Test::Given {
            axis: "activation",
            level: "swiglu",
            test: &Test::PooledWider {
                metric: Metric::LogTail,
                of: &["MX E4M3, gains too"],
                over: &["f32, betas still"],
                at: &["swiglu"],
                than: &["gelu"],
                axes: &["rate"],
            },
        },
    ]))),
    views: &[
        View::Courses {
            title: "Proxies with norms, learning rate and activation function {}",
            per: &["rate", "activation"],
            norms: false,
            under: MIDDLE,
        },
        View::Table {
            caption: PROXY_LOSSES,
            rows: &[],
            columns: &[
                column("activation", Show::Level("activation")),
                column("rate", Show::Level("rate")),
                column("numbers", Show::Level("numbers")),
                column("loss", Show::Mean(Metric::Tail)),
                column("diverged", Show::Sum(Metric::Diverged)),
                column("with spikes", Show::Sum(Metric::Spiked)),
                column("seeds", Show::Runs),
            ],
        },
    ],
};

static NO_NORMS: Figure = Figure {
    id: "F2b",
    title: "the proxy without norms",
    source: "Fig. 2b: the proxy of Fig. 2a without layer norms",
    says: "Without layer norms the final loss is lower, as the teacher has none: this half of the claim is judged, and \
           it says nothing of number formats. The other half, that MX becomes more stable and FP32 less, is not judged: \
           the table tells what became of the runs",
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
        View::Courses {
            title: "Proxies, learning rate and activation function {}",
            per: &["rate", "activation"],
            norms: false,
            under: MIDDLE,
        },
        View::Table {
            caption: PROXY_LOSSES,
            rows: &["rate", "activation", "numbers"],
            columns: &[
                column("activation", Show::Level("activation")),
                column("rate", Show::Level("rate")),
                column("numbers", Show::Level("numbers")),
                column("loss", Show::Mean(Metric::Tail)),
                column_of("with norms", &["with norms"], Show::Mean(Metric::Tail)),
                column("diverged", Show::Sum(Metric::Diverged)),
                column("with spikes", Show::Sum(Metric::Spiked)),
                column("seeds", Show::Runs),
            ],
        },
    ],
};

/// What a model without norms has no gains for is left out.
const NOTHING: Set = Set::Measured(&[], [6, 20, 50]);

fn no_norms(config: &mut Config, _: Scale) {
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
    judged: Judged::Own { asks: last_bin::ASKS, find: last_bin::find },
    views: &[],
};

static ZETA: Figure = Figure {
    id: "F-zeta",
    title: "bias of MX gradients before divergence",
    source: "the figure of the lower bound of the multiplicative gradient bias: |g - h| / |h| with the MX gradient g \
             and the FP32 gradient h, their cosine, and the loss",
    says: "The ratio rho = |g - h| / |h|, which bounds the norm of the multiplicative bias from below, is small at \
           first and drifts up while the cosine falls; the loss diverges after. Measured at the same weights and \
           between the trajectories of the MX run and of an f32 run of the same seed. The MX runs of AppC's grid, \
           measured 150 times each, are the search for other settings in which it is.",
    grid: Grid {
        also: &[&BIASED, &JUDGED.mx, &SHORT.mx, &LONG.mx, &SEARCH_MX, &UNSCALED],
        ..Grid::NONE
    },
    judged: Judged::Own { asks: bias::ASKS, find: bias::find },
    views: &[],
};

static INTERVENTIONS: Figure = Figure {
    id: "F4",
    title: "interventions shortly and well before divergence",
    source: "Fig. 4: nine changes of precision at two distances from the divergence of an E4M3 proxy of depth 4, \
             width 512, at steps 4500 and 5080 of a run that diverges at 5090",
    says: "Taking norms, activations or the backward pass out of MX, or raising the exponent of blocks that would \
           saturate, averts divergence. no_gelu_q changes nothing in these recipes and is the control; \"nothing\" raises the \
           rate by 2^-22 of it, the null beside which others stand. Judged at the steady rate, at which AppC's new seeds \
           tell whether MX diverges more often than f32. Two settings that were tried before, ramps on which f32 \
           diverges as well, stand beside it: there divergence is partly chance, and any change averts some.",
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
    judged: Judged::Own { asks: interventions::ASKS, find: interventions::find },
    views: &[],
};

const WEIGHTS_ALONE: Level =
    level("E4M3 weights, bf16 rest", Set::Recipe("mxpaper-e4m3+bf16-act-all"));
const FORWARD: Level = level("E4M3 forward only", Set::Recipe("mxpaper-e4m3+fwd-only"));

macro_rules! size {
    ($layers:literal, $width:literal) => {
        level(
            concat!(stringify!($layers), " x ", stringify!($width)),
            Set::All(&[Set::Layers($layers), Set::Width($width)]),
        )
    };
}

macro_rules! steps {
    ($($steps:literal),+) => {
        &[$(number(stringify!($steps), $steps as f64, Set::Steps($steps))),+]
    };
}

const OLMO_4: Level = level("4 x 256", Set::Model("olmo-l4"));
const OLMO_6: Level = level("6 x 384", Set::Model("olmo-l6"));
const OLMO_8: Level = level("8 x 512", Set::Model("olmo-l8"));
const OLMO_11: Level = level("11 x 704", Set::Model("olmo-l11"));

static GAPS: Figure = Figure {
    id: "T1",
    title: "validation-loss gaps of the stable strategies",
    source: "Table 1: final validation loss less that of full precision, by tokens per parameter and compute, for \
             MX weights with bfloat16 activations and for MX in the forward pass alone",
    says: "E4M3 weights with bfloat16 activations, and E4M3 in the forward pass alone, end closer to full precision than \
           E4M3 everywhere does. Judged is the mean over sizes and budgets; how the gaps change with the size of the \
           model has a table of its own.",
    grid: Grid {
        seeds: [2, 3, 1],
        axes: &[
            Axis {
                name: "size",
                levels: [
                    &[size!(1, 64)],
                    &[size!(1, 64), size!(2, 64), size!(2, 128)],
                    &[OLMO_4, OLMO_8, OLMO_11],
                ],
            },
            Axis {
                name: "steps",
                levels: [steps!(12), steps!(100, 200, 400), steps!(1627, 3254, 6509)],
            },
            Axis::new(
                "numbers",
                &[
                    BF16,
                    level("E4M3", Set::Recipe("mxpaper-e4m3+ln-affine=mx")),
                    WEIGHTS_ALONE,
                    FORWARD,
                ],
            ),
        ],
        ..MODELS
    },
    judged: Judged::By(Claim {
        holds: Test::All(&[
            nearer(&["E4M3 weights, bf16 rest"], true),
            nearer(&["E4M3 forward only"], true),
        ]),
        opposite: Some(Test::All(&[
            nearer(&["E4M3 weights, bf16 rest"], false),
            nearer(&["E4M3 forward only"], false),
        ])),
    }),
    views: &[View::Own(strategies::draw)],
};

/// Both have the same gap to full precision, so that their difference tells which is nearer.
const fn nearer(of: Pick, below: bool) -> Test {
    Test::Pooled {
        metric: Metric::Validation,
        of,
        over: &["E4M3"],
        axes: &["size", "steps"],
        below,
    }
}

static HYPERPARAMETERS: Figure = Figure {
    id: "T3",
    title: "hyperparameters of the language models",
    source: "Table 3, from the published configurations (github.com/Hither1/systems-scaling, olmo/configs)",
    says: "Nothing is claimed: the study's configuration beside the one of this scale, both as they are run.",
    grid: Grid::NONE,
    judged: Judged::Own { asks: "", find: hyperparameters::find },
    views: &[],
};

static SEARCHED: Figure = Figure {
    id: "AppC",
    title: "instability by depth, width, rate and format",
    source: "Appendix C: sweeps of proxies over depth, width and learning rate in FP32, E4M3 with E5M2 gradients, and \
             E2M3",
    says: "Large rates make deep and wide proxies unstable in FP32 too; MX makes more of them unstable. f32 leaves betas of \
           norms at 0 there, as the study's MX does. The grid is also the search for divergence that F2a and F4 rest on: \
           rates over two decades, depths, widths, formats, and gains that begin inside the last bin. Every rate is \
           reached by a warm-up of a fifth of the steps.",
    grid: Grid { also: &[&NEW_SEEDS, &BEYOND], ..SEARCH },
    judged: Judged::Own { asks: search::ASKS, find: search::find },
    views: &[],
};

/// The numbers of a language model, and those of a proxy.
macro_rules! either {
    ($name:literal, $language:expr, $proxy:expr) => {
        level(
            $name,
            Set::All(&[
                Set::Recipe($language),
                Set::When("model", "proxy with a divergence", &[Set::Recipe($proxy)]),
            ]),
        )
    };
}

static SIMPLIFIED: Figure = Figure {
    id: "AppD",
    title: "simpler models",
    source: "Appendix D: the proxy as the end of a chain of simplifications (attention, norms of queries and keys, the \
             loss)",
    says: "Simplifications leave the picture as it is: MX stays worse than bfloat16 without norms of queries and \
           keys, without gains, and in the proxy, the model without attention, with a divergence of Kullback and \
           Leibler in place of the mean squared error. The proxy is compared with f32.",
    grid: Grid {
        steps: [16, 0, 6509],
        rate: [3e-3, 0.0, 2e-4],
        seeds: [1, 0, 1],
        sets: &[],
        axes: &[
            Axis::new(
                "model",
                &[
                    level("model with norms of queries and keys", LANGUAGE),
                    level("model without them", Set::All(&[LANGUAGE, Set::Change(no_query_norms)])),
                    level(
                        "model without gains in any norm",
                        Set::All(&[LANGUAGE, Set::Change(no_gains)]),
                    ),
                    level("proxy with a divergence", DIVERGENCE),
                ],
            ),
            Axis::new(
                "numbers",
                &[
                    either!("full precision", "mxpaper-bf16", "f32"),
                    either!("MX E4M3", "mxpaper-e4m3+ln-affine=mx", text!("e4m3")),
                    either!("MX E2M1", "mxpaper-e2m1+ln-affine=mx", text!("e2m1")),
                ],
            ),
        ],
        ..MODELS
    },
    judged: Judged::By(Claim::new(Test::Pooled {
        metric: Metric::Tail,
        of: &["MX E4M3"],
        over: &["full precision"],
        axes: &["model"],
        below: false,
    })),
    views: &[
        View::Courses { title: "Losses of a {}", per: &["model"], norms: false, under: MIDDLE },
        View::Table {
            caption: "final training losses (nats per byte, of the proxy nats, mean of the last tenth and of the seeds)",
            rows: &[],
            columns: &[
                column("model", Show::Level("model")),
                column("numbers", Show::Level("numbers")),
                column("loss", Show::Mean(Metric::Tail)),
                column("diverged", Show::Sum(Metric::Diverged)),
                column("spikes", Show::Sum(Metric::SpikeCount)),
            ],
        },
    ],
};

/// The student against its teacher by a divergence in place of squares: no attention, no squares.
const DIVERGENCE: Set = Set::All(&[
    Set::Model("proxy-nano"),
    STUDENT,
    Set::At([&[Set::Steps(24), Set::Rate(3e-3)], &[], &[Set::Steps(9000), Set::Rate(6e-4)]]),
    Set::Change(divergence),
]);

fn divergence(config: &mut Config, _: Scale) {
    if let Model::Proxy(model) = &mut config.model {
        model.loss = Loss::Kl;
    }
}

fn no_query_norms(config: &mut Config, _: Scale) {
    if let Model::Decoder(model) = &mut config.model {
        model.qk_norm = QkNorm::None;
    }
}

fn no_gains(config: &mut Config, _: Scale) {
    if let Model::Decoder(model) = &mut config.model {
        model.norm_affine = false;
    }
}

static LAWS: Figure = Figure {
    id: "AppG",
    title: "scaling laws of the stable strategies",
    source: "Appendix G: Chinchilla laws of E4M3 weights with bfloat16 activations (alpha 0.524, beta 0.553, E 0.535) \
             and of E4M3 forward only; unstable pairs give beta above 1",
    says: "The hybrids follow scaling laws as full precision does, unstable MX does not.",
    grid: LAWS_GRID,
    judged: Judged::Own { asks: laws::ASKS, find: laws::find },
    views: &[],
};

const LAWS_GRID: Grid = Grid {
    seeds: [1, 0, 1],
    axes: &[
        Axis {
            name: "size",
            levels: [
                &[size!(1, 64), size!(2, 64), size!(2, 128)],
                &[],
                &[OLMO_4, OLMO_6, OLMO_8, OLMO_11],
            ],
        },
        Axis { name: "steps", levels: [steps!(4, 8), &[], steps!(1627, 3254, 6509, 13018)] },
        // The first is the base, the next two the hybrids, the last full MX.
        Axis::new(
            "numbers",
            &[
                BF16,
                WEIGHTS_ALONE,
                FORWARD,
                level("E2M3 and E3M2", Set::Recipe("mxpaper-e2m3+a=e3m2+ln-affine=mx")),
            ],
        ),
    ],
    ..MODELS
};

static DAMAGE: Figure = Figure {
    id: "Nb-1",
    title: "what runs lose after their lowest loss",
    source: "the published notebook's heat map of min(loss) - final loss over parameters and tokens: 0 for small \
             budgets, -0.5 to -1.1 from 1e10 tokens on in E5M2 weights and E4M3 activations",
    says: "Long runs in unstable MX pairs end above the lowest loss they had; stable ones do not.",
    grid: LAWS_GRID,
    judged: Judged::Own { asks: laws::DAMAGE_ASKS, find: laws::damage },
    views: &[],
};

static PAIRS: Figure = Figure {
    id: "AppJ",
    title: "all pairs of formats",
    source: "Appendix J: more unstable pairs of weight and activation formats, and the variance of their gradient norms",
    says: "Pairs of MX formats become unstable, and the variance of the gradient norm grows with it.",
    grid: PAIRS_GRID,
    judged: Judged::Own { asks: pairs::ASKS, find: pairs::find },
    views: &[],
};

/// Both in bfloat16 is no MX at all.
const PAIRS_GRID: Grid = Grid {
    steps: [12, 0, 6509],
    rate: [3e-3, 0.0, 2e-4],
    seeds: [1, 0, 1],
    sets: &[LANGUAGE, Set::Recipe("mxpaper-e4m3")],
    axes: &[
        Axis { name: "weights", levels: [&[WEIGHTS[3], WEIGHTS[4]], &[], &WEIGHTS] },
        Axis {
            name: "activations",
            levels: [&[ACTIVATIONS[3], ACTIVATIONS[4]], &[], &ACTIVATIONS],
        },
    ],
    ..MODELS
};
const WEIGHTS: [Level; 5] = [
    level("e2m3", Set::With("+w=e2m3")),
    level("e3m2", Set::With("+w=e3m2")),
    level("e4m3", Set::With("+w=e4m3")),
    level("e5m2", Set::With("+w=e5m2")),
    level(
        "bf16",
        Set::All(&[
            Set::With("+w=bf16"),
            Set::When("activations", "bf16", &[Set::Whole("mxpaper-bf16")]),
        ]),
    ),
];
const ACTIVATIONS: [Level; 5] = [
    level("e2m3", Set::With("+a=e2m3")),
    level("e3m2", Set::With("+a=e3m2")),
    level("e4m3", Set::With("+a=e4m3")),
    level("e5m2", Set::With("+a=e5m2")),
    level("bf16", Set::With("+a=bf16")),
];

static ONSETS: Figure = Figure {
    id: "Nb-2",
    title: "when losses turn up",
    source: "the published notebook's plot of the first step whose averaged loss (100 steps) rises by more than 0.008, \
             against tokens per parameter",
    says: "Runs in MX have an onset of instability, bfloat16 has none.",
    grid: PAIRS_GRID,
    judged: Judged::Own { asks: pairs::ONSET_ASKS, find: pairs::onsets },
    views: &[],
};

static VARIATIONS: Figure = Figure {
    id: "Ext",
    title: "blocks, roundings, scales, starts, optimizers",
    source: "what reviewers of the study asked for, and its ablation of the start",
    says: "Avoiding saturation helps: with the exponent raised where a block would saturate, losses are lower. The other \
           variations are shown.",
    grid: Grid {
        steps: [10, 0, 9000],
        rate: [3e-3, 0.0, 6e-4],
        seeds: [1, 0, 3],
        axes: &[
            Axis { name: "variation", levels: [&[VARIED[0], VARIED[1], VARIED[7]], &[], &VARIED] },
            Axis::new(
                "numbers",
                &[
                    level("MX e4m3", Set::Recipe(text!("e4m3"))),
                    level("MX e2m1", Set::Recipe(text!("e2m1"))),
                    F32,
                ],
            ),
        ],
        ..PROXIES
    },
    judged: Judged::By(Claim::new(Test::Pooled {
        metric: Metric::LogTail,
        of: &["bump of each block"],
        over: &["blocks of 32, half away"],
        axes: &["numbers"],
        below: true,
    })),
    views: &[
        View::Own(blocks::draw),
        View::Table {
            caption: "final losses (mean squared error, mean of the seeds) and spikes of all seeds",
            rows: &[],
            columns: &[
                column("variation", Show::Level("variation")),
                column("numbers", Show::Level("numbers")),
                column("loss", Show::Mean(Metric::Tail)),
                column("diverged", Show::Sum(Metric::Diverged)),
                column("spikes", Show::Sum(Metric::SpikeCount)),
            ],
        },
    ],
};

/// Words of the recipe, of which f32 has none.
macro_rules! words {
    ($name:literal, $size:literal, $words:literal) => {
        number(
            $name,
            $size,
            Set::All(&[Set::With($words), Set::When("numbers", "f32", &[Set::Out])]),
        )
    };
}

/// The first is the base; numbers are the sizes of blocks.
const VARIED: [Level; 12] = [
    number("blocks of 32, half away", 32.0, Set::All(&[])),
    words!("blocks of 2", 2.0, "+block=2"),
    words!("blocks of 8", 8.0, "+block=8"),
    words!("blocks of 16", 16.0, "+block=16"),
    words!("blocks of 64", 64.0, "+block=64"),
    words!("to nearest even", 0.0, "+round=rne"),
    words!("rounded down", 0.0, "+round=floor"),
    words!("bump of each block", 0.0, "+bump"),
    words!("bump as coded", 0.0, "+bump=code"),
    level("Xavier start, gain 0.5", Set::Change(xavier)),
    level(
        "gradient descent, rate 0.3",
        Set::All(&[Set::Rate(0.3), Set::Change(|config, _| descend(config, 0.0))]),
    ),
    level(
        "with momentum 0.9, rate 0.1",
        Set::All(&[Set::Rate(0.1), Set::Change(|config, _| descend(config, 0.9))]),
    ),
];

fn xavier(config: &mut Config, _: Scale) {
    if let Model::Proxy(model) = &mut config.model {
        (model.init, model.init_gain) = (Init::Xavier, 0.5);
    }
}

fn descend(config: &mut Config, momentum: f64) {
    (config.train.optimizer, config.train.momentum) = (Method::Sgd, momentum);
}
