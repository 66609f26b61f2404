//! The proxy at its own size, in more seeds than one: how many runs diverge in f32 and in MX.
//!
//! The study shows single runs at this setting, and an independent program saw 3 of 5 runs diverge with the
//! study's code, 4 of 5 with its text, and none of 5 in f32. Ten seeds a recipe see half of the runs diverge
//! in 83 of 100 cases. Three more figures go on from there: other learning rates, other proxies, and more
//! than twice the steps. Their MX runs have the sums of tensor cores, as F2-11's.

use super::causes::CODE;
use super::leaving;
use super::survival::Survival;
use super::*;
use crate::finding::{Findings, Part, Verdict};
use crate::measure::Results;
use exmy::error::Result;

/// What is measured, every fifty steps.
const MEASURED: Set = Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [50; 3]);

const RECIPES: &[Level] = &[
    F32,
    BETAS,
    level("MX E4M3", Set::Recipe("mxpaper-e4m3+gelu=fp32")),
    level(
        "MX E4M3, gains too",
        Set::All(&[MEASURED, Set::Recipe(text!("e4m3")), Set::Keep(&[4500, 5080])]),
    ),
];

const fn fails(of: Pick) -> Test {
    Test::FailsMore { of, over: &["f32, fixed betas"] }
}

pub(super) static OWN_SIZE: Figure = Figure {
    id: "F2-10",
    title: "the proxy at its own size, ten seeds",
    source: "Fig. 2a and 4: student-teacher MLP with norms and GELU, depth 4, width 512, batch 2048, 9000 \
             steps at the constant rate 6e-4",
    says: "At the study's rate training diverges in MX E4M3, with gains of norms in bfloat16 (the study's \
           code) and in blocks (its text), and not in f32 whose betas stay 0 as in MX.",
    grid: Grid { seeds: [0, 0, 10], axes: &[Axis::new("numbers", RECIPES)], ..PROXIES },
    judged: Judged::By(Claim::new(Test::Sized {
        size: 0.5,
        words: "half of the runs against none",
        test: &Test::All(&[fails(&["MX E4M3"]), fails(&["MX E4M3, gains too"])]),
    })),
    views: &[
        View::Outcomes { title: "The proxy at its own size", per: &[], norms: true, under: MIDDLE },
        View::Own(shown),
        by_point(PROXY_LOSSES, &[level_of("numbers"), LOSS, DIVERGED, LOW, HIGH, SPIKED, RUNS]),
    ],
};

/// Which share of each recipe's runs has not diverged after each step, and whether it diverges sooner than
/// f32 whose betas stay 0.
fn shown(results: &Results<'_>) -> Result<Vec<Part>> {
    let survival = Survival::of(results, BETAS.name)?;
    let all: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
    let left = leaving::table(&leaving::left(results, BETAS.name)?);
    Ok(vec![survival.curves(&all), survival.table(), left])
}

const TWO: Axis = Axis::new("numbers", &[BETAS, CODE]);

const OUTCOMES: View = View::Outcomes {
    title: "Proxies of the study's size, {}",
    per: &["rate", "proxy"],
    norms: false,
    under: MIDDLE,
};

pub(super) static OTHER_RATES: Figure = Figure {
    id: "F2-13",
    title: "the proxy at its own size and five learning rates",
    source: "the sweep of learning rates with the proxy of Fig. 2a and 4, 1e-4 to 2e-3",
    says: "There is a learning rate at which training diverges in MX E4M3, with gains of norms in bfloat16 \
           (the study's code), and not in f32 whose betas stay 0.",
    grid: Grid {
        seeds: [0, 0, 5],
        axes: &[
            Axis::new(
                "rate",
                &[
                    number("1e-4", 1e-4, Set::Rate(1e-4)),
                    number("3e-4", 3e-4, Set::Rate(3e-4)),
                    number("6e-4", 6e-4, Set::Rate(6e-4)),
                    number("1e-3", 1e-3, Set::Rate(1e-3)),
                    number("2e-3", 2e-3, Set::Rate(2e-3)),
                ],
            ),
            TWO,
        ],
        ..PROXIES
    },
    judged: Judged::By(Claim::new(Test::Sized {
        size: 0.5,
        words: "half of the runs against none, at one rate",
        test: &Test::Any { axis: "rate", surer: true, test: &fails(&["MX E4M3"]) },
    })),
    views: &[
        OUTCOMES,
        by_point(
            PROXY_LOSSES,
            &[level_of("rate"), level_of("numbers"), LOSS, DIVERGED, LOW, HIGH, SPIKED, RUNS],
        ),
    ],
};

pub(super) static OTHER_PROXIES: Figure = Figure {
    id: "F2-14",
    title: "other proxies: activation functions, no norms, depth, width",
    source: "Fig. 2a and 2b, and the sweep of depth and width: 3 to 8 blocks, width 256 to 512",
    says: "What is said of one proxy holds of others. Three seeds each can show no difference between two \
           recipes, so nothing is judged.",
    grid: Grid {
        seeds: [0, 0, 3],
        axes: &[
            Axis::new(
                "proxy",
                &[
                    level("ReLU", RELU.set),
                    level("SwiGLU", SWIGLU.set),
                    level("without norms", Set::All(&[Set::Change(no_norms), NOTHING])),
                    level("3 blocks", Set::Layers(3)),
                    level("8 blocks", Set::Layers(8)),
                    level("width 256", Set::Width(256)),
                ],
            ),
            TWO,
        ],
        ..PROXIES
    },
    judged: Judged::Shown(|_| {
        Ok(Findings::of(Verdict::Shown("the table has the numbers".into()), Vec::new()))
    }),
    views: &[
        OUTCOMES,
        by_point(
            PROXY_LOSSES,
            &[level_of("proxy"), level_of("numbers"), LOSS, DIVERGED, SPIKED, RUNS],
        ),
    ],
};

pub(super) static LONGER: Figure = Figure {
    id: "F2-15",
    title: "the proxy at its own size, to 20,000 steps",
    source: "a question of our own: does f32 diverge later, or not at all?",
    says: "Training for 20,000 steps diverges in MX E4M3 (the study's code) and not in f32 whose betas stay \
           0.",
    grid: Grid { steps: [0, 0, 20_000], seeds: [0, 0, 5], axes: &[TWO], ..PROXIES },
    judged: Judged::By(Claim::new(Test::Sized {
        size: 1.0,
        words: "all runs against none",
        test: &fails(&["MX E4M3"]),
    })),
    views: &[
        View::Outcomes {
            title: "The proxy to 20,000 steps",
            per: &[],
            norms: false,
            under: MIDDLE,
        },
        View::Own(longer),
    ],
};

fn longer(results: &Results<'_>) -> Result<Vec<Part>> {
    let survival = Survival::of(results, BETAS.name)?;
    let mut parts = vec![survival.curves(&[BETAS.name, CODE.name]), survival.table()];
    parts.extend(leaving::tables(results)?);
    Ok(parts)
}
