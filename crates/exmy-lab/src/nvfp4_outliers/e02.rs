//! E2: one type of operator at a time in NVFP4, from a checkpoint of bfloat16.

use super::claim::{Claim, interval, verdict};
use super::common::{BF16, Kind, main, seeds, steps};
use super::frozen;
use super::show::{intervals, number, of_seeds};
use crate::arm::{Arm, Setting};
use crate::finding::{Figure, Findings, Part, Table};
use crate::plot::{self, Axis};
use crate::statistics::{mean, mean_interval, median};
use crate::store::Runs;
use crate::table::gap_percent;
use exmy::error::Result;
use exmy_train::recipe::Linear;
use exmy_train::train::config::Config;

/// E2.
pub(super) struct Sensitivity;

/// The types of operators.
fn operators(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Gla => &[
            "q_proj",
            "k_proj",
            "v_proj",
            "o_proj",
            "g_proj",
            "gk_proj",
            "gate_proj",
            "up_proj",
            "down_proj",
        ],
        Kind::Sa => &["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
    }
}

/// The operator that the paper finds most sensitive.
const fn most(kind: Kind) -> &'static str {
    match kind {
        Kind::Gla => "o_proj",
        Kind::Sa => "v_proj",
    }
}

fn branch_steps(setting: &Setting) -> u64 {
    setting.scale.pick([4, 200, 2000])
}

/// A branch of `recipe` from the middle of a run in bfloat16, at a constant rate.
fn arm(setting: &Setting, kind: Kind, recipe: &str, seed: u64) -> Arm {
    let half = steps(setting) / 2;
    let changes = format!(
        "recipe = \"{recipe}\"\ntrain.steps = {}\ntrain.schedule = \"constant\"\nrecord.probes = []",
        half + branch_steps(setting)
    );
    main(setting, kind, BF16, seed).branch(half, &changes)
}

fn one(operator: &str) -> String {
    format!("nv-nvfp4+last=0+only={operator}")
}

fn arms_of(setting: &Setting, kind: Kind) -> Vec<Arm> {
    let recipes = || std::iter::once(BF16.to_owned()).chain(operators(kind).iter().map(|o| one(o)));
    let seeds = seeds(setting, 3);
    seeds.iter().flat_map(|&seed| recipes().map(move |r| arm(setting, kind, &r, seed))).collect()
}

/// Seeds of the weights that losses are measured at: more of them, as nothing is trained on.
fn frozen_seeds(setting: &Setting) -> Vec<u64> {
    seeds(setting, 8)
}

/// The share that operators whose names begin so have of the parameters of all linear operators in blocks.
fn share(config: &Config, operator: &str) -> f64 {
    let linears = Linear::all(&config.model.layout());
    let blocks = || linears.iter().filter(|linear| linear.site.layer.is_some());
    let size = |linears: &mut dyn Iterator<Item = &Linear>| linears.map(Linear::size).sum::<u64>();
    let own = size(&mut blocks().filter(|l| l.site.operator.name().starts_with(operator)));
    own as f64 / size(&mut blocks()) as f64
}

/// Whether an operator is in the highest or lowest third, and the paired difference of two of them.
fn claim(kind: Kind, found: &[(&str, Vec<f64>)]) -> Claim {
    let mut order: Vec<(&str, f64)> =
        found.iter().map(|(name, values)| (*name, mean(values).unwrap_or(f64::NAN))).collect();
    order.sort_by(|a, b| b.1.total_cmp(&a.1));
    let rank = |name: &str| order.iter().position(|one| one.0 == name).map_or(0, |at| at + 1);
    let of = |name: &str| {
        found.iter().find(|one| one.0 == name).map(|one| one.1.as_slice()).unwrap_or_default()
    };
    let (top, count) = (most(kind), order.len());
    let third = count / 3;
    let within = rank(top) <= third && rank("down_proj") > count - third;
    let mut claim = Claim::below(
        ("down_proj", of("down_proj")),
        (top, of(top)),
        &format!(" ({})", kind.name()),
    );
    // The difference alone is not the ranking.
    claim.holds = claim.holds.filter(|below| within || !below);
    claim.text = format!(
        "{}: of {count} operators {top} is number {} and down_proj number {}; {}",
        kind.name(),
        rank(top),
        rank("down_proj"),
        claim.text
    );
    claim
}

