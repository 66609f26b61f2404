//! "To FP8 and Back Again: Quantifying Reduced Precision Effects on LLM Training Stability" (Lee et al.,
//! arXiv 2405.18710): mantissa bits are cut off the operands of products until training breaks.

pub mod forecast;
pub mod lead;
pub mod margins;
pub mod products;
pub mod surface;
pub mod twelve_layers;
mod variations;

use crate::claim::{Claim, Test, above};
use crate::figure::{EffectSize, Figure, Judged, by};
use crate::finding::Paper;
use crate::grid::{Axis, Grid, Level, Set, level, model, number, rate, recipe, with};
use crate::measure::Metric;
use crate::view::columns::{FAILED, HIGH, LOSS_INTERVAL, LOW, RUNS, SPIKE_RATE};
use crate::view::{Show, View, by_point, column, column_of, curves, level_of};
use twelve_layers::{BETWEEN, DEEPER, FASTER, IN_ORDER, SEEDED};
use variations::{EXPONENT, NOISE, RATES, REMEDIES, ROUNDINGS};

/// The study.
pub(crate) const PAPER: Paper = Paper {
    name: "bit-reduction",
    title: "Cutting mantissa bits until training breaks",
    source: "after \"To FP8 and Back Again: Quantifying Reduced Precision Effects on LLM Training \
             Stability\", Lee et al., arXiv 2405.18710",
    about: "The paper trains GPT-2 124M and Llama models of 120M and 7B; here the same recipes train \
            models that two cores finish in minutes. Small models are more stable than large ones, so \
            learning rates are stressed and fewer bits are tried than in the paper. Runs of one seed \
            share initial weights and batches in every precision. What to look at first: how much of the \
            damage is the bias of truncation, which rounding to nearest does not have (BR-4, BR-13 to \
            BR-17).",
    figures: &[
        &SEEDS, &SURFACE, &FORMATS, &MASKS, &MSAMP, &BITS, &LARGE, &SPIKES, &FORECAST, &NOISE,
        &EXPONENT, &RATES, &REMEDIES, &ROUNDINGS, &DEEPER, &FASTER, &SEEDED, &BETWEEN, &IN_ORDER,
    ],
};

/// The usual models, small but at the paper's own size.
const NANO: [&str; 3] = ["nano", "nano", "llama-120m"];
const DEEP: [&str; 3] = ["nano", "deep", "llama-120m"];
/// The paper's rate and ten times it, here and there.
const TENFOLD: [&[Level]; 3] =
    [SMALL_TENFOLD, SMALL_TENFOLD, &[rate("1x", 4e-4), rate("10x", 4e-3)]];
const SMALL_TENFOLD: &[Level] = &[rate("1x", 1e-3), rate("10x", 1e-2)];
/// A usual learning rate, and a stressed one.
const MILD: [f64; 3] = [3e-3, 3e-3, 4e-4];
const STRESSED: [f64; 3] = [1e-2, 1e-2, 4e-4];

/// Operands and results of linear operators, and operands of attention's two products.
const BF16: Level = recipe("BF16", "bf16+out=bf16+q:k:v:probabilities=bf16");
const FP8: Level = recipe("FP8", "msamp-o1");
const E8M7: Level = number("E8M7", 7.0, Set::Recipe("bitred-e8m7"));
const E8M6: Level = number("E8M6", 6.0, Set::Recipe("bitred-e8m6"));
const E8M5: Level = number("E8M5", 5.0, Set::Recipe("bitred-e8m5"));
const E8M4: Level = number("E8M4", 4.0, Set::Recipe("bitred-e8m4"));
const E8M3: Level = number("E8M3", 3.0, Set::Recipe("bitred-e8m3"));
const E8M2: Level = number("E8M2", 2.0, Set::Recipe("bitred-e8m2"));
const E8M1: Level = number("E8M1", 1.0, Set::Recipe("bitred-e8m1"));
const ALL_CUT: &[Level] = &[E8M7, E8M6, E8M5, E8M4, E8M3, E8M2, E8M1];
const FEW: &[Level] = &[E8M5, E8M4, E8M3, E8M2, E8M1];

const LOSS: &str = "mean training loss of the last tenth, nats/token, with 95 % intervals over seeds; \
                    the difference from the first is paired";
const RANGE: &str = "mean and range over seeds";

