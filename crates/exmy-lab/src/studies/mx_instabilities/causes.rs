//! Which part of MX makes the proxy diverge: the run of F2-10 with one part taken out, ten seeds a recipe.
//!
//! The study blames the gains of norms: whole blocks of them enter the last bin of E4M3 and become one value.
//! Each recipe differs from the study's text in one thing. Some keep the gains out of that bin, some take the
//! same clamp out elsewhere, some change what the errors are like. Sums are those of Hopper's tensor cores,
//! in the recipe that they are compared with as well, which takes half the time of F2-10's order. The
//! backward pass in f32 has operands that those cores do not take, so its sums are in f32, too.

use super::survival::Survival;
use super::*;
use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Power, Verdict};
use crate::measure::Results;
use crate::statistics::log_rank_power;
use exmy::error::Result;

/// The study's text, with the sums of tensor cores, and what a recipe changes of it.
macro_rules! changed {
    ($change:literal) => {
        Set::Recipe(concat!(text!("e4m3"), $change, "+sums=hopper:bf16"))
    };
}
pub(super) use changed;

const BASE: &str = "text";

/// Gains that are never clamped: they do not train, their blocks do not saturate, they are bfloat16.
const GAINS: [&str; 3] = ["gains stay 1", "gains not clamped", "code"];
/// Gains are clamped as ever; something else is not as in the study's text.
const OTHERS: [&str; 5] =
    ["norms not clamped", "stochastic", "norms in f32", "backward in f32", "E8M3, no scale"];
/// Gains and all else are not clamped, which says nothing of which of them matters.
const ALL: [&str; 2] = ["nothing clamped", "bfloat16"];

/// The study's text.
pub(super) const TEXT: Level = level(BASE, changed!(""));

const RECIPES: &[Level] = &[
    TEXT,
    // Gains in bfloat16: the study's code.
    level("code", Set::Recipe("mxpaper-e4m3+gelu=fp32+sums=hopper:bf16")),
    level("gains stay 1", changed!("+norm_gamma:gradient=zero")),
    level(
        "gains not clamped",
        changed!("+norm_gamma:tensor=bf16@rna>mxfp8-e4m3@rceil@microxcaling"),
    ),
    level("norms not clamped", changed!("+up_proj:input=bf16@rna>mxfp8-e4m3@rceil@microxcaling")),
    level("nothing clamped", changed!("+bump")),
    // Decided after twenty seeds, by the rule below.
    level(
        "stochastic",
        Set::All(&[
            changed!("+input:weight:grad_output=bf16@rna>mxfp8-e4m3@microxcaling@sr16"),
            Set::Seeds(20),
        ]),
    ),
    level("norms in f32", changed!("+ln-arith=fp32")),
    level(
        "backward in f32",
        Set::Recipe(concat!(text!("e4m3"), "+fwd-only+forward:sums=hopper:bf16")),
    ),
    level("E8M3, no scale", changed!("+input:weight:grad_output=bf16@rna>e8m3@rna")),
    level(BFLOAT16.name, Set::All(&[BFLOAT16.set, Set::Seeds(20)])),
];

/// What the formats of F2-12 are compared with, too.
const BFLOAT16: Level = level("bfloat16", Set::Recipe("mxpaper-bf16+gelu=fp32+sums=hopper:bf16"));

/// The study's code in figures that have other rates, proxies and numbers of steps as well.
pub(super) const CODE: Level = level(
    "MX E4M3",
    Set::All(&[
        Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [50; 3]),
        Set::Recipe("mxpaper-e4m3+gelu=fp32+sums=hopper:bf16"),
        Set::When("proxy", "SwiGLU", &[Set::Recipe("mxpaper-e4m3+sums=hopper:bf16")]),
        Set::When("proxy", "without norms", &[Set::Measured(&[], [50; 3])]),
    ]),
);

/// Those whose curves are drawn: more could not be told apart.
const DRAWN: [&str; 6] =
    [BASE, "gains stay 1", "nothing clamped", "stochastic", "backward in f32", "bfloat16"];

/// The study's other element formats, with the sums of tensor cores, after two recipes of F2-11.
const FORMATS: &[Level] = &[
    BFLOAT16,
    level("MX E4M3", changed!("")),
    level("MX E5M2", Set::Recipe(concat!(text!("e5m2"), "+sums=hopper:bf16"))),
    level("MX E4M3, gradients E5M2", Set::Recipe(concat!(text!("mix"), "+sums=hopper:bf16"))),
    level("MX E2M3", Set::Recipe(concat!(text!("e2m3"), "+sums=hopper:bf16"))),
    level("MX E3M2", Set::Recipe(concat!(text!("e3m2"), "+sums=hopper:bf16"))),
];

const ASKS: Criterion = Criterion::new(
    &[ask(
        "runs whose gains do not train, or whose gains' blocks do not saturate,",
        Is::So("diverge later than with the study's text"),
        By::LogRank(LEVEL),
    )],
    Opposite::All(&[
        ask("neither of both", Is::So("diverges later"), By::Value),
        ask(
            "runs that leave the gains clamped and change something else",
            Is::So("diverge later"),
            By::LogRank(LEVEL),
        ),
    ]),
)
.noted(|| {
    format!(
        "Each recipe is looked at after 10, 20 and 30 seeds and gets no more once its p is at most {LEVEL}, \
         which is 0.01 of three looks together. By simulation ten seeds see a fall from nine divergences \
         to two in 81 of 100 cases."
    )
});

