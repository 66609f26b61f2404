//! Searches by paired differences: at each learning rate the mean over the cells of a grid, seed by seed.
//!
//! An effect that is not seen at the rate of its own figure may be there at another. Cells share the batches of a seed, so each seed counts
//! once and intervals are over seeds; those that count cells apart, as if they were independent, stand beside. One of several rates is
//! enough, so intervals are surer than 95 %, each at 1 - 0.05 / rates. A search that finds nothing says something only if it would have found: beside
//! the difference that is searched for stands the control, one that is there by construction.

use crate::plot::{self, Axis, Intervals, Panel};
use crate::study::finding::{self, Findings, Part, Table, Verdict};
use crate::study::statistics::{Interval, mean, mean_interval};

/// The differences of the runs of one cell, by seed.
#[derive(Clone, Debug)]
pub(super) struct Found {
    /// The learning rate,
    pub(super) lr: f64,
    /// and what else tables say of the cell.
    pub(super) words: Vec<String>,
    /// What is searched for,
    pub(super) searched: Vec<f64>,
    /// what must be seen,
    pub(super) control: Vec<f64>,
    /// and what stands beside.
    pub(super) beside: Vec<f64>,
}

/// What is searched for, and where.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// The picture's title.
    pub(super) title: &'static str,
    /// What the three differences are called.
    pub(super) names: [&'static str; 3],
    /// The same in legends, of 17 letters at most.
    pub(super) legend: [&'static str; 3],
    /// Their unit.
    pub(super) unit: &'static str,
    /// How far above 0 it must be, and the control.
    pub(super) least: f64,
    /// What is asked of that which stands beside.
    pub(super) asks: Beside,
    /// The learning rates.
    pub(super) rates: Vec<f64>,
    /// Columns of what tables say of cells.
    pub(super) columns: Vec<&'static str>,
}

/// What is asked at a rate of the difference that stands beside the one that is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Beside {
    /// Nothing.
    Told,
    /// That it is above 0, too.
    Above,
    /// That it is below what is asked of the one that is searched for.
    Below,
}

/// One of the intervals of a rate.
type Pick = fn(&AtRate) -> Option<Interval>;

/// What all cells of a rate show.
#[derive(Clone, Copy, Debug, PartialEq)]
struct AtRate {
    lr: f64,
    searched: Option<Interval>,
    /// The same, cells counted apart.
    apart: Option<Interval>,
    control: Option<Interval>,
    beside: Option<Interval>,
}

/// `a - b` of final losses by pairs. A run that diverged, or ended above a guess among `vocab` tokens, has learnt nothing and
/// counts as a guess.
pub(super) fn less(a: &[f64], b: &[f64], vocab: usize) -> Vec<f64> {
    let guess = libm::log(vocab as f64);
    a.iter().zip(b).map(|(a, b)| a.min(guess) - b.min(guess)).collect()
}

