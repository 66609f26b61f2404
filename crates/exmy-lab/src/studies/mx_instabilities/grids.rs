//! The runs of the MX study: its language models, its student-teacher proxies, and the rates at which proxies
//! diverge.
//!
//! At usual rates no MX run of this size diverges (AppC has the grid that was searched). There are three
//! settings at larger ones, in the order in which they were tried, and all are reported. On the long ramp of
//! the rate, to 0.2, every MX run diverges, at rates of 0.12 to 0.14. On the short one, to 0.08, about half
//! of them do, some 70 steps in. In f32 runs diverge on both as well, so that neither shows what MX does. The
//! steady rate was chosen after the search and some runs by hand, of which more diverged in E2M1 than in f32
//! whose betas are fixed. Its seeds are others than those. There nearly all runs of all formats explode once
//! the rate has risen, and what differs is which of them recover.

use crate::grid::{After, Axis, Grid, Level, Set, level, number};
use crate::study_scale::StudyScale;
use exmy_train::nn::model::Config as Model;
use exmy_train::train::config::Config;

/// The study's text: gains of norms in MX blocks, too. In its code they are in bfloat16. The student's
/// activation function is exact.
macro_rules! text {
    ($format:literal) => {
        concat!("mxpaper-", $format, "+gelu=fp32+ln-affine=mx")
    };
}
pub(super) use text;

/// A branch after so many steps.
macro_rules! after {
    ($step:literal) => {
        number(stringify!($step), $step as f64, Set::After(After::Step($step)))
    };
}

/// Nothing is rounded, and betas of norms stay 0 as they do in every MX recipe of the study's code, whose
/// norms return no gradient for them. Where betas are trained stressed runs diverge at lower rates, in f32
/// and in MX alike, so that this and not `f32` differs from MX in numbers alone.
pub(crate) const FIXED: &str = "f32+norm_beta:gradient=zero";

/// Changes of a model of either kind.
pub(crate) fn gains(config: &mut Config, mean: f64, spread: f64) {
    if let Model::Proxy(model) = &mut config.model {
        (model.gain_init, model.gain_spread) = (mean, spread);
    }
}

fn language(config: &mut Config, _: StudyScale) {
    (config.train.weight_decay, config.train.eps) = (0.0, 1e-15);
}

fn windows(config: &mut Config, context: usize, windows: usize) {
    config.record.eval_windows = windows;
    if let Model::Decoder(model) = &mut config.model {
        model.context = context;
    }
}

fn proxy(config: &mut Config, _: StudyScale) {
    config.record.eval_windows = 0;
    if let Model::Proxy(model) = &mut config.model {
        model.validation_rows = 512;
    }
}

/// AdamW with a warm-up of a fifth of the steps and a cosine to a tenth.
pub(crate) const LANGUAGE: Set = Set::All(&[
    Set::Planned,
    Set::Warmup(0.2),
    Set::Measured(&[], [8, 20, 50]),
    Set::Change(language),
    Set::At([
        &[Set::Layers(1), Set::Width(64), Set::Batch(2), Set::Change(|c, _| windows(c, 32, 8))],
        &[Set::Layers(2), Set::Width(64), Set::Batch(8), Set::Change(|c, _| windows(c, 64, 128))],
        &[Set::Change(|c, _| windows(c, 512, 200))],
    ]),
]);

/// Language models of the study's kind: layer norms without bias, norms of queries and keys, GELU, heads of
/// 64 channels.
pub(crate) const MODELS: Grid = Grid {
    model: ["olmo-micro", "olmo-micro", "olmo-l4"],
    steps: [16, 400, 6509],
    rate: [1e-3, 3e-3, 2e-4],
    sets: &[LANGUAGE],
    ..Grid::NONE
};

