//! BR-15: at which learning rate runs break, by number of bits, where nothing clips their gradients.
//!
//! The paper's models diverge by themselves; small ones do not at any steady rate that the other figures
//! tried, with gradients clipped at norm 1. So here the rate rises from 0 in a straight line to the end of the
//! run, over five ends and two depths, with clipping and without: the search for runs that break, which
//! tell what others cannot, whether fewer bits break earlier and whether sharpness rises before the loss.
//! [`verge`](super::verge) reads single runs, [`confirm`](super::confirm) tries what they show on new seeds.

use super::common::{Spec, all, fate, number, tails, vocab, with_seeds};
use super::confirm;
use super::ordering::mean_values;
use super::verge::{self, Verge};
use crate::error::Result;
use crate::plot::{self, Axis, Intervals, Panel, Series};
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::detect::{self, Nats};
use crate::study::finding::{Figure, Findings, Part, Table, Verdict};
use crate::study::statistics::{Interval, mean, mean_interval};
use crate::study::store::{Runs, Trained};

/// BR-15.
pub(super) struct Ramps;

/// Names and recipes; the first is what others are compared with.
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
/// Those whose mantissas are cut.
const CUT: std::ops::Range<usize> = 0..5;

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
    1..=setting.scale.pick([1, 6, 6, 3])
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
        let steps = setting.scale.pick([20, 300, 300, 20_000]);
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

/// Rises of the loss in nats by which a run counts as broken; the second is that of all figures.
const RISES: [f64; 3] = [0.4, 0.5, 0.6];
const USUAL: usize = 1;

/// Runs of one number format on the steepest ramp of one model, by seed.
struct Broken {
    format: usize,
    trained: Vec<Trained>,
    /// Where each breaks, by each rise.
    breaks: [Vec<Option<u64>>; RISES.len()],
    /// What sharpness and gradient norm do until then, or until the end.
    verges: Vec<Verge>,
    /// The steps of all of them.
    total: u64,
}

impl Broken {
    fn of(setting: &Setting, runs: &Runs<'_>, cell: Cell, format: usize) -> Result<Self> {
        let arms = cell.of_seeds(setting, FORMATS[format].1);
        let trained = all(runs, &arms)?;
        let breaks = RISES.map(|rise| {
            let nats = Nats { rise, ..Nats::default() };
            let step = |run: &Trained| {
                let (losses, norms) = detect::curves(&run.metrics);
                nats.judge(&losses, &norms).diverged
            };
            trained.iter().map(step).collect::<Vec<_>>()
        });
        let total = arms.first().map_or(0, |arm| arm.config.train.steps);
        let ends = breaks[USUAL].iter().map(|step| step.unwrap_or(total));
        let verges = trained.iter().zip(ends).map(|(run, end)| verge::read(run, end));
        let verges = verges.collect::<Result<_>>()?;
        Ok(Self { format, trained, breaks, verges, total })
    }

    /// The logarithms of the steps at which runs break, which are those of the rates but for a constant. A run that
    /// does not counts with the last step at which it could: the last tenth decides whether it did.
    fn log_steps(&self, rise: usize) -> Vec<f64> {
        let last = 0.9 * self.total as f64;
        let log = |step: &Option<u64>| libm::log(step.map_or(last, |step| step as f64));
        self.breaks[rise].iter().map(log).collect()
    }

    fn lost(&self) -> usize {
        self.breaks[USUAL].iter().flatten().count()
    }

    /// The runs that break, or those that do not.
    fn verges(&self, broken: bool) -> impl Iterator<Item = &Verge> {
        let runs = self.verges.iter().zip(&self.breaks[USUAL]);
        runs.filter(move |(_, step)| step.is_some() == broken).map(|(verge, _)| verge)
    }
}

