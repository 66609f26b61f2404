//! The models of this study and how they are trained: most figures read the long runs, ablations the short
//! ones.

use crate::grid::{After, Axis, Grid, Level, Scaled, Set, level};
use crate::study_scale::StudyScale;
use exmy_train::nn::decoder::{Mixer, QkNorm};
use exmy_train::train::config::Config;
use exmy_train::train::schedule::Schedule;

/// Linear operators' operands and outputs in bfloat16: the baseline.
const BASELINE: &str = "bf16+out=bf16";
pub(super) const BF16: Level = level("bf16", Set::Recipe(BASELINE));
pub(super) const NVFP4: Level = level("NVFP4", Set::Recipe("nv-nvfp4"));
pub(super) const CHON: Level = level("CHON", Set::Recipe("chon"));

const GLA: Scaled<&str> = ["gla-nano", "gla-micro", "gla-1.3b"];
const SA: Scaled<&str> = ["sa-micro", "sa-micro", "qwen3-1.7b"];

/// Gated linear attention and softmax attention.
pub(super) const BOTH: Axis = Axis {
    name: "model",
    levels: [
        &[
            level("GLA", Set::Model(GLA[0])),
            level("SA", Set::All(&[Set::Model(SA[0]), Set::Change(tiny)])),
        ],
        &[level("GLA", Set::Model(GLA[1])), level("SA", Set::Model(SA[1]))],
        &[level("GLA", Set::Model(GLA[2])), level("SA", Set::Model(SA[2]))],
    ],
};

/// The preset of softmax attention as small as that of gated linear attention, at the smallest scale.
fn tiny(config: &mut Config, scale: StudyScale) {
    if let (StudyScale::Smoke, Some(model)) = (scale, config.model.decoder_mut()) {
        (model.layers, model.d_model, model.hidden, model.context) = (2, 64, 192, 64);
        (model.heads, model.kv_heads) = (2, 2);
    }
}

/// 60 G tokens in batches of 4 M are 14 305 steps.
const PAPER_STEPS: u64 = 14_305;

pub(super) const USUAL: Set = Set::Change(|config, scale| {
    if let (StudyScale::Smoke | StudyScale::Small, Some(model)) =
        (scale, config.model.decoder_mut())
    {
        model.sink = true;
    }
    let (train, record) = (&mut config.train, &mut config.record);
    if scale == StudyScale::Paper {
        train.steps = PAPER_STEPS;
    }
    train.warmup = train.steps / 20;
    (train.batch, train.accumulate) = (scale.pick([2, 4, 2048]), scale.pick([1, 1, 256]));
    train.schedule = Schedule::Wsd { decay_fraction: 0.2 };
    (record.keep, record.eval_windows) = (1, scale.pick([4, 64, 256]));
});

/// Runs of an ablation, without probes. Higher rates scatter losses more than recipes do.
pub(super) const SHORT: Grid = Grid {
    model: GLA,
    steps: [10, 600, PAPER_STEPS],
    rate: [1e-3, 1e-3, 3e-4],
    seeds: [1, 5, 1],
    sets: &[USUAL],
    ..Grid::NONE
};

/// Runs that several figures read, at twice the usual rate: outliers grow faster.
pub(super) const LONG: Grid = Grid {
    model: GLA,
    steps: [10, 1500, PAPER_STEPS],
    rate: [2e-3, 2e-3, 3e-4],
    seeds: [1, 3, 1],
    sets: &[USUAL, Set::Change(probed)],
    ..Grid::NONE
};

/// What is kept of long runs by arm and mixer: the probes that figures ask of the first three seeds, and
/// checkpoints after so many percent of the steps. Sensitivities branch off from those of bfloat16, and
/// precision is raised from those of NVFP4.
const KEPT: [(Level, Mixer, &[&str], &[u64]); 5] = [
    (BF16, Mixer::Gla, &["kurtosis", "spikes", "channels", "gates", "swiglu"], &[50]),
    (BF16, Mixer::Attention, &["kurtosis", "spikes", "channels", "attention", "swiglu"], &[50]),
    (
        NVFP4,
        Mixer::Gla,
        &["kurtosis", "spikes", "hot", "rounding", "channels", "gates"],
        &[60, 80, 95],
    ),
    (NVFP4, Mixer::Attention, &["kurtosis", "spikes", "hot"], &[]),
    (CHON, Mixer::Gla, &["rounding"], &[]),
];

