//! BR-8 and BR-14: ten times the learning rate, and roundings other than truncation.

use super::common::{Fate, Spec, all, fate, mean_of, number, seeds, tails, vocab, with_seeds};
use crate::error::Result;
use crate::plot::{self, Axis, Panel, Series};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{mean, mean_interval, paired_interval, sign_test};
use crate::study::store::Runs;

/// BR-8.
pub(super) struct Spikes;

const SPIKE_BITS: [u32; 3] = [7, 5, 3];
const MULTIPLES: [u32; 3] = [1, 10, 30];

pub(super) fn spike_arms(setting: &Setting, bits: u32, multiple: u32) -> Vec<Arm> {
    let steps = setting.scale.pick([20, 400, 1200, 20_000]);
    let preset = setting.scale.pick(["nano", "nano", "nano", "llama-120m"]);
    let usual = if setting.scale == Scale::Full { 4e-4 } else { 1e-3 };
    let more = format!(
        "record.probes = [\"logits\", \"phi\"]\nrecord.probe_every = {}\n",
        (steps / 16).max(1)
    );
    let lr = usual * f64::from(multiple);
    let recipe = format!("bitred-e8m{bits}");
    seeds(setting, [1, 18, 18, 18])
        .map(|seed| {
            Spec { lr, more: more.clone(), ..Spec::new(preset, &recipe, seed, steps) }.arm(setting)
        })
        .collect()
}

/// The multiples of the usual rate at a scale: the paper's two, and a third where two cores look for more.
pub(super) fn multiples(setting: &Setting) -> &'static [u32] {
    match setting.scale {
        Scale::Smoke | Scale::Full => &MULTIPLES[..2],
        Scale::Small | Scale::Medium => &MULTIPLES,
    }
}

/// Spikes per thousand steps of each seed.
fn spikes(fates: &[Fate]) -> Vec<f64> {
    fates.iter().map(|fate| fate.verdict.spikes_per_thousand(fate.steps)).collect()
}

/// Whether E8M5 has more spikes than E8M7, by pairs of seeds.
fn judge_spikes(few: &[f64], many: &[f64], at: &str) -> (bool, bool, String) {
    let differences: Vec<f64> = few.iter().zip(many).map(|(few, many)| few - many).collect();
    let [a, b] = [few, many].map(|values| mean(values).unwrap_or(f64::NAN));
    match sign_test(&differences) {
        None => (false, false, format!("{at}: no pairs")),
        Some(signs) => {
            let text = format!(
                "{at}: {a:.2} spikes per 1000 steps in E8M5, {b:.2} in E8M7 (more on {} seeds, fewer on {}, \
                 one-sided p {:.4})",
                signs.positive, signs.negative, signs.p_positive
            );
            (signs.p_positive < 0.05, signs.p_negative < 0.05, text)
        }
    }
}

impl Figure for Spikes {
    fn id(&self) -> &'static str {
        "BR-8"
    }

    fn title(&self) -> &'static str {
        "spikes at ten times the learning rate"
    }

    fn source(&self) -> &'static str {
        "v1 Fig. 8, v2 Fig. 9: Llama 120M in E8M5 and E8M7, 18 seeds each at 1x and 10x"
    }

    fn claim(&self) -> &'static str {
        "At 10x E8M5 spikes more often than E8M7 (and, in the paper, no run diverges: the table counts those that fail). \
         Reproduced where it does at 10x by the sign test over seeds (one-sided, 5 %). A spike is a loss above the median of the last 50 by 6 robust deviations and 0.2 \
         nats."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let of = |bits| {
            multiples(setting).iter().flat_map(move |&multiple| spike_arms(setting, bits, multiple))
        };
        SPIKE_BITS.into_iter().flat_map(of).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut table = Table::new(
            "spikes per 1000 steps (mean over seeds), failed runs, mean training loss of the last tenth",
            &["lr", "bits", "seeds", "spikes", "failed", "loss"],
        );
        let (mut parts, mut verdicts) = (Vec::new(), Vec::new());
        for &multiple in multiples(setting) {
            let mut panel = Panel::new(Axis::linear("smoothed training loss, nats/token"));
            let mut rates = Vec::new();
            for bits in SPIKE_BITS {
                let arms = spike_arms(setting, bits, multiple);
                let trained = all(runs, &arms)?;
                let fates: Vec<Fate> =
                    trained.iter().zip(&arms).map(|(run, arm)| fate(run, vocab(arm))).collect();
                let spikes = spikes(&fates);
                table.row([
                    format!("{multiple}x"),
                    format!("E8M{bits}"),
                    fates.len().to_string(),
                    format!("{:.2}", mean(&spikes).unwrap_or(f64::NAN)),
                    fates.iter().filter(|fate| fate.failed).count().to_string(),
                    mean_of(&tails(&trained)),
                ]);
                panel = with_seeds(panel, &format!("E8M{bits}"), &trained);
                rates.push(spikes);
            }
            verdicts
                .push((multiple, judge_spikes(&rates[1], &rates[0], &format!("at {multiple}x"))));
            let title =
                format!("Losses at {multiple}x the learning rate, mean and range over seeds");
            parts
                .push(Part::Picture(plot::Figure::new(title).x(Axis::linear("step")).panel(panel)));
        }
        parts.insert(0, Part::Table(table));
        let text =
            verdicts.iter().map(|(_, (.., text))| text.as_str()).collect::<Vec<_>>().join("; ");
        let (more, fewer) = verdicts
            .iter()
            .find(|(multiple, _)| *multiple == 10)
            .map_or((false, false), |(_, (more, fewer, _))| (*more, *fewer));
        let verdict = Verdict::of(more, fewer, text);
        Ok(Findings { verdict, parts })
    }
}

