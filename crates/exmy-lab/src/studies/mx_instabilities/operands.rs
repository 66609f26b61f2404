//! F2-16, F2-17, F2-19 to F2-21, F2-23 and F2-24: which operand's rounding makes the proxy diverge, questions
//! of our own after F2-11.
//!
//! Stochastic rounding of all operands delays it there, though its errors are larger. The reason may be that
//! rounding to nearest errs the same way in step after step. Then it is the weights that matter: in most
//! steps a weight moves by less than the spacing of E4M3, so that its error stays, while inputs and
//! gradients are new numbers in each step. So one operand at a time is rounded stochastically, the others to
//! nearest. The first two were one figure until the runs of F2-16 were complete and half of F2-17's.
//!
//! But for elements that saturate, a stochastically rounded weight is the unrounded one and noise of mean
//! zero. F2-20 has less noise: one and two more mantissa bits halve and quarter it. F2-21 has none: weights
//! in bfloat16, and weights rounded to nearest where F2-20 rounds them stochastically. F2-19 was meant as
//! that control and is not: `bf16-weight`, an intervention of the paper, changes the forward product's
//! weights alone, and with them the gains, which the text rounds as it does weights. F2-23 asks whether the
//! noise of F2-16 needs MX to help: it is in the weights of f32, at a rate at which f32 diverges (F2-13).
//! F2-24 asks whether it needs this proxy: of F2-14's others it takes the two whose MX runs all diverge. What
//! was found is in docs/studies/mx-instabilities.md.

use super::causes::{CODE, TEXT, changed};
use super::survival::{Ends, Survival, chance};
use super::*;
use crate::criterion::{By, Criterion, Is, Opposite, Requirement, ask};
use crate::finding::{Findings, Part, Power, Table, Verdict};
use crate::grid::GridPoint;
use crate::measure::Results;
use crate::outcome::Outcome;
use crate::statistics::{log_rank_power, log_rank_trend, mean_interval};
use exmy::error::Result;
use std::collections::BTreeMap;

const WEIGHTS: &str = "stochastic weights";
const INPUTS: &str = "stochastic inputs";
const GRADIENTS: &str = "stochastic gradients";

const OF_WEIGHTS: &[Level] =
    &[TEXT, level(WEIGHTS, changed!("+weight=bf16@rna>mxfp8-e4m3@microxcaling@sr16"))];

const FORWARD: &str = "forward weights and gains in bfloat16";

const OF_FORWARD: &[Level] = &[TEXT, level(FORWARD, changed!("+bf16-weight"))];

const HALF: &str = "stochastic E4M4 weights";
const QUARTER: &str = "stochastic E4M5 weights";

/// From the most noise to the least.
const OF_NOISE: &[Level] = &[
    TEXT,
    OF_WEIGHTS[1],
    level(HALF, changed!("+weight=bf16@rna>e4m4fn/32:e8m0@microxcaling@sr16")),
    level(QUARTER, changed!("+weight=bf16@rna>e4m5fn/32:e8m0@microxcaling@sr16")),
];

const UNROUNDED: &str = "weights in bfloat16";
const NEAREST: &str = "E4M4 weights, to nearest";

/// With noise in the weights and without.
const PAIRS: [[&str; 2]; 2] = [[WEIGHTS, UNROUNDED], [HALF, NEAREST]];

const OF_PAIRS: &[Level] = &[
    OF_NOISE[1],
    level(UNROUNDED, changed!("+weight=bf16@rna")),
    OF_NOISE[2],
    level(NEAREST, changed!("+weight=bf16@rna>e4m4fn/32:e8m0@microxcaling@rna")),
];

const OF_OTHERS: &[Level] = &[
    TEXT,
    level(INPUTS, changed!("+input=bf16@rna>mxfp8-e4m3@microxcaling@sr16")),
    level(GRADIENTS, changed!("+grad_output=bf16@rna>mxfp8-e4m3@microxcaling@sr16")),
];

const NOISY: &str = "f32, stochastic weights";

const OF_F32: &[Level] = &[level(NOISY, Set::All(&[BETAS.set, STOCHASTIC])), BETAS];

/// With noise in the weights and without.
const OTHERS: [[&str; 2]; 2] = [
    ["without norms, stochastic weights", "without norms, MX E4M3"],
    ["8 blocks, stochastic weights", "8 blocks, MX E4M3"],
];

const STOCHASTIC: Set = Set::With("+weight=bf16@rna>mxfp8-e4m3@microxcaling@sr16");
const NO_NORMS_HERE: Set = Set::All(&[Set::Change(no_norms), CODE.set, NOTHING]);
const DEEP: Set = Set::All(&[Set::Layers(8), CODE.set]);

