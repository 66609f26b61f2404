//! D1, a question of our own: does a change of precision by trigger save runs, and what does it cost?

use super::common::{Fate, Proxy, proxy_fate, text};
use super::draw::{calm, number, seeds as over_seeds};
use super::judge::first_of;
use super::unstable::{self, Stress};
use crate::error::Result;
use crate::plot::{self, Axis, Panel};
use crate::study::arm::{Arm, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{Interval, mean, paired_interval};
use crate::study::store::Runs;
use crate::train::record::Event;

/// D1.
pub(super) struct Triggers;

/// What the run goes on in.
const HIGH: &str = "mxpaper-bf16+gelu=fp32";

/// The arms, the first one static MX and the last one high precision from the beginning.
pub(super) const ARMS: [&str; 5] = [
    "static MX",
    "at a fixed step",
    "when half of the gains are in the last bin",
    "when the gradient norm is 3 times its level",
    "bf16",
];

/// A proxy by some rule, none if it is empty. What triggers read is measured often.
fn ruled(setting: &Setting, proxy: &Proxy, rule: &str) -> Arm {
    let more = if rule.is_empty() { String::new() } else { format!("{rule}\n") };
    let more = proxy.more.clone() + &more;
    Proxy { every: 2, probes: &[], more, ..proxy.clone() }.arm(setting)
}

/// A proxy that goes on in a recipe after a step.
pub(super) fn from_step(setting: &Setting, proxy: &Proxy, step: u64, recipe: &str) -> Arm {
    ruled(setting, proxy, &format!("at = [{{ step = {step}, then = {recipe:?} }}]"))
}

/// A proxy as one of the arms, by its own recipe until it changes. The fixed step is `step`.
pub(super) fn changing(setting: &Setting, proxy: &Proxy, step: u64, arm: usize) -> Arm {
    let when = |metric: &str, above: f64| {
        let rule = format!(
            "when = [{{ metric = {metric:?}, above = {above:?}, for = 2, times = 1, then = {HIGH:?} }}]"
        );
        ruled(setting, proxy, &rule)
    };
    match arm {
        0 => ruled(setting, proxy, ""),
        1 => from_step(setting, proxy, step, HIGH),
        2 => when("lastbin.gamma", 0.5),
        3 => when("grad_spike", 3.0),
        _ => ruled(setting, &Proxy { recipe: HIGH.into(), ..proxy.clone() }, ""),
    }
}

fn arm(setting: &Setting, stress: &Stress, arm: usize, seed: u64) -> Arm {
    if arm == 0 {
        // The same run as F4's.
        return stress.control(setting, seed);
    }
    let proxy = Proxy { recipe: text(stress.format), ..stress.proxy(setting, seed) };
    changing(setting, &proxy, stress.times[0], arm)
}

/// The share of the steps in high precision: those after the first change.
fn share(fate: &Fate, arm: usize) -> f64 {
    let change = fate.trained.metrics.iter().find(|line| {
        line.events.iter().any(|event| matches!(event, Event::At { .. } | Event::When { .. }))
    });
    let steps = fate.losses.last().map_or(1, |last| last.0).max(1);
    match (arm, change) {
        (4, _) => 1.0,
        (_, Some(line)) => (steps - line.step.min(steps)) as f64 / steps as f64,
        (_, None) => 0.0,
    }
}

/// What the runs of one arm came to.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Outcome {
    pub(super) losses: Vec<f64>,
    pub(super) shares: Vec<f64>,
    pub(super) diverged: Vec<bool>,
}

impl Outcome {
    /// Adds a run of an arm.
    pub(super) fn push(&mut self, fate: &Fate, arm: usize) {
        self.losses.push(fate.tail);
        self.shares.push(share(fate, arm));
        self.diverged.push(fate.diverged());
    }

    /// Runs that diverge.
    pub(super) fn lost(&self) -> usize {
        self.diverged.iter().filter(|diverged| **diverged).count()
    }

    /// Runs that diverge in static MX and not here.
    pub(super) fn saved(&self, fixed: &Self) -> usize {
        fixed.diverged.iter().zip(&self.diverged).filter(|(a, b)| **a && !**b).count()
    }

    /// Runs that diverge here and not in static MX.
    pub(super) fn broken(&self, fixed: &Self) -> usize {
        fixed.saved(self)
    }

    /// The share of the steps in high precision, in percent, over all runs.
    pub(super) fn percent(&self) -> f64 {
        100.0 * mean(&self.shares).unwrap_or(f64::NAN)
    }

    /// How many more runs diverge here than in another arm, as a share of the pairs.
    fn gap(&self, other: &Self, confidence: f64) -> Option<Interval> {
        let ones = |of: &Self| of.diverged.iter().map(|lost| f64::from(*lost)).collect::<Vec<_>>();
        paired_interval(&ones(self), &ones(other), confidence)
    }

    /// Whether fewer runs diverge than in static MX, in less time of high precision than the fixed step needs.
    pub(super) fn pays(&self, fixed: &Self, at: &Self, confidence: f64) -> bool {
        let below = |interval: Option<Interval>| interval.is_some_and(|gap| gap.high < 0.0);
        below(self.gap(fixed, confidence))
            && below(paired_interval(&self.shares, &at.shares, confidence))
    }
}

/// What all arms came to, each beside static MX.
pub(super) fn table(caption: &str, outcomes: &[Outcome; 5]) -> Table {
    let header = ["arm", "loss", "in bfloat16, %", "diverged", "runs saved", "lost anew", "runs"];
    let mut table = Table::new(caption, &header);
    for (outcome, name) in outcomes.iter().zip(ARMS) {
        table.row([
            name.into(),
            number(mean(&outcome.losses).unwrap_or(f64::NAN)),
            format!("{:.0}", outcome.percent()),
            outcome.lost().to_string(),
            outcome.saved(&outcomes[0]).to_string(),
            outcome.broken(&outcomes[0]).to_string(),
            outcome.losses.len().to_string(),
        ]);
    }
    table
}