/// The level of one look; three of them together have 0.01.
const LEVEL: f64 = 0.0033;

pub(super) static CAUSES: Figure = Figure {
    id: "F2-11",
    title: "what makes the proxy diverge",
    source: "Fig. 3 to 5 and the text on the last bin; the proxy of Fig. 2a and 4, depth 4, width 512, batch \
             2048, 9000 steps at the constant rate 6e-4",
    says: "Training diverges because blocks of norms' gains enter the last bin of E4M3 and become one value, \
           which biases gradients.",
    grid: Grid {
        seeds: [0, 0, 30],
        sets: &[STUDENT, MEASURED],
        axes: &[Axis::new("numbers", RECIPES)],
        ..PROXIES
    },
    judged: Judged::Own { asks: ASKS, effect: EffectSize::Stated, find },
    views: &[
        View::Outcomes {
            title: "The proxy with one part changed",
            per: &[],
            norms: true,
            under: MIDDLE,
        },
        by_point(PROXY_LOSSES, &[level_of("numbers"), LOSS, DIVERGED, SPIKED, RUNS]),
    ],
};

pub(super) static ELEMENTS: Figure = Figure {
    id: "F2-12",
    title: "the proxy at its own size in other element formats",
    source: "the sweep of precisions with the proxy of Fig. 2a and 4: E5M2, E2M3, E3M2, and E4M3 with \
             gradients in E5M2",
    says: "How many runs diverge in other formats of elements, and when.",
    grid: Grid {
        seeds: [0, 0, 10],
        sets: &[STUDENT, MEASURED],
        axes: &[Axis::new("numbers", FORMATS)],
        ..PROXIES
    },
    judged: Judged::Shown(shown),
    views: &[],
};

fn shown(results: &Results<'_>) -> Result<Findings> {
    let survival = Survival::of(results, FORMATS[0].name)?;
    let left = leaving::table(&leaving::left(results, FORMATS[0].name)?);
    let parts = vec![survival.shares(), survival.table(), left];
    Ok(Findings::of(Verdict::Shown("the table has the numbers".into()), parts))
}

const MEASURED: Set = Set::Measured(&["lastbin.gamma", "rho_same", "cos_same"], [50; 3]);

/// The runs after which a recipe is looked at.
const LOOKS: [usize; 3] = [10, 20, 30];

/// What a recipe says: how many of its runs diverged, and whether later than the base's.
struct Compared {
    words: String,
    later: bool,
}

impl Compared {
    /// By the first look that decides it, else by all of its runs.
    fn of(survival: &Survival, name: &str) -> Self {
        let (_, all) = survival.counts(name);
        let looks = LOOKS.iter().filter(|&&runs| runs < all).map(|&runs| survival.first(runs));
        let is_later = |p: Option<f64>| p.is_some_and(|p| p <= LEVEL);
        let p_later = |look: &Survival| look.test(name).map(|test| test.p_later);
        let look = looks.into_iter().find(|look| is_later(p_later(look)));
        let look = look.unwrap_or_else(|| survival.first(all));
        let p = p_later(&look);
        let (diverged, runs) = look.counts(name);
        let words = match p {
            Some(p) => format!("{name} {diverged} of {runs} (p {p:.4})"),
            None => format!("{name} {diverged} of {runs}"),
        };
        Self { words, later: is_later(p) }
    }
}

/// The verdict on runs of all recipes, and the share of cases in which the largest effect would be seen.
pub fn judge(survival: &Survival) -> (Verdict, f64) {
    let recipes =
        |names: &[&str]| names.iter().map(|name| Compared::of(survival, name)).collect::<Vec<_>>();
    let (gains, others, all) = (recipes(&GAINS), recipes(&OTHERS), recipes(&ALL));
    let words: Vec<&str> =
        gains.iter().chain(&others).chain(&all).map(|recipe| recipe.words.as_str()).collect();
    let (diverged, runs) = survival.counts(BASE);
    let text = format!(
        "with the study's text {diverged} of {runs} runs diverge; with one change (p of no delay): {}",
        words.join(", ")
    );
    let (holds, opposite) =
        (gains[0].later || gains[1].later, others.iter().any(|recipe| recipe.later));
    // No effect is larger than that of a change with which no run diverges.
    let power = log_rank_power((diverged as f64 / runs.max(1) as f64, runs), runs, LEVEL);
    let text = match holds || opposite {
        true => text,
        false => format!(
            "{text}; the largest effect, that none diverges, would be seen in {:.0} % of cases",
            100.0 * power
        ),
    };
    (Verdict::of(holds, opposite, text), power)
}

fn find(results: &Results<'_>) -> Result<Findings> {
    let survival = Survival::of(results, BASE)?;
    let (verdict, power) = judge(&survival);
    let verdict = verdict.with_power(Power::Share(power));
    let left = leaving::table(&leaving::left(results, BASE)?);
    let parts = vec![survival.shares(), survival.curves(&DRAWN), survival.table(), left];
    Ok(Findings::of(verdict, parts))
}
