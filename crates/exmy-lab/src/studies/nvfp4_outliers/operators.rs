//! E2: one type of operator at a time in NVFP4, of the weights of a checkpoint of bfloat16, which are judged,
//! and after branches from there, which are shown.

use super::weights;
use super::{FROZEN, GLA_BRANCHES, OPERATORS, SA_BRANCHES};
use crate::criterion::{By, Criterion, Is, Opposite, ask};
use crate::finding::{Findings, Part, Power, Table, Verdict};
use crate::grid::Set;
use crate::measure::Results;
use crate::plot::{self, Axis};
use crate::series::{intervals, of_seeds};
use crate::statistics::{interval_power, mean, mean_interval, median, sd};
use crate::table::gap_percent;
use crate::table::number;
use crate::test_result::{TestResult, every, interval, verdict};
use exmy::error::Result;
use exmy_train::recipe::Linear;
use exmy_train::train::config::Config;

/// The types of operators of a kind of model.
pub fn operators(kind: &str) -> Vec<&'static str> {
    let gates = ["g_proj", "gk_proj"];
    let names = OPERATORS[1..].iter().map(|level| level.name);
    names.filter(|name| kind == "GLA" || !gates.contains(name)).collect()
}

/// The recipe of an operator's branches.
fn recipe(name: &str) -> &'static str {
    let own = OPERATORS.iter().filter(|level| level.name == name);
    let sets = own.flat_map(|level| if let Set::All(sets) = level.set { sets } else { &[] });
    let mut recipes =
        sets.filter_map(|set| if let Set::Whole(recipe) = set { Some(*recipe) } else { None });
    recipes.next().unwrap_or_else(|| unreachable!("{name}: no recipe"))
}

/// The operator that the paper finds most sensitive, and its sensitivity over that of down_proj there. A
/// ratio has no unit.
fn most(kind: &str) -> (&'static str, f64) {
    if kind == "GLA" { ("o_proj", 0.058 / 0.012) } else { ("v_proj", 0.143 / 0.020) }
}

/// How often the difference would have been seen if the two had the paper's ratio and their sum were the one
/// found here.
fn power(most: &[f64], least: &[f64], ratio: f64) -> Power {
    let gaps: Vec<f64> = most.iter().zip(least).map(|(a, b)| a - b).collect();
    let sum = mean(most).unwrap_or(f64::NAN) + mean(least).unwrap_or(f64::NAN);
    // Of operators that cost nothing together no ratio says how far they lie apart.
    let effect = (ratio - 1.0) / (ratio + 1.0) * sum.max(0.0);
    let seen = sd(&gaps).and_then(|sd| interval_power(effect, sd, gaps.len(), 0.95));
    seen.map_or(Power::FewSeeds, Power::Share)
}

/// The share that operators whose names begin so have of the parameters of all linear operators in blocks.
pub fn share(config: &Config, operator: &str) -> f64 {
    let linears = Linear::all(&config.model.layout());
    let blocks = || linears.iter().filter(|linear| linear.site.layer.is_some());
    let size = |linears: &mut dyn Iterator<Item = &Linear>| linears.map(Linear::size).sum::<u64>();
    let own = size(&mut blocks().filter(|l| l.site.operator.name().starts_with(operator)));
    own as f64 / size(&mut blocks()) as f64
}

/// Whether an operator is in the highest or lowest third, and the paired difference of two of them.
pub fn claim(kind: &str, found: &[(&str, Vec<f64>)]) -> TestResult {
    let mut order: Vec<(&str, f64)> =
        found.iter().map(|(name, values)| (*name, mean(values).unwrap_or(f64::NAN))).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rank = |name: &str| order.iter().position(|one| one.0 == name).map_or(0, |at| at + 1);
    let of = |name: &str| {
        found.iter().find(|one| one.0 == name).map(|one| one.1.as_slice()).unwrap_or_default()
    };
    let ((top, ratio), count) = (most(kind), order.len());
    let third = count / 3;
    let within = rank(top) <= third && rank("down_proj") > count - third;
    let mut claim =
        TestResult::below(("down_proj", of("down_proj")), (top, of(top)), &format!(" ({})", kind));
    // The difference alone is not the ranking.
    claim.holds &= within;
    claim.power = power(of(top), of("down_proj"), ratio);
    let seen = match claim.power {
        Power::Share(seen) if !claim.holds => {
            format!(
                "; the paper's ratio of {ratio:.1} would be seen in {:.0} % of cases",
                100.0 * seen
            )
        }
        _ => String::new(),
    };
    claim.text = format!(
        "{}: of {count} operators {top} is number {} and down_proj number {}; {}{seen}",
        kind,
        rank(top),
        rank("down_proj"),
        claim.text
    );
    claim
}

const BELOW: Is = Is::Below("that of the paper's most sensitive one");

pub(crate) const ASKS: Criterion = Criterion::new(
    &[
        ask(
            "the most sensitive operator of the paper",
            Is::So("is in the highest third"),
            By::Value,
        ),
        ask("down_proj", Is::So("is in the lowest third"), By::Value),
        ask("the sensitivity of down_proj", BELOW, By::Interval),
    ],
    Opposite::One,
)
.noted(|| {
    "The paper's are o_proj (GLA) and v_proj (SA); all is asked of both, each a part.".into()
});

pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let (mut parts, mut judged, mut trained) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, grid) in [("GLA", &GLA_BRANCHES), ("SA", &SA_BRANCHES)] {
        let (branches, kept) = (results.of_grid(grid), results.of_grid(&FROZEN));
        let kept = kept.picked(&[kind])?;
        let Some((planned, _)) = kept.first() else { continue };
        let (half, model) = (planned.config.train.steps / 2, planned.config.clone());
        // By seed, then by operator.
        let recipes: Vec<&str> = operators(kind).into_iter().map(recipe).collect();
        let frozen: Vec<Vec<f64>> = kept
            .iter()
            .map(|run| weights::gaps(run, half, "bf16+out=bf16", &recipes))
            .collect::<Result<_>>()?;
        let base = branches.picked(&["bf16"])?;
        let mut after = vec![Vec::new(); base.len()];
        let own = base.first().map_or(0, |(planned, _)| planned.steps());
        for name in operators(kind) {
            for (at, (_, run)) in branches.picked(&[name])?.iter().enumerate() {
                after[at].push(median_gap(&run.losses(), &base[at].1.losses(), own as usize / 2));
            }
        }
        let what = format!("at the checkpoint of step {half}, nothing trained");
        judged.push(of_kind(&model, kind, &what, &of_seeds(frozen.len()), &frozen, &mut parts));
        let what = format!("after branches of {own} steps");
        trained.push(of_kind(&model, kind, &what, &of_seeds(after.len()), &after, &mut parts));
    }
    Ok(concluded(&judged, &verdict(&trained), parts))
}

/// A verdict on each kind of model, and on both, by what is seen of the same weights.
pub fn concluded(judged: &[TestResult], trained: &Verdict, parts: Vec<Part>) -> Findings {
    let (both, found) = (every(judged), verdict(judged));
    let text = format!("{}; not judged, after branches: {}", found.reason(), trained.reason());
    let verdict = found.with(text).with_power(both.known_power());
    Findings { judged: both.judged(), ..Findings::of(verdict, parts) }
}

/// The median over the last `late` steps of a branch of its loss above that of bfloat16, in percent. Rates
/// are stressed, and a spike of one run is no effect of an operator. Records of a branch begin with those of
/// the run it comes from.
pub fn median_gap(own: &[(f64, f64)], base: &[(f64, f64)], late: usize) -> f64 {
    let gaps = own.iter().zip(base).map(|(own, base)| gap_percent(own.1, base.1));
    let gaps: Vec<f64> = gaps.collect();
    median(&gaps[gaps.len() - late.min(gaps.len())..]).unwrap_or(f64::NAN)
}

/// The claim on one kind of model, from gaps by seed and operator, and its picture and table.
pub fn of_kind(
    model: &Config,
    kind: &str,
    what: &str,
    few: &str,
    gaps: &[Vec<f64>],
    parts: &mut Vec<Part>,
) -> TestResult {
    let mut table = Table::new(
        format!(
            "{}, {what}: gap in percent, and gap over the share of parameters (mean and 95 % interval over \
             {few})",
            kind
        ),
        &["operator", "share of parameters, %", "gap, %", "sensitivity"],
    );
    let mut found: Vec<(&str, Vec<f64>, Vec<String>)> = Vec::new();
    for (i, operator) in operators(kind).iter().enumerate() {
        let share = share(model, operator);
        let gaps: Vec<f64> = gaps.iter().map(|seed| seed[i]).collect();
        let sensitivity: Vec<f64> = gaps.iter().map(|gap| gap / share).collect();
        let shown = match mean_interval(&sensitivity, 0.95) {
            None => sensitivity.first().map_or_else(String::new, |x| number(*x)),
            some => interval(some),
        };
        let gap = mean(&gaps).map_or_else(String::new, |gap| format!("{gap:+.3}"));
        let row = vec![(*operator).to_owned(), format!("{:.1}", 100.0 * share), gap, shown];
        found.push((operator, sensitivity, row));
    }
    found.sort_by(|a, b| {
        let of = |values: &[f64]| mean(values).unwrap_or(f64::NAN);
        of(&b.1).total_cmp(&of(&a.1))
    });
    let names = found.iter().map(|one| one.0.trim_end_matches("_proj"));
    let values: Vec<Vec<f64>> = found.iter().map(|one| one.1.clone()).collect();
    parts.push(Part::Picture(
        plot::Figure::new(format!("{}: what NVFP4 does to operators", kind))
            .subtitle(format!("{what}; mean and 95 % interval, and each seed"))
            .x(Axis::categories("operator in NVFP4", names))
            .panel(intervals("gap, % / share of parameters", &values).rule(0.0, "bfloat16")),
    ));
    found.iter().for_each(|one| table.row(one.2.clone()));
    parts.push(Part::Table(table));
    claim(kind, &found.into_iter().map(|one| (one.0, one.1)).collect::<Vec<_>>())
}
