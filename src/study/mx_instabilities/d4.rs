//! D4: the search behind F4, for a learning rate at which an intervention averts divergences.
//!
//! F4 intervenes at one steady rate and in two settings on ramps, and its interventions cause about as many divergences as they avert. Here those of its claim go on
//! from the middle or from the end of the warm-up, over rates, depths, gains at the start and formats in the cells of [D2](super::d2). Cells share the batches of a
//! seed, so each seed counts once, as the mean over the cells of a rate, and there are twelve: the intervals of 50 comparisons are wide. Runs that have
//! exploded by the change are left out, whether they come back or not: which of them do is chance, and leaving out only those that do not would count
//! against whatever is compared. A control, whose gradients break in the middle of a run, can be averted by construction.

use super::common::{Proxy, later, proxy_fate, seeds};
use super::d1::{changing, from_step};
use super::d2::{self, Cell, broken_runs, fixed};
use super::interventions::{NULL, raised, recipes};
use super::judge::controlled;
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::arm::{Arm, Setting};
use crate::study::differences::{self, by_seed, words};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{Interval, mean_interval};
use crate::study::store::Runs;

/// D4.
pub(super) struct Search;

/// The arms: static MX, the null, and from [`FIRST`] on those of F4's claim. Without fp32, in which betas of norms are trained and stressed
/// runs diverge sooner, and bf16_act, a part of bf16_act_all.
const ARMS: [&str; 7] =
    ["static MX", NULL, "fp32_still", "bump", "no_ln_q", "bf16_act_all", "fwd_only"];
/// The first of those that are judged, and the one that the control must see.
const FIRST: usize = 2;

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    diverges: bool,
    /// The first step at which its loss was ten times its lowest level, if there is one.
    explodes: Option<u64>,
}

/// What became of runs, by cell and seed.
type Lost = Vec<Vec<Run>>;

/// What became of the arms at a rate, in the order of [`ARMS`], whose interventions begin at a step.
#[derive(Clone, Debug, PartialEq)]
struct AtRate {
    lr: f64,
    step: u64,
    arms: Vec<Lost>,
}

/// The steps at which interventions begin: the middle and the end of the warm-up, which a user knows before a run.
fn steps(setting: &Setting) -> [u64; 2] {
    [fixed(setting) / 2, fixed(setting)]
}

/// The learning rates: D2's without two at which nothing diverges.
fn rates(setting: &Setting) -> Vec<f64> {
    setting.scale.pick([
        vec![1e-2],
        vec![3e-3, 3e-2, 1e-1, 1.7e-1, 3e-1],
        vec![3e-3, 3e-2, 1e-1, 1.7e-1, 3e-1],
        vec![1e-5, 5e-5, 1e-4, 5e-4, 1e-3],
    ])
}

/// The proxies of a cell by seed.
fn proxies(setting: &Setting, cell: Cell) -> Vec<Proxy> {
    seeds(setting, [1, 12, 12, 3]).map(|seed| cell.proxy(setting, seed)).collect()
}

/// An arm of a proxy whose elements are of a format, changed at a step. Static MX is D2's.
fn arm(setting: &Setting, proxy: &Proxy, format: &str, name: &str, step: u64) -> Arm {
    if name == NULL {
        // What changes within a run is the recipe alone, so its rate is raised from the beginning.
        let proxy = Proxy { lr: raised(proxy.lr), ..proxy.clone() };
        return changing(setting, &proxy, step, 0);
    }
    let recipe = recipes(format).into_iter().find(|recipe| recipe.0 == name);
    match recipe {
        Some((_, recipe)) => from_step(setting, proxy, step, &recipe),
        None => changing(setting, proxy, step, 0),
    }
}

/// Some arms of proxies, changed at a step, arm by arm.
fn arms_of(
    setting: &Setting,
    proxies: &[Proxy],
    format: &str,
    names: &[&'static str],
    step: u64,
) -> Vec<Arm> {
    let of = |name: &&'static str| {
        let name = *name;
        proxies.iter().map(move |proxy| arm(setting, proxy, format, name, step))
    };
    names.iter().flat_map(of).collect()
}

