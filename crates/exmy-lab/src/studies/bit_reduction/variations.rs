//! BR-10 to BR-14: noisy data, exponent bits, learning rates, what helps, and other roundings.

use super::*;

pub(super) static NOISE: Figure = Figure {
    id: "BR-10",
    title: "FP8 on noisier data",
    source: "v2 Fig. 12: FP8 on data sets of different quality; which they were is not known",
    says: "Worse data widen the gap between FP8 and BF16. Here tokens of the text are replaced by random \
           ones, the same in every run. BF16 is that of BR-1.",
    grid: Grid {
        model: ["nano", "nano", "gpt2-124m"],
        steps: [20, 600, 120_000],
        rate: [3e-3, 3e-3, 6e-4],
        seeds: [1, 5, 3],
        axes: &[
            Axis::new(
                "noise",
                &[
                    number("no noise", 0.0, Set::Noise(0.0)),
                    number("10 % noise", 10.0, Set::Noise(0.1)),
                    number("30 % noise", 30.0, Set::Noise(0.3)),
                ],
            ),
            Axis::new("recipe", &[BF16, FP8]),
        ],
        ..Grid::NONE
    },
    judged: by(Test::Wider {
        of: &["FP8"],
        over: &["BF16"],
        at: &["30 % noise"],
        than: &["no noise"],
    }),
    views: &[
        View::Table {
            caption: "mean training loss of the last tenth, nats/token, with 95 % intervals over seeds, \
                      and the paired gap",
            rows: &["noise"],
            columns: &[
                column("tokens replaced, %", Show::Number("noise")),
                column_of("BF16", &["BF16"], Show::LossInterval),
                column_of("FP8", &["FP8"], Show::LossInterval),
                column_of("gap", &["FP8"], Show::Above(&["BF16"])),
            ],
        },
        curves("BF16 and FP8 with random tokens in the text, whose loss is part of all", "", RANGE),
    ],
};

/// How far above E8M7 a run ends that counts as broken.
const BREAKS: f64 = 0.5;

pub(super) static EXPONENT: Figure = Figure {
    id: "BR-11",
    title: "fewer exponent bits, and which end is clipped",
    source: "the text of section 4.2: in E7M7 the model does not train, and it is the outer clipping \
             that breaks it",
    says: "One exponent bit less breaks training, by clipping large magnitudes and not by losing small \
           ones. The paper does not say which bias it took, and with a centred one no healthy tensor is \
           clipped in E7M7; so all three are tried: centred, the low half of the exponents kept, the \
           high half kept, where the smallest number is 2 and the inner clipping takes nearly \
           everything. Inner clips what is too small, outer what is too large, both both. A run that \
           diverged counts as a guess.",
    grid: Grid {
        model: NANO,
        steps: [20, 300, 20_000],
        rate: MILD,
        seeds: [1, 3, 1],
        sets: &[Set::Probes(&["rounding"], 3)],
        extra: Some(("format", E8M7)),
        axes: &[
            Axis::new(
                "bias",
                &[
                    with("centred", "+bias=centred"),
                    with("keep-low", "+bias=keep-low"),
                    with("keep-high", "+bias=keep-high"),
                ],
            ),
            Axis::scaled("format", [&[E7M7], &[E7M7, E6M7, E5M7, E4M7], &[E7M7]]),
            CLIPPED,
        ],
        ..Grid::NONE
    },
    judged: Judged::By(Claim {
        holds: Test::Any { axis: "bias", surer: false, test: &BROKEN_OUTSIDE },
        opposite: Some(Test::AnyOf {
            axis: "bias",
            levels: &["centred", "keep-low"],
            test: &BROKEN_INSIDE,
        }),
    }),
    views: &[
        View::Lines {
            title: "Exponent bits, bias, and which end is clipped",
            axis: "format",
            x: ("exponent bits", false),
            above: Some(&["E8M7"]),
        },
        by_point(
            "mean training loss of the last tenth, nats/token, and at the last measurement the \
                      shares of elements clipped and flushed, % of inputs / weights / gradients",
            &[
                level_of("format"),
                level_of("bias"),
                level_of("clip"),
                column("loss", Show::Loss),
                column("clipped", Show::Rounding("saturated")),
                column("flushed", Show::Rounding("flushed")),
            ],
        ),
    ],
};

const ENDS: &[Level] =
    &[with("both", "+clip=both"), with("outer", "+clip=outer"), with("inner", "+clip=inner")];
const CLIPPED: Axis = Axis::new("clip", ENDS);

/// E7M7 breaks with both ends clipped, and with the outer one alone.
const BROKEN_OUTSIDE: Test = Test::All(&[
    Test::Nats { of: &["E7M7", "both"], over: &["E8M7"], least: BREAKS, more: true },
    Test::Nats { of: &["E7M7", "outer"], over: &["E8M7"], least: BREAKS, more: true },
    Test::Nats { of: &["E7M7", "inner"], over: &["E8M7"], least: BREAKS, more: false },
]);
/// The other way round.
const BROKEN_INSIDE: Test = Test::All(&[
    Test::Nats { of: &["E7M7", "both"], over: &["E8M7"], least: BREAKS, more: true },
    Test::Nats { of: &["E7M7", "inner"], over: &["E8M7"], least: BREAKS, more: true },
    Test::Nats { of: &["E7M7", "outer"], over: &["E8M7"], least: BREAKS, more: false },
]);
const E7M7: Level = number("E7M7", 7.0, Set::Recipe("bitred-e7m7"));
const E6M7: Level = number("E6M7", 6.0, Set::Recipe("bitred-e6m7"));
const E5M7: Level = number("E5M7", 5.0, Set::Recipe("bitred-e5m7"));
const E4M7: Level = number("E4M7", 4.0, Set::Recipe("bitred-e4m7"));