/// BR-14.
pub(super) struct Roundings;

const MODES: [(&str, &str); 3] =
    [("trunc", "truncated"), ("rne", "to nearest"), ("sr8", "stochastic")];

fn rounding_arms(setting: &Setting, bits: u32, mode: &str) -> Vec<Arm> {
    let steps = setting.scale.pick([20, 600, 1200, 20_000]);
    let preset = setting.scale.pick(["nano", "nano", "nano", "llama-120m"]);
    let recipe = format!("bitred-e8m{bits}+round={mode}");
    let lr = if setting.scale == Scale::Full { 4e-4 } else { 3e-3 };
    seeds(setting, [1, 5, 5, 3])
        .map(|seed| Spec { lr, ..Spec::new(preset, &recipe, seed, steps) }.arm(setting))
        .collect()
}

fn rounded_bits(setting: &Setting) -> &'static [u32] {
    if setting.scale == Scale::Smoke { &[3, 1] } else { &[5, 4, 3, 2, 1] }
}

impl Figure for Roundings {
    fn id(&self) -> &'static str {
        "BR-14"
    }

    fn title(&self) -> &'static str {
        "truncation, rounding to nearest, stochastic rounding"
    }

    fn source(&self) -> &'static str {
        "asked for by the paper's reviewers"
    }

    fn claim(&self) -> &'static str {
        "Part of the damage is the bias of truncation. Reproduced where, at the fewest bits at which no run diverges, truncated \
         runs end above those rounded to nearest (interval of the paired difference above 0)."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let bits = rounded_bits(setting).iter();
        bits.flat_map(|&bits| {
            MODES.iter().flat_map(move |mode| rounding_arms(setting, bits, mode.0))
        })
        .collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let mut table = Table::new(
            "mean training loss of the last tenth, nats/token, and how far truncation is above rounding to nearest",
            &["bits", "truncated", "to nearest", "stochastic", "gap", "95 % low", "high"],
        );
        let mut series = MODES.map(|(_, name)| (name, Vec::new()));
        let mut last = None;
        for &bits in rounded_bits(setting) {
            let cells: Vec<Vec<f64>> = MODES
                .iter()
                .map(|(mode, _)| Ok(tails(&all(runs, &rounding_arms(setting, bits, mode))?)))
                .collect::<Result<_>>()?;
            for ((_, points), cell) in series.iter_mut().zip(&cells) {
                points.push((f64::from(bits), mean(cell).unwrap_or(f64::NAN)));
            }
            let gap = paired_interval(&cells[0], &cells[1], 0.95);
            let of = |x: Option<f64>| x.map_or_else(|| "-".into(), |x| format!("{x:+.4}"));
            table.row([
                format!("E8M{bits}"),
                mean_of(&cells[0]),
                mean_of(&cells[1]),
                mean_of(&cells[2]),
                of(gap.map(|gap| gap.estimate)),
                of(gap.map(|gap| gap.low)),
                of(gap.map(|gap| gap.high)),
            ]);
            last = gap.map(|gap| (bits, gap)).or(last);
        }
        let mut panel =
            Panel::new(Axis::linear("mean training loss of the last tenth, nats/token"));
        for (name, points) in series {
            panel = panel.line(Series::new(name, points));
        }
        let picture = plot::Figure::new("Final loss by mantissa bits and rounding")
            .x(Axis::whole("mantissa bits"))
            .panel(panel);
        let verdict = match last {
            None => Verdict::NotSeen("too few seeds for an interval".into()),
            Some((bits, gap)) => {
                let text = format!(
                    "in E8M{bits} truncation ends {:+.4} nats from rounding to nearest (95 % {:+.4} to {:+.4})",
                    gap.estimate, gap.low, gap.high
                );
                Verdict::of_difference(&gap, text)
            }
        };
        Ok(Findings { verdict, parts: vec![Part::Picture(picture), Part::Table(table)] })
    }
}

/// A mean with the half-width of its interval, as tables have it.
pub(super) fn with_interval(values: &[f64]) -> String {
    match mean_interval(values, 0.95) {
        Some(found) => format!("{:.4} ± {:.4}", found.estimate, found.high - found.estimate),
        None => number(mean(values).unwrap_or(f64::NAN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spikes_are_judged_by_pairs() {
        let (more, fewer, text) = judge_spikes(&[3.0, 2.0, 4.0, 1.0, 5.0], &[0.0; 5], "at 10x");
        assert!(more && !fewer && text.contains("more on 5 seeds"), "{text}");
        assert!(judge_spikes(&[0.0; 5], &[1.0; 5], "").1);
        let (more, fewer, _) = judge_spikes(&[1.0, 0.0], &[0.0, 0.0], "");
        assert!(!more && !fewer, "one seed is no evidence");
    }
}
