//! BR-15: at which learning rate runs break, by number of bits, where nothing clips their gradients.
//!
//! The paper's models diverge by themselves; small ones do not at any steady rate that the other figures
//! tried, with gradients clipped at norm 1 and without. So here the rate rises from 0 in a straight line to the end of the
//! run, over five ends and two depths, with clipping and without: the search for runs that break, which
//! tell what others cannot, whether fewer bits break earlier and whether sharpness rises before the loss.
//! [`verge`](super::verge) reads single runs.

use super::common::{Fate, Spec, all, fate, number, tails, vocab, with_seeds};
use super::ordering::mean_values;
use super::verge::{self, Verge};
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel, Series};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{Interval, mean, mean_interval};
use crate::study::store::{Runs, Trained};

/// BR-15.
pub(super) struct Ramps;

/// Names and recipes; the first is what others are compared with, the second of fewer bits is judged.
const FORMATS: [(&str, &str); 8] = [
    ("E8M7", "bitred-e8m7"),
    ("E8M5", "bitred-e8m5"),
    ("E8M3", "bitred-e8m3"),
    ("E8M2", "bitred-e8m2"),
    ("E8M1", "bitred-e8m1"),
    ("E8M1 to nearest", "bitred-e8m1+round=rne"),
    ("f32", "f32"),
    ("MXFP4", "mxfp4"),
];
/// The place of E8M3.
const JUDGED: usize = 2;

/// Where the rate ends, the largest last.
fn rates(setting: &Setting) -> &'static [f64] {
    match setting.scale {
        Scale::Smoke => &[4e-1],
        Scale::Small | Scale::Medium => &[4e-3, 1.2e-2, 4e-2, 1.2e-1, 4e-1],
        Scale::Full => &[4e-4, 1.2e-3, 4e-3, 1.2e-2, 4e-2],
    }
}

fn models(setting: &Setting) -> &'static [&'static str] {
    match setting.scale {
        Scale::Smoke => &["nano"],
        Scale::Small | Scale::Medium => &["nano", "deep"],
        Scale::Full => &["llama-120m"],
    }
}

/// Those of the steepest ramps; the grid has the first.
fn seeds(setting: &Setting) -> std::ops::RangeInclusive<u64> {
    1..=setting.scale.pick([1, 6, 16, 3])
}

/// What runs have in common that differ in their numbers only.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cell {
    model: &'static str,
    /// The rate of the last step.
    end: f64,
    clip: bool,
}

fn grid(setting: &Setting) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &model in models(setting) {
        for &end in rates(setting) {
            cells.extend([false, true].map(|clip| Cell { model, end, clip }));
        }
    }
    cells
}

/// The steepest ramp of a model, without clipping.
fn steepest(setting: &Setting, model: &'static str) -> Cell {
    let end = rates(setting).last().copied().unwrap_or(f64::NAN);
    Cell { model, end, clip: false }
}

impl Cell {
    fn arm(self, setting: &Setting, recipe: &str, seed: u64) -> Arm {
        let steps = setting.scale.pick([20, 300, 600, 20_000]);
        let clip = if self.clip { 1.0 } else { 0.0 };
        let mut more = format!("train.clip = {clip:?}\n");
        if setting.scale == Scale::Full {
            more += &format!("train.steps = {steps}\ntrain.warmup = {steps}\n");
        }
        if self == steepest(setting, self.model) {
            let every = (steps / 40).max(1);
            more += &format!("record.probes = [\"phi\"]\nrecord.probe_every = {every}\n");
        }
        let spec =
            Spec { lr: self.end, warmup: 1.0, more, ..Spec::new(self.model, recipe, seed, steps) };
        spec.arm(setting)
    }

    fn of_seeds(self, setting: &Setting, recipe: &str) -> Vec<Arm> {
        seeds(setting).map(|seed| self.arm(setting, recipe, seed)).collect()
    }
}

/// Everything in blocks of E2M1 on a ramp to ten times the largest rate: the detector must fire.
fn positive(setting: &Setting) -> Arm {
    let cell = steepest(setting, models(setting)[0]);
    Cell { end: 10.0 * cell.end, ..cell }.arm(setting, "mxfp4", 1)
}

