//! What the figures of this study share: the models and how they are trained, gaps of recipes over paired
//! seeds, and what of it counts as a claim that holds.
//!
//! Most figures read one set of runs, [`main`]: both kinds of attention, trained alike, with the probes that
//! any figure asks of them. Ablations of recipes that need more runs are [`short`].

use crate::error::{Error, Result};
use crate::nn::site::{Operand, Product, Site};
use crate::plot::{self, Axis, Band, Intervals, Panel, Series, smooth};
use crate::recipe::Plan;
use crate::study::arm::{Arm, Setting};
use crate::study::finding::{Findings, Part, Table, Verdict};
use crate::study::statistics::{Interval, mann_kendall, mean, mean_interval, paired_interval};
use crate::study::store::{Runs, Trained};
use crate::study::table::gap_percent;
use crate::train::checkpoint;
use crate::train::config::Config;
use crate::train::data::{DataOptions, Dataset};
use crate::train::probe::Line;
use crate::train::trainer::Trainer;

/// The baseline: operands and outputs of linear operators in bfloat16.
pub(super) const BF16: &str = "bf16+out=bf16";

/// The inputs that linear operators do not share: one operator of each.
pub(super) const INPUTS: [&str; 4] = ["q_proj", "o_proj", "gate_proj", "down_proj"];

/// How tokens are mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Gated linear attention.
    Gla,
    /// Softmax attention.
    Sa,
}

impl Kind {
    /// Both.
    pub(super) const ALL: [Self; 2] = [Self::Gla, Self::Sa];

    /// What pictures call it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Gla => "GLA",
            Self::Sa => "SA",
        }
    }

    /// The preset and what is changed of its model.
    fn model(self, setting: &Setting) -> (&'static str, &'static str) {
        let tiny = "model.layers = 2\nmodel.d_model = 64\nmodel.hidden = 192\nmodel.heads = 2\n\
                    model.kv_heads = 2\nmodel.context = 64\nmodel.sink = true\n";
        let sink = "model.sink = true\n";
        match self {
            Self::Gla => setting.scale.pick([
                ("gla-nano", sink),
                ("gla-micro", sink),
                ("gla-micro", sink),
                ("gla-1.3b", ""),
            ]),
            Self::Sa => setting.scale.pick([
                ("sa-micro", tiny),
                ("sa-micro", sink),
                ("sa-micro", sink),
                ("qwen3-1.7b", ""),
            ]),
        }
    }
}

/// Steps of the runs that most figures read; 60 G tokens in batches of 4 M are 14 305.
pub(super) fn steps(setting: &Setting) -> u64 {
    setting.scale.pick([10, 1500, 1500, 14_305])
}

/// Steps of the ablations.
pub(super) fn short_steps(setting: &Setting) -> u64 {
    setting.scale.pick([10, 600, 600, 14_305])
}

/// The seeds of paired runs.
pub(super) fn seeds(setting: &Setting, most: u64) -> Vec<u64> {
    (1..=setting.scale.pick([1, most, most, 1])).collect()
}

/// A run from the beginning.
fn arm(setting: &Setting, kind: Kind, recipe: &str, seed: u64, steps: u64) -> Arm {
    let (preset, model) = kind.model(setting);
    let batch = setting.scale.pick([2, 4, 4, 2048]);
    let lr = setting.scale.pick([2e-3, 2e-3, 2e-3, 3e-4]);
    let accumulate = setting.scale.pick([1, 1, 1, 256]);
    let changes = format!(
        "{model}recipe = \"{recipe}\"\nseed = {seed}\ntrain.steps = {steps}\ntrain.warmup = {}\n\
         train.batch = {batch}\ntrain.accumulate = {accumulate}\ntrain.lr = {lr:?}\ntrain.lr_min = {:?}\n\
         train.schedule = \"wsd\"\nrecord.eval_every = 0\nrecord.checkpoint_every = 0\nrecord.keep = 1\n\
         record.eval_windows = {}",
        steps / 20,
        lr / 10.0,
        setting.scale.pick([4, 64, 64, 256]),
    );
    Arm::new(setting.config(preset, &changes))
}

