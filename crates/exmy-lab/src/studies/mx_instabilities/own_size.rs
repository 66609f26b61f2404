//! The proxy at its own size, in more seeds than one: how many runs diverge in f32 and in MX.
//!
//! The study shows single runs at this setting, and an independent program saw 3 of 5 runs diverge with the
//! study's code, 4 of 5 with its text, and none of 5 in f32. Ten seeds a recipe see half of the runs diverge
//! in 83 of 100 cases.

use super::survival::Survival;
use super::*;
use crate::finding::Part;
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
    Test::FailsMore { of, over: &["f32, betas still"] }
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
        by_point(
            PROXY_LOSSES,
            &[
                column("numbers", Show::Level("numbers")),
                column("loss", Show::Mean(Metric::Tail)),
                column("diverged", Show::Sum(Metric::Diverged)),
                column("low, %", Show::FailedLow),
                column("high, %", Show::FailedHigh),
                column("with spikes", Show::Sum(Metric::Spiked)),
                column("seeds", Show::Runs),
            ],
        ),
    ],
};

/// Which share of each recipe's runs has not diverged after each step, and whether it diverges sooner than
/// f32 whose betas stay 0.
fn shown(results: &Results<'_>) -> Result<Vec<Part>> {
    let survival = Survival::of(results, "f32, betas still")?;
    let all: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
    Ok(vec![survival.curves(&all), survival.table()])
}
