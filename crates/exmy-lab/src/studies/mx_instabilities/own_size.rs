//! The proxy at its own size, in more seeds than one: how many runs diverge in f32 and in MX.
//!
//! The study shows single runs at this setting, and an independent program saw 3 of 5 runs diverge with the
//! study's code, 4 of 5 with its text, and none of 5 in f32. Ten seeds an arm see half of the runs diverge
//! in 83 of 100 cases.

use super::*;
use crate::finding::{Part, Table};
use crate::grid::GridPoint;
use crate::measure::Results;
use crate::outcome::Outcome;
use crate::plot::{self, Band, Panel, Series};
use crate::statistics::{kaplan_meier, log_rank};
use exmy::error::Result;

/// At what distance something is measured; checkpoints and the recipe are those of F4's runs, so that these
/// are shared.
const MEASURED: Set = Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [50; 3]);

const ARMS: &[Level] = &[
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
    grid: Grid { seeds: [0, 0, 10], axes: &[Axis::new("numbers", ARMS)], ..PROXIES },
    judged: Judged::By(Claim::new(Test::Sized {
        size: 0.5,
        words: "half of the runs against none",
        test: &Test::All(&[fails(&["MX E4M3"]), fails(&["MX E4M3, gains too"])]),
    })),
    views: &[
        View::Outcomes { title: "The proxy at its own size", per: &[], norms: true, under: MIDDLE },
        View::Own(survival),
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

/// The step at which each run of a grid point diverged, or its last one.
fn ends(results: &Results<'_>, point: &GridPoint) -> Result<Vec<(u64, bool)>> {
    let end = |run: Outcome| match run.verdict.diverged {
        Some(step) => (step, true),
        None => (run.trained.summary.steps, false),
    };
    Ok(results.outcomes(point)?.into_iter().map(end).collect())
}

/// Which share of each arm's runs has not diverged after each step, and whether it diverges sooner than f32
/// whose betas stay 0.
fn survival(results: &Results<'_>) -> Result<Vec<Part>> {
    let mut table = Table::new(
        "Share of runs that did not diverge, with the 95 % interval of Kaplan and Meier's estimate; the \
         steps at which the others did; whether an arm diverges sooner than f32 with still betas (log-rank \
         test, one-sided)",
        &["numbers", "runs", "diverged", "not diverged", "interval", "at steps", "z", "p"],
    );
    let base = ends(results, results.point(&["f32, betas still"], &GridPoint::default()))?;
    let mut panel = Panel::new(plot::Axis::linear("share of runs not diverged").range(0.0, 1.0));
    let mut last = 0;
    for point in &results.points {
        let (name, ends) = (point.words(&[]), ends(results, point)?);
        let steps = ends.iter().map(|end| end.0).max().unwrap_or_default();
        last = last.max(steps);
        let curve = kaplan_meier(&ends, 0.95);
        let (mut line, mut band, mut before) =
            (vec![(0.0, 1.0)], vec![(0.0, 1.0, 1.0)], (1.0, 1.0, 1.0));
        for (step, share) in curve.iter().map(|(step, share)| (*step as f64, share)) {
            line.extend([(step, before.0), (step, share.estimate)]);
            band.extend([(step, before.1, before.2), (step, share.low, share.high)]);
            before = (share.estimate, share.low, share.high);
        }
        line.push((steps as f64, before.0));
        band.push((steps as f64, before.1, before.2));
        panel = panel.band(Band::new(&name, band)).line(Series::new(&name, line));
        let mut at: Vec<u64> = ends.iter().filter(|end| end.1).map(|end| end.0).collect();
        at.sort_unstable();
        let test = log_rank(&ends, &base);
        let number = |value: Option<f64>| value.map_or_else(|| "-".into(), |x| format!("{x:.4}"));
        table.row([
            name,
            ends.len().to_string(),
            at.len().to_string(),
            format!("{:.2}", before.0),
            if at.is_empty() { "-".into() } else { format!("{:.2} to {:.2}", before.1, before.2) },
            at.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
            number(test.map(|test| test.z)),
            number(test.map(|test| test.p_sooner)),
        ]);
    }
    let figure = plot::Figure::new("How long runs go on without diverging")
        .subtitle("Kaplan and Meier's estimate, with its 95 % interval")
        .x(plot::Axis::whole("step"))
        .panel(panel);
    Ok(vec![Part::Picture(figure), Part::Table(table)])
}
