//! F2-22: whether MX with stochastically rounded weights, with which no run of F2-16 diverges within 9000
//! steps, holds out longer than f32 to 20,000. It is judged by when runs first leave their lowest loss, as
//! the end of so long a run says little. Recipe and criterion were written before its first run.

use super::causes::{CODE, changed};
use super::leaving::{left, tables};
use super::*;
use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Power, Verdict};
use crate::measure::Results;
use crate::statistics::{log_rank, log_rank_power};
use exmy::error::Result;

const NOISY: &str = "stochastic weights";

pub(super) static LASTING: Figure = Figure {
    id: "F2-22",
    title: "whether MX with stochastically rounded weights holds out longer than f32, to 20,000 steps",
    source: "a question of our own, after F2-15 and F2-16",
    says: "Runs whose weights alone are rounded stochastically leave their lowest loss later than f32 whose \
           betas stay 0.",
    grid: Grid {
        steps: [0, 0, 20_000],
        seeds: [0, 0, 10],
        axes: &[Axis::new(
            "numbers",
            &[
                level(BETAS.name, Set::All(&[BETAS.set, Set::Seeds(5)])),
                level(CODE.name, Set::All(&[CODE.set, Set::Seeds(5)])),
                level(
                    NOISY,
                    Set::All(&[
                        Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [50; 3]),
                        changed!("+weight=bf16@rna>mxfp8-e4m3@microxcaling@sr16"),
                    ]),
                ),
            ],
        )],
        ..PROXIES
    },
    judged: Judged::Own {
        asks: Criterion::new(
            &[ask(
                "runs whose weights alone are rounded stochastically",
                Is::So("leave their lowest loss later than f32 whose betas stay 0"),
                By::LogRank(LEVEL),
            )],
            Opposite::All(&[ask("they", Is::So("leave it sooner"), By::LogRank(LEVEL))]),
        ),
        effect: EffectSize::Stated,
        find,
    },
    views: &[View::Outcomes {
        title: "The proxy to 20,000 steps",
        per: &[],
        norms: false,
        under: MIDDLE,
    }],
};

const LEVEL: f64 = 0.05;

/// Whether runs with noise in their weights leave their lowest loss later than those in f32, and the share of
/// cases in which the largest effect would be seen.
pub fn judge(noisy: &[(u64, bool)], plain: &[(u64, bool)]) -> (Verdict, f64) {
    let test = log_rank(noisy, plain);
    let is_sure = |p: Option<f64>| p.is_some_and(|p| p <= LEVEL);
    let (later, sooner) = (test.map(|test| test.p_later), test.map(|test| test.p_sooner));
    let count = |ends: &[(u64, bool)]| ends.iter().filter(|end| end.1).count();
    let share = count(plain) as f64 / plain.len().max(1) as f64;
    let power = log_rank_power((share, plain.len()), noisy.len(), LEVEL);
    let shown = |p: Option<f64>| p.map_or_else(|| "-".into(), |p| format!("{p:.4}"));
    let text = format!(
        "{} of {} runs with stochastic weights leave their lowest loss, {} of {} in f32 with fixed betas (p \
         of not later {}, of not sooner {}); that none of the former leaves it would be seen in {:.0} % of \
         cases",
        count(noisy),
        noisy.len(),
        count(plain),
        plain.len(),
        shown(later),
        shown(sooner),
        100.0 * power
    );
    (Verdict::of(is_sure(later), is_sure(sooner), text), power)
}

fn find(results: &Results<'_>) -> Result<Findings> {
    let left = left(results, BETAS.name)?;
    let (verdict, power) = judge(left.ends(NOISY), left.ends(BETAS.name));
    Ok(Findings::of(verdict.with_power(Power::Share(power)), tables(results)?))
}