/// Runs of one number format on the steepest ramp of one model, by seed.
struct Broken {
    format: usize,
    trained: Vec<Trained>,
    verges: Vec<Option<Verge>>,
    /// Logarithms of the steps at which they diverge, which are those of the rates but for a constant; the last step of those that do not.
    steps: Vec<f64>,
    /// The steps that all of them were to have.
    total: f64,
}

impl Broken {
    fn of(setting: &Setting, runs: &Runs<'_>, cell: Cell, format: usize) -> Result<Self> {
        let arms = cell.of_seeds(setting, FORMATS[format].1);
        let trained = all(runs, &arms)?;
        let fates: Vec<Fate> =
            trained.iter().zip(&arms).map(|(run, arm)| fate(run, vocab(arm))).collect();
        let verge = |(run, fate): (&Trained, &Fate)| match fate.verdict.diverged {
            Some(step) => verge::read(run, step).map(Some),
            None => Ok(None),
        };
        let verges = trained.iter().zip(&fates).map(verge).collect::<Result<_>>()?;
        let step =
            |fate: &Fate| libm::log(fate.verdict.diverged.unwrap_or(fate.steps as u64) as f64);
        let steps = fates.iter().map(step).collect();
        let total = arms.first().map_or(f64::NAN, |arm| arm.config.train.steps as f64);
        Ok(Self { format, trained, verges, steps, total })
    }

    fn lost(&self) -> usize {
        self.verges.iter().flatten().count()
    }
}

/// How many times the rate at which E8M7 breaks this format breaks at, by seed, over models: an interval of logarithms.
fn ratio(of: &[&Broken], base: &[&Broken]) -> Option<Interval> {
    let seeds = base.first()?.steps.len();
    let one = |seed: usize| {
        let pairs = of.iter().zip(base);
        let logs: Vec<f64> = pairs.map(|(of, base)| of.steps[seed] - base.steps[seed]).collect();
        mean(&logs)
    };
    mean_interval(&(0..seeds).filter_map(one).collect::<Vec<_>>(), 0.95)
}

/// What the rate ratio of E8M3 and the trends of sharpness say.
fn judge(ratio: Option<Interval>, verges: &[Vec<Verge>]) -> Verdict {
    let (before, text) = verge::judge(verges);
    let Some(found) = ratio else {
        return Verdict::NotSeen(format!("too few seeds for an interval; {text}"));
    };
    let [estimate, low, high] = [found.estimate, found.low, found.high].map(libm::exp);
    let text = format!(
        "on the steepest ramps E8M3 breaks at {estimate:.2} times the rate of E8M7 (95 % {low:.2} to {high:.2}, over \
         models, by seed); {text}"
    );
    let (earlier, later) = (found.high < 0.0, found.low > 0.0);
    let (first, after) = before.map_or((false, false), |x| (x.low > 0.0, x.high < 0.0));
    let none = !earlier && !first;
    Verdict::of(earlier && first, none && (later || after), text)
}

impl Figure for Ramps {
    fn id(&self) -> &'static str {
        "BR-15"
    }

    fn title(&self) -> &'static str {
        "the rate at which runs break, by number of bits"
    }

    fn source(&self) -> &'static str {
        "a question of this study's own: its search for runs that diverge, as those of v1 Fig. 5 to 8 do"
    }

    fn claim(&self) -> &'static str {
        "Fewer mantissa bits break earlier, and sharpness rises before the loss does. The learning rate rises from 0 in \
         a straight line; a run breaks where its smoothed loss stays 0.5 nats above its lowest to the end. Reproduced \
         where, on the steepest ramps without clipping, E8M3 breaks at a lower rate than E8M7 (95 % interval \
         over seeds) and in more of the runs that break sharpness rises than falls over the steps up to the lowest loss, from half of them on (one-sided \
         trend test at 5 % for each run, then an interval over seeds). Contradicted where one of them is the \
         other way round and neither holds. The grid of five rates, two depths and clipping on and off is what was searched; everything in blocks of E2M1 at \
         ten times the largest rate must break."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let mut arms = vec![positive(setting)];
        for cell in grid(setting) {
            arms.extend(FORMATS.iter().map(|(_, recipe)| cell.arm(setting, recipe, 1)));
        }
        for &model in models(setting) {
            let cell = steepest(setting, model);
            arms.extend(FORMATS.iter().flat_map(|(_, recipe)| cell.of_seeds(setting, recipe)));
        }
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        let control = positive(setting);
        let fired = fate(&runs.of(&control)?, vocab(&control)).verdict.diverged;
        let mut parts = Vec::new();
        let mut broken = Vec::new();
        for &model in models(setting) {
            let cell = steepest(setting, model);
            let own = (0..FORMATS.len()).map(|format| Broken::of(setting, runs, cell, format));
            let own: Vec<Broken> = own.collect::<Result<_>>()?;
            parts.push(Part::Picture(curves(&own, cell)?));
            broken.push(own);
        }
        let of = |format: usize| broken.iter().map(|own| &own[format]).collect::<Vec<_>>();
        let ratios: Vec<Option<Interval>> =
            (0..FORMATS.len()).map(|format| ratio(&of(format), &of(0))).collect();
        parts.insert(0, Part::Picture(picture(&ratios)));
        parts.push(Part::Table(by_format(setting, &broken, &ratios)));
        parts.push(Part::Table(searched(setting, runs)?));
        let count = seeds(setting).count();
        let of_seed = |seed: usize| -> Vec<Verge> {
            broken.iter().flatten().filter_map(|own| own.verges[seed]).collect()
        };
        let verges: Vec<Vec<Verge>> = (0..count).map(of_seed).collect();
        let verdict = judge(ratios[JUDGED], &verges);
        let verdict = match fired {
            Some(step) => {
                verdict.with(format!("{}; the control breaks at step {step}", verdict.reason()))
            }
            None => Verdict::NotSeen(format!("the control does not break; {}", verdict.reason())),
        };
        Ok(Findings { verdict, parts })
    }
}