static SEEDS: Figure = Figure {
    id: "BR-1",
    title: "failed seeds in TF32, BF16 and E8M3",
    source: "v1 and v2 Fig. 1, and the text: 18 of 188 runs of GPT-2 124M in BF16 diverged within the \
             first 5 % of training, 0 of 70 in TF32",
    says: "BF16 fails on some seeds on which TF32 does not. The paper's way to fail is its length, which \
           two cores do not have, so learning rates are higher and without warm-up. A run fails if its \
           smoothed loss ends 0.5 nats above its lowest, above nine tenths of a guess, or not finite. BF16 \
           rounds operands and results of linear operators and the operands of attention's products.",
    grid: Grid {
        model: ["gpt-nano", "gpt-nano", "gpt2-124m"],
        steps: [20, 300, 30_000],
        seeds: [2, 20, 188],
        sets: &[Set::Warmup(0.0)],
        axes: &[
            Axis::scaled(
                "rate",
                [
                    &[rate("3e-2", 3e-2)],
                    &[rate("1e-2", 1e-2), rate("3e-2", 3e-2), rate("1e-1", 1e-1)],
                    &[rate("6e-4", 6e-4)],
                ],
            ),
            Axis::new("format", &[recipe("TF32", "tf32"), BF16, E8M3]),
        ],
        ..Grid::NONE
    },
    judged: by(Test::Any {
        axis: "rate",
        surer: true,
        test: &Test::Sized {
            size: 18.0 / 188.0,
            words: "18 failures of 188 against none",
            test: &Test::FailsMore { of: &["BF16"], over: &["TF32"] },
        },
    }),
    views: &[
        by_point(
            "failed runs, with Wilson's 95 % interval of the share, and spikes per 1000 steps",
            &[
                column("lr", Show::Level("rate")),
                level_of("format"),
                FAILED,
                column("of", Show::Runs),
                LOW,
                HIGH,
                SPIKE_RATE,
            ],
        ),
        curves("Mean and range over seeds at learning rate {}, no warm-up", "rate", ""),
    ],
};

static SURFACE: Figure = Figure {
    id: "BR-2",
    title: "the loss about the weights, on the way",
    source: "v1 and v2 Fig. 2: Llama 120M in E8M3 after 5 and 10 thousand steps (directions after arXiv \
             1712.09913)",
    says: "The surface is smooth at both checkpoints although training in E8M3 goes wrong, so the \
           picture is no diagnostic. Judged is the first half, of one seed, as training in E8M3 does not \
           go wrong in models this small. The same two directions everywhere, each filter as long as the \
           weights' own; the loss is of the validation text, under the run's recipe.",
    grid: Grid {
        model: NANO,
        steps: [30, 600, 15_000],
        rate: STRESSED,
        seeds: [1; 3],
        sets: &[Set::KeepThirds],
        axes: &[Axis::new("format", &[E8M7, E8M3])],
        ..Grid::NONE
    },
    judged: Judged::Own { asks: surface::ASKS, effect: EffectSize::Unstated, find: surface::find },
    views: &[],
};

static FORMATS: Figure = Figure {
    id: "BR-3",
    title: "the formats as bits",
    source: "v1 Fig. 3, the precision diagram",
    says: "A definition, from the crate's own formats: s sign, e exponent, m mantissa.",
    grid: Grid::NONE,
    judged: Judged::Shown(products::diagram),
    views: &[],
};

static MASKS: Figure = Figure {
    id: "BR-4",
    title: "what a mask does to a product",
    source: "v1 Fig. 4 and v2 Fig. 3: operands are masked, sums are of high precision",
    says: "Cutting bits shrinks every product by a nearly constant factor, which rounding to nearest or \
           stochastically does not; only part of the error is noise.",
    grid: Grid::NONE,
    judged: Judged::Own {
        asks: products::ASKS,
        effect: EffectSize::Certain,
        find: products::masks,
    },
    views: &[],
};

static MSAMP: Figure = Figure {
    id: "BR-5",
    title: "FP8 as MS-AMP does it, with and without the head",
    source: "v1 Fig. 5, v2 Fig. 6: MS-AMP O1 on GPT-2 124M and Llama 120M",
    says: "FP8 ends above BF16, and leaving the head out narrows the gap without closing it, which is \
           shown and not judged. BF16 is that of BR-1.",
    grid: Grid {
        steps: [20, 600, 120_000],
        rate: MILD,
        seeds: [1, 5, 3],
        axes: &[
            Axis::scaled(
                "model",
                [
                    &[model("gpt-nano"), model("nano")],
                    &[model("gpt-nano"), model("nano")],
                    &[model("gpt2-124m"), model("llama-120m")],
                ],
            ),
            Axis::new("recipe", &[BF16, FP8, recipe("FP8, head in BF16", "msamp-o1+lm_head=bf16")]),
        ],
        ..Grid::NONE
    },
    judged: by(Test::Each { axis: "model", test: &above(&["FP8"], &["BF16"]) }),
    views: &[
        by_point(
            LOSS,
            &[
                level_of("model"),
                level_of("recipe"),
                RUNS,
                LOSS_INTERVAL,
                column("above the first", Show::Above(&["BF16"])),
            ],
        ),
        curves("FP8 as MS-AMP does it in {}", "model", RANGE),
    ],
};

const BITS_SAY: &str = "Each mantissa bit less costs loss, and sharpness shows it first. Sharpness is \
                        of 32 validation sequences, by its closed form with eps 1e-3.";
