//! BR-6 and BR-7: loss and sharpness by mantissa bits.

use super::common::{Spec, all, mean_of, number, seeds, tails, with_seeds};
use super::lead;
use crate::error::Result;
use crate::plot::{self, Axis, Panel, Series};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{mean, paired_interval};
use crate::study::store::{Runs, Trained};

const BITS: [u32; 7] = [7, 6, 5, 4, 3, 2, 1];
/// As multiples of the usual learning rate.
const RATES: [u32; 2] = [1, 10];

/// BR-6 in a small deep model, BR-7 in the largest that two cores train.
pub(super) struct Ordering {
    pub(super) large: bool,
}

impl Ordering {
    fn arms_of(&self, setting: &Setting, bits: u32, rate: u32) -> Vec<Arm> {
        let steps = setting.scale.pick([20, 600, 600, 20_000]);
        let preset = match (self.large, setting.scale) {
            (_, Scale::Smoke) => "nano",
            (false, Scale::Full) => "llama-120m",
            (true, Scale::Full) => "llama-7b",
            (false, _) => "deep",
            (true, _) => "micro",
        };
        let usual = if setting.scale == Scale::Full { 4e-4 } else { 1e-3 };
        let every = (steps / 24).max(1);
        let more = format!("record.probes = [\"logits\", \"phi\"]\nrecord.probe_every = {every}\n");
        let recipe = format!("bitred-e8m{bits}");
        let lr = usual * f64::from(rate);
        seeds(setting, [1, 3, 3, 3])
            .map(|seed| {
                Spec { lr, more: more.clone(), ..Spec::new(preset, &recipe, seed, steps) }
                    .arm(setting)
            })
            .collect()
    }

    fn rates(&self) -> &'static [u32] {
        if self.large { &RATES[..1] } else { &RATES }
    }

    fn bits(setting: &Setting) -> &'static [u32] {
        if setting.scale == Scale::Smoke { &[7, 3, 1] } else { &BITS }
    }
}

/// The mean over seeds of a probe's values, step by step.
pub(super) fn mean_values(runs: &[Trained], probe: &str) -> Result<Vec<(f64, f64)>> {
    let each: Vec<Vec<(f64, f64)>> =
        runs.iter().map(|run| run.values(probe)).collect::<Result<_>>()?;
    let shortest = each.iter().map(Vec::len).min().unwrap_or(0);
    let at = |i: usize| {
        let values: Vec<f64> = each.iter().map(|values| values[i].1).collect();
        (each[0][i].0, mean(&values).unwrap_or(f64::NAN))
    };
    Ok((0..shortest).map(at).collect())
}

/// Losses by bits, the most first: whether each bit less costs, and what all of them do.
fn judge(cells: &[(u32, Vec<f64>)], rate: u32) -> (bool, bool, String) {
    let means: Vec<f64> =
        cells.iter().map(|(_, losses)| mean(losses).unwrap_or(f64::NAN)).collect();
    // Runs that diverge count as worse than any that do not.
    let worse = |a: f64, b: f64| b > a || !b.is_finite();
    let ordered = means.windows(2).filter(|pair| worse(pair[0], pair[1])).count();
    let pairs = means.len().saturating_sub(1);
    let (first, last) = (&cells[0], &cells[cells.len() - 1]);
    let finite = |losses: &[f64]| losses.iter().all(|loss| loss.is_finite());
    let (holds, opposite, text) = if finite(&first.1) && !finite(&last.1) {
        (true, false, format!("E8M{} diverges", last.0))
    } else {
        match paired_interval(&last.1, &first.1, 0.95) {
            None => (false, false, "too few seeds for an interval".to_owned()),
            Some(gap) => (
                gap.low > 0.0,
                gap.high < 0.0,
                format!(
                    "E8M{} ends {:+.4} nats from E8M{} (95 % interval {:+.4} to {:+.4})",
                    last.0, gap.estimate, first.0, gap.low, gap.high
                ),
            ),
        }
    };
    let all = pairs - ordered <= pairs / 6;
    (holds && all, opposite, format!("at {rate}x {text}; {ordered} of {pairs} neighbours in order"))
}