/// Losses and sharpness of a few numbers of bits on the steepest ramp of a model.
fn curves(own: &[Broken], cell: Cell) -> Result<plot::Figure> {
    let mut losses =
        Panel::new(Axis::linear("smoothed training loss, nats/token")).height_share(1.4);
    let mut sharpness = Panel::new(Axis::log("sharpness phi, %"));
    for own in own.iter().filter(|own| [0, JUDGED, 4, 7].contains(&own.format)) {
        let name = FORMATS[own.format].0;
        losses = with_seeds(losses, name, &own.trained);
        sharpness = sharpness.line(Series::new(name, mean_values(&own.trained, "phi")?));
    }
    Ok(plot::Figure::new(format!("{}: the rate rises to {} at the end", cell.model, cell.end))
        .subtitle("no clipping; mean and range over seeds")
        .x(Axis::linear("step"))
        .panel(losses)
        .panel(sharpness))
}

/// The rate that each format withstands beside E8M7.
fn picture(ratios: &[Option<Interval>]) -> plot::Figure {
    let points = ratios.iter().enumerate().skip(1).map(|(at, ratio)| {
        let [low, value, high] =
            ratio.map_or([f64::NAN; 3], |r| [r.low, r.estimate, r.high].map(libm::exp));
        ((at - 1) as f64, low, value, high)
    });
    let names = FORMATS[1..].iter().map(|(name, _)| *name);
    plot::Figure::new("The learning rate at which runs break, beside that of E8M7")
        .subtitle("steepest ramps, no clipping; geometric mean over seeds and models, 95 %")
        .x(Axis::categories("operands of products", names))
        .panel(
            Panel::new(Axis::log("times the rate of E8M7").include(1.0))
                .intervals(Intervals::new("rate", points))
                .rule(1.0, "E8M7"),
        )
}

/// The steepest ramps, model by model.
fn by_format(setting: &Setting, broken: &[Vec<Broken>], ratios: &[Option<Interval>]) -> Table {
    let mut table = Table::new(
        "steepest ramps without clipping: how many seeds break, at which rate (geometric mean; those that do not count with \
         the last step), and in how many of them sharpness and the gradient norm have a trend, up to the lowest loss and \
         from there until the run breaks: rising/falling",
        &[
            "model",
            "numbers",
            "seeds",
            "broken",
            "rate",
            "over E8M7, all models",
            "phi before the lowest loss",
            "phi after it",
            "norm before",
            "norm after",
        ],
    );
    for (own, &model) in broken.iter().zip(models(setting)) {
        let end = steepest(setting, model).end;
        for own in own {
            let rate = mean(&own.steps).map_or(f64::NAN, |log| end * libm::exp(log) / own.total);
            let ratio = ratios[own.format].map_or_else(
                || "-".into(),
                |r| {
                    let [value, low, high] = [r.estimate, r.low, r.high].map(libm::exp);
                    format!("{value:.2} ({low:.2} to {high:.2})")
                },
            );
            let count = |of: fn(&Verge) -> i8| {
                let signs: Vec<i8> = own.verges.iter().flatten().map(of).collect();
                let count = |sign: i8| signs.iter().filter(|s| **s == sign).count();
                format!("{}/{}", count(1), count(-1))
            };
            table.row([
                model.into(),
                FORMATS[own.format].0.into(),
                own.steps.len().to_string(),
                own.lost().to_string(),
                format!("{rate:.3}"),
                if own.format == 0 { "1".into() } else { ratio },
                count(|verge| verge.phi[0]),
                count(|verge| verge.phi[1]),
                count(|verge| verge.norm[0]),
                count(|verge| verge.norm[1]),
            ]);
        }
    }
    table
}

