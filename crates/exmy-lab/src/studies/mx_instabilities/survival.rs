//! How long the runs of each recipe go on without diverging, or without leaving their lowest loss, and
//! whether longer than those of another.

use crate::finding::{Part, Table};
use crate::grid::GridPoint;
use crate::measure::Results;
use crate::outcome::Outcome;
use crate::plot::{self, Band, Intervals, Panel, Series};
use crate::statistics::{LogRank, kaplan_meier, log_rank, wilson};
use exmy::error::Result;

/// Of each run, the step at which it diverged, or left its lowest loss, or its last one.
pub type Ends = Vec<(u64, bool)>;

/// A p in four digits, and never as 0.
pub(super) fn chance(p: f64) -> String {
    if p < 0.000_05 { "under 0.0001".into() } else { format!("{p:.4}") }
}

/// The runs of a grid, recipe by recipe, in the order of the grid.
#[derive(Debug)]
pub struct Survival {
    /// The recipe that the others are compared with.
    pub base: &'static str,
    /// The names of recipes, and the ends of their runs, seed by seed.
    pub recipes: Vec<(String, Ends)>,
}

impl Survival {
    /// By when runs diverge.
    pub(super) fn of(results: &Results<'_>, base: &'static str) -> Result<Self> {
        Self::by(results, base, |run| run.verdict.diverged)
    }

    /// By the step of an event.
    pub(super) fn by(
        results: &Results<'_>,
        base: &'static str,
        event: impl Fn(&Outcome) -> Option<u64>,
    ) -> Result<Self> {
        let end = |run: Outcome| match event(&run) {
            Some(step) => (step, true),
            None => (run.trained.summary.steps, false),
        };
        let recipe = |point: &GridPoint| -> Result<(String, Ends)> {
            Ok((point.words(&[]), results.outcomes(point)?.into_iter().map(end).collect()))
        };
        Ok(Self { base, recipes: results.points.iter().map(recipe).collect::<Result<_>>()? })
    }

    /// The runs of a recipe.
    pub(super) fn ends(&self, name: &str) -> &[(u64, bool)] {
        self.recipes.iter().find(|recipe| recipe.0 == name).map_or(&[], |recipe| &recipe.1)
    }

    /// How many runs of a recipe diverged, and how many there are.
    pub(super) fn counts(&self, name: &str) -> (usize, usize) {
        let ends = self.ends(name);
        (ends.iter().filter(|end| end.1).count(), ends.len())
    }

    /// The same of the first runs alone.
    pub(super) fn first(&self, runs: usize) -> Self {
        let first = |ends: &Ends| ends.iter().take(runs).copied().collect();
        let recipes = self.recipes.iter().map(|(name, ends)| (name.clone(), first(ends)));
        Self { base: self.base, recipes: recipes.collect() }
    }

    /// A recipe beside the base.
    pub(super) fn pair(&self, base: &'static str, name: &str) -> Self {
        let is_asked = |recipe: &&(String, Ends)| [base, name].contains(&recipe.0.as_str());
        Self { base, recipes: self.recipes.iter().filter(is_asked).cloned().collect() }
    }

    /// Whether a recipe diverges at other times than the base.
    pub(super) fn test(&self, name: &str) -> Option<LogRank> {
        log_rank(self.ends(name), self.ends(self.base))
    }

    /// All recipes as a table: what share of their runs has not diverged, when the others did.
    pub(super) fn table(&self) -> Part {
        self.table_of("diverge", ["diverged", "not diverged"])
    }