/// How many times the rate at which E8M7 breaks this format breaks at, by seed, over models: an interval of logarithms.
fn ratio(of: &[&Broken], base: &[&Broken], rise: usize) -> Option<Interval> {
    let steps =
        |own: &[&Broken]| -> Vec<Vec<f64>> { own.iter().map(|own| own.log_steps(rise)).collect() };
    let (of, base) = (steps(of), steps(base));
    let one = |seed: usize| {
        let logs = of.iter().zip(&base).map(|(of, base)| of[seed] - base[seed]);
        mean(&logs.collect::<Vec<_>>())
    };
    mean_interval(&(0..base.first()?.len()).filter_map(one).collect::<Vec<_>>(), 0.95)
}

/// How many times, as shown: `1.00 (0.90 to 1.11)`.
fn times(ratio: Option<Interval>) -> String {
    let shown = |r: Interval| {
        let [value, low, high] = [r.estimate, r.low, r.high].map(libm::exp);
        format!("{value:.2} ({low:.2} to {high:.2})")
    };
    ratio.map_or_else(|| "-".into(), shown)
}

/// What the rate ratio of E8M3 and the trends of sharpness say. That sharpness falls is no opposite: in runs that
/// do not break it does so as well.
fn judge(ratio: Option<Interval>, verges: &[Vec<Verge>]) -> Verdict {
    let (before, text) = verge::judge(verges);
    let first = before.is_some_and(|before| before.low > 0.0);
    let earlier = ratio.is_some_and(|ratio| ratio.high < 0.0);
    let later = ratio.is_some_and(|ratio| ratio.low > 0.0);
    Verdict::of(earlier && first, later && !first, text)
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
         trend test at 5 % for each run, then an interval over seeds). Contradicted where E8M3 breaks at a higher rate \
         and sharpness does not rise first; that it falls is no opposite, as it does in runs that do not break. The grid \
         of five rates, two depths and clipping on and off is what was searched; everything in blocks of E2M1 at ten times \
         the largest rate must break. MXFP4 stands beside cut mantissas; what its curves seemed to show of sharpness is tried on new seeds \
         and not judged."
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        if setting.scale == Scale::Small {
            return Vec::new();
        }
        let mut arms = vec![positive(setting)];
        for cell in grid(setting) {
            arms.extend(FORMATS.iter().map(|(_, recipe)| cell.arm(setting, recipe, 1)));
        }
        for &model in models(setting) {
            let cell = steepest(setting, model);
            arms.extend(FORMATS.iter().flat_map(|(_, recipe)| cell.of_seeds(setting, recipe)));
        }
        arms.extend(confirm::arms(setting));
        arms
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
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
        let of_rise = |rise: usize| -> Vec<Option<Interval>> {
            (0..FORMATS.len()).map(|format| ratio(&of(format), &of(0), rise)).collect()
        };
        let by_rise: Vec<_> = (0..RISES.len()).map(of_rise).collect();
        let ratios = &by_rise[USUAL];
        parts.insert(0, Part::Picture(picture(ratios)));
        parts.push(Part::Table(by_format(setting, &broken, ratios)));
        parts.push(Part::Table(searched(setting, runs)?));
        let verdict = concluded(setting, &broken, &by_rise);
        let verdict = match confirm::find(setting, runs)? {
            None => verdict,
            Some((text, pictures)) => {
                parts.extend(pictures);
                verdict.with(format!("{}; {text}", verdict.reason()))
            }
        };
        let verdict = match fired {
            Some(step) => {
                verdict.with(format!("{}; the control breaks at step {step}", verdict.reason()))
            }
            None => Verdict::NotSeen(format!("the control does not break; {}", verdict.reason())),
        };
        Ok(Findings { verdict, parts })
    }
}

