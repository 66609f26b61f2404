//! What a change of precision does to a run that is about to diverge.

use super::grids::{STRESSES, Stress, TENFOLD};
use crate::criterion::{By, Criterion, Is, Opposite, Requirement, ask};
use crate::finding::{Findings, Part, Table, Verdict};
use crate::grid::{GridPoint, Level};
use crate::measure::Results;
use crate::outcome::{Outcome, calm, number};
use crate::plot::{self, Axis, Panel, Series};
use crate::run_config::Setting;
use crate::statistics::{Interval, mean, paired_interval};
use crate::test_result::interval;
use exmy::error::Result;

const FEWER: Requirement = ask(
    "the share of runs that diverge with the study's interventions, over seeds,",
    Is::Below("that without"),
    By::Interval,
);

pub(crate) const ASKS: Criterion = Criterion::new(&[FEWER], Opposite::One).noted(|| {
    "Single ones are named where their interval excludes 0. E2M1 at ten times the rate is the control."
        .into()
});

/// The intervention that changes nothing but the last bits.
pub const NULL: &str = "nothing";

/// Steps by which a divergence must move to count as delayed or hastened.
const MOVED: u64 = 5;

/// Those of which the study says that they avert or delay.
const CLAIMED: [&str; 7] =
    ["fp32", "fp32_fixed", "bump", "no_ln_q", "bf16_act", "bf16_act_all", "fwd_only"];

/// What an intervention did to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Averted,
    Delayed(u64),
    Hastened(u64),
    None,
    /// Only with it does the run diverge.
    Caused,
    /// The run had diverged before.
    TooLate,
}

impl Effect {
    pub fn of(control: Option<u64>, branch: Option<u64>, at: u64) -> Self {
        match (control, branch) {
            (None, Some(_)) => Self::Caused,
            (Some(end), _) if end <= at => Self::TooLate,
            (Some(_), None) => Self::Averted,
            (Some(end), Some(now)) if now > end + MOVED => Self::Delayed(now - end),
            (Some(end), Some(now)) if now + MOVED < end => Self::Hastened(end - now),
            _ => Self::None,
        }
    }

    fn word(self) -> String {
        match self {
            Self::Averted => "averted".into(),
            Self::Delayed(by) => format!("delayed by {by}"),
            Self::Hastened(by) => format!("hastened by {by}"),
            Self::None => "no effect".into(),
            Self::Caused => "caused".into(),
            Self::TooLate => "-".into(),
        }
    }
}

/// What claimed interventions do to the share of diverging runs in one setting: of each seed whether its MX
/// run diverges, and the effects. A run that has diverged can only be helped and one that has not only be
/// harmed, so counts of seeds would say how many of either there are. The share of runs that diverge
/// with interventions against that without is fair to both.
pub fn judge(name: &str, seeds: &[Seed], null: Option<&[Seed]>, alone: &[Alone]) -> Verdict {
    let gap = fewer(seeds, null, 0.95);
    let effects: Vec<Effect> = seeds.iter().flat_map(|seed| seed.1.iter().copied()).collect();
    let count = |kind: fn(&Effect) -> bool| effects.iter().filter(|effect| kind(effect)).count();
    let diverged = seeds.iter().filter(|seed| seed.0).count();
    let shown = words(gap);
    let against = if null.is_some() { "with the null" } else { "without" };
    let mut text = format!(
        "{name}: {diverged} of {} MX runs diverge; of {} claimed interventions before that, {} avert it, {} \
         delay it, {} hasten it, and {} make runs diverge that do not without; share of diverging runs with \
         interventions minus that {against}: {shown}",
        seeds.len(),
        count(|effect| *effect != Effect::TooLate),
        count(|effect| *effect == Effect::Averted),
        count(|effect| matches!(effect, Effect::Delayed(_))),
        count(|effect| matches!(effect, Effect::Hastened(_))),
        count(|effect| *effect == Effect::Caused),
    );
    if null.is_none()
        && let Some(null) = alone.iter().find(|alone| alone.name == NULL)
    {
        text += &format!("; with {NULL:?}, the null (99.5 %): {}", words(null.gap));
    }
    let differs =
        |alone: &&Alone| alone.name != NULL && alone.gap.is_some_and(|gap| gap.excludes(0.0));
    let some = alone.iter().filter(differs);
    let some: Vec<String> =
        some.map(|alone| format!("{} {}", alone.name, words(alone.gap))).collect();
    if !some.is_empty() {
        text += &format!(
            "; of single ones (99.5 % intervals, as there are nine that can differ): {}",
            some.join(", ")
        );
    }
    match gap {
        Some(gap) => Verdict::of_difference(&gap, text),
        None => Verdict::Untested(text),
    }
}

/// What one intervention does by itself: how many fewer of the runs diverge.
pub struct Alone {
    name: &'static str,
    gap: Option<Interval>,
}