/// The grid: at which rate each run breaks, or where it ends.
fn searched(setting: &Setting, runs: &Runs<'_>) -> Result<Table> {
    let mut header = vec!["model", "rate at the end", "clipping"];
    header.extend(FORMATS.iter().map(|(name, _)| *name));
    let mut table = Table::new(
        "the grid that was searched, seed 1: mean training loss of the last tenth of the steps, and the rate at which a run breaks",
        &header,
    );
    for cell in grid(setting) {
        let mut row = vec![
            cell.model.to_owned(),
            format!("{:e}", cell.end),
            if cell.clip { "norm 1" } else { "none" }.to_owned(),
        ];
        for (_, recipe) in FORMATS {
            let arm = cell.arm(setting, recipe, 1);
            let run = runs.of(&arm)?;
            let fate = fate(&run, vocab(&arm));
            let loss = number(tails(std::slice::from_ref(&run))[0]);
            row.push(match fate.verdict.diverged {
                Some(step) => {
                    let rate = cell.end * step as f64 / arm.config.train.steps as f64;
                    format!("{loss}, breaks at {rate:.3}")
                }
                None => loss,
            });
        }
        table.row(row);
    }
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_are_judged() {
        let ratio = |low, high| Some(Interval { estimate: (low + high) / 2.0, low, high });
        let runs = |phi: i8| -> Vec<Vec<Verge>> {
            let run = Verge { phi: [phi, 0], norm: [0, 0] };
            vec![vec![run]; 3]
        };
        let word = |ratio, phi| judge(ratio, &runs(phi)).word();
        let (earlier, either, later) = (ratio(-0.3, -0.1), ratio(-0.1, 0.1), ratio(0.1, 0.3));
        assert_eq!(word(earlier, 1), "reproduced");
        assert_eq!(word(earlier, 0), "not seen at this scale");
        assert_eq!(word(earlier, -1), "not seen at this scale");
        assert_eq!(word(later, 1), "not seen at this scale");
        assert_eq!(word(later, 0), "contradicted");
        assert_eq!(word(either, -1), "contradicted");
        assert_eq!(word(None, 1), "not seen at this scale");
        let verdict = judge(ratio(-0.4, -0.2), &runs(1));
        assert!(verdict.reason().contains("at 0.74 times the rate"), "{}", verdict.reason());
    }

    #[test]
    fn rates_are_compared_by_seed() {
        let broken = |steps: [f64; 2]| Broken {
            format: 0,
            trained: Vec::new(),
            verges: Vec::new(),
            steps: steps.map(libm::log).to_vec(),
            total: 300.0,
        };
        // Seeds of two models: twice and half the rate, and twice and twice.
        let (a, b) = (broken([200.0, 200.0]), broken([50.0, 200.0]));
        let (base_a, base_b) = (broken([100.0, 100.0]), broken([100.0, 100.0]));
        let found = ratio(&[&a, &b], &[&base_a, &base_b]).unwrap();
        assert!((found.estimate - libm::log(2.0) / 2.0).abs() < 1e-12, "{found:?}");
        assert!(found.low < 0.0, "two seeds scatter: {found:?}");
    }

    #[test]
    fn the_search_is_large_enough_to_count() {
        let setting = Setting::unread(Scale::Small);
        let mut names: Vec<String> = Ramps.arms(&setting).iter().map(Arm::name).collect();
        names.sort();
        names.dedup();
        assert!(names.len() >= 200, "{}", names.len());
        let rates = rates(&setting);
        assert!(rates.len() >= 5 && rates[rates.len() - 1] >= 100.0 * rates[0]);
    }
}
