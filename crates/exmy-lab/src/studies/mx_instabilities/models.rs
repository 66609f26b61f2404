//! T1 to Ext: language models of several sizes, pairs of formats, and the search.

use super::*;
use crate::finding::{Findings, Part, Table, Verdict};
use crate::grid::GridPoint;
use crate::measure::Results;
use crate::plot::{self, Panel, Series};
use crate::run_config::Setting;
use crate::statistics::mean;
use exmy::error::Result;

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

pub(super) static GAPS: Figure = Figure {
    id: "T1",
    title: "validation-loss gaps of the stable strategies",
    source: "Table 1: final validation loss minus that of full precision, by tokens per parameter and \
             compute, for MX weights with bfloat16 activations and for MX in the forward pass alone",
    says: "E4M3 weights with bfloat16 activations, and E4M3 in the forward pass alone, end closer to full \
           precision than E4M3 everywhere does. Judged is the mean over sizes and budgets; how the gaps \
           change with the size of the model has a table of its own.",
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

/// Both have the same gap to full precision, so that their difference says which is nearer.
const fn nearer(of: Pick, below: bool) -> Test {
    Test::Pooled {
        metric: Metric::Validation,
        of,
        over: &["E4M3"],
        axes: &["size", "steps"],
        below,
    }
}

pub(super) static HYPERPARAMETERS: Figure = Figure {
    id: "T3",
    title: "hyperparameters of the language models",
    source: "Table 3, from the published configurations (github.com/Hither1/systems-scaling, olmo/configs)",
    says: "Nothing is claimed: the study's configuration and the one of this scale, both as they are run.",
    grid: Grid::NONE,
    judged: Judged::Shown(hyperparameters),
    views: &[],
};

/// The smallest language model of a scale.
fn smallest(setting: &Setting) -> Option<Config> {
    let grid = Grid { seeds: [1; 3], sets: &[LANGUAGE, Set::Recipe("bf16")], ..MODELS };
    grid.runs_of(setting, &GridPoint::default()).pop().map(|planned| planned.config)
}

/// The study's configuration and this one.
fn hyperparameters(results: &Results<'_>) -> Result<Findings> {
    let full = Setting::unread(StudyScale::Paper);
    let none = || Findings::of(Verdict::Shown("no language model".into()), Vec::new());
    let (Some(paper), Some(here)) = (smallest(&full), smallest(results.setting)) else {
        return Ok(none());
    };
    let mut table = Table::new(
        "the smallest language model of the study, and of this scale",
        &["", "study", "here"],
    );
    let (Some(a), Some(b)) = (paper.model.decoder(), here.model.decoder()) else {
        return Ok(none());
    };
    let mut row = |name: &str, study: String, ours: String| table.row([name.into(), study, ours]);
    row("layers", a.layers.to_string(), b.layers.to_string());
    row("width", a.d_model.to_string(), b.d_model.to_string());
    row("heads", a.heads.to_string(), b.heads.to_string());
    row("context, tokens", a.context.to_string(), b.context.to_string());
    row("vocabulary", a.vocab.to_string(), b.vocab.to_string());
    let size = |config: &Config| config.model.layout().len().to_string();
    row("parameters", size(&paper), size(&here));
    let (p, h) = (&paper.train, &here.train);
    row("steps", p.steps.to_string(), h.steps.to_string());
    row("sequences a step", p.batch.to_string(), h.batch.to_string());
    row("peak learning rate", format!("{:e}", p.lr), format!("{:e}", h.lr));
    row("last learning rate", format!("{:e}", p.lr_min), format!("{:e}", h.lr_min));
    row("schedule", p.schedule.to_string(), h.schedule.to_string());
    row("warm-up, steps", p.warmup.to_string(), h.warmup.to_string());
    let betas = |beta1: f64, beta2: f64| format!("{beta1}, {beta2}");
    row("betas of AdamW", betas(p.beta1, p.beta2), betas(h.beta1, h.beta2));
    row("epsilon", format!("{:e}", p.eps), format!("{:e}", h.eps));
    row("weight decay", p.weight_decay.to_string(), h.weight_decay.to_string());
    row("gradient clipping", p.clip.to_string(), h.clip.to_string());
    let text = "Both: pre-norm blocks, layer norms without bias, norms over all of a token's queries and \
                keys, rotary positions, GELU of four times the width, untied head, truncated normal start. \
                The study's grid has widths of 64 channels a layer from 256 to 2560, budgets of 2e17 to \
                4.8e19 operations, and 2 to 200 tokens a parameter.";
    let parts = vec![Part::Table(table), Part::Text(text.into())];
    Ok(Findings::of(Verdict::Shown("see the table".into()), parts))
}

pub(super) static SEARCHED: Figure = Figure {
    id: "AppC",
    title: "instability by depth, width, rate and format",
    source: "Appendix C: sweeps of proxies over depth, width and learning rate in FP32, E4M3 with E5M2 \
             gradients, and E2M3",
    says: "Large rates make deep and wide proxies unstable in FP32 too; MX makes more of them unstable. f32 \
           leaves betas of norms at 0 there, as the study's MX does. The grid is also the search for \
           divergence that F2a and F4 rest on: rates over two decades, depths, widths, formats, and gains \
           that begin inside the last bin. Every rate is reached by a warm-up of a fifth of the steps.",
    grid: Grid { also: &[&NEW_SEEDS, &BEYOND], ..SEARCH },
    judged: Judged::Own {
        asks: search::ASKS,
        effect: EffectSize::Incomparable("the paper states no share of runs"),
        find: search::find,
    },
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

pub(super) static SIMPLIFIED: Figure = Figure {
    id: "AppD",
    title: "simpler models",
    source: "Appendix D: the proxy as the end of a chain of simplifications (attention, norms of queries and \
             keys, the loss)",
    says: "Simplifications leave the picture as it is: MX stays worse than bfloat16 without norms of queries \
           and keys, without gains, and in the proxy, the model without attention, with a divergence of \
           Kullback and Leibler in place of the mean squared error. The proxy is compared with f32.",
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
        View::Outcomes { title: "Losses of a {}", per: &["model"], norms: false, under: MIDDLE },
        by_point(
            "final training losses (nats per byte, of the proxy nats, mean of the last tenth and of \
                      the seeds)",
            &[level_of("model"), level_of("numbers"), LOSS, DIVERGED, SPIKE_COUNT],
        ),
    ],
};

/// The student against its teacher by a divergence in place of squares: no attention, no squares.
const DIVERGENCE: Set = Set::All(&[
    Set::Model("proxy-nano"),
    STUDENT,
    Set::At([&[Set::Steps(24), Set::Rate(3e-3)], &[], &[Set::Steps(9000), Set::Rate(6e-4)]]),
    Set::Change(divergence),
]);

fn divergence(config: &mut Config, _: StudyScale) {
    if let Model::Proxy(model) = &mut config.model {
        model.loss = Loss::Kl;
    }
}

fn no_query_norms(config: &mut Config, _: StudyScale) {
    if let Model::Decoder(model) = &mut config.model {
        model.qk_norm = QkNorm::None;
    }
}

fn no_gains(config: &mut Config, _: StudyScale) {
    if let Model::Decoder(model) = &mut config.model {
        model.norm_affine = false;
    }
}

pub(super) static LAWS: Figure = Figure {
    id: "AppG",
    title: "scaling laws of the stable strategies",
    source: "Appendix G: Chinchilla laws of E4M3 weights with bfloat16 activations (alpha 0.524, beta 0.553, \
             E 0.535) and of E4M3 forward only; unstable pairs give beta above 1",
    says: "The hybrids follow scaling laws as full precision does, unstable MX does not.",
    grid: LAWS_GRID,
    judged: Judged::Own { asks: laws::ASKS, effect: EffectSize::Unstated, find: laws::find },
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

pub(super) static DAMAGE: Figure = Figure {
    id: "Nb-1",
    title: "what runs lose after their lowest loss",
    source: "the published notebook's heat map of min(loss) - final loss over parameters and tokens: 0 for \
             small budgets, -0.5 to -1.1 from 1e10 tokens on in E5M2 weights and E4M3 activations",
    says: "Long runs in unstable MX pairs end above the lowest loss they had; stable ones do not.",
    grid: LAWS_GRID,
    judged: Judged::Own {
        asks: laws::DAMAGE_ASKS,
        effect: EffectSize::Incomparable(laws::LONGER),
        find: laws::damage,
    },
    views: &[],
};

pub(super) static PAIRS: Figure = Figure {
    id: "AppJ",
    title: "all pairs of formats",
    source: "Appendix J: more unstable pairs of weight and activation formats, and the variance of their \
             gradient norms",
    says: "Pairs of MX formats become unstable, and the variance of the gradient norm grows with it.",
    grid: PAIRS_GRID,
    judged: Judged::Own { asks: pairs::ASKS, effect: EffectSize::Unstated, find: pairs::find },
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

pub(super) static ONSETS: Figure = Figure {
    id: "Nb-2",
    title: "when losses turn up",
    source: "the published notebook's plot of the first step whose averaged loss (100 steps) rises by more \
             than 0.008, against tokens per parameter",
    says: "Runs in MX have an onset of instability, bfloat16 has none.",
    grid: PAIRS_GRID,
    judged: Judged::Own {
        asks: pairs::ONSET_ASKS,
        effect: EffectSize::Unstated,
        find: pairs::onsets,
    },
    views: &[],
};

pub(super) static VARIATIONS: Figure = Figure {
    id: "Ext",
    title: "blocks, roundings, scales, starts, optimizers",
    source: "what reviewers of the study asked for, and its ablation of the start",
    says: "Avoiding saturation helps: with the exponent raised where a block would saturate, losses are \
           lower. The other variations are shown.",
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
        View::Own(by_size_of_blocks),
        by_point(
            "final losses (mean squared error, mean of the seeds) and spikes of all seeds",
            &[level_of("variation"), level_of("numbers"), LOSS, DIVERGED, SPIKE_COUNT],
        ),
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

fn xavier(config: &mut Config, _: StudyScale) {
    if let Model::Proxy(model) = &mut config.model {
        (model.init, model.init_gain) = (Init::Xavier, 0.5);
    }
}

fn descend(config: &mut Config, momentum: f64) {
    (config.train.optimizer, config.train.momentum) = (Method::Sgd, momentum);
}

/// A line for each of the numbers that have blocks, over the variations that are a size of theirs.
fn by_size_of_blocks(results: &Results<'_>) -> Result<Vec<Part>> {
    let mut panel = Panel::new(plot::Axis::log("final loss, mean squared error"));
    for numbers in results.levels(results.grid.axis("numbers")) {
        if numbers.name == "f32" {
            continue;
        }
        let mut points = Vec::new();
        for point in results.points.iter().filter(|point| point.has(numbers.name)) {
            let size = point.level("variation").map_or(0.0, |level| level.x);
            if size > 0.0 {
                let losses = results.values(point, Metric::Tail)?;
                points.push((size, mean(&losses).unwrap_or(f64::NAN)));
            }
        }
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        panel = panel.line(Series::new(numbers.name, points));
    }
    let picture = plot::Figure::new("Final loss by the size of blocks")
        .subtitle("mean of the seeds")
        .x(plot::Axis::log("elements of a block"))
        .panel(panel);
    Ok(vec![Part::Picture(picture)])
}
