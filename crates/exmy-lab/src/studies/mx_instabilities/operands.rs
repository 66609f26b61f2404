//! Which operand's stochastic rounding delays divergence: a question of our own, after F2-11.
//!
//! Stochastic rounding of all operands delays it there, though its errors are larger. The reason may be that
//! rounding to nearest errs the same way in step after step. Then it is the weights that matter: in most
//! steps a weight moves by less than the spacing of E4M3, so that its error stays, while inputs and gradients
//! are new numbers in each step. So one operand at a time is rounded stochastically, the others to nearest.

use super::causes::{TEXT, changed};
use super::survival::Survival;
use super::*;
use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Power, Verdict};
use crate::measure::Results;
use crate::statistics::log_rank_power;
use exmy::error::Result;

const WEIGHTS: &str = "stochastic weights";
const INPUTS: &str = "stochastic inputs";
const GRADIENTS: &str = "stochastic gradients";

const RECIPES: &[Level] = &[
    TEXT,
    level(WEIGHTS, changed!("+weight=bf16@rna>mxfp8-e4m3@microxcaling@sr16")),
    level(INPUTS, changed!("+input=bf16@rna>mxfp8-e4m3@microxcaling@sr16")),
    level(GRADIENTS, changed!("+grad_output=bf16@rna>mxfp8-e4m3@microxcaling@sr16")),
];

/// The level of each test.
const LEVEL: f64 = 0.01;

const LATER: Is = Is::So("diverge later than with the study's text");

const ASKS: Criterion = Criterion::new(
    &[ask("runs whose weights alone are rounded stochastically", LATER, By::LogRank(LEVEL))],
    Opposite::All(&[
        ask("these", Is::So("do not"), By::Value),
        ask(
            "those whose inputs, or whose gradients, alone are",
            Is::So("diverge later"),
            By::LogRank(LEVEL),
        ),
    ]),
);

pub(super) static OPERANDS: Figure = Figure {
    id: "F2-16",
    title: "which operand's stochastic rounding delays divergence",
    source: "a question of our own: does rounding to nearest do harm because weights err the same way in \
             each step?",
    says: "Stochastic rounding delays divergence by way of the weights, which rounding to nearest moves the \
           same way step after step.",
    grid: Grid {
        seeds: [0, 0, 20],
        sets: &[STUDENT, Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [50; 3])],
        axes: &[Axis::new("numbers", RECIPES)],
        ..PROXIES
    },
    judged: Judged::Own { asks: ASKS, effect: EffectSize::Stated, find },
    views: &[],
};

/// The verdict on runs of all recipes, and the share of cases in which the largest effect would be seen.
pub fn judge(survival: &Survival) -> (Verdict, f64) {
    let later = |name: &str| survival.test(name).map(|test| test.p_later);
    let is_later = |name: &str| later(name).is_some_and(|p| p <= LEVEL);
    let words = |name: &str| {
        let (diverged, runs) = survival.counts(name);
        let p = later(name).map_or_else(String::new, |p| format!(" (p {p:.4})"));
        format!("{name} {diverged} of {runs}{p}")
    };
    let (diverged, runs) = survival.counts(TEXT.name);
    let text = format!(
        "with the study's text {diverged} of {runs} runs diverge; with one change (p of no delay): {}",
        [WEIGHTS, INPUTS, GRADIENTS].map(words).join(", ")
    );
    // No effect is larger than that of a change with which no run diverges.
    let power = log_rank_power((diverged as f64 / runs.max(1) as f64, runs), runs, LEVEL);
    (Verdict::of(is_later(WEIGHTS), is_later(INPUTS) || is_later(GRADIENTS), text), power)
}

fn find(results: &Results<'_>) -> Result<Findings> {
    let survival = Survival::of(results, TEXT.name)?;
    let (verdict, power) = judge(&survival);
    let verdict = verdict.with_power(Power::Share(power));
    let all: Vec<&str> = RECIPES.iter().map(|recipe| recipe.name).collect();
    Ok(Findings::of(verdict, vec![survival.curves(&all), survival.table()]))
}