/// Nothing is clipped, the rate is constant.
pub(crate) const STUDENT: Set = Set::All(&[
    Set::Planned,
    Set::Constant,
    Set::Warmup(0.0),
    Set::Measured(&["lastbin.gamma"], [6, 20, 50]),
    Set::Change(proxy),
    Set::At([
        &[Set::Layers(2), Set::Width(32), Set::Batch(32)],
        &[Set::Layers(4), Set::Width(64), Set::Batch(128)],
        &[Set::Layers(4), Set::Width(512), Set::Batch(2048)],
    ]),
]);

/// Proxies. The paper's own size is its unstable run.
pub(crate) const PROXIES: Grid = Grid {
    model: ["proxy-nano"; 3],
    steps: [24, 1200, 9000],
    rate: [3e-3, 3e-3, 6e-4],
    sets: &[STUDENT],
    ..Grid::NONE
};

/// Those of the two figures of activation functions, and of the bias.
pub(crate) const PROXY_RATES: Axis = Axis {
    name: "rate",
    levels: [
        &[level("3e-3", Set::Rate(3e-3))],
        &[level("3e-3", Set::Rate(3e-3)), level("1e-2", Set::Rate(1e-2))],
        &[level("6e-4", Set::Rate(6e-4)), level("1e-3", Set::Rate(1e-3))],
    ],
};
/// What is measured where gains are rounded.
pub(crate) const BIAS: Set =
    Set::Measured(&["lastbin.gamma", "rho_same", "cos_same", "rho_traj", "cos_traj"], [6, 20, 50]);

/// The MX runs in which F-zeta looks for bias at usual rates: those of F2a.
pub(crate) static BIASED: Grid = Grid {
    seeds: [1, 3, 3],
    sets: &[STUDENT, Set::Recipe(text!("e4m3")), BIAS],
    axes: &[PROXY_RATES],
    ..PROXIES
};

/// A stressed proxy: its runs from the beginning, and what they go on in.
#[derive(Clone, Copy, Debug)]
pub struct Stress {
    pub(crate) name: &'static str,
    /// The numbers of its MX runs at each scale.
    pub(crate) format: [&'static str; 3],
    /// Those runs.
    pub(crate) mx: Grid,
    /// What they are compared with.
    pub(crate) plain: Grid,
    pub branches: Grid,
}

/// What is judged: the setting that shows what MX does.
pub(crate) static JUDGED: Stress = Stress {
    name: "steady rate",
    format: ["E2M1", "E2M1", "E4M3"],
    mx: Grid {
        axes: &[Axis { name: "numbers", levels: [&[IN_STEADY], &[IN_STEADY], &[IN_FULL]] }],
        ..AT_RATE
    },
    plain: Grid { axes: PLAIN, ..AT_RATE },
    branches: Grid {
        axes: &[
            Axis {
                name: "after",
                levels: [
                    &[after!(8), after!(16)],
                    &[after!(30), after!(45)],
                    &[
                        level("0.88 T", Set::After(After::Until(88))),
                        level("T - 100", Set::After(After::Before(100))),
                        level("T - 10", Set::After(After::Before(10))),
                    ],
                ],
            },
            Axis { name: "change", levels: [&IN_E2M1, &IN_E2M1, &IN_E4M3_HOPPER] },
        ],
        sets: &[STRESSED, MEASURED, Set::At([MX_E2M1, MX_E2M1, &[MX_HOPPER]])],
        ..AT_RATE
    },
};
const AT_RATE: Grid = Grid {
    steps: [24, 300, 9000],
    rate: [0.012, 0.06, 6e-4],
    seeds: [1, 24, 10],
    first: [1, 21, 1],
    sets: &[STRESSED],
    ..PROXIES
};
const STRESSED: Set = Set::All(&[
    STUDENT,
    Set::At([
        &[Set::Warmup(1.0), Set::Measured(&["lastbin.gamma"], [5; 3])],
        &[Set::Batch(64), Set::Warmup(0.2), Set::Measured(&["lastbin.gamma"], [5; 3])],
        &[],
    ]),
]);
const MX_E2M1: &[Set] = &[Set::Recipe(text!("e2m1")), KEPT];
/// The runs of F2-11's first recipe.
const MX_HOPPER: Set = Set::Recipe(concat!(text!("e4m3"), "+sums=hopper:bf16"));
const MEASURED: Set = Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [5, 5, 50]);
const KEPT: Set = Set::At([&[Set::Keep(&[8, 16])], &[Set::Keep(&[30, 45])], &[]]);