fn probed(config: &mut Config, scale: StudyScale) {
    let mixer = config.model.decoder().map(|model| model.mixer.of(0));
    let row = KEPT.iter().find(|(arm, of, ..)| {
        matches!(arm.set, Set::Recipe(text) if config.recipe.as_str() == text) && mixer == Some(*of)
    });
    let (probes, checkpoints) = row.map_or((&[][..], &[][..]), |row| (row.2, row.3));
    set_probes(config, if config.seed <= 3 { probes } else { &[] }, scale.pick([5, 20, 200]));
    let steps = config.train.steps;
    config.record.checkpoint_at = checkpoints.iter().map(|percent| steps * percent / 100).collect();
}

fn set_probes(config: &mut Config, names: &[&str], every: u64) {
    config.record.probes = names.iter().map(|name| (*name).to_owned()).collect();
    config.record.probe_every = every;
}

/// Branches have no probes.
pub(super) const SILENT: Set = Set::Change(|config, _| config.record.probes.clear());

/// A recipe from some percent of a long run in NVFP4 on.
macro_rules! late {
    ($percent:literal, $recipe:literal) => {
        Set::All(&[NVFP4.set, Set::After(After::Percent($percent)), Set::Whole($recipe), SILENT])
    };
}
pub(super) use late;

/// One type of operator in NVFP4, from the middle of a long run in bfloat16 on.
macro_rules! only {
    ($($name:literal),+) => {
        [only!("bf16", BASELINE), $(only!($name, concat!("nv-nvfp4+last=0+only=", $name))),+]
    };
    ($name:expr, $recipe:expr) => {
        level(
            $name,
            Set::All(&[BF16.set, MIDDLE, Set::Whole($recipe), SILENT, Set::Change(shortly)]),
        )
    };
}
const MIDDLE: Set = Set::After(After::Percent(50));

fn shortly(config: &mut Config, scale: StudyScale) {
    config.train.steps = config.train.steps / 2 + scale.pick([4, 200, 2000]);
    config.train.schedule = Schedule::Constant;
}

/// Branches of bfloat16, and those of one type of operator in NVFP4.
pub(crate) const OPERATORS: [Level; 10] = only!(
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "g_proj",
    "gk_proj",
    "gate_proj",
    "up_proj",
    "down_proj"
);
/// The same of softmax attention, which has no gates of its own.
const SA_OPERATORS: [Level; 8] =
    only!("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj");

pub(crate) const GLA_BRANCHES: Grid = Grid { axes: &[Axis::new("operator", &OPERATORS)], ..LONG };
pub(crate) const SA_BRANCHES: Grid = Grid {
    model: SA,
    sets: &[Set::Change(tiny), USUAL, Set::Change(probed)],
    axes: &[Axis::new("operator", &SA_OPERATORS)],
    ..LONG
};
/// The weights that losses are measured at: more seeds, as nothing is trained on.
pub(crate) const FROZEN: Grid =
    Grid { seeds: [1, 8, 1], axes: &[BOTH, Axis::new("recipe", &[BF16])], ..LONG };

/// How long and at what rate hot channels are looked at, the judged runs first.
pub(super) const SETUPS: Axis =
    Axis { name: "runs", levels: [&[USUAL_RUNS], &[CONSTANT, FALLING, USUAL_RUNS], &[USUAL_RUNS]] };
const USUAL_RUNS: Level = level("usual runs", NVFP4.set);
/// A rate that falls in the last fifth alone.
const CONSTANT: Level = level(
    "small, rate constant",
    Set::All(&[
        Set::Model("gla-nano"),
        NVFP4.set,
        Set::Change(|config, _| small(config, 3600, 2e-4, Schedule::Wsd { decay_fraction: 0.2 })),
    ]),
);
/// A rate that falls to a hundredth.
const FALLING: Level = level(
    "small, rate falling",
    Set::All(&[
        Set::Model("gla-nano"),
        NVFP4.set,
        Set::Change(|config, _| small(config, 7200, 2e-5, Schedule::Cosine)),
    ]),
);