/// A trigger is worth it if it [pays](Outcome::pays); it is worse than the fixed step if more runs diverge with it
/// than with that.
fn judge(name: &str, outcomes: &[Outcome; 5]) -> Verdict {
    let [fixed, at, triggers @ .., _] = outcomes;
    let mut text = format!(
        "{name}: {} of {} static MX runs diverge; the fixed step saves {} and loses {} others",
        fixed.lost(),
        fixed.diverged.len(),
        at.saved(fixed),
        at.broken(fixed)
    );
    let (mut better, mut worse) = (false, 0);
    for (trigger, name) in triggers.iter().zip(&ARMS[2..]) {
        text += &format!(
            "; {name}: fires on {} seeds, saves {} and loses {} others, {:.0} % of the steps high",
            trigger.shares.iter().filter(|share| **share > 0.0).count(),
            trigger.saved(fixed),
            trigger.broken(fixed),
            trigger.percent()
        );
        better |= trigger.pays(fixed, at, 0.95);
        worse += usize::from(trigger.gap(at, 0.95).is_some_and(|gap| gap.low > 0.0));
    }
    text += &format!("; the fixed step has {:.0} %", at.percent());
    Verdict::of(better, worse == triggers.len(), text)
}

impl Figure for Triggers {
    fn id(&self) -> &'static str {
        "D1"
    }

    fn title(&self) -> &'static str {
        "changing precision at a step or by trigger"
    }

    fn source(&self) -> &'static str {
        "a question of our own, about the interventions of Fig. 4"
    }

    fn claim(&self) -> &'static str {
        "A rule that changes to bfloat16 when a diagnostic asks for it saves the runs that a change at a fixed \
         step saves, with less time in high precision. Counts as reproduced where with a trigger fewer runs diverge than \
         in static MX and its share of steps in high precision is below that of the fixed step; contradicted where more \
         diverge with every trigger than with the fixed step (95 % intervals of paired differences). The fixed step was \
         chosen knowing when runs diverge, which no user does. Judged in the setting in which F4 is; the others of F4 stand beside it."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let mut arms = Vec::new();
        for stress in unstable::settings(setting) {
            for seed in stress.seeds(setting) {
                arms.extend((0..ARMS.len()).map(|index| arm(setting, &stress, index, seed)));
            }
        }
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let (mut parts, mut verdicts) = (Vec::new(), Vec::new());
        for stress in unstable::settings(setting) {
            let (verdict, shown) = on_stress(setting, runs, &stress)?;
            verdicts.push(verdict);
            parts.extend(shown);
        }
        Ok(Findings { verdict: first_of(&verdicts), parts })
    }
}

/// What the five arms come to in one setting: the verdict, and what is shown.
fn on_stress(setting: &Setting, runs: &Runs<'_>, stress: &Stress) -> Result<(Verdict, [Part; 2])> {
    let name = stress.words(setting);
    let mut outcomes: [Outcome; 5] = Default::default();
    let mut panel = Panel::new(Axis::log("training loss, mean squared error"));
    let caption = format!(
        "{name}, means over seeds: the final loss (mean squared error, a diverged run counted at most as its \
         loss before training) and the share of the steps in bfloat16"
    );
    for (index, arm_name) in ARMS.iter().enumerate() {
        let mut curves = Vec::new();
        for seed in stress.seeds(setting) {
            let fate = proxy_fate(runs, &arm(setting, stress, index, seed))?;
            outcomes[index].push(&fate, index);
            curves.push(calm(&fate.losses));
        }
        panel = over_seeds(panel, arm_name, &curves);
    }
    let table = table(&caption, &outcomes);
    let under = format!(
        "{name}; median of the seeds and their range; moving average over 2 % of the steps"
    );
    let picture = plot::Figure::new("What a change to bfloat16 does to a stressed MX run")
        .subtitle(under)
        .x(Axis::linear("step"))
        .panel(panel);
    Ok((judge(&name, &outcomes), [Part::Picture(picture), Part::Table(table)]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(diverged: [bool; 3], shares: [f64; 3]) -> Outcome {
        // Twelve runs: enough for an interval.
        let (diverged, shares) = (diverged.repeat(4), shares.repeat(4));
        Outcome { losses: vec![0.1; 12], shares, diverged }
    }

    #[test]
    fn verdicts_compare_divergences_and_shares() {
        let (lost, kept) = ([true, true, false], [false; 3]);
        let fixed = outcome(lost, [0.0; 3]);
        let at = outcome(kept, [0.8; 3]);
        let high = outcome(kept, [1.0; 3]);
        let late = outcome(kept, [0.30, 0.31, 0.32]);
        let early = outcome(kept, [0.9, 0.95, 0.92]);
        let none = outcome(lost, [0.1, 0.1, 0.12]);
        let judged = |fixed: &Outcome, a: &Outcome, b: &Outcome| {
            judge("E2M1", &[fixed.clone(), at.clone(), a.clone(), b.clone(), high.clone()])
        };
        assert_eq!(judged(&fixed, &late, &none).word(), "reproduced");
        assert_eq!(judged(&fixed, &early, &none).word(), "not seen at this scale");
        assert_eq!(judged(&fixed, &none, &none).word(), "contradicted");
        let calm = outcome(kept, [0.0; 3]);
        let quiet = judged(&calm, &late, &late);
        assert_eq!(quiet.word(), "not seen at this scale", "nothing to be saved");
        assert!(quiet.reason().contains("fires on 12 seeds"), "{}", quiet.reason());
    }
}