/// The same with some keys changed, as TOML.
///
/// # Panics
/// If there is no such key: a study's own mistake, which the test of all plans finds.
pub(super) fn changed(mut arm: Arm, changes: &str) -> Arm {
    let made = arm.config.overlaid(changes).and_then(|config| config.validate().map(|()| config));
    arm.config = match made {
        Ok(config) => config,
        Err(error) => panic!("a study's configuration {changes:?}: {error}"),
    };
    arm
}

/// Which probes a run of [`main`] has: what figures ask of it, of three seeds.
fn probes(kind: Kind, recipe: &str, seed: u64) -> &'static str {
    match (kind, recipe, seed) {
        (Kind::Gla, BF16, ..=3) => r#"["kurtosis", "spikes", "channels", "gates", "swiglu"]"#,
        (Kind::Gla, "nv-nvfp4", ..=3) => {
            r#"["kurtosis", "spikes", "hot", "rounding", "channels", "gates"]"#
        }
        (Kind::Gla, "nv-nvfp4" | "chon", _) => r#"["rounding"]"#,
        (Kind::Sa, BF16, ..=3) => r#"["kurtosis", "spikes", "channels", "attention", "swiglu"]"#,
        (Kind::Sa, "nv-nvfp4", ..=3) => r#"["kurtosis", "spikes", "hot"]"#,
        _ => "[]",
    }
}

/// A run that several figures read. Those of bfloat16 keep the checkpoint that sensitivities branch off
/// from, those of NVFP4 the ones from which precision is raised.
pub(super) fn main(setting: &Setting, kind: Kind, recipe: &str, seed: u64) -> Arm {
    let steps = steps(setting);
    let every = setting.scale.pick([5, 20, 20, 200]);
    let probes = probes(kind, recipe, seed);
    let changes = format!("record.probes = {probes}\nrecord.probe_every = {every}");
    let arm = changed(arm(setting, kind, recipe, seed, steps), &changes);
    match recipe {
        BF16 => arm.keeping(&[steps / 2]),
        "nv-nvfp4" if kind == Kind::Gla => {
            arm.keeping(&[steps * 60 / 100, steps * 80 / 100, steps * 95 / 100])
        }
        _ => arm,
    }
}

/// A run of an ablation, without probes.
pub(super) fn short(setting: &Setting, kind: Kind, recipe: &str, seed: u64) -> Arm {
    arm(setting, kind, recipe, seed, short_steps(setting))
}

/// The text of the study.
pub(super) fn data(setting: &Setting) -> Result<Dataset> {
    Dataset::load(setting.source(), &DataOptions::default())
        .map_err(|error| Error::new(error.to_string()))
}

/// A configuration under another recipe.
pub(super) fn under(config: &Config, recipe: &str) -> Result<Config> {
    config.overlaid(&format!("recipe = \"{recipe}\""))
}

/// The names of the operators whose forward inputs a recipe rounds to eight bits or fewer at first.
pub(super) fn quantized(config: &Config) -> Result<Vec<String>> {
    let layout = config.model.layout();
    let plan = Plan::new(&config.recipe, &layout, config.train.steps)
        .map_err(|error| Error::new(error.to_string()))?;
    let few = |site: Site| plan.operand(0, site, Product::Forward, Operand::Input).bits() <= 8;
    let sites = plan.linears().iter().map(|linear| linear.site);
    Ok(sites.filter(|&site| few(site)).map(|site| site.to_string()).collect())
}

/// A complete run as it would go on.
pub(super) fn resumed<'a>(
    run: &Trained,
    config: &'a Config,
    data: &'a Dataset,
) -> Result<Trainer<'a>> {
    let mut trainer = Trainer::new(config, data)?;
    let folder = run.folder.checkpoints();
    let newest = checkpoint::list(&folder)?
        .last()
        .copied()
        .ok_or_else(|| Error::new(format!("{} has no checkpoint", run.folder.path().display())))?;
    let (state, progress) =
        checkpoint::load(&checkpoint::path(&folder, newest), &config.model.layout())?;
    trainer.restore(state, progress);
    Ok(trainer)
}