/// The control's arms, the first three. Its elements are of E4M3.
fn broken(setting: &Setting) -> Vec<Arm> {
    arms_of(setting, &broken_runs(setting), "e4m3", &ARMS[..=FIRST], fixed(setting))
}

/// What became of runs of one cell, arm by arm.
fn lost(runs: &Runs<'_>, arms: &[Arm], names: usize) -> Result<Lost> {
    let seeds = (arms.len() / names).max(1);
    let of_one = |arm: &Arm| -> Result<Run> {
        let fate = proxy_fate(runs, arm)?;
        let spikes = fate.verdict.spikes.iter().map(|spike| spike.first);
        let explodes = spikes.chain(fate.verdict.diverged).min();
        Ok(Run { diverges: fate.diverged(), explodes })
    };
    let of = |arms: &[Arm]| -> Result<Vec<Run>> { arms.iter().map(of_one).collect() };
    arms.chunks(seeds).map(of).collect()
}

/// The arms of all cells of a rate, changed at a step, cell by cell.
fn cells_of(setting: &Setting, lr: f64, step: u64) -> Vec<Vec<Arm>> {
    let of = |cell: Cell| arms_of(setting, &proxies(setting, cell), cell.format, &ARMS, step);
    d2::cells(setting, lr).into_iter().map(of).collect()
}

/// All rates, each with each step.
fn grid(setting: &Setting) -> Vec<(f64, u64)> {
    let steps = steps(setting);
    rates(setting).into_iter().flat_map(|lr| steps.map(|step| (lr, step))).collect()
}

/// The confidence of each interval if those of so many rates and steps and all claimed interventions are to hold together at 95 %.
fn confidence(count: usize) -> f64 {
    differences::confidence(count * (ARMS.len() - FIRST))
}

impl AtRate {
    /// Of cells, and of each of them the arms.
    fn of(lr: f64, step: u64, cells: Vec<Lost>) -> Self {
        let mut arms = vec![Lost::new(); cells.first().map_or(0, Vec::len)];
        for cell in cells {
            arms.iter_mut().zip(cell).for_each(|(arm, seeds)| arm.push(seeds));
        }
        Self { lr, step, arms }
    }

    /// What tables call it.
    fn name(&self) -> String {
        format!("{:e} from step {}", self.lr, self.step)
    }

    /// Whether static MX and an arm diverge, cell by cell and seed by seed; nothing where static MX had exploded by the change, up to which
    /// both are the same.
    fn pairs(&self, arm: usize) -> Vec<Vec<Option<(bool, bool)>>> {
        let pair = |(without, with): (&Run, &Run)| {
            let in_time = without.explodes.is_none_or(|first| first > self.step);
            in_time.then_some((without.diverges, with.diverges))
        };
        let cells = self.arms[0].iter().zip(&self.arms[arm]);
        cells.map(|(without, with)| without.iter().zip(with).map(pair).collect()).collect()
    }

    /// How many runs there are of which static MX and an arm fare so.
    fn count(&self, arm: usize, of: impl Fn(bool, bool) -> bool) -> usize {
        let pairs = self.pairs(arm).into_iter().flatten().flatten();
        pairs.filter(|(a, b)| of(*a, *b)).count()
    }

    /// Runs of an arm that diverge, those that do in static MX alone, and those that do not there alone.
    fn counts(&self, arm: usize) -> [usize; 3] {
        [
            self.count(arm, |_, b| b),
            self.count(arm, |a, b| a && !b),
            self.count(arm, |a, b| !a && b),
        ]
    }