    /// The same of another event.
    pub(super) fn table_of(&self, event: &str, [happened, not]: [&str; 2]) -> Part {
        let caption = format!(
            "Share of runs that did not {event}, with the 95 % interval of Kaplan and Meier's estimate; the \
             steps at which the others did; whether those of a recipe did so sooner than those of {}, or \
             later (log-rank test, each one-sided), and how many times as often (Peto's hazard ratio, 95 % \
             interval)",
            self.base
        );
        let header = [
            "numbers",
            "runs",
            happened,
            not,
            "interval",
            "at steps",
            "z",
            "p, sooner",
            "p, later",
            "hazard",
        ];
        let mut table = Table::new(&caption, &header);
        for (name, ends) in &self.recipes {
            let mut at: Vec<u64> = ends.iter().filter(|end| end.1).map(|end| end.0).collect();
            at.sort_unstable();
            let last = kaplan_meier(ends, 0.95).pop().map(|last| last.1);
            let test = self.test(name);
            let words = |of: fn(LogRank) -> String| test.map_or_else(|| "-".into(), of);
            table.row([
                name.clone(),
                ends.len().to_string(),
                at.len().to_string(),
                format!("{:.2}", last.map_or(1.0, |last| last.estimate)),
                // At no run left the estimate has no interval, as at no event.
                last.filter(|last| last.estimate > 0.0).map_or_else(
                    || "-".into(),
                    |last| format!("{:.2} to {:.2}", last.low, last.high),
                ),
                at.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
                words(|test| format!("{:.4}", test.z)),
                words(|test| chance(test.p_sooner)),
                words(|test| chance(test.p_later)),
                test.filter(|_| name != self.base).map_or_else(
                    || "-".into(),
                    |test| {
                        let ratio = test.hazard(0.95);
                        format!("{:.2} ({:.2} to {:.2})", ratio.estimate, ratio.low, ratio.high)
                    },
                ),
            ]);
        }
        Part::Table(table)
    }

    /// Which share of some recipes' runs has not diverged, step by step.
    pub(super) fn curves(&self, names: &[&str]) -> Part {
        let mut panel =
            Panel::new(plot::Axis::linear("share of runs not diverged").range(0.0, 1.0));
        for (name, ends) in self.recipes.iter().filter(|recipe| names.contains(&recipe.0.as_str()))
        {
            let (mut line, mut band, mut before) =
                (vec![(0.0, 1.0)], vec![(0.0, 1.0, 1.0)], (1.0, 1.0, 1.0));
            for (step, share) in kaplan_meier(ends, 0.95) {
                let step = step as f64;
                line.extend([(step, before.0), (step, share.estimate)]);
                band.extend([(step, before.1, before.2), (step, share.low, share.high)]);
                before = (share.estimate, share.low, share.high);
            }
            let last = ends.iter().map(|end| end.0).max().unwrap_or_default() as f64;
            line.push((last, before.0));
            band.push((last, before.1, before.2));
            panel = panel.band(Band::new(name, band)).line(Series::new(name, line));
        }
        Part::Picture(
            plot::Figure::new("How long runs go on without diverging")
                .subtitle("Kaplan and Meier's estimate, with its 95 % interval")
                .x(plot::Axis::whole("step"))
                .panel(panel),
        )
    }

    /// Which share of each recipe's runs diverged, recipes side by side.
    pub(super) fn shares(&self) -> Part {
        let share = |(i, (_, ends)): (usize, &(String, Ends))| {
            let diverged = ends.iter().filter(|end| end.1).count() as u64;
            let share = diverged as f64 / ends.len() as f64;
            let (low, high) = wilson(diverged, ends.len() as u64, 0.95)
                .map_or((share, share), |interval| (interval.low, interval.high));
            (i as f64, low, share, high)
        };
        let shares = Intervals::new("diverged", self.recipes.iter().enumerate().map(share));
        let names = self.recipes.iter().map(|recipe| recipe.0.clone());
        Part::Picture(
            plot::Figure::new("Runs that diverge, by what is changed")
                .subtitle("with Wilson's 95 % interval")
                .x(plot::Axis::categories("", names))
                .panel(
                    Panel::new(plot::Axis::linear("share of runs").range(0.0, 1.0))
                        .intervals(shares),
                ),
        )
    }
}
