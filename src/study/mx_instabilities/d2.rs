//! D2: the search behind D1, for a learning rate at which a change of precision by trigger saves runs and costs less than one
//! at a fixed step.
//!
//! D1 asks in one setting that was chosen by hand. Here its five arms are trained over rates, depths, gains at the start and
//! formats. The best of many cells is found by chance, so all runs of a rate count together, and intervals are as wide as so
//! many rates and triggers ask for. Each trigger has a control, runs that break in the middle and that it can save by construction: where
//! the same rule does not see that, finding nothing says nothing.

use super::appc;
use super::common::{Proxy, later, proxy_fate, seeds, text};
use super::d1::{ARMS, Outcome, changing, table};
use super::judge::controlled;
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::differences;
use crate::study::finding::{Figure, Findings, Part, Verdict};
use crate::study::statistics::wilson;
use crate::study::store::Runs;

/// D2.
pub(super) struct Search;

/// The triggers among the arms, and what texts call them.
const TRIGGERS: [(usize, &str); 2] = [(2, "the last bin"), (3, "the gradient norm")];
/// What legends call the arms.
const LEGEND: [&str; ARMS.len()] =
    ["static MX", "fixed step", "by last bin", "by gradient norm", "bf16"];
/// What breaks in the middle of the runs that stand as the triggers' controls.
const CONTROLS: [&str; TRIGGERS.len()] = [
    "whose gains have been pulled into the last bin when their weights break",
    "whose gradients break",
];

/// What the five arms came to.
type Outcomes = [Outcome; ARMS.len()];

/// What runs of some seeds have in common but for the arm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) lr: f64,
    pub(super) layers: usize,
    pub(super) gain: f64,
    pub(super) format: &'static str,
}

/// The learning rates.
fn rates(setting: &Setting) -> Vec<f64> {
    setting.scale.pick([
        vec![1e-2],
        vec![3e-3, 1e-2, 3e-2, 6e-2, 1e-1, 1.7e-1, 3e-1],
        vec![3e-3, 1e-2, 3e-2, 6e-2, 1e-1, 1.7e-1, 3e-1],
        vec![1e-5, 5e-5, 1e-4, 5e-4, 1e-3],
    ])
}

fn formats(setting: &Setting) -> &'static [&'static str] {
    match setting.scale {
        Scale::Smoke => &["e2m1"],
        Scale::Small | Scale::Medium | Scale::Full => &["e2m1", "e4m3"],
    }
}

/// All cells of a rate.
pub(super) fn cells(setting: &Setting, lr: f64) -> Vec<Cell> {
    let scale = setting.scale;
    let depths = scale.pick([vec![2], vec![2, 4], vec![2, 4], vec![4, 8]]);
    let gains = scale.pick([vec![0.95], vec![1.0, 0.95], vec![1.0, 0.95], vec![1.0, 0.95]]);
    let formats = formats(setting);
    let mut cells = Vec::new();
    for &layers in &depths {
        for &gain in &gains {
            cells.extend(formats.iter().map(|&format| Cell { lr, layers, gain, format }));
        }
    }
    cells
}

fn steps(setting: &Setting) -> u64 {
    setting.scale.pick([10, 300, 300, 7000])
}

/// The step at which the second arm changes, and the last of the warm-up: the rate is at its largest from there on, and
/// a user knows it before the run. D1's was chosen knowing when runs diverge.
pub(super) fn fixed(setting: &Setting) -> u64 {
    steps(setting) / 5
}

impl Cell {
    pub(super) fn proxy(self, setting: &Setting, seed: u64) -> Proxy {
        let Self { lr, layers, gain, format } = self;
        let (width, batch) = setting.scale.pick([(32, 32), (32, 64), (32, 64), (512, 2048)]);
        let spread = if gain < 1.0 { 0.02 } else { 0.0 };
        Proxy {
            recipe: text(format),
            layers,
            width,
            batch,
            steps: steps(setting),
            lr,
            seed,
            gain: (gain, spread),
            more: format!("train.warmup = {}\n", fixed(setting)),
            ..Proxy::of(setting)
        }
    }
}

/// The proxies of a rate: all cells, and their seeds.
fn proxies(setting: &Setting, lr: f64) -> Vec<Proxy> {
    let of = |cell: Cell| seeds(setting, [1, 3, 3, 3]).map(move |seed| cell.proxy(setting, seed));
    cells(setting, lr).into_iter().flat_map(of).collect()
}