    /// The share of diverging runs of static MX less that of an arm, over seeds.
    fn gap(&self, arm: usize, confidence: f64) -> Option<Interval> {
        let less = |pair: Option<(bool, bool)>| {
            pair.map_or(f64::NAN, |(a, b)| f64::from(u8::from(a)) - f64::from(u8::from(b)))
        };
        let cells = self.pairs(arm).into_iter();
        let cells: Vec<Vec<f64>> = cells.map(|cell| cell.into_iter().map(less).collect()).collect();
        let cells: Vec<&[f64]> = cells.iter().map(Vec::as_slice).collect();
        mean_interval(&by_seed(&cells), confidence)
    }

    /// Whether fewer runs diverge with an intervention than without, by more than the null's own estimate: what chance does.
    fn averts(&self, arm: usize, confidence: f64) -> bool {
        let null = self.gap(1, confidence).map_or(0.0, |gap| gap.estimate.max(0.0));
        self.gap(arm, confidence).is_some_and(|gap| gap.low > null)
    }

    /// `70 of 96 static MX runs diverge; averted and caused by "nothing" 8 and 9: -0.0104 (-0.1000 to +0.0792), by ...`
    fn words(&self, confidence: f64) -> String {
        let own = |arm: usize| {
            let ([_, averted, caused], gap) = (self.counts(arm), words(self.gap(arm, confidence)));
            format!("by {:?} {averted} and {caused}: {gap}", ARMS[arm])
        };
        let arms: Vec<String> = (1..self.arms.len()).map(own).collect();
        let ([lost, ..], all) = (self.counts(0), self.count(0, |_, _| true));
        let late = self.arms[0].iter().map(Vec::len).sum::<usize>() - all;
        let late = if late > 0 { format!(", {late} others had exploded") } else { String::new() };
        format!(
            "{lost} of {all} static MX runs diverge{late}; averted and caused {}",
            arms.join(", ")
        )
    }
}