/// Of a seed, whether its MX run diverges, and the effects.
type Seed = (bool, Vec<Effect>);

/// The share of diverging runs without interventions less that with them, over seeds. In a second stage,
/// where not all runs are changed that do not diverge, `null` is what they are compared with, a change that
/// should do nothing.
fn fewer(seeds: &[Seed], null: Option<&[Seed]>, confidence: f64) -> Option<Interval> {
    let share = |(diverged, effects): &Seed| {
        let counted = effects.iter().filter(|effect| **effect != Effect::TooLate);
        let ends = counted.map(|effect| match effect {
            Effect::Averted => 0.0,
            Effect::Caused => 1.0,
            _ => f64::from(*diverged),
        });
        mean(&ends.collect::<Vec<_>>())
    };
    let without = |i: usize| match null {
        Some(null) => share(&null[i]),
        None => Some(f64::from(seeds[i].0)),
    };
    let pairs = (0..seeds.len()).filter_map(|i| Some((without(i)?, share(&seeds[i])?)));
    let (without, with): (Vec<f64>, Vec<f64>) = pairs.unzip();
    paired_interval(&without, &with, confidence)
}

/// The change of the share with interventions.
fn words(gap: Option<Interval>) -> String {
    let change = |gap: Interval| Interval {
        estimate: 0.0 - gap.estimate,
        low: 0.0 - gap.high,
        high: 0.0 - gap.low,
    };
    interval(gap.map(change))
}

/// What interventions do in all settings.
pub(crate) fn find(results: &Results<'_>) -> Result<Findings> {
    let (mut parts, mut verdicts) = (Vec::new(), Vec::new());
    for stress in STRESSES {
        if results.of_grid(&stress.mx).points.is_empty() {
            continue;
        }
        let (verdict, shown) = on_stress(results, stress)?;
        verdicts.push(verdict);
        parts.extend(shown);
    }
    parts.push(Part::Text(
        "Settings in the order in which they were tried: the long ramp, on which all MX runs diverge; the \
         short one; the steady rate, found by AppC's search and some runs of other seeds by hand. fp32 \
         trains betas of norms again, fp32_fixed does not: norms of the study's MX code return no gradient \
         of their betas, and f32 runs that train them diverge at lower rates than all others."
            .into(),
    ));
    let tenfold = results.of_grid(&TENFOLD);
    let positive = tenfold.outcomes(&tenfold.points[0])?;
    let words: Vec<String> = positive.iter().map(Outcome::word).collect();
    let control = format!("E2M1 at ten times the rate: {}", words.join(", "));
    let fired = positive.iter().all(Outcome::diverged);
    Ok(Findings::of(Verdict::first_of(&verdicts).controlled(fired, &control), parts))
}

/// What interventions do in one setting: the verdict, and what is shown.
fn on_stress(results: &Results<'_>, stress: &Stress) -> Result<(Verdict, Vec<Part>)> {
    let (plain, branches) = (results.of_grid(&stress.plain), results.of_grid(&stress.branches));
    let name = stress.words(results.setting);
    let of = |numbers: &str| plain.outcomes(plain.point(&[numbers], &GridPoint::default()));
    let (f32, still) = (of("f32")?, of("f32, fixed betas")?);
    let mx = results.of_grid(&stress.mx);
    let mx = mx.outcomes(&mx.points[0])?;
    let first = results.setting.scale.pick(stress.mx.first);
    let caption = format!(
        "{name}, the runs without interventions: the step from which on the loss stays ten times above its \
         lowest level, and the mean squared error at the end"
    );
    let header = ["seed", "MX", "loss of MX", "f32", "loss of f32", "f32, fixed betas", "its loss"];
    let mut ends = Table::new(&caption, &header);
    let plain = f32.iter().zip(&still);
    for ((seed, control), (f32, still)) in (first..).zip(&mx).zip(plain) {
        let row = [control, f32, still].map(|run| [run.word(), number(run.tail)]);
        ends.row([seed.to_string()].into_iter().chain(row.into_iter().flatten()));
    }
    let controls: Vec<(u64, Outcome)> = (first..).zip(mx).collect();
    let shown = controls.iter().position(|(_, control)| control.diverged()).unwrap_or(0);
    let all = branches.levels(branches.grid.axis("change"));
    let times = branches.levels(branches.grid.axis("after"));
    // By intervention, seed and time.
    let mut effects = vec![vec![Vec::new(); controls.len()]; all.len()];
    let mut parts = Vec::new();
    for time in times {
        let mut panel = Panel::new(Axis::log("training loss, mean squared error"));
        for (level, effects) in all.iter().zip(&mut effects) {
            let point = GridPoint::default().with("after", time).with("change", level);
            // Of a second stage more seeds may not diverge than do, and there are no runs of the rest.
            effects.iter_mut().for_each(|effects| effects.push(Effect::TooLate));
            for (planned, run) in branches.trained(&point)? {
                let i = (planned.config.seed - first) as usize;
                let at = planned.parent.as_ref().map_or(0, |parent| parent.1);
                let branch = Outcome::of(run, &planned);
                let ends = (controls[i].1.verdict.diverged, branch.verdict.diverged);
                if let Some(effect) = effects[i].last_mut() {
                    *effect = Effect::of(ends.0, ends.1, at);
                }
                if i == shown {
                    let from = 0.8 * at as f64;
                    let from = calm(&branch.losses).into_iter().filter(|p| p.0 >= from);
                    panel = panel.line(Series::new(level.name, from).note(branch.word()));
                }
            }
        }
        let (seed, control) = &controls[shown];
        let under = format!(
            "{name}; seed {seed}, whose MX run: {}; the curves begin before",
            control.word()
        );
        parts.push(Part::Picture(
            plot::Figure::new(format!("The precision changes after step {}", time.name))
                .subtitle(under)
                .x(Axis::linear("step"))
                .panel(panel),
        ));
    }
    // The effects of some interventions, at all times, seed by seed.
    let of = |some: &dyn Fn(&str) -> bool| -> Vec<Seed> {
        let seed = |(seed, (_, control)): (usize, &(u64, Outcome))| {
            let chosen = all.iter().zip(&effects).filter(|(level, _)| some(level.name));
            let effects = chosen.flat_map(|(_, effects)| effects[seed].iter().copied()).collect();
            (control.diverged(), effects)
        };
        controls.iter().enumerate().map(seed).collect()
    };
    let claimed = of(&|name| CLAIMED.contains(&name));
    let later =
        branches.points.iter().any(|point| branches.grid.is_later(results.setting.scale, point));
    let null = later.then(|| of(&|name| name == NULL));
    let alone: Vec<Alone> = all
        .iter()
        .map(|level| Alone {
            name: level.name,
            gap: fewer(&of(&|other| other == level.name), null.as_deref(), 0.995),
        })
        .collect();
    parts.push(Part::Table(ends));
    parts.push(Part::Table(effect_table(&name, times, &alone, &effects)));
    Ok((judge(&name, &claimed, null.as_deref(), &alone), parts))
}