const OF_OTHER_PROXIES: &[Level] = &[
    level(OTHERS[0][0], Set::All(&[NO_NORMS_HERE, STOCHASTIC])),
    level(OTHERS[0][1], NO_NORMS_HERE),
    level(OTHERS[1][0], Set::All(&[DEEP, STOCHASTIC])),
    level(OTHERS[1][1], DEEP),
];

/// The level of each test.
const LEVEL: f64 = 0.01;

const LATER: Is = Is::So("diverge later than with the study's text");

const fn asks(of: &'static [Requirement; 1]) -> Criterion {
    Criterion::new(of, Opposite::None)
}

const fn grid(axes: &'static [Axis; 1]) -> Grid {
    Grid {
        seeds: [0, 0, 20],
        sets: &[STUDENT, Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [50; 3])],
        axes,
        ..PROXIES
    }
}

pub(super) static OF_THE_WEIGHTS: Figure = Figure {
    id: "F2-16",
    title: "whether stochastic rounding of the weights alone delays divergence",
    source: "a question of our own: does rounding to nearest do harm because weights err the same way in \
             each step?",
    says: "Stochastic rounding delays divergence by way of the weights.",
    grid: grid(&[Axis::new("numbers", OF_WEIGHTS)]),
    judged: Judged::Own {
        asks: asks(&[ask(
            "runs whose weights alone are rounded stochastically",
            LATER,
            By::LogRank(LEVEL),
        )]),
        effect: EffectSize::Stated,
        find: |results| find(results, &[WEIGHTS]),
    },
    views: &[],
};

pub(super) static OF_OTHER_OPERANDS: Figure = Figure {
    id: "F2-17",
    title: "whether stochastic rounding of inputs or of gradients alone delays divergence",
    source: "the control of F2-16",
    says: "What stochastic rounding does by way of the weights (F2-16), it does by way of inputs or \
           gradients, too.",
    grid: grid(&[Axis::new("numbers", OF_OTHERS)]),
    judged: Judged::Own {
        asks: asks(&[ask(
            "runs whose inputs, or whose gradients, alone are rounded stochastically",
            LATER,
            By::LogRank(LEVEL),
        )]),
        effect: EffectSize::Stated,
        find: |results| find(results, &[INPUTS, GRADIENTS]),
    },
    views: &[],
};

pub(super) static OF_FORWARD_WEIGHTS: Figure = Figure {
    id: "F2-19",
    title: "whether forward weights and gains in bfloat16 delay divergence",
    source: "the paper's intervention of weights in bfloat16, from the first step on; F4 has it shortly \
             before a divergence",
    says: "Forward weights and gains that are not rounded to MX delay divergence, while the backward pass's \
           weights, inputs and gradients are.",
    grid: grid(&[Axis::new("numbers", OF_FORWARD)]),
    judged: Judged::Own {
        asks: asks(&[ask(
            "runs whose forward weights and gains alone are in bfloat16",
            LATER,
            By::LogRank(LEVEL),
        )]),
        effect: EffectSize::Stated,
        find: |results| find(results, &[FORWARD]),
    },
    views: &[],
};

pub(super) static OF_LESS_NOISE: Figure = Figure {
    id: "F2-20",
    title: "whether half or a quarter of the noise in the weights delays divergence, too",
    source: "a question of our own, after F2-16",
    says: "With one or two more mantissa bits in stochastically rounded weights, so with half or a quarter \
           of the noise, divergence is still delayed.",
    grid: grid(&[Axis::new("numbers", OF_NOISE)]),
    judged: Judged::Own {
        asks: asks(&[ask(
            "runs whose weights alone are rounded stochastically, to E4M4 or to E4M5,",
            LATER,
            By::LogRank(LEVEL),
        )]),
        effect: EffectSize::Stated,
        find: find_noise,
    },
    views: &[],
};

pub(super) static OF_NO_NOISE: Figure = Figure {
    id: "F2-21",
    title: "whether it is the noise in stochastically rounded weights that delays divergence",
    source: "the control of F2-16 and F2-20",
    says: "Runs with noise in the weights diverge later than without: stochastically rounded to E4M3 later \
           than in bfloat16, and to E4M4 later than rounded to nearest.",
    grid: grid(&[Axis::new("numbers", OF_PAIRS)]),
    judged: Judged::Own {
        asks: asks(&[ask(
            "runs whose weights alone are rounded stochastically, to E4M3 and to E4M4,",
            Is::So("diverge later than with weights in bfloat16, and rounded to E4M4 to nearest"),
            By::LogRank(LEVEL),
        )]),
        effect: EffectSize::Stated,
        find: |results| find_pairs(results, OF_PAIRS, &PAIRS, Some(UNROUNDED)),
    },
    views: &[],
};