impl Figure for Ordering {
    fn id(&self) -> &'static str {
        if self.large { "BR-7" } else { "BR-6" }
    }

    fn title(&self) -> &'static str {
        if self.large {
            "sharpness by mantissa bits in the largest model"
        } else {
            "loss and sharpness by mantissa bits"
        }
    }

    fn source(&self) -> &'static str {
        if self.large {
            "v1 Fig. 7, v2 Fig. 8 and Table 1: Llama 7B in E8M3 to E8M7"
        } else {
            "v1 Fig. 6, v2 Fig. 7: Llama 120M in E8M3, E8M4 and E8M5"
        }
    }

    fn claim(&self) -> &'static str {
        "Each mantissa bit less costs loss. Reproduced where, at one of the learning rates, the fewest bits end above the \
         most (interval of the paired difference above 0, or divergence) and at most one in six neighbours is out of \
         order, and sharpness phi rises before the loss more often than after it in the runs whose loss rises (95 % \
         interval over seeds): either has risen where it lies above that of the run with most bits and the same \
         seed by more than three times the scatter between seeds, in two measurements in a row. Contradicted where \
         fewer bits end lower. Phi is of 32 validation sequences, by its closed form with eps 1e-3."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        if self.large && setting.scale == Scale::Small {
            return Vec::new();
        }
        let bits = Self::bits(setting).iter();
        let of =
            |&bits| self.rates().iter().flat_map(move |&rate| self.arms_of(setting, bits, rate));
        bits.flat_map(of).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        let header = [
            "bits",
            "lr",
            "loss",
            "lowest seed",
            "highest seed",
            "phi at 1/3",
            "phi at 2/3",
            "phi at the end",
        ];
        let mut table = Table::new(
            "mean training loss of the last tenth of the steps, nats/token, and sharpness, %",
            &header,
        );
        let (mut parts, mut texts) = (Vec::new(), Vec::new());
        let (mut holds, mut opposite, mut risen) = (false, false, Vec::new());
        for &rate in self.rates() {
            let reference = all(runs, &self.arms_of(setting, BITS[0], rate))?;
            let mut losses =
                Panel::new(Axis::linear("smoothed training loss, nats/token")).height_share(1.4);
            let mut sharpness = Panel::new(Axis::log("sharpness phi, %"));
            let mut cells = Vec::new();
            for &bits in Self::bits(setting) {
                let trained = all(runs, &self.arms_of(setting, bits, rate))?;
                if bits != BITS[0] {
                    risen.push(lead::compare(&reference, &trained)?);
                }
                let name = format!("E8M{bits}");
                losses = with_seeds(losses, &name, &trained);
                let phi = mean_values(&trained, "phi")?;
                sharpness = sharpness.line(Series::new(&name, phi.iter().copied()));
                let tails = tails(&trained);
                let at = |share: f64| {
                    let index =
                        ((phi.len() as f64 * share) as usize).min(phi.len().saturating_sub(1));
                    phi.get(index).map_or_else(|| "-".into(), |point| format!("{:.4}", point.1))
                };
                table.row([
                    name,
                    format!("{rate}x"),
                    mean_of(&tails),
                    number(tails.iter().copied().fold(f64::INFINITY, f64::min)),
                    number(tails.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
                    at(1.0 / 3.0),
                    at(2.0 / 3.0),
                    at(1.0),
                ]);
                cells.push((bits, tails));
            }
            let (one, other, text) = judge(&cells, rate);
            holds |= one;
            opposite |= other;
            texts.push(text);
            parts.push(Part::Picture(
                plot::Figure::new(format!("Fewer mantissa bits at {rate}x the learning rate"))
                    .subtitle("mean and range over seeds")
                    .x(Axis::linear("step"))
                    .panel(losses)
                    .panel(sharpness),
            ));
        }
        parts.push(Part::Table(table));
        let (sharp_first, text) = lead::judge(&risen);
        texts.push(text);
        let verdict = Verdict::of(holds && sharp_first, opposite && !holds, texts.join("; "));
        Ok(Findings { verdict, parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_judged() {
        let cells = |losses: [f64; 3]| -> Vec<(u32, Vec<f64>)> {
            let near = |loss: f64| vec![loss, loss + 0.01, loss + 0.002];
            vec![(7, near(losses[0])), (3, near(losses[1])), (1, near(losses[2]))]
        };
        let (holds, opposite, text) = judge(&cells([2.0, 2.1, 2.5]), 1);
        assert!(holds && !opposite && text.contains("2 of 2"), "{text}");
        assert!(!judge(&cells([2.0, 2.6, 2.5]), 1).0, "one of two is out of order");
        assert!(judge(&cells([2.5, 2.1, 2.0]), 1).1);
        assert!(judge(&cells([2.0, 2.1, f64::INFINITY]), 1).0);
    }
}