impl Figure for Sensitivity {
    fn id(&self) -> &'static str {
        "E2"
    }

    fn title(&self) -> &'static str {
        "which operators NVFP4 hurts most"
    }

    fn source(&self) -> &'static str {
        "arXiv 2602.02047, Table 3, by notes of readers: o_proj 0.058 and down_proj 0.012 (GLA), v_proj 0.143 and \
         down_proj 0.020 (Qwen)"
    }

    fn claim(&self) -> &'static str {
        "Per parameter, o_proj (GLA) and v_proj (SA) are among the most sensitive third of operators and down_proj \
         among the least; reproduced if so for both and the 95 % intervals of the paired differences exclude 0. \
         Sensitivity: 100 (L_op - L_bf16) / L_bf16 over the operator's share of parameters. The paper trains on with \
         one type of operator in NVFP4; here two hundred steps of that scatter losses by more than one operator \
         changes, so the validation loss of the same weights is judged, with one type of operator in NVFP4 and with none, \
         and the training losses of branches are shown beside it."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let weights =
            |kind| frozen_seeds(setting).into_iter().map(move |s| main(setting, kind, BF16, s));
        Kind::ALL
            .into_iter()
            .flat_map(|kind| arms_of(setting, kind).into_iter().chain(weights(kind)))
            .collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let (mut parts, mut judged, mut trained) = (Vec::new(), Vec::new(), Vec::new());
        let seeds = seeds(setting, 3);
        let half = steps(setting) / 2;
        for kind in Kind::ALL {
            let own = || operators(kind).iter().map(|operator| one(operator));
            // By seed, then by operator.
            let (mut frozen, mut after) = (Vec::new(), Vec::new());
            for seed in frozen_seeds(setting) {
                frozen.push(frozen::gaps(
                    runs,
                    &main(setting, kind, BF16, seed),
                    half,
                    BF16,
                    own(),
                )?);
            }
            for &seed in &seeds {
                let of = |recipe: &str| -> Result<Vec<(f64, f64)>> {
                    Ok(runs.of(&arm(setting, kind, recipe, seed))?.losses())
                };
                let base = of(BF16)?;
                let late = branch_steps(setting) as usize / 2;
                let gap = |recipe: String| Ok(median_gap(&of(&recipe)?, &base, late));
                after.push(own().map(gap).collect::<Result<Vec<f64>>>()?);
            }
            let what = format!("at the checkpoint of step {half}, nothing trained");
            judged.push(of_kind(
                setting,
                kind,
                &what,
                &of_seeds(frozen.len()),
                &frozen,
                &mut parts,
            ));
            let few = of_seeds(seeds.len());
            let what = format!("after branches of {} steps", branch_steps(setting));
            trained.push(of_kind(setting, kind, &what, &few, &after, &mut parts));
        }
        let [judged, trained] = [verdict(&judged), verdict(&trained)];
        let text = format!("{}; not judged, after branches: {}", judged.reason(), trained.reason());
        Ok(Findings { verdict: judged.with(text), parts })
    }
}

/// The median over the last `late` steps of a branch of its loss above that of bfloat16, in percent: rates are
/// stressed, and a spike of one run is no effect of an operator. Records of a branch begin with those of
/// the run it comes from.
fn median_gap(own: &[(f64, f64)], base: &[(f64, f64)], late: usize) -> f64 {
    let gaps = own.iter().zip(base).map(|(own, base)| gap_percent(own.1, base.1));
    let gaps: Vec<f64> = gaps.collect();
    median(&gaps[gaps.len() - late.min(gaps.len())..]).unwrap_or(f64::NAN)
}