/// Whether a criterion holds (`true`), its opposite does, or neither, with the numbers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Claim {
    pub(super) holds: Option<bool>,
    pub(super) text: String,
}

/// What an interval says of an estimate that should lie above `bound`.
fn side(found: Option<Interval>, bound: f64, above: bool) -> Option<bool> {
    let found = found?;
    let (over, under) = (found.low > bound, found.high < bound);
    match (over, under) {
        (true, _) => Some(above),
        (_, true) => Some(!above),
        _ => None,
    }
}

/// `estimate [low, high]`, signed or not.
pub(super) fn interval(found: Option<Interval>) -> String {
    match found {
        Some(Interval { estimate, low, high }) => {
            format!("{estimate:+.3} [{low:+.3}, {high:+.3}]")
        }
        None => "no interval".into(),
    }
}

impl Claim {
    /// That `a` is below `b`, pair by pair; `unit` follows the numbers.
    pub(super) fn below(a: (&str, &[f64]), b: (&str, &[f64]), unit: &str) -> Self {
        let found = paired_interval(a.1, b.1, 0.95);
        let text = match found {
            Some(_) => {
                format!("{} less {}: {}{unit}, {} pairs", a.0, b.0, interval(found), a.1.len())
            }
            None => {
                let values = |values: &[f64]| {
                    values.iter().map(|x| format!("{x:.3}")).collect::<Vec<_>>().join(", ")
                };
                let (a_values, b_values) = (values(a.1), values(b.1));
                format!("{} {a_values}{unit}, {} {b_values}: no interval", a.0, b.0)
            }
        };
        Self { holds: side(found, 0.0, false), text }
    }

    /// That the mean of the values is above a bound.
    pub(super) fn above(what: &str, values: &[f64], bound: f64, unit: &str) -> Self {
        let found = mean_interval(values, 0.95);
        let shown = match (found, mean(values)) {
            (Some(Interval { estimate, low, high }), _) => {
                format!("{estimate:.3} [{low:.3}, {high:.3}]")
            }
            (None, Some(mean)) => format!("{mean:.3} (one value)"),
            (None, None) => "not measured".into(),
        };
        Self {
            holds: side(found, bound, true),
            text: format!("{what}: {shown}{unit} against {bound}"),
        }
    }

    /// That the mean of the values is under a bound.
    pub(super) fn under(what: &str, values: &[f64], bound: f64, unit: &str) -> Self {
        let Self { holds, text } = Self::above(what, values, bound, unit);
        Self { holds: holds.map(|above| !above), text }
    }

    /// That all series rise by the test of Mann and Kendall at 5 %.
    pub(super) fn rising(what: &str, series: &[Vec<(f64, f64)>]) -> Self {
        let trend = |series: &Vec<(f64, f64)>| {
            mann_kendall(&series.iter().map(|&(_, y)| y).collect::<Vec<_>>())
        };
        let trends: Vec<_> = series.iter().filter_map(trend).collect();
        let all = !trends.is_empty() && trends.len() == series.len();
        let holds = match all {
            true if trends.iter().all(|t| t.p_rising < 0.05) => Some(true),
            true if trends.iter().all(|t| t.p_falling < 0.05) => Some(false),
            _ => None,
        };
        let taus: Vec<String> = trends.iter().map(|t| format!("{:+.2}", t.tau)).collect();
        let taus = if taus.is_empty() { "too few points".into() } else { taus.join(", ") };
        Self { holds, text: format!("{what} over time, Kendall's tau by seed: {taus}") }
    }

    /// The opposite claim.
    pub(super) fn not(self) -> Self {
        Self { holds: self.holds.map(|holds| !holds), ..self }
    }
}

/// Reproduced if all claims hold, contradicted if the opposite of one does.
pub(super) fn verdict(claims: &[Claim]) -> Verdict {
    let text = claims.iter().map(|claim| claim.text.as_str()).collect::<Vec<_>>().join("; ");
    if claims.iter().any(|claim| claim.holds == Some(false)) {
        Verdict::Contradicted(text)
    } else if !claims.is_empty() && claims.iter().all(|claim| claim.holds == Some(true)) {
        Verdict::Reproduced(text)
    } else {
        Verdict::NotSeen(text)
    }
}