pub(super) static RATES: Figure = Figure {
    id: "BR-12",
    title: "how much the learning rate matters, by mantissa bits",
    source: "the paper's claim as a number: learning-rate sensitivity S of Wortsman et al. (arXiv \
             2309.14322)",
    says: "Fewer mantissa bits leave fewer learning rates that work.",
    grid: Grid {
        model: NANO,
        steps: [20, 200, 20_000],
        seeds: [1, 3, 3],
        axes: &[
            Axis::new("format", &[E8M7, E8M5, E8M4, E8M3]),
            Axis::scaled(
                "rate",
                [&[ALL_RATES[1], ALL_RATES[2], ALL_RATES[3]], &ALL_RATES, &ALL_RATES],
            ),
        ],
        ..Grid::NONE
    },
    judged: by(Test::Own { asks: &margins::ASKS, judge: margins::judge }),
    views: &[
        View::Lines {
            title: "Loss by learning rate and mantissa bits",
            axis: "rate",
            x: ("peak learning rate", true),
            above: None,
        },
        View::Own(margins::table),
    ],
};

const ALL_RATES: [Level; 7] = [
    rate("3e-4", 3e-4),
    rate("1e-3", 1e-3),
    rate("3e-3", 3e-3),
    rate("1e-2", 1e-2),
    rate("3e-2", 3e-2),
    rate("1e-1", 1e-1),
    rate("3e-1", 3e-1),
];

pub(super) static REMEDIES: Figure = Figure {
    id: "BR-13",
    title: "what helps where bits are few",
    source: "the Discussion's suggestions, which the paper did not try",
    says: "Higher precision at the beginning or the end of training, in the head or in the outer blocks, \
           or another rounding, saves part of what E8M3 costs.",
    grid: Grid {
        model: DEEP,
        steps: [20, 600, 120_000],
        rate: STRESSED,
        seeds: [1, 5, 3],
        axes: &[Axis::new(
            "recipe",
            &[
                E8M7,
                E8M3,
                recipe("head in BF16", "bitred-e8m3+lm_head=bf16"),
                recipe("first and last block in BF16", "bitred-e8m3+first1=bf16+last1=bf16"),
                recipe("to nearest", "bitred-e8m3+round=rne"),
                recipe("stochastic", "bitred-e8m3+round=sr8"),
                level(
                    "BF16 for the first third",
                    Set::All(&[Set::Recipe("bf16"), Set::Late("bf16>e8m3@rtz", 1)]),
                ),
                level(
                    "BF16 for the last third",
                    Set::All(&[Set::Recipe("bitred-e8m3"), Set::Late("bf16", 2)]),
                ),
            ],
        )],
        ..Grid::NONE
    },
    judged: by(Test::All(&[
        above(&["E8M3"], &["E8M7"]),
        Test::OneBelow {
            of: &[
                "head in BF16",
                "first and last block in BF16",
                "to nearest",
                "stochastic",
                "BF16 for the first third",
                "BF16 for the last third",
            ],
            over: &["E8M3"],
        },
    ])),
    views: &[
        by_point(
            LOSS,
            &[
                level_of("recipe"),
                RUNS,
                LOSS_INTERVAL,
                column("above the first", Show::Above(&["E8M7"])),
            ],
        ),
        curves("What helps where bits are few", "", RANGE),
    ],
};

pub(super) static ROUNDINGS: Figure = Figure {
    id: "BR-14",
    title: "truncation, rounding to nearest, stochastic rounding",
    source: "asked for by the paper's reviewers",
    says: "Part of the damage is the bias of truncation.",
    grid: Grid {
        model: NANO,
        steps: [20, 600, 20_000],
        rate: MILD,
        seeds: [1, 5, 3],
        axes: &[
            Axis::scaled("format", [&[E8M3, E8M1], FEW, FEW]),
            Axis::new(
                "rounding",
                &[
                    with("truncated", "+round=trunc"),
                    with("to nearest", "+round=rne"),
                    with("stochastic", "+round=sr8"),
                ],
            ),
        ],
        ..Grid::NONE
    },
    judged: by(Test::Last { axis: "format", test: &above(&["truncated"], &["to nearest"]) }),
    views: &[
        View::Lines {
            title: "Final loss by mantissa bits and rounding",
            axis: "format",
            x: ("mantissa bits", false),
            above: None,
        },
        View::Table {
            caption: "mean training loss of the last tenth, nats/token, and how far truncation is above \
                      rounding to nearest",
            rows: &["format"],
            columns: &[
                column("bits", Show::Level("format")),
                column_of("truncated", &["truncated"], Show::Loss),
                column_of("to nearest", &["to nearest"], Show::Loss),
                column_of("stochastic", &["stochastic"], Show::Loss),
                column_of("gap", &["truncated"], Show::Gap(&["to nearest"])),
                column_of("95 % low", &["truncated"], Show::GapLow(&["to nearest"])),
                column_of("high", &["truncated"], Show::GapHigh(&["to nearest"])),
            ],
        },
    ],
};