/// The claim on one kind of model, from gaps by seed and operator, and its picture and table.
fn of_kind(
    setting: &Setting,
    kind: Kind,
    what: &str,
    few: &str,
    gaps: &[Vec<f64>],
    parts: &mut Vec<Part>,
) -> Claim {
    let mut table = Table::new(
        format!(
            "{}, {what}: gap in percent, and gap over the share of parameters (mean and 95 % interval over {few})",
            kind.name()
        ),
        &["operator", "share of parameters, %", "gap, %", "sensitivity"],
    );
    let mut found: Vec<(&str, Vec<f64>, Vec<String>)> = Vec::new();
    let model = arm(setting, kind, BF16, 1).config;
    for (i, operator) in operators(kind).iter().enumerate() {
        let share = share(&model, operator);
        let gaps: Vec<f64> = gaps.iter().map(|seed| seed[i]).collect();
        let sensitivity: Vec<f64> = gaps.iter().map(|gap| gap / share).collect();
        let shown = match mean_interval(&sensitivity, 0.95) {
            None => sensitivity.first().map_or_else(String::new, |x| number(*x)),
            some => interval(some),
        };
        let gap = mean(&gaps).map_or_else(String::new, |gap| format!("{gap:+.3}"));
        let cells = vec![(*operator).to_owned(), format!("{:.1}", 100.0 * share), gap, shown];
        found.push((operator, sensitivity, cells));
    }
    found.sort_by(|a, b| {
        let of = |values: &[f64]| mean(values).unwrap_or(f64::NAN);
        of(&b.1).total_cmp(&of(&a.1))
    });
    let names = found.iter().map(|one| one.0.trim_end_matches("_proj"));
    let values: Vec<Vec<f64>> = found.iter().map(|one| one.1.clone()).collect();
    parts.push(Part::Picture(
        plot::Figure::new(format!("{}: what NVFP4 does to operators", kind.name()))
            .subtitle(format!("{what}; mean and 95 % interval, and each seed"))
            .x(Axis::categories("operator in NVFP4", names))
            .panel(intervals("gap, % / share of parameters", &values).rule(0.0, "bfloat16")),
    ));
    found.iter().for_each(|one| table.row(one.2.clone()));
    parts.push(Part::Table(table));
    claim(kind, &found.into_iter().map(|one| (one.0, one.1)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nine operators with o_proj and down_proj at given places.
    fn word(o: f64, down: f64) -> &'static str {
        let mut found: Vec<(&str, Vec<f64>)> = Vec::new();
        for (i, name) in (0..).zip(operators(Kind::Gla)) {
            let mean = match *name {
                "o_proj" => o,
                "down_proj" => down,
                _ => 1.0 + 0.1 * f64::from(i),
            };
            found.push((name, vec![mean, mean + 0.01, mean - 0.01]));
        }
        verdict(&[claim(Kind::Gla, &found)]).word()
    }

    #[test]
    fn a_ranking_is_places_and_a_difference() {
        assert_eq!(word(2.0, 0.5), "reproduced");
        assert_eq!(word(0.5, 2.0), "contradicted");
        assert_eq!(word(0.9, 0.5), "not seen at this scale");
        assert_eq!(word(2.0, 2.0), "not seen at this scale");
    }

    #[test]
    fn shares_are_of_all_operators() {
        let setting = Setting::unread(crate::arm::Scale::Small);
        for kind in Kind::ALL {
            let model = arm(&setting, kind, BF16, 1).config;
            let shares = operators(kind).iter().map(|one| share(&model, one));
            assert!((shares.sum::<f64>() - 1.0).abs() < 1e-12);
        }
    }
    #[test]
    fn the_gap_of_a_branch_is_a_median_of_its_last_steps() {
        let losses = |values: &[f64]| -> Vec<(f64, f64)> {
            (1..).map(f64::from).zip(values.iter().copied()).collect()
        };
        let base = losses(&[2.0, 2.0, 2.0, 4.0, 2.0, 2.0]);
        // 350 % three times, then 1, 5 and 2 %.
        let own = losses(&[9.0, 9.0, 9.0, 4.04, 2.1, 2.04]);
        let is = |late: usize, gap: f64| (median_gap(&own, &base, late) - gap).abs() < 1e-9;
        assert!(is(3, 2.0) && is(2, 3.5) && is(1, 2.0), "{}", median_gap(&own, &base, 3));
        // Of a branch that is shorter all steps: (5 + 350) / 2.
        assert!(is(6, 177.5) && is(99, 177.5));
        assert!(median_gap(&[], &[], 3).is_nan());
    }

    /// The tiny model's blocks have four matrices of 64 x 64 and three of 64 x 192: of 13 parts q_proj has one and
    /// down_proj three. Of two seeds t is 12.7062.
    #[test]
    fn sensitivity_is_the_gap_over_the_share() {
        let gaps = |q: f64, v: f64, down: f64| {
            let of = |name: &&str| match *name {
                "q_proj" => q,
                "v_proj" => v,
                "down_proj" => down,
                _ => 0.0,
            };
            operators(Kind::Sa).iter().map(of).collect::<Vec<f64>>()
        };
        let setting = Setting::unread(crate::arm::Scale::Smoke);
        let mut parts = Vec::new();
        let both = [gaps(0.4, 1.0, 0.3), gaps(0.6, 1.0, 0.3)];
        let claim = of_kind(&setting, Kind::Sa, "here", "two seeds", &both, &mut parts);
        let Some(Part::Table(table)) = parts.last() else { panic!("no table") };
        let csv = table.csv();
        // The largest first; 5.2 and 7.8 reach 1.3 x 12.7062 to each side of 6.5.
        for line in [
            "sensitivity\nv_proj,7.7,+1.000,\"+13.000 [+13.000, +13.000]\"\n",
            "q_proj,7.7,+0.500,\"+6.500 [-10.018, +23.018]\"\n",
            "down_proj,23.1,+0.300,\"+1.300 [+1.300, +1.300]\"\n",
        ] {
            assert!(csv.contains(line), "{line}{csv}");
        }
        assert!(claim.text.contains("v_proj is number 1 and down_proj number 3"), "{}", claim.text);
    }
}