/// What a figure shows whose runs are not made at this scale.
pub(super) fn later() -> Findings {
    let verdict = Verdict::Shown("its runs belong to the scale medium".into());
    Findings { verdict, parts: Vec::new() }
}

/// The mean over those parts of a line whose names are picked.
pub(super) fn parts_mean(line: &Line, pick: impl Fn(&str) -> bool) -> Option<f64> {
    let picked = line.values.parts.iter().filter(|(name, _)| pick(name));
    mean(&picked.filter_map(|(_, value)| value.number()).collect::<Vec<_>>())
}

/// Steps and means over the picked parts of a probe.
pub(super) fn series(
    trained: &Trained,
    probe: &str,
    pick: impl Fn(&str) -> bool,
) -> Result<Vec<(f64, f64)>> {
    let lines = trained.probe(probe)?;
    let point = |line: &Line| Some((line.step as f64, parts_mean(line, &pick)?));
    Ok(lines.iter().filter_map(point).collect())
}

/// The mean of the points in the last part of the steps, from `share` of the last step on.
pub(super) fn late(series: &[(f64, f64)], share: f64) -> f64 {
    let last = series.last().map_or(0.0, |&(step, _)| step);
    let points = series.iter().filter(|(step, _)| *step >= share * last);
    mean(&points.map(|&(_, y)| y).collect::<Vec<_>>()).unwrap_or(f64::NAN)
}

/// Adds the mean over seeds as a line, and between which values the seeds lie as a band.
pub(super) fn draw(panel: Panel, name: &str, seeds: &[Vec<(f64, f64)>]) -> Panel {
    let count = seeds.iter().map(Vec::len).min().unwrap_or(0);
    let at = |i: usize| seeds.iter().map(move |one| one[i].1);
    let x = |i: usize| seeds[0][i].0;
    let line = (0..count).map(|i| (x(i), at(i).sum::<f64>() / seeds.len() as f64));
    let line: Vec<(f64, f64)> = line.collect();
    let note = line.last().map_or_else(String::new, |&(_, y)| number(y));
    let panel = match seeds.len() {
        0 | 1 => panel,
        _ => panel.band(Band::new(
            name,
            (0..count).map(|i| {
                (x(i), at(i).fold(f64::INFINITY, f64::min), at(i).fold(f64::NEG_INFINITY, f64::max))
            }),
        )),
    };
    panel.line(Series::new(name, line).note(note))
}

/// A number of a picture or table, three significant digits or so.
pub(super) fn number(y: f64) -> String {
    match y.abs() {
        _ if !y.is_finite() => "-".into(),
        a if a >= 100.0 => format!("{y:.0}"),
        a if a >= 10.0 => format!("{y:.1}"),
        a if a >= 0.1 || a == 0.0 => format!("{y:.2}"),
        a if a >= 0.001 => format!("{y:.4}"),
        _ => format!("{y:.1e}"),
    }
}

/// The mean and where the seeds lie: `0.52 (0.49 to 0.55)`.
pub(super) fn spread(values: &[f64]) -> String {
    let mean = mean(values).map_or_else(|| "-".into(), number);
    if values.len() < 2 {
        return mean;
    }
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("{mean} ({} to {})", number(low), number(high))
}

/// Recipes beside bfloat16, over paired seeds.
pub(super) struct Recipes<'a> {
    /// What they are called, and their text; without the baseline.
    pub(super) list: Vec<(String, String)>,
    /// The run of a recipe and a seed.
    pub(super) arm: Box<dyn Fn(&str, u64) -> Arm + 'a>,
    pub(super) seeds: Vec<u64>,
}

impl<'a> Recipes<'a> {
    pub(super) fn new(
        list: &[(&str, &str)],
        seeds: Vec<u64>,
        arm: impl Fn(&str, u64) -> Arm + 'a,
    ) -> Self {
        let own = |(name, recipe): &(&str, &str)| ((*name).to_owned(), (*recipe).to_owned());
        Self { list: list.iter().map(own).collect(), arm: Box::new(arm), seeds, baseline: BF16 }
    }