/// Whether some intervention averts at some rate, told only if the control's does by the same rule.
fn judge(found: &[AtRate], control: &AtRate) -> Verdict {
    let confidence = confidence(found.len());
    let (mut hits, mut harms, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for at in found {
        for (arm, name) in ARMS.iter().enumerate().skip(FIRST) {
            let name = format!("{name} at {}", at.name());
            if at.averts(arm, confidence) {
                hits.push(name);
            } else if at.gap(arm, confidence).is_some_and(|gap| gap.high < 0.0) {
                harms.push(name);
            }
        }
        // Where no run of any arm is lost there is nothing to tell.
        if (0..ARMS.len()).any(|arm| at.count(arm, |a, b| a || b) > 0) {
            told.push(format!("; at {} {}", at.name(), at.words(confidence)));
        }
    }
    let list = |some: &[String]| if some.is_empty() { "none".to_owned() } else { some.join(", ") };
    let text = format!(
        "static MX runs diverge after the change at {} of {} rates and steps; by {:.1} % intervals over seeds of the share of diverging runs without less that with it these avert: {}, and these do \
         harm: {}{}",
        found.iter().filter(|at| at.counts(0)[0] > 0).count(),
        found.len(),
        100.0 * confidence,
        list(&hits),
        list(&harms),
        told.concat()
    );
    let verdict = Verdict::of(!hits.is_empty(), false, text);
    let text = format!("of runs whose gradients break in the middle {}", control.words(confidence));
    controlled(control.averts(FIRST, confidence), &text, verdict)
}

/// What interventions do to the share of diverging runs, by rate, from each step on.
fn picture(found: &[AtRate]) -> plot::Figure {
    let confidence = confidence(found.len());
    let mut steps: Vec<u64> = found.iter().map(|at| at.step).collect();
    steps.sort_unstable();
    steps.dedup();
    let of_step = |step: u64| found.iter().filter(move |at| at.step == step);
    let panel = |step: u64| {
        let axis = Axis::linear(format!("fewer diverge, from step {step}"));
        let mut panel = Panel::new(axis).rule(0.0, "");
        for (arm, name) in ARMS.iter().enumerate().skip(1) {
            let at = |(x, at): (usize, &AtRate)| {
                let gap = at.gap(arm, confidence)?;
                Some((x as f64, gap.low, gap.estimate, gap.high))
            };
            let points: Vec<_> = of_step(step).enumerate().filter_map(at).collect();
            panel = panel.intervals(Intervals::new(*name, points));
        }
        panel
    };
    let rates = of_step(steps.first().copied().unwrap_or(0)).map(|at| format!("{:e}", at.lr));
    let figure = plot::Figure::new("Divergences averted by learning rate and intervention")
        .subtitle(format!(
            "share of diverging runs without less that with it: mean over cells and {:.1} % interval over seeds",
            100.0 * confidence
        ))
        .x(Axis::categories("learning rate", rates));
    steps.into_iter().map(panel).fold(figure, plot::Figure::panel)
}

/// Runs saved and lost anew, of some rates or of the control, by intervention.
fn table(caption: &str, found: &[(String, &AtRate)], confidence: f64) -> Table {
    let header = ["rate and step", "arm", "runs", "diverged", "averted", "caused", "fewer diverge"];
    let mut table = Table::new(caption, &header);
    for (name, at) in found {
        for (arm, arm_name) in ARMS.iter().enumerate().take(at.arms.len()) {
            let gap = if arm == 0 { "-".into() } else { words(at.gap(arm, confidence)) };
            let counts = at.counts(arm).map(|count| count.to_string());
            let first = [name.clone(), (*arm_name).into(), at.count(arm, |_, _| true).to_string()];
            table.row(first.into_iter().chain(counts).chain([gap]));
        }
    }
    table
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        "D4"
    }

    fn title(&self) -> &'static str {
        "interventions before divergence: the search"
    }

    fn source(&self) -> &'static str {
        "a question of our own, behind F4 (Fig. 4)"
    }

    fn claim(&self) -> &'static str {
        "There is a learning rate at which an intervention that F4 names averts divergences. Searched over five rates in two decades (at medium), two depths, \
         gains that begin at 1 and inside the last bin, E2M1 and E4M3, with five interventions from the middle and from the end of the warm-up on, which is known before a run. Reproduced if at some rate with \
         some of them fewer runs diverge than in static MX, and by more than the null's own estimate: \"nothing\", a rate that is larger by 2^-22 of it. Runs whose loss in static MX is ten times its lowest level before the change are left out. \
         Intervals are by Student's t of the means over cells of twelve seeds, at 95 % for all rates, steps and interventions together, so 99.9 % each of 50. The control: runs whose gradients are \
         rounded to E3M2 without a scale from the middle on, which fp32_still must be seen to avert by the same rule."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        if later(setting).is_some() {
            return Vec::new();
        }
        let cells = grid(setting).into_iter().flat_map(|(lr, step)| cells_of(setting, lr, step));
        broken(setting).into_iter().chain(cells.flatten()).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if let Some(findings) = later(setting) {
            return Ok(findings);
        }
        let of = |(lr, step)| -> Result<AtRate> {
            let cells = cells_of(setting, lr, step);
            let cells = cells.iter().map(|arms| lost(runs, arms, ARMS.len()));
            Ok(AtRate::of(lr, step, cells.collect::<Result<_>>()?))
        };
        let found: Vec<AtRate> = grid(setting).into_iter().map(of).collect::<Result<_>>()?;
        let broken = broken(setting);
        let lr = broken.first().map_or(f64::NAN, |arm| arm.config.train.lr);
        let control = AtRate::of(lr, fixed(setting), vec![lost(runs, &broken, FIRST + 1)?]);
        let confidence = confidence(found.len());
        let rest = "runs whose static MX had not exploded by the step; averted and caused: those that diverge in static MX alone, and with the intervention alone; fewer diverge: the share of static MX less that \
                    with the intervention, mean over cells and interval over seeds";
        let rows: Vec<_> = found.iter().map(|at| (at.name(), at)).collect();
        let broken = format!("the control, gradients that break in the middle; {rest}");
        let parts = vec![
            Part::Picture(picture(&found)),
            Part::Table(table(rest, &rows, confidence)),
            Part::Table(table(&broken, &[(control.name(), &control)], confidence)),
        ];
        Ok(Findings { verdict: judge(&found, &control), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::arm::Scale;

    /// Two cells of twelve seeds that are alike: of each arm the first so many diverge.
    fn at(lr: f64, lost: &[usize]) -> AtRate {
        let run = |lost| Run { diverges: lost, explodes: lost.then_some(100) };
        let of = |lost: &usize| (0..12).map(|seed| run(seed < *lost)).collect();
        let cell: Lost = lost.iter().map(of).collect();
        AtRate::of(lr, 60, vec![cell.clone(), cell])
    }

    /// Runs that had exploded by the change are left out, whether they come back or not.
    #[test]
    fn what_exploded_before_is_left_out() {
        let late = |of: &mut AtRate, cell: usize| {
            let runs = of.arms.iter_mut().flat_map(|arm| &mut arm[cell]);
            runs.for_each(|run| run.explodes = Some(60));
        };
        let mut one = at(1e-1, &[12, 12, 6, 12, 12, 12, 12]);
        assert_eq!((one.counts(2), one.gap(2, 0.95).unwrap().estimate), ([12, 12, 0], 0.5));
        late(&mut one, 0);
        assert_eq!((one.counts(2), one.gap(2, 0.95).unwrap().estimate), ([6, 6, 0], 0.5));
        assert!(
            one.words(0.95).starts_with("12 of 12 static MX runs diverge, 12 others had exploded;")
        );
        late(&mut one, 1);
        assert_eq!((one.counts(2), one.gap(2, 0.95)), ([0; 3], None));
    }

    /// The verdict on one rate of five at which something happens.
    fn judged(lost: [usize; 7], control: [usize; 3]) -> Verdict {
        let of = |lr: f64| at(lr, if lr == 1e-1 { &lost } else { &[0; 7] });
        judge(&[3e-3, 3e-2, 1e-1, 1.7e-1, 3e-1].map(of), &at(3e-2, &control))
    }

    const NOT: &str = "not seen at this scale";

    #[test]
    fn each_part_can_fail() {
        let word = |lost| judged(lost, [12, 12, 0]).word();
        assert_eq!(word([12, 12, 1, 12, 12, 12, 12]), "reproduced");
        assert_eq!(word([12, 12, 12, 12, 12, 12, 1]), "reproduced", "by the last");
        assert_eq!(word([12, 12, 12, 12, 12, 12, 12]), NOT, "none averts");
        assert_eq!(word([12, 1, 12, 12, 12, 12, 12]), NOT, "the null alone");
        assert_eq!(word([1, 1, 12, 12, 12, 12, 12]), NOT, "harm is no contradiction");
        assert_eq!(word([0; 7]), NOT, "nothing to be averted");
        let unseen = judged([12, 12, 1, 12, 12, 12, 12], [12, 12, 12]);
        assert_eq!(unseen.word(), NOT, "the control does not fire");
        assert!(unseen.reason().ends_with("which did not fire"), "{}", unseen.reason());
    }

    /// By hand: t of 11 degrees at 99.8 % is 4.025. Of twelve seeds 9 averted have the mean 0.75 and the deviation 0.452, so the interval
    /// reaches 0.526 to each side; 6 averted 0.5 and 0.607. At 99 %, as of one rate, t is 3.106 and that is 0.468.
    #[test]
    fn intervals_are_of_seeds_and_as_wide_as_25_comparisons_ask_for() {
        assert!((confidence(5) - 0.998).abs() < 1e-12);
        let rate = at(1e-1, &[12, 12, 3, 6, 12, 12, 12]);
        let low = |arm| rate.gap(arm, confidence(5)).unwrap().low;
        assert!((low(2) - (0.75 - 0.526)).abs() < 1e-3, "{}", low(2));
        assert!((low(3) - (0.5 - 0.607)).abs() < 1e-3, "{}", low(3));
        let word = |lost| judged(lost, [12, 12, 0]).word();
        assert_eq!(word([12, 12, 3, 12, 12, 12, 12]), "reproduced");
        assert_eq!(word([12, 12, 6, 12, 12, 12, 12]), NOT);
        let one = at(1e-1, &[12, 12, 6, 12, 12, 12, 12]);
        assert_eq!(judge(&[one], &at(3e-2, &[12, 12, 0])).word(), "reproduced");
    }

    /// Of twelve seeds 11 averted have the mean 0.917 and the deviation 0.289: the interval begins at 0.581.
    #[test]
    fn more_must_be_averted_than_by_the_null() {
        let word = |null| judged([12, null, 1, 12, 12, 12, 12], [12, 12, 0]).word();
        assert_eq!(word(6), "reproduced", "the null averts 0.5");
        assert_eq!(word(3), NOT, "0.75");
    }

    #[test]
    fn runs_are_told_by_rate() {
        let verdict = judged([6, 8, 0, 12, 6, 6, 6], [12, 12, 0]);
        let told = "static MX runs diverge after the change at 1 of 5 rates and steps; by 99.8 % intervals over seeds of the share of diverging runs without less \
                    that with it these avert: none, and these do harm: none; at 1e-1 from step 60 12 of 24 static MX runs diverge; averted and caused \
                    by \"nothing\" 0 and 4: -0.1667 (";
        assert!(verdict.reason().starts_with(told), "{}", verdict.reason());
        assert!(verdict.reason().contains(", by \"fp32_still\" 12 and 0: +0.5000 ("));
        assert!(verdict.reason().contains(", by \"bump\" 0 and 12: -0.5000 ("));
        let harm = judged([0, 0, 0, 11, 0, 0, 0], [12, 12, 0]);
        assert!(
            harm.reason().contains("and these do harm: bump at 1e-1 from step 60;"),
            "{}",
            harm.reason()
        );
    }

    #[test]
    fn the_search_is_large_enough_to_count() {
        let names = |arms: Vec<Arm>| {
            let mut names: Vec<String> = arms.iter().map(Arm::name).collect();
            names.sort();
            names.dedup();
            names
        };
        let setting = Setting::unread(Scale::Medium);
        let rates = rates(&setting);
        assert!(rates.len() >= 5 && rates[rates.len() - 1] >= 99.0 * rates[0]);
        let own = names(Search.arms(&setting));
        // Five rates, eight cells, twelve seeds, two arms and five at each step; the control's eight seeds and three arms.
        assert_eq!(own.len(), 5 * 8 * 12 * (2 + 2 * 5) + 8 * 3);
        let shared = names(d2::Search.arms(&setting));
        let shared = own.iter().filter(|name| shared.contains(name)).count();
        assert_eq!(shared, 5 * 8 * 3 + 8, "static MX of three seeds, and the control's");
        assert!(Search.arms(&Setting::unread(Scale::Small)).is_empty());
        assert!(names(Search.arms(&Setting::unread(Scale::Smoke))).len() <= 15);
    }

    #[test]
    fn recipes_change_and_rates_do_not() {
        let setting = Setting::unread(Scale::Medium);
        let cell = d2::cells(&setting, 1e-1)[0];
        let proxy = &proxies(&setting, cell)[0];
        let of = |name| arm(&setting, proxy, cell.format, name, 60).config;
        let fixed = of("static MX");
        assert!(fixed.at.is_empty());
        for name in &ARMS[FIRST..] {
            let changed = of(name);
            assert_eq!(changed.at.len(), 1, "{name}");
            assert_eq!(changed.at[0].step, 60);
            assert_eq!(crate::train::config::Config { at: Vec::new(), ..changed }, fixed);
        }
        let null = of(NULL);
        assert_eq!((null.train.lr, null.train.lr_min), (raised(1e-1), raised(1e-1)));
        assert!(null.at.is_empty() && null.recipe == fixed.recipe);
    }
}