/// Runs whose gradients break in the middle, at a rate at which nothing else goes wrong.
pub(super) fn broken_runs(setting: &Setting) -> Vec<Proxy> {
    let rates = rates(setting);
    let lr = rates[1.min(rates.len() - 1)];
    let cell = Cell { gain: 1.0, ..cells(setting, lr)[0] };
    let broken = |seed| Proxy { recipe: appc::unscaled(), ..cell.proxy(setting, seed) };
    seeds(setting, [1, 8, 8, 3]).map(broken).collect()
}

/// Runs whose weights break in the middle, rounded to E2M1 without a scale, after decay has pulled the gains from 1.05 into the last bin. That
/// they are there is not why weights break: a trigger is to be seen that fires in time, not a mechanism. The rate is the lowest, as
/// at larger ones each gain's own steps scatter them.
fn clamped_runs(setting: &Setting) -> Vec<Proxy> {
    let lr = rates(setting)[0];
    let cell = Cell { gain: 1.0, ..cells(setting, lr)[0] };
    // Over the run, had nothing else moved them, gains would come to 0.44 of what they were.
    let decay = 0.9 / (lr * steps(setting) as f64);
    let clamped = |seed| {
        let proxy = cell.proxy(setting, seed);
        Proxy {
            recipe: format!("{}+from50%:forward:weight=e2m1", text("e4m3")),
            gain: (1.05, 0.0),
            more: format!("{}train.weight_decay = {decay:?}\ntrain.decay = \"all\"\n", proxy.more),
            ..proxy
        }
    };
    seeds(setting, [1, 8, 8, 3]).map(clamped).collect()
}

/// The runs that are the triggers' controls.
fn controls(setting: &Setting) -> [Vec<Proxy>; TRIGGERS.len()] {
    [clamped_runs(setting), broken_runs(setting)]
}

/// The five arms of each proxy, proxy by proxy.
fn arms_of<'a>(setting: &'a Setting, proxies: &'a [Proxy]) -> impl Iterator<Item = Arm> + 'a {
    let of =
        move |proxy| (0..ARMS.len()).map(move |arm| changing(setting, proxy, fixed(setting), arm));
    proxies.iter().flat_map(of)
}

/// What became of them.
fn outcomes(setting: &Setting, runs: &Runs<'_>, proxies: &[Proxy]) -> Result<Outcomes> {
    let mut outcomes = Outcomes::default();
    for (arm, index) in arms_of(setting, proxies).zip((0..ARMS.len()).cycle()) {
        outcomes[index].push(&proxy_fate(runs, &arm)?, index);
    }
    Ok(outcomes)
}

/// The confidence of each interval if those of so many rates and both triggers are to hold together at 95 %.
fn confidence(rates: usize) -> f64 {
    differences::confidence(rates * TRIGGERS.len())
}

/// `12 of 24 static MX runs diverge; the fixed step saves 7 and loses 2 others in 80 % of the steps, ...`
fn words(outcomes: &Outcomes) -> String {
    let [fixed, at, ..] = outcomes;
    let mut text = format!(
        "{} of {} static MX runs diverge, the fixed step saves {} and loses {} others in {:.0} % of the steps",
        fixed.lost(),
        fixed.diverged.len(),
        at.saved(fixed),
        at.broken(fixed),
        at.percent()
    );
    for (arm, name) in TRIGGERS {
        let trigger = &outcomes[arm];
        let (saved, broken) = (trigger.saved(fixed), trigger.broken(fixed));
        text += &format!(", {name} {saved} and {broken} in {:.0} %", trigger.percent());
    }
    text
}

/// Whether some trigger pays at some rate, told only if each does by the same rule in its control.
fn judge(found: &[(f64, Outcomes)], controls: &[Outcomes; TRIGGERS.len()]) -> Verdict {
    let confidence = confidence(found.len());
    let pays = |outcomes: &Outcomes, arm: usize| {
        outcomes[arm].pays(&outcomes[0], &outcomes[1], confidence)
    };
    let (mut hits, mut told) = (Vec::new(), Vec::new());
    for (lr, outcomes) in found {
        let own = TRIGGERS.iter().filter(|(arm, _)| pays(outcomes, *arm));
        hits.extend(own.map(|(_, name)| format!("{name} at {lr:e}")));
        // Where no run of any arm is lost there is nothing to tell.
        if outcomes.iter().any(|outcome| outcome.lost() > 0) {
            told.push(format!("; at {lr:e} {}", words(outcomes)));
        }
    }
    let text = format!(
        "static MX runs diverge at {} of {} rates; by {:.1} % intervals a trigger pays at {}{}",
        found.iter().filter(|(_, outcomes)| outcomes[0].lost() > 0).count(),
        found.len(),
        100.0 * confidence,
        if hits.is_empty() { "no rate".to_owned() } else { hits.join(", ") },
        told.concat()
    );
    let verdict = Verdict::of(!hits.is_empty(), false, text);
    let each = || controls.iter().zip(TRIGGERS).zip(CONTROLS);
    let told: Vec<String> = each()
        .map(|((control, (arm, name)), what)| {
            let pays = if pays(control, arm) { "pays" } else { "does not pay" };
            format!("of runs {what} {}: {name} {pays}", words(control))
        })
        .collect();
    let fires = each().all(|((control, (arm, _)), _)| pays(control, arm));
    controlled(fires, &told.join("; "), verdict)
}