    /// All runs, seed by seed.
    pub(super) fn arms(&self) -> Vec<Arm> {
        let recipes =
            || std::iter::once(BF16).chain(self.list.iter().map(|(_, recipe)| recipe.as_str()));
        let seeds = self.seeds.iter();
        seeds.flat_map(|&seed| recipes().map(move |recipe| (self.arm)(recipe, seed))).collect()
    }

    fn of_seeds<T>(
        &self,
        runs: &Runs<'_>,
        recipe: &str,
        each: impl Fn(&Trained, &Trained) -> T,
    ) -> Result<Vec<T>> {
        let pair = |&seed: &u64| {
            let base = runs.of(&(self.arm)(BF16, seed))?;
            Ok(each(&runs.of(&(self.arm)(recipe, seed))?, &base))
        };
        self.seeds.iter().map(pair).collect()
    }

    /// The gaps in percent, by seed, of each recipe in the order of the list.
    pub(super) fn gaps(&self, runs: &Runs<'_>) -> Result<Vec<Vec<f64>>> {
        let gap = |own: &Trained, base: &Trained| gap_percent(own.tail_loss(), base.tail_loss());
        self.list.iter().map(|(_, recipe)| self.of_seeds(runs, recipe, gap)).collect()
    }

    /// A table of losses and gaps, and a picture of gaps over steps.
    pub(super) fn parts(&self, runs: &Runs<'_>, title: &str, few: &str) -> Result<Vec<Part>> {
        let mut table = Table::new(
            format!(
                "gap to bfloat16 in percent of the training loss of the last tenth (mean and 95 % \
                 interval over {}), by seed, and of the validation loss",
                of_seeds(self.seeds.len())
            ),
            &["recipe", "gap, %", "by seed, %", "validation, %"],
        );
        let gaps = self.gaps(runs)?;
        let mut panel = Panel::new(Axis::linear("gap to bfloat16, %"));
        let names: Vec<&str> = self.list.iter().map(|(name, _)| name.as_str()).collect();
        let ends = plot::Figure::new(format!("{title}: at the end"))
            .subtitle(format!("{few}; mean and 95 % interval over seeds, and each seed"))
            .x(Axis::categories("", names))
            .panel(intervals("gap to bfloat16, %", &gaps).rule(0.0, "bfloat16"));
        for ((name, recipe), gaps) in self.list.iter().zip(gaps) {
            let validation = self.of_seeds(runs, recipe, |own, base| {
                let of = |run: &Trained| run.summary.val_loss.unwrap_or(f64::INFINITY);
                gap_percent(of(own), of(base))
            })?;
            let found = mean_interval(&gaps, 0.95);
            let shown = match found {
                Some(_) => interval(found),
                None => gaps.first().map_or_else(|| "-".into(), |gap| format!("{gap:+.3}")),
            };
            let list = gaps.iter().map(|gap| format!("{gap:+.2}")).collect::<Vec<_>>().join(" ");
            table.row([name.clone(), shown, list, spread(&validation)]);
            panel = draw(panel, name, &self.of_seeds(runs, recipe, curve)?);
        }
        // More curves than these cannot be told apart.
        let few_enough = self.list.len() <= 5;
        let figure = plot::Figure::new(title)
            .subtitle(format!("{few}; smoothed; bands: from the lowest to the highest seed"))
            .x(Axis::linear("step"))
            .panel(panel.rule(0.0, "bfloat16"));
        let curves = few_enough.then_some(Part::Picture(figure));
        Ok(curves.into_iter().chain([Part::Picture(ends), Part::Table(table)]).collect())
    }
}

/// A panel over categories: means with their intervals, and the values of the seeds.
pub(super) fn intervals(label: &str, values: &[Vec<f64>]) -> Panel {
    let at = || (0..).map(f64::from).zip(values);
    let found = at().filter_map(|(x, values)| {
        let found = mean_interval(values, 0.95);
        let Interval { estimate, low, high } = match (found, mean(values)) {
            (Some(found), _) => found,
            (None, Some(mean)) => Interval { estimate: mean, low: mean, high: mean },
            (None, None) => return None,
        };
        Some((x, low, estimate, high))
    });
    let each = at().flat_map(|(x, values)| values.iter().map(move |&y| (x, y)));
    Panel::new(Axis::linear(label))
        .intervals(Intervals::new("mean", found))
        .points(Series::new("seeds", each))
}