pub(super) static OF_NOISY_F32: Figure = Figure {
    id: "F2-23",
    title: "whether noise in the weights delays divergence of f32, too",
    source: "a question of our own, after F2-13 and F2-21",
    says: "At a rate of 1e-3 runs in f32 whose betas stay 0 diverge later with weights rounded \
           stochastically to E4M3 than without.",
    grid: Grid {
        rate: [1e-3; 3],
        seeds: [0, 0, 10],
        axes: &[Axis::new("numbers", OF_F32)],
        ..PROXIES
    },
    judged: Judged::Own {
        asks: asks(&[ask(
            "runs in f32 whose weights alone are rounded stochastically",
            Is::So("diverge later than runs in f32"),
            By::LogRank(LEVEL),
        )]),
        effect: EffectSize::Stated,
        find: |results| find_pairs(results, OF_F32, &[[NOISY, BETAS.name]], Some(BETAS.name)),
    },
    views: &[],
};

pub(super) static OF_NOISY_OTHERS: Figure = Figure {
    id: "F2-24",
    title: "whether noise in the weights delays divergence of other proxies, too",
    source: "a question of our own, after F2-14 and F2-21",
    says: "In MX E4M3 (the study's code) proxies without norms, and proxies of 8 blocks, diverge later with \
           stochastically rounded weights than without.",
    grid: Grid { seeds: [0, 0, 10], axes: &[Axis::new("numbers", OF_OTHER_PROXIES)], ..PROXIES },
    judged: Judged::Own {
        asks: asks(&[ask(
            "proxies without norms, and of 8 blocks, whose weights alone are rounded stochastically",
            Is::So("diverge later than the same with weights rounded to nearest"),
            By::LogRank(LEVEL),
        )]),
        effect: EffectSize::Stated,
        find: |results| find_pairs(results, OF_OTHER_PROXIES, &OTHERS, None),
    },
    views: &[],
};

/// Whether one of these diverges later than the study's text, and the share of cases in which the largest
/// effect would be seen.
pub fn judge(survival: &Survival, names: &[&str]) -> (Verdict, f64) {
    let later = |name: &str| survival.test(name).map(|test| test.p_later);
    let words = |name: &&str| {
        let (diverged, runs) = survival.counts(name);
        let p = later(name).map_or_else(String::new, |p| format!(" (p {})", chance(p)));
        format!("{name} {diverged} of {runs}{p}")
    };
    let (diverged, runs) = survival.counts(TEXT.name);
    let holds = names.iter().any(|name| later(name).is_some_and(|p| p <= LEVEL));
    // No effect is larger than that of a change with which no run diverges.
    let power = log_rank_power((diverged as f64 / runs.max(1) as f64, runs), runs, LEVEL);
    let text = format!(
        "with the study's text {diverged} of {runs} runs diverge; with one change (p of no delay): {}; a \
         change with which none diverges would be seen in {:.0} % of cases",
        names.iter().map(words).collect::<Vec<_>>().join(", "),
        100.0 * power
    );
    (Verdict::of(holds, false, text), power)
}

fn find(results: &Results<'_>, names: &[&str]) -> Result<Findings> {
    let survival = Survival::of(results, TEXT.name)?;
    let (verdict, power) = judge(&survival, names);
    let all: Vec<&str> = [TEXT.name].iter().chain(names).copied().collect();
    let left = leaving::table(&leaving::left(results, TEXT.name)?);
    let parts = vec![survival.curves(&all), survival.table(), left];
    Ok(Findings::of(verdict.with_power(Power::Share(power)), parts))
}

/// Of half and a quarter of the noise, with what was looked at afterwards: all three, and what noise costs.
fn find_noise(results: &Results<'_>) -> Result<Findings> {
    let survival = Survival::of(results, TEXT.name)?;
    let (verdict, power) = judge(&survival, &[HALF, QUARTER]);
    let all: Vec<&str> = OF_NOISE.iter().map(|level| level.name).collect();
    let doses = [(-1.0, WEIGHTS), (-0.5, HALF), (-0.25, QUARTER)];
    let doses = doses.map(|(dose, name)| (dose, survival.ends(name)));
    let trend = log_rank_trend(&doses).map_or_else(String::new, |test| {
        format!(
            "No part of the criterion: the less noise the sooner, by the log-rank test for trend over {}, {} \
             and {}, p {:.4} (one-sided).",
            WEIGHTS, HALF, QUARTER, test.p_sooner
        )
    });
    let left = leaving::table(&leaving::left(results, TEXT.name)?);
    let parts = vec![
        survival.curves(&all),
        survival.table(),
        Part::Text(trend),
        costs(results, TEXT.name)?,
        left,
    ];
    Ok(Findings::of(verdict.with_power(Power::Share(power)), parts))
}