/// A smaller model, 2048 tokens a step. Settings were found on seeds that are not among these.
fn small(config: &mut Config, steps: u64, lr_min: f64, schedule: Schedule) {
    config.seed += 10;
    let train = &mut config.train;
    (train.steps, train.warmup, train.batch) = (steps, steps / 20, 32);
    (train.lr_min, train.schedule) = (lr_min, schedule);
    set_probes(config, &["hot", "channels"], steps / 60);
    config.record.checkpoint_at.clear();
    config.record.eval_windows = 4096;
}

/// The memory task, in which gates have to close at every reset; at small the runs that others read.
pub(super) const GATES: Grid = Grid {
    steps: [10, 1500, PAPER_STEPS],
    rate: [1e-3, 2e-3, 3e-4],
    seeds: [1, 3, 1],
    sets: &[
        Set::Recall([true, false, true]),
        USUAL,
        Set::Change(|config, scale| match scale {
            StudyScale::Small => probed(config, scale),
            _ => set_probes(config, &["channels", "gates"], scale.pick([5, 20, 200])),
        }),
    ],
    axes: &[Axis {
        name: "recipe",
        levels: [&[BF16, PROTECTED, NVFP4], &[BF16, NVFP4], &[BF16, PROTECTED, NVFP4]],
    }],
    ..SHORT
};
const PROTECTED: Level = level("NVFP4, gate in bf16", Set::Recipe("nv-nvfp4+protect=gk_proj"));

/// Steps in which the memory task is learned.
fn learned(config: &mut Config, scale: StudyScale) {
    config.train.steps = scale.pick([10, 2000, 20_480]);
}

/// Softmax attention in bfloat16 on the memory task; at small the runs that others read.
pub(super) const ATTENTION: Grid = Grid {
    model: SA,
    sets: &[
        Set::Recall([true, false, true]),
        BF16.set,
        Set::Change(tiny),
        USUAL,
        Set::Change(|config, scale| match scale {
            StudyScale::Small => probed(config, scale),
            _ => set_probes(config, &["attention"], scale.pick([5, 20, 200])),
        }),
        Set::Change(|config, scale| {
            if scale != StudyScale::Small {
                learned(config, scale);
            }
        }),
    ],
    ..GATES
};
pub(super) const NO_NORM: Level =
    level("no norm", Set::Change(|config, _| norm(config, QkNorm::None)));
pub(super) const HEAD_NORM: Level =
    level("norm of queries and keys", Set::Change(|config, _| norm(config, QkNorm::Head)));

fn norm(config: &mut Config, norm: QkNorm) {
    if let Some(model) = config.model.decoder_mut() {
        model.qk_norm = norm;
    }
}

/// Softmax attention in bfloat16 at a higher rate; at small the runs that others read.
pub(super) const ALIGNED: Grid = Grid {
    model: SA,
    rate: [4e-3, 2e-3, 1e-3],
    sets: &[
        BF16.set,
        Set::Change(tiny),
        USUAL,
        Set::Change(|config, scale| match scale {
            StudyScale::Small => probed(config, scale),
            _ => set_probes(config, &["swiglu"], scale.pick([2, 10, 200])),
        }),
    ],
    ..LONG
};

/// A weight decay; at small that of the runs that others read.
pub(super) const fn decay(which: usize) -> Set {
    match which {
        0 => Set::Change(|config, _| config.train.weight_decay = 0.0),
        1 => Set::Change(|config, _| config.train.weight_decay = 0.1),
        _ => Set::Change(|config, _| config.train.weight_decay = 0.3),
    }
}

/// Four channels that begin 16 times as large.
pub(super) const PLANTED: Set = Set::Change(|config, _| {
    if let Some(model) = config.model.decoder_mut() {
        (model.hot_channels, model.hot_scale) = (4, 16.0);
    }
});

/// The memory task until it is learned.
pub(super) const MEMORY: Grid =
    Grid { sets: &[Set::Recall([true; 3]), USUAL, Set::Change(learned)], ..SHORT };