const IN_STEADY: Level = level("MX", Set::All(&[MEASURED, Set::All(MX_E2M1)]));
const IN_FULL: Level = level("MX", Set::All(&[MEASURED, MX_HOPPER]));
const PLAIN: &[Axis] = &[Axis::new("numbers", &[F32, BETAS])];
const F32: Level = level("f32", Set::Recipe("f32"));
const BETAS: Level = level("f32, fixed betas", Set::Recipe(FIXED));

/// New seeds at the steady rate, of more formats. None where the study's own runs are trained, or nothing is
/// judged.
pub static NEW_SEEDS: Grid = Grid {
    seeds: [0, 24, 0],
    axes: &[Axis::new(
        "numbers",
        &[
            BETAS,
            IN_STEADY,
            level("E2M3", Set::Recipe(text!("e2m3"))),
            level("E4M3", Set::Recipe(text!("e4m3"))),
            level("bfloat16", Set::Recipe("mxpaper-bf16+gelu=fp32")),
            F32,
        ],
    )],
    ..AT_RATE
};

/// What an MX run goes on in: the nine changes of the study, of which `control` goes on as it began, and two
/// more. `fp32_fixed` is f32 whose betas stay 0, as they do in MX. `nothing` is the same recipe at a rate
/// that is larger by 2^-22 of it. It shows what chance does once so small a change has grown, which is the
/// least to be expected of any change.
macro_rules! changes {
    ($format:literal, $sums:literal, $forward_sums:literal) => {
        [
            level("control", Set::Whole(concat!(text!($format), $sums))),
            level("nothing", Set::Change(raised)),
            level("fp32", Set::Whole("f32")),
            level("fp32_fixed", Set::Whole(FIXED)),
            level("bump", Set::Whole(concat!(text!($format), "+bump", $sums))),
            // Norms out of it: neither their gains nor their steps are rounded.
            level("no_ln_q", Set::Whole(concat!("mxpaper-", $format, "+gelu=fp32+no-ln-q", $sums))),
            level("bf16_act", Set::Whole(concat!(text!($format), "+bf16-act", $sums))),
            level("bf16_act_all", Set::Whole(concat!(text!($format), "+bf16-act-all", $sums))),
            level("fwd_only", Set::Whole(concat!(text!($format), "+fwd-only", $forward_sums))),
            level("no_gelu_q", Set::Whole(concat!(text!($format), "+no-gelu-q", $sums))),
            level("bf16_weight", Set::Whole(concat!(text!($format), "+bf16-weight", $sums))),
        ]
    };
}
const IN_E2M1: [Level; 11] = changes!("e2m1", "", "");
const IN_E4M3: [Level; 11] = changes!("e4m3", "", "");
/// At the paper's size sums are those of tensor cores, as F2-11's are.
const IN_E4M3_HOPPER: [Level; 11] =
    changes!("e4m3", "+sums=hopper:bf16", "+forward:sums=hopper:bf16");

fn raised(config: &mut Config, _: StudyScale) {
    let lr = config.train.lr * (1.0 + libm::exp2(-22.0));
    (config.train.lr, config.train.lr_min) = (lr, lr);
}