/// How far the losses of runs lie above those of one recipe, over the seeds of which neither run spikes or
/// diverges.
fn costs(results: &Results<'_>, base: &'static str) -> Result<Part> {
    let caption = format!(
        "How far losses lie above those of {base}, %, means with 95 % intervals over the seeds of which \
         neither run spikes or diverges"
    );
    let header = ["numbers", "calm runs", "seeds", "training loss", "validation loss"];
    let mut table = Table::new(&caption, &header);
    let calm = |point: &GridPoint| -> Result<BTreeMap<u64, [f64; 2]>> {
        let of = |run: Outcome| {
            let summary = &run.trained.summary;
            let losses = [summary.train_loss?, summary.val_loss?];
            (!run.unstable()).then_some((summary.seed, losses))
        };
        Ok(results.outcomes(point)?.into_iter().filter_map(of).collect())
    };
    let first = calm(results.point(&[base], &GridPoint::default()))?;
    for point in &results.points {
        let runs = calm(point)?;
        let both: Vec<_> =
            runs.iter().filter_map(|(seed, losses)| Some((losses, first.get(seed)?))).collect();
        let above = |i: usize| {
            let above = both.iter().map(|(losses, first)| 100.0 * (losses[i] / first[i] - 1.0));
            mean_interval(&above.collect::<Vec<_>>(), 0.95)
                .map_or_else(|| "-".into(), |above| above.words(1))
        };
        let name = point.words(&[]);
        let shown = if name == base { ["-".into(), "-".into()] } else { [above(0), above(1)] };
        let [train, val] = shown;
        table.row([name, runs.len().to_string(), both.len().to_string(), train, val]);
    }
    Ok(Part::Table(table))
}

/// Whether each recipe with noise diverges later than the one without, and the least share of cases in which
/// the largest effect would be seen.
pub fn judge_pairs(recipes: &[(String, Ends)], pairs: &[[&'static str; 2]]) -> (Verdict, f64) {
    let (mut words, mut holds, mut least) = (Vec::new(), true, 1.0_f64);
    for &[noisy, still] in pairs {
        let survival = Survival { base: still, recipes: recipes.to_vec() };
        let p = survival.test(noisy).map(|test| test.p_later);
        let (of_noisy, of_still) = (survival.counts(noisy), survival.counts(still));
        let shown = p.map_or_else(String::new, |p| format!(" (p of no delay {})", chance(p)));
        words.push(format!(
            "{noisy} {} of {}, {still} {} of {}{shown}",
            of_noisy.0, of_noisy.1, of_still.0, of_still.1
        ));
        holds &= p.is_some_and(|p| p <= LEVEL);
        let share = of_still.0 as f64 / of_still.1.max(1) as f64;
        least = least.min(log_rank_power((share, of_still.1), of_noisy.1, LEVEL));
    }
    let text = format!(
        "runs that diverge: {}; noise with which none diverges would be seen in {:.0} % of cases",
        words.join("; "),
        100.0 * least
    );
    (Verdict::of(holds, false, text), least)
}

/// With what the losses of all lie above those of one recipe, if they compare.
fn find_pairs(
    results: &Results<'_>,
    levels: &[Level],
    pairs: &[[&'static str; 2]],
    base: Option<&'static str>,
) -> Result<Findings> {
    let survival = Survival::of(results, pairs[0][1])?;
    let (verdict, power) = judge_pairs(&survival.recipes, pairs);
    let all: Vec<&str> = levels.iter().map(|level| level.name).collect();
    let left = leaving::left(results, pairs[0][1])?;
    let mut parts = vec![survival.curves(&all)];
    parts.extend(pairs.iter().map(|[noisy, still]| survival.pair(still, noisy).table()));
    parts.extend(pairs.iter().map(|[noisy, still]| leaving::table(&left.pair(still, noisy))));
    if let Some(base) = base {
        parts.push(costs(results, base)?);
    }
    Ok(Findings::of(verdict.with_power(Power::Share(power)), parts))
}