/// `a - b` by pairs.
pub(super) fn minus(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Rates in words: `2e-3, 6e-3`, or that there is none.
pub(super) fn told(rates: impl IntoIterator<Item = f64>) -> String {
    let some: Vec<String> = rates.into_iter().map(|lr| format!("{lr:e}")).collect();
    if some.is_empty() { "no rate".to_owned() } else { some.join(", ") }
}

/// The mean over cells of each seed; cells without values are left out, and values that are none (NaN).
pub(super) fn by_seed(cells: &[&[f64]]) -> Vec<f64> {
    let seeds = cells.iter().map(|cell| cell.len()).max().unwrap_or(0);
    let of = |seed: usize| {
        let values = cells.iter().filter_map(|cell| cell.get(seed).copied());
        mean(&values.filter(|value| !value.is_nan()).collect::<Vec<_>>())
    };
    (0..seeds).filter_map(of).collect()
}

/// How sure each of so many intervals is, if all together are to be at 95 %.
pub(super) fn confidence(count: usize) -> f64 {
    1.0 - 0.05 / count.max(1) as f64
}

/// Whether a mean is told to be above 0.
pub(super) fn above(found: Option<Interval>) -> bool {
    found.is_some_and(|found| found.low > 0.0)
}

fn below(found: Option<Interval>) -> bool {
    found.is_some_and(|found| found.high < 0.0)
}

/// A mean and its interval in words.
pub(super) fn words(found: Option<Interval>) -> String {
    let shown =
        |gap: Interval| format!("{:+.4} ({:+.4} to {:+.4})", gap.estimate, gap.low, gap.high);
    found.map_or_else(|| "no interval".into(), shown)
}

impl Search {
    /// How sure each rate's interval is, so that those of all rates together are at 95 %.
    fn confidence(&self) -> f64 {
        confidence(self.rates.len())
    }

    /// The differences of each rate.
    fn by_rate(&self, found: &[Found]) -> Vec<AtRate> {
        let at = |&lr: &f64| {
            let own = |part: fn(&Found) -> &[f64]| -> Vec<&[f64]> {
                found.iter().filter(|one| one.lr == lr).map(part).collect()
            };
            let of = |part| mean_interval(&by_seed(&own(part)), self.confidence());
            let searched = own(|one| &one.searched);
            AtRate {
                lr,
                searched: of(|one| &one.searched),
                apart: mean_interval(&searched.concat(), self.confidence()),
                control: of(|one| &one.control),
                beside: of(|one| &one.beside),
            }
        };
        self.rates.iter().map(at).collect()
    }

    /// Whether a rate shows what is searched for.
    fn holds(&self, at: &AtRate) -> bool {
        self.asked(at) && self.large(at.searched)
    }

    /// Whether what stands beside is as it must be.
    fn asked(&self, at: &AtRate) -> bool {
        match self.asks {
            Beside::Told => true,
            Beside::Above => above(at.beside),
            Beside::Below => at.beside.is_some_and(|beside| beside.high < self.least),
        }
    }

    /// Whether a mean is told to be as far above 0 as is asked.
    fn large(&self, found: Option<Interval>) -> bool {
        found.is_some_and(|found| found.low > self.least)
    }

    fn judge(&self, rates: &[AtRate]) -> Verdict {
        let told =
            |of: &dyn Fn(&AtRate) -> bool| told(rates.iter().filter(|at| of(at)).map(|at| at.lr));
        let holding: Vec<String> =
            rates.iter().filter(|at| self.holds(at)).map(|at| words(at.searched)).collect();
        let largest = rates.iter().max_by(|a, b| {
            let of = |at: &AtRate| at.searched.map_or(f64::NEG_INFINITY, |gap| gap.estimate);
            of(a).total_cmp(&of(b))
        });
        let most = match (holding.as_slice(), largest) {
            ([], Some(AtRate { lr, searched: Some(gap), .. })) => {
                format!(" (the largest, at {lr:e}: {} {})", words(Some(*gap)), self.unit)
            }
            ([], _) => " (too few seeds for an interval)".to_owned(),
            (some, _) => format!(" ({} {})", some.join(", "), self.unit),
        };
        // So large; and what must hold beside it, which may be what fails.
        let by = if self.least > 0.0 {
            format!(" by more than {} {}", self.least, self.unit)
        } else {
            String::new()
        };
        let condition = match self.asks {
            Beside::Told => String::new(),
            _ => format!("{} as asked at {}, ", self.names[2], told(&|at| self.asked(at))),
        };
        let [searched, control, _] = self.names;
        let fires = rates.iter().any(|at| self.large(at.control));
        let text = format!(
            "{searched}{by} at {}{most}, {condition}below 0 at {}, with cells counted apart at {} and {}; the control {}: {control}{by} at {}",
            told(&|at| self.holds(at)),
            told(&|at| below(at.searched)),
            told(&|at| self.large(at.apart)),
            told(&|at| below(at.apart)),
            finding::fires(fires),
            told(&|at| self.large(at.control)),
        );
        Verdict::of(fires && rates.iter().any(|at| self.holds(at)), false, text)
    }

    /// The differences by rate and by cell.
    fn parts(&self, found: &[Found], rates: &[AtRate]) -> Vec<Part> {
        let (names, unit) = (self.names, self.unit);
        let sure = format!("{:.0} %", 100.0 * self.confidence());
        let panel = |parts: &[(usize, Pick)]| {
            let panel = Panel::new(Axis::linear(format!("difference, {unit}"))).rule(0.0, "");
            let panel = if self.least > 0.0 { panel.rule(self.least, "asked") } else { panel };
            parts.iter().fold(panel, |panel, (name, of)| {
                let at = |(x, at): (usize, &AtRate)| {
                    of(at).map(|gap| (x as f64, gap.low, gap.estimate, gap.high))
                };
                let points = rates.iter().enumerate().filter_map(at);
                panel.intervals(Intervals::new(self.legend[*name], points))
            })
        };
        let picture = plot::Figure::new(self.title)
            .subtitle(format!("mean over cells and {sure} interval over seeds"))
            .x(Axis::categories(
                "peak learning rate",
                rates.iter().map(|at| format!("{:e}", at.lr)),
            ))
            .panel(panel(&[(0, |at| at.searched), (2, |at| at.beside)]))
            .panel(panel(&[(1, |at| at.control)]));
        let caption =
            format!("{unit}; mean over the cells of a rate and {sure} interval over seeds");
        let [searched, control, beside] = names;
        let header = ["rate", searched, "the same, cells counted apart", control, beside];
        let mut all = Table::new(caption, &header);
        for at in rates {
            let cells = [at.searched, at.apart, at.control, at.beside].map(words);
            all.row(std::iter::once(format!("{:e}", at.lr)).chain(cells));
        }
        let header: Vec<&str> =
            std::iter::once("rate").chain(self.columns.iter().copied()).chain(names).collect();
        let mut table = Table::new("the same by cells, means over seeds", &header);
        for one in found {
            let shown =
                |values: &Vec<f64>| mean(values).map_or("-".to_owned(), |x| format!("{x:+.4}"));
            let means = [&one.searched, &one.control, &one.beside].map(shown);
            let first = std::iter::once(format!("{:e}", one.lr)).chain(one.words.iter().cloned());
            table.row(first.chain(means));
        }
        vec![Part::Picture(picture), Part::Table(all), Part::Table(table)]
    }

    /// What the cells say.
    pub(super) fn find(&self, found: &[Found]) -> Findings {
        let rates = self.by_rate(found);
        Findings { verdict: self.judge(&rates), parts: self.parts(found, &rates) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(asks: Beside) -> Search {
        Search {
            title: "a search",
            names: ["the effect", "the control", "the condition"],
            legend: ["effect", "control", "condition"],
            unit: "nats",
            least: 0.0,
            asks,
            rates: vec![1e-3, 3e-3, 1e-2, 3e-2, 1e-1],
            columns: vec!["layers"],
        }
    }

    /// Two cells of each rate, whose differences scatter by a tenth about these means.
    fn found(means: impl Fn(f64) -> [f64; 3]) -> Vec<Found> {
        let around = |mean: f64| [-0.1, 0.0, 0.1, 0.0].map(|x| mean + x).to_vec();
        let one = |&lr: &f64| {
            let [searched, control, beside] = means(lr).map(around);
            let words = |layers: &str| vec![layers.to_owned()];
            let one = Found { lr, words: words("2"), searched, control, beside };
            [Found { words: words("4"), ..one.clone() }, one]
        };
        search(Beside::Told).rates.iter().flat_map(one).collect()
    }

    #[test]
    fn each_part_can_fail() {
        let word = |asks: Beside, means: fn(f64) -> [f64; 3]| {
            search(asks).find(&found(means)).verdict.word()
        };
        let not = "not seen at this scale";
        for asks in [Beside::Told, Beside::Above] {
            assert_eq!(word(asks, |_| [0.3, 1.0, 0.3]), "reproduced");
            let one = |lr: f64| [if lr == 1e-2 { 0.3 } else { 0.0 }, 1.0, 0.3];
            assert_eq!(word(asks, one), "reproduced");
            assert_eq!(word(asks, |_| [0.0, 1.0, 0.3]), not);
            assert_eq!(word(asks, |_| [-0.3, 1.0, 0.3]), not, "a search shows no opposite");
            assert_eq!(word(asks, |_| [0.3, 0.0, 0.3]), not, "the control");
        }
        assert_eq!(word(Beside::Above, |_| [0.3, 1.0, 0.0]), not, "the condition");
        assert_eq!(word(Beside::Told, |_| [0.3, 1.0, 0.0]), "reproduced", "no condition");
    }

    /// Of four seeds that scatter so, the interval at 99 % reaches 0.24 to each side.
    #[test]
    fn an_effect_can_be_asked_to_be_large() {
        let search = Search { least: 0.5, ..search(Beside::Below) };
        let word = |means: fn(f64) -> [f64; 3]| search.find(&found(means)).verdict.word();
        let not = "not seen at this scale";
        assert_eq!(word(|_| [0.8, 0.8, 0.0]), "reproduced");
        assert_eq!(word(|_| [0.7, 0.8, 0.0]), not, "above 0, not above 0.5");
        assert_eq!(word(|_| [0.8, 0.7, 0.0]), not, "the control");
        assert_eq!(word(|_| [0.8, 0.8, 0.3]), not, "the condition");
        assert_eq!(word(|_| [0.8, 0.8, 0.2]), "reproduced", "above 0, below 0.5");
        let text = search.find(&found(|lr| [0.8, 0.8, if lr == 1e-1 { 0.2 } else { 0.3 }])).verdict;
        let begin = "the effect by more than 0.5 nats at 1e-1 (+0.8000 (+0.5615 to +1.0385) nats), the condition as asked at 1e-1, below 0";
        assert!(text.reason().starts_with(begin), "{}", text.reason());
        let end = "the control by more than 0.5 nats at 1e-3, 3e-3, 1e-2, 3e-2, 1e-1";
        assert!(text.reason().ends_with(end), "{}", text.reason());
    }

    /// By hand: of four seeds the deviation is 0.0816 about 0.3 and t of 3 degrees at 99 % 5.841, of eight pairs 0.0756 and 3.499.
    #[test]
    fn each_seed_counts_once() {
        let at = search(Beside::Told).by_rate(&found(|_| [0.3, 1.0, 0.0]))[0];
        let [low, apart] = [at.searched, at.apart].map(|found| found.unwrap().low);
        assert!((low - (0.3 - 5.841 * 0.081_65 / 2.0)).abs() < 1e-4, "{low}");
        assert!((apart - (0.3 - 3.499 * 0.0756 / 8_f64.sqrt())).abs() < 1e-4, "{apart}");
        // A cell without values is left out, as FP8 without its head is on noisy text.
        assert_eq!(by_seed(&[&[1.0, 2.0], &[], &[3.0, 6.0]]), [2.0, 4.0]);
        assert_eq!(by_seed(&[&[1.0, f64::NAN, f64::NAN], &[3.0, f64::NAN, 6.0]]), [2.0, 6.0]);
    }

    #[test]
    fn rates_are_told() {
        let one = |lr: f64| [if lr == 1e-2 { 0.3 } else { 0.0 }, 1.0, 0.3];
        let verdict = search(Beside::Told).find(&found(one)).verdict;
        let begin = "the effect at 1e-2 (+0.3000 (+0.0615 to +0.5385) nats), below 0 at no rate,";
        assert!(verdict.reason().starts_with(begin), "{}", verdict.reason());
        let verdict = search(Beside::Told).find(&found(|lr| one(lr).map(|x| 0.0 - x))).verdict;
        let begin = "the effect at no rate (the largest, at 1e-1: ";
        assert!(verdict.reason().starts_with(begin), "{}", verdict.reason());
        let end = "below 0 at 1e-2, with cells counted apart at no rate and 1e-2; \
                   the control does not fire: the control at no rate";
        assert!(verdict.reason().ends_with(end), "{}", verdict.reason());
    }

    #[test]
    fn a_lost_run_counts_as_a_guess() {
        let found = less(&[f64::INFINITY, 2.0, 9.0], &[2.0, 1.5, f64::INFINITY], 256);
        assert_eq!(found, [libm::log(256.0) - 2.0, 0.5, 0.0]);
    }
}