/// The short ramp.
pub(crate) static SHORT: Stress = Stress {
    name: "short ramp",
    format: ["E2M1"; 3],
    mx: Grid {
        sets: &[RAMP, MEASURED, Set::All(MX_SHORT)],
        axes: &[Axis::new("numbers", &[level("MX", Set::All(&[]))])],
        ..SHORT_RAMP
    },
    plain: Grid { axes: PLAIN, ..SHORT_RAMP },
    branches: Grid {
        axes: &[Axis::new("after", &[after!(30), after!(50)]), Axis::new("change", &IN_E2M1)],
        sets: &[RAMP, MEASURED, Set::All(MX_SHORT)],
        ..SHORT_RAMP
    },
};
const SHORT_RAMP: Grid = Grid {
    steps: [0, 160, 0],
    rate: [0.0, 0.08, 0.0],
    seeds: [0, 10, 0],
    sets: &[RAMP],
    ..PROXIES
};
const RAMP: Set = Set::All(&[
    STUDENT,
    Set::Batch(64),
    Set::Warmup(1.0),
    Set::Measured(&["lastbin.gamma"], [5; 3]),
]);
const MX_SHORT: &[Set] = &[Set::Recipe(text!("e2m1")), Set::Keep(&[30, 50])];

/// The long ramp.
pub(crate) static LONG: Stress = Stress {
    name: "long ramp",
    format: ["E4M3"; 3],
    mx: Grid {
        sets: &[RAMP, Set::Layers(2), Set::All(MX_LONG)],
        axes: &[Axis::new("numbers", &[level("MX", Set::All(&[]))])],
        ..LONG_RAMP
    },
    plain: Grid { axes: PLAIN, ..LONG_RAMP },
    branches: Grid {
        axes: &[Axis::new("after", &[after!(150), after!(210)]), Axis::new("change", &IN_E4M3)],
        sets: &[RAMP, Set::Layers(2), Set::All(MX_LONG)],
        ..LONG_RAMP
    },
};
const LONG_RAMP: Grid = Grid {
    steps: [0, 400, 0],
    rate: [0.0, 0.2, 0.0],
    seeds: [0, 5, 0],
    sets: &[RAMP, Set::Layers(2), Set::Measured(&["lastbin.gamma"], [20; 3])],
    ..PROXIES
};
const MX_LONG: &[Set] = &[
    Set::Recipe(text!("e4m3")),
    Set::Keep(&[150, 210]),
    Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [20; 3]),
];

/// The settings, the judged one first, then from the last that was tried to the first.
pub static STRESSES: [&Stress; 3] = [&JUDGED, &SHORT, &LONG];

/// The run whose divergence F4's detector must see: E2M1 at ten times the rate.
pub(crate) static TENFOLD: Grid = Grid {
    rate: [10.0 * 0.012, 10.0 * 0.06, 10.0 * 6e-4],
    seeds: [1; 3],
    first: [1; 3],
    sets: &[STRESSED, Set::Recipe(text!("e2m1"))],
    axes: &[Axis::new("numbers", &[level("E2M1", Set::All(&[]))])],
    ..AT_RATE
};

macro_rules! sizes {
    ($set:ident, $($size:literal),+) => {
        &[$(number(stringify!($size), $size as f64, Set::$set($size))),+]
    };
}

/// AppC's grid, one seed a grid point. Rates over two decades, depths, widths, formats, and gains that begin
/// inside the last bin. Without a warm-up runs at too large rates never learn anything that they could lose.
pub static SEARCH: Grid = Grid {
    axes: &[
        LAYERS,
        WIDTHS,
        RATES,
        GAINS,
        Axis::new(
            "numbers",
            &[
                level("f32, fixed betas", Set::All(&[Set::Recipe(FIXED), FIFTHS])),
                level("f32", Set::All(&[Set::Recipe("f32"), FIFTHS])),
                ROUNDED[0],
                ROUNDED[1],
                ROUNDED[2],
                ROUNDED[3],
            ],
        ),
    ],
    ..SEARCHED
};
/// Its MX runs, in which F-zeta looks for bias.
pub(crate) static SEARCH_MX: Grid =
    Grid { axes: &[LAYERS, WIDTHS, RATES, GAINS, Axis::new("numbers", &ROUNDED)], ..SEARCHED };