/// The verdict with all numbers, of the steepest ramps of all models.
fn concluded(
    setting: &Setting,
    broken: &[Vec<Broken>],
    by_rise: &[Vec<Option<Interval>>],
) -> Verdict {
    let cut = || broken.iter().flat_map(|own| &own[CUT]);
    let of_seed = |seed: usize| -> Vec<Verge> {
        let broken = cut().filter(|own| own.breaks[USUAL][seed].is_some());
        broken.map(|own| own.verges[seed]).collect()
    };
    let verges: Vec<Vec<Verge>> = (0..seeds(setting).count()).map(of_seed).collect();
    let verdict = judge(by_rise[USUAL][JUDGED], &verges);
    let lost = |format: usize| broken.iter().map(|own| own[format].lost()).sum::<usize>();
    let calm: Vec<&Verge> = cut().flat_map(|own| own.verges(false)).collect();
    let count = |sign: i8| calm.iter().filter(|verge| verge.phi[0] == sign).count();
    let text = format!(
        "on the steepest ramps E8M3 breaks at {} times the rate of E8M7 (95 % interval over seeds, mean over models; {} \
         and {} of {} runs break, the others count with the last step at which they could); by rises of {} and {} nats \
         in place of {}: {} and {}; {}; of {} runs that do not break it rises before the lowest loss in {} and \
         falls in {}",
        times(by_rise[USUAL][JUDGED]),
        lost(JUDGED),
        lost(0),
        broken.iter().map(|own| own[0].trained.len()).sum::<usize>(),
        RISES[0],
        RISES[2],
        RISES[USUAL],
        times(by_rise[0][JUDGED]),
        times(by_rise[2][JUDGED]),
        verdict.reason(),
        calm.len(),
        count(1),
        count(-1),
    );
    verdict.with(text)
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
         the last step at which they could), and in how many of them sharpness and the gradient norm have a trend, up to the lowest loss and \
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
            // The warm-up divides by one step more.
            let steps = own.total as f64 + 1.0;
            let rate =
                mean(&own.log_steps(USUAL)).map_or(f64::NAN, |log| end * libm::exp(log) / steps);
            let count = |of: fn(&Verge) -> i8| {
                let signs: Vec<i8> = own.verges(true).map(of).collect();
                let count = |sign: i8| signs.iter().filter(|s| **s == sign).count();
                format!("{}/{}", count(1), count(-1))
            };
            table.row([
                model.into(),
                FORMATS[own.format].0.into(),
                own.trained.len().to_string(),
                own.lost().to_string(),
                format!("{rate:.3}"),
                if own.format == 0 { "1".into() } else { times(ratios[own.format]) },
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
                    let rate = cell.end * step as f64 / (arm.config.train.steps + 1) as f64;
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
        assert_eq!(word(later, 1), "not seen at this scale");
        assert_eq!(word(later, 0), "contradicted");
        assert_eq!(word(either, -1), "not seen at this scale");
        assert_eq!(word(None, 1), "not seen at this scale");
        assert_eq!(times(ratio(libm::log(0.5), libm::log(2.0))), "1.00 (0.50 to 2.00)");
    }

    #[test]
    fn rates_are_compared_by_seed() {
        let broken = |steps: [Option<u64>; 2]| Broken {
            format: 0,
            trained: Vec::new(),
            breaks: RISES.map(|_| steps.to_vec()),
            verges: Vec::new(),
            total: 300,
        };
        // Seeds of two models: twice and half the rate, and twice and twice.
        let (a, b) = (broken([Some(200), Some(200)]), broken([Some(50), Some(200)]));
        let base = broken([Some(100), Some(100)]);
        let found = ratio(&[&a, &b], &[&base, &base], USUAL).unwrap();
        assert!((found.estimate - libm::log(2.0) / 2.0).abs() < 1e-12, "{found:?}");
        assert!(found.low < 0.0, "two seeds scatter: {found:?}");
        // A run that does not break could have until step 270.
        let none = broken([None, None]);
        let found = ratio(&[&none], &[&broken([Some(90), Some(90)])], USUAL).unwrap();
        assert!((found.estimate - libm::log(3.0)).abs() < 1e-12, "{found:?}");
        assert_eq!((none.lost(), a.lost()), (0, 2));
    }

    #[test]
    fn the_search_is_large_enough_to_count() {
        let setting = Setting::unread(Scale::Medium);
        let mut names: Vec<String> = Ramps.arms(&setting).iter().map(Arm::name).collect();
        names.sort();
        names.dedup();
        assert!(names.len() >= 200, "{}", names.len());
        let rates = rates(&setting);
        assert!(rates.len() >= 5 && rates[rates.len() - 1] >= 100.0 * rates[0]);
    }
}