/// Shares of diverged runs by rate.
fn picture(setting: &Setting, found: &[(f64, Outcomes)]) -> plot::Figure {
    let mut panel = Panel::new(Axis::linear("share of diverged runs").range(0.0, 1.0));
    for (index, name) in LEGEND.iter().enumerate() {
        // A run in bfloat16 stands beside those of each format: counted so often its interval would be too narrow.
        let copies = if index == ARMS.len() - 1 { formats(setting).len() } else { 1 };
        let share = |(x, (_, outcomes)): (usize, &(f64, Outcomes))| {
            let (lost, all) = (outcomes[index].lost(), outcomes[index].diverged.len());
            let interval = wilson((lost / copies) as u64, (all / copies) as u64, 0.95)?;
            Some((x as f64, interval.low, interval.estimate, interval.high))
        };
        let points: Vec<_> = found.iter().enumerate().filter_map(share).collect();
        panel = panel.intervals(Intervals::new(*name, points));
    }
    plot::Figure::new("Diverged runs by learning rate and change to bfloat16")
        .subtitle("over depths, gains at the start, formats and seeds; 95 % intervals (Wilson)")
        .x(Axis::categories("learning rate", found.iter().map(|(lr, _)| format!("{lr:e}"))))
        .panel(panel)
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        "D2"
    }

    fn title(&self) -> &'static str {
        "changing precision by trigger: the search"
    }

    fn source(&self) -> &'static str {
        "a question of our own, behind D1"
    }

    fn claim(&self) -> &'static str {
        "There is a learning rate at which a rule that changes to bfloat16 when a diagnostic asks for it saves runs with less time \
         in high precision than a change at a fixed step. Searched over seven rates in two decades (at medium), two depths, gains that begin at 1 and inside the \
         last bin, E2M1 and E4M3. Reproduced if at some rate, over all its runs, with some trigger fewer diverge than in static MX and the share of \
         steps in high precision is below that of the fixed step (intervals of paired differences at 95 % for all rates and triggers together, so \
         99.6 % each of fourteen). The fixed step is the end of the warm-up, which is known before a run. Each trigger has a control that it must be seen to save by \
         the same rule: that by the gradient norm runs whose gradients are rounded to E3M2 without a scale from the middle on, that by the last bin runs whose \
         gains weight decay pulls into it and whose weights are rounded to E2M1 without a scale from the middle on."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        if later(setting).is_some() {
            return Vec::new();
        }
        let mut all = controls(setting).concat();
        all.extend(rates(setting).into_iter().flat_map(|lr| proxies(setting, lr)));
        arms_of(setting, &all).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if let Some(findings) = later(setting) {
            return Ok(findings);
        }
        let of_rate = |lr| Ok((lr, outcomes(setting, runs, &proxies(setting, lr))?));
        let found: Vec<(f64, Outcomes)> =
            rates(setting).into_iter().map(of_rate).collect::<Result<_>>()?;
        let [clamped, broken] = controls(setting).map(|of| outcomes(setting, runs, &of));
        let controls = [clamped?, broken?];
        let mut parts = vec![Part::Picture(picture(setting, &found))];
        let rest = "means over runs: the final loss (mean squared error, a diverged run counted at most as its loss before training) \
                    and the share of the steps in bfloat16; runs saved and lost anew are beside static MX; \
                    a run in bfloat16 throughout counts for each format";
        for (lr, outcomes) in &found {
            parts.push(Part::Table(table(&format!("rate {lr:e}; {rest}"), outcomes)));
        }
        for ((control, (_, name)), what) in controls.iter().zip(TRIGGERS).zip(CONTROLS) {
            let caption = format!("the control of {name}, runs {what} in the middle; {rest}");
            parts.push(Part::Table(table(&caption, control)));
        }
        Ok(Findings { verdict: judge(&found, &controls), parts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 24 runs the first `lost` diverge; shares scatter a little, as those of triggers do.
    fn outcome(lost: usize, share: f64) -> Outcome {
        Outcome {
            losses: vec![0.1; 24],
            shares: (0..24).map(|run| share + 0.01 * f64::from(run % 3)).collect(),
            diverged: (0..24).map(|run| run < lost).collect(),
        }
    }

    /// Half of static MX diverges, the fixed step saves all, and the gradient norm all in less time.
    fn saved() -> Outcomes {
        let [fixed, at, high] = [outcome(12, 0.0), outcome(0, 0.8), outcome(0, 1.0)];
        [fixed, at, outcome(12, 0.0), outcome(0, 0.4), high]
    }

    /// Nothing diverges.
    fn calm() -> Outcomes {
        [0.0, 0.8, 0.0, 0.0, 1.0].map(|share| outcome(0, share))
    }

    /// The triggers' controls, each saved by its own.
    fn both() -> [Outcomes; 2] {
        let mut clamped = saved();
        clamped.swap(2, 3);
        [clamped, saved()]
    }

    const NOT: &str = "not seen at this scale";

    /// The verdict on one rate of five at which something happens.
    fn judged(rate: Outcomes, controls: [Outcomes; 2]) -> Verdict {
        let rates = [3e-3, 1e-2, 3e-2, 1e-1, 3e-1];
        let of = |lr: f64| (lr, if lr == 3e-2 { rate.clone() } else { calm() });
        judge(&rates.map(of), &controls)
    }

    #[test]
    fn each_part_can_fail() {
        let word = |change: fn(&mut Outcomes)| {
            let mut rate = saved();
            change(&mut rate);
            judged(rate, both()).word()
        };
        assert_eq!(word(|_| {}), "reproduced");
        assert_eq!(word(|arms| arms.swap(2, 3)), "reproduced", "by the other trigger");
        assert_eq!(word(|arms| arms[3] = outcome(0, 0.8)), NOT, "as long as the fixed step");
        assert_eq!(word(|arms| arms[3] = outcome(12, 0.4)), NOT, "saves nothing");
        assert_eq!(word(|arms| arms[3] = outcome(20, 0.4)), NOT, "does harm: no contradiction");
        assert_eq!(word(|arms| *arms = calm()), NOT, "nothing to be saved");
        let [clamped, broken] = both();
        for controls in [[clamped.clone(), calm()], [calm(), broken.clone()], [broken, clamped]] {
            let unseen = judged(saved(), controls);
            assert_eq!(unseen.word(), NOT, "a control does not fire");
            assert!(unseen.reason().ends_with("which did not fire"), "{}", unseen.reason());
        }
    }

    #[test]
    fn intervals_are_as_wide_as_ten_comparisons_ask_for() {
        assert!((confidence(5) - 0.995).abs() < 1e-12);
        // Of 24 runs 5 are saved: the interval of the share excludes 0 at 95 % and not at 99.5 %.
        let mut rate = saved();
        rate[3] = outcome(7, 0.4);
        assert!(rate[3].pays(&rate[0], &rate[1], 0.95));
        assert_eq!(judged(rate.clone(), both()).word(), NOT);
        // At one rate there are two comparisons: 97.5 %.
        assert_eq!(judge(&[(3e-2, rate)], &both()).word(), "reproduced");
    }

    #[test]
    fn only_rates_at_which_runs_are_lost_are_told() {
        let verdict = judged(saved(), both());
        let told = "static MX runs diverge at 1 of 5 rates; by 99.5 % intervals a trigger pays at the gradient norm at 3e-2; \
                    at 3e-2 12 of 24 static MX runs diverge, the fixed step saves 12 and loses 0 others in 81 % of the steps, \
                    the last bin 0 and 0 in 1 %, the gradient norm 12 and 0 in 41 %; positive control: of runs";
        assert!(verdict.reason().starts_with(told), "{}", verdict.reason());
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
        let of_rate = |lr: &f64| names(arms_of(&setting, &proxies(&setting, *lr)).collect());
        let searched: Vec<usize> = rates.iter().map(|lr| of_rate(lr).len()).collect();
        // bfloat16 throughout is the same run for both formats.
        assert_eq!(searched, [8 * 3 * 4 + 4 * 3; 7]);
        let all = names(Search.arms(&setting));
        let control = names(arms_of(&setting, &controls(&setting).concat()).collect());
        assert_eq!(control.len(), 2 * 8 * 5);
        assert!(control.iter().all(|name| all.contains(name)));
        assert!(all.len() >= 200, "{}", all.len());
        assert!(Search.arms(&Setting::unread(Scale::Small)).is_empty());
        assert!(Search.arms(&Setting::unread(Scale::Smoke)).len() <= 15);
    }
}