/// What each intervention does to each seed.
fn effect_table(
    name: &str,
    times: &[Level],
    alone: &[Alone],
    effects: &[Vec<Vec<Effect>>],
) -> Table {
    let caption = format!(
        "{name}, what interventions do, of all seeds but those whose MX run had diverged before; change: of \
         the share of diverging runs, with the 99.5 % interval; delayed or hastened: by more than {MOVED} \
         steps; caused: the run diverges with the intervention alone"
    );
    let mut header = vec!["intervention".to_owned(), "change".into()];
    for at in times.iter().map(|time| time.name) {
        header.extend(
            ["averted", "delayed", "hastened", "caused"].map(|word| format!("{word} at {at}")),
        );
    }
    header.extend(times.iter().map(|at| format!("each seed at {}", at.name)));
    let rows = alone.iter().zip(effects).map(|(alone, effects)| {
        let mut row = vec![alone.name.to_owned(), words(alone.gap)];
        for time in 0..times.len() {
            let count = |kind: fn(&Effect) -> bool| {
                effects.iter().filter(|effects| kind(&effects[time])).count().to_string()
            };
            row.extend([
                count(|effect| *effect == Effect::Averted),
                count(|effect| matches!(effect, Effect::Delayed(_))),
                count(|effect| matches!(effect, Effect::Hastened(_))),
                count(|effect| *effect == Effect::Caused),
            ]);
        }
        row.extend((0..times.len()).map(|time| {
            effects.iter().map(|effects| effects[time].word()).collect::<Vec<_>>().join(", ")
        }));
        row
    });
    Table { caption, header, rows: rows.collect() }
}

impl Stress {
    /// The element format of its MX runs.
    pub(super) fn numbers(&self, setting: &Setting) -> &'static str {
        setting.scale.pick(self.format)
    }

    /// What it is called.
    pub(super) fn called(&self, setting: &Setting) -> &'static str {
        setting.scale.pick(["smoke", self.name, "the study's own"])
    }

    /// `steady rate: E2M1, 4 blocks, rate 0.06 from step 60 on`.
    pub(super) fn words(&self, setting: &Setting) -> String {
        let (name, format) = (self.called(setting), self.numbers(setting));
        let points = self.mx.points(setting.scale);
        let runs = points.first().map(|point| self.mx.runs_of(setting, point)).unwrap_or_default();
        let Some(config) = runs.first().map(|planned| &planned.config) else {
            return name.to_owned();
        };
        let (steps, warmup, lr) = (config.train.steps, config.train.warmup, config.train.lr);
        let rate = match warmup < steps {
            true => format!("rate {lr} from step {warmup} on"),
            false => format!("rate rising to {lr} in {steps} steps"),
        };
        let layers = config.model.layers();
        format!("{name}: {format}, {layers} blocks, {rate}")
    }
}