/// `1 seed`, `5 seeds`.
pub(super) fn of_seeds(count: usize) -> String {
    format!("{count} seed{}", if count == 1 { "" } else { "s" })
}

/// The gap in percent of smoothed losses, step by step.
fn curve(own: &Trained, base: &Trained) -> Vec<(f64, f64)> {
    let calm = |run: &Trained| {
        let losses = run.losses();
        let values: Vec<f64> = losses.iter().map(|&(_, y)| y).collect();
        let horizon = (values.len() as f64 / 20.0).max(1.0);
        smooth(&values, |i| (i as f64 / 5.0).clamp(1.0, horizon))
    };
    let (a, b) = (calm(own), calm(base));
    let gaps = a.iter().zip(&b).map(|(&a, &b)| gap_percent(a, b));
    let points: Vec<(f64, f64)> = (1..).map(f64::from).zip(gaps).collect();
    // The first steps only tell how fast a loss falls from where both begin.
    let first = points.len() / 20;
    points[first..].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(claims: &[Claim]) -> &'static str {
        verdict(claims).word()
    }

    #[test]
    fn orderings_are_judged_by_the_paired_interval() {
        let (low, high) = ([0.5, 0.6, 0.4, 0.5, 0.55], [0.9, 1.1, 0.8, 1.0, 0.9]);
        let noisy = [0.1, 1.2, 0.4, 0.9, 0.2];
        let below = |a: &[f64], b: &[f64]| Claim::below(("a", a), ("b", b), " %");
        assert_eq!(word(&[below(&low, &high)]), "reproduced");
        assert_eq!(word(&[below(&high, &low)]), "contradicted");
        assert_eq!(word(&[below(&low, &noisy)]), "not seen at this scale");
        assert_eq!(word(&[below(&low[..1], &high[..1])]), "not seen at this scale");
        assert_eq!(word(&[below(&low, &high), below(&low, &noisy)]), "not seen at this scale");
        assert_eq!(word(&[below(&low, &high), below(&high, &low)]), "contradicted");
        assert_eq!(word(&[]), "not seen at this scale");
        // A run that diverged has no gap to take the mean of.
        assert_eq!(below(&[f64::INFINITY, 1.0], &[1.0, 2.0]).holds, None);
        assert!(
            below(&low, &high).text.contains("a less b: -0.430"),
            "{}",
            below(&low, &high).text
        );
    }

    #[test]
    fn bounds_and_trends_are_judged() {
        let values = [0.8, 0.82, 0.79];
        assert_eq!(Claim::above("x", &values, 0.7, "").holds, Some(true));
        assert_eq!(Claim::above("x", &values, 0.9, "").holds, Some(false));
        assert_eq!(Claim::above("x", &values, 0.8, "").holds, None);
        assert_eq!(Claim::under("x", &values, 0.9, "").holds, Some(true));
        let rise = |sign: f64| (0..9).map(|i| (f64::from(i), sign * f64::from(i * i))).collect();
        let flat: Vec<(f64, f64)> = (0..9).map(|i| (f64::from(i), f64::from(i % 2))).collect();
        let holds = |series: &[Vec<(f64, f64)>]| Claim::rising("x", series).holds;
        assert_eq!(holds(&[rise(1.0), rise(2.0)]), Some(true));
        assert_eq!(holds(&[rise(-1.0), rise(-2.0)]), Some(false));
        assert_eq!(holds(&[rise(1.0), flat]), None);
        assert_eq!(holds(&[]), None);
        assert_eq!(Claim::rising("x", &[rise(1.0)]).not().holds, Some(false));
    }

    #[test]
    fn the_last_part_is_by_steps() {
        let series = [(100.0, 1.0), (200.0, 5.0), (300.0, 7.0)];
        assert_eq!(late(&series, 2.0 / 3.0), 6.0);
        assert_eq!(late(&series, 0.0), 13.0 / 3.0);
        assert!(late(&[], 0.5).is_nan());
    }
}