const ROUNDED: [Level; 4] = [
    level("E4M3", Set::Recipe(text!("e4m3"))),
    level("E4M3, gradients E5M2", Set::Recipe(text!("mix"))),
    level("E2M3", Set::Recipe(text!("e2m3"))),
    level("E2M1", Set::Recipe(text!("e2m1"))),
];
const LAYERS: Axis = Axis {
    name: "layers",
    levels: [sizes!(Layers, 2), sizes!(Layers, 2, 4, 8), sizes!(Layers, 3, 4, 5, 6, 7, 8)],
};
const WIDTHS: Axis = Axis {
    name: "width",
    levels: [sizes!(Width, 32), sizes!(Width, 32, 64), sizes!(Width, 256, 384, 512)],
};
const RATES: Axis = Axis {
    name: "rate",
    levels: [
        &[number("1e-2", 1e-2, Set::Rate(1e-2))],
        &[
            number("1e-3", 1e-3, Set::Rate(1e-3)),
            number("3e-3", 3e-3, Set::Rate(3e-3)),
            number("1e-2", 1e-2, Set::Rate(1e-2)),
            number("3e-2", 3e-2, Set::Rate(3e-2)),
            number("1e-1", 1e-1, Set::Rate(1e-1)),
        ],
        &[
            number("1e-5", 1e-5, Set::Rate(1e-5)),
            number("5e-5", 5e-5, Set::Rate(5e-5)),
            number("1e-4", 1e-4, Set::Rate(1e-4)),
            number("5e-4", 5e-4, Set::Rate(5e-4)),
            number("1e-3", 1e-3, Set::Rate(1e-3)),
        ],
    ],
};
const GAINS: Axis = Axis { name: "gains", levels: [&[CLUSTERED], &[ONE, CLUSTERED], &[ONE]] };
const SEARCHED: Grid =
    Grid { steps: [10, 300, 7000], seeds: [1; 3], sets: &[SEARCH_SETS], ..PROXIES };
/// Most divergences are within the warm-up: few measurements would be before them.
const SEARCH_SETS: Set = Set::All(&[
    STUDENT,
    Set::Warmup(0.2),
    Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [1, 2, 46]),
    Set::At([&[Set::Batch(32)], &[Set::Batch(64)], &[]]),
]);
const FIFTHS: Set = Set::Measured(&["lastbin.gamma"], [2, 60, 1400]);
const ONE: Level = number("1", 1.0, Set::All(&[]));
const CLUSTERED: Level = number("0.95", 0.95, Set::Change(|config, _| gains(config, 0.95, 0.02)));

/// Ten times the largest rate, everything in E2M1: AppC's detector must fire.
pub(crate) static BEYOND: Grid = Grid {
    rate: [0.1, 1.0, 0.01],
    sets: &[
        SEARCH_SETS,
        Set::Recipe(text!("e2m1")),
        Set::At([
            &[Set::Layers(2), Set::Width(32), CLUSTERED.set],
            &[Set::Layers(8), Set::Width(64), CLUSTERED.set],
            &[Set::Layers(8), Set::Width(512)],
        ]),
    ],
    axes: &[Axis::new("numbers", &[level("E2M1", Set::All(&[]))])],
    ..SEARCHED
};

/// E4M3 whose gradients are biased by construction. From a run's middle on those of outputs are rounded to
/// E3M2 without any scale, far above most of them, and the loss follows within ten steps. F-zeta must see
/// their bias before.
pub(crate) static UNSCALED: Grid = Grid {
    rate: [1e-2, 3e-2, 5e-4],
    sets: &[
        SEARCH_SETS,
        Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [1, 2, 2]),
        Set::Recipe(concat!(text!("e4m3"), "+from50%:backward:grad_output=e3m2@sr8")),
        Set::At([
            &[Set::Layers(2), Set::Width(32)],
            &[Set::Layers(2), Set::Width(32)],
            &[Set::Layers(3), Set::Width(256)],
        ]),
    ],
    axes: &[Axis::new("numbers", &[level("E4M3, gradients without a scale", Set::All(&[]))])],
    ..SEARCHED
};