const BITS_CLAIM: Claim = Claim::new(Test::All(&[
    Test::Any {
        axis: "rate",
        surer: false,
        test: &Test::All(&[
            Test::Above { of: &["E8M1"], over: &["E8M7"], or_diverges: true },
            Test::Ordered { axis: "format" },
        ]),
    },
    Test::Own { asks: &lead::ASKS, judge: lead::judge },
]));
const BITS_VIEWS: &[View] = &[
    View::Curves {
        title: "Fewer mantissa bits at {} the learning rate",
        per: Some("rate"),
        also: Some(("sharpness", "sharpness, % of 1 + loss")),
        under: RANGE,
    },
    by_point(
        "mean training loss of the last tenth of the steps, nats/token, and sharpness, % of 1 + loss",
        &[
            column("bits", Show::Level("format")),
            column("lr", Show::Level("rate")),
            column("loss", Show::Loss),
            column("lowest seed", Show::Lowest),
            column("highest seed", Show::Highest),
            column("sharpness at 1/3", Show::Thirds("sharpness", 1)),
            column("sharpness at 2/3", Show::Thirds("sharpness", 2)),
            column("sharpness at the end", Show::Thirds("sharpness", 3)),
        ],
    ),
];
const BITS_GRID: Grid = Grid {
    model: DEEP,
    steps: [20, 600, 20_000],
    seeds: [1, 3, 3],
    sets: &[Set::Probes(&["logits", "sharpness"], 24)],
    axes: &[Axis::scaled("rate", TENFOLD), CUT],
    ..Grid::NONE
};
const CUT: Axis = Axis::scaled("format", [&[E8M7, E8M3, E8M1], ALL_CUT, ALL_CUT]);

static BITS: Figure = Figure {
    id: "BR-6",
    title: "loss and sharpness by mantissa bits",
    source: "v1 Fig. 6, v2 Fig. 7: Llama 120M in E8M3, E8M4 and E8M5",
    says: BITS_SAY,
    grid: BITS_GRID,
    judged: Judged::By(BITS_CLAIM),
    views: BITS_VIEWS,
};

static LARGE: Figure = Figure {
    id: "BR-7",
    title: "sharpness by mantissa bits in the largest model",
    source: "v1 Fig. 7, v2 Fig. 8 and Table 1: Llama 7B in E8M3 to E8M7",
    says: BITS_SAY,
    grid: Grid {
        model: ["nano", "", "llama-7b"],
        axes: &[
            Axis::scaled(
                "rate",
                [
                    &[rate("1x", 1e-3)],
                    // The largest model that two cores train is no larger than BR-6's.
                    &[],
                    &[rate("1x", 4e-4)],
                ],
            ),
            CUT,
        ],
        ..BITS_GRID
    },
    judged: Judged::By(BITS_CLAIM),
    views: BITS_VIEWS,
};

const SPIKES_GRID: Grid = Grid {
    model: NANO,
    steps: [20, 400, 20_000],
    seeds: [1, 18, 18],
    sets: &[Set::Probes(&["logits", "sharpness"], 16)],
    axes: &[
        Axis::scaled(
            "rate",
            [TENFOLD[0], &[rate("1x", 1e-3), rate("10x", 1e-2), rate("30x", 3e-2)], TENFOLD[2]],
        ),
        Axis::new("format", &[E8M7, E8M5, E8M3]),
    ],
    ..Grid::NONE
};

static SPIKES: Figure = Figure {
    id: "BR-8",
    title: "spikes at ten times the learning rate",
    source: "v1 Fig. 8, v2 Fig. 9: Llama 120M in E8M5 and E8M7, 18 seeds each at 1x and 10x",
    says: "At 10x E8M5 spikes more often than E8M7 (and, in the paper, no run diverges: the table counts \
           those that fail). A spike is a loss above the median of the last 50 by 6 robust deviations \
           and 0.2 nats.",
    grid: SPIKES_GRID,
    judged: by(Test::Spikier { of: &["E8M5", "10x"], over: &["E8M7", "10x"] }),
    views: &[
        by_point(
            "spikes per 1000 steps (mean over seeds), failed runs, mean training loss of the last tenth",
            &[
                column("lr", Show::Level("rate")),
                column("bits", Show::Level("format")),
                RUNS,
                SPIKE_RATE,
                FAILED,
                column("loss", Show::Loss),
            ],
        ),
        curves("Losses at {} the learning rate, mean and range over seeds", "rate", ""),
    ],
};

static FORECAST: Figure = Figure {
    id: "BR-9",
    title: "does sharpness foretell failure",
    source: "the paper's claim that sharpness indicates instability before the loss does; asked for by \
             its reviewers",
    says: "Sharpness after a quarter of the steps foretells which runs will spike or fail in the rest. Runs \
           are those of BR-6 and BR-8.",
    grid: Grid { also: &[&BITS_GRID, &SPIKES_GRID], ..Grid::NONE },
    judged: Judged::Own {
        asks: forecast::ASKS,
        effect: EffectSize::Unstated,
        find: forecast::find,
    },
    views: &[],
};
