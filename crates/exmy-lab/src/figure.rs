//! A figure as a value: which runs, what is claimed of them, what is shown.
//!
//! Its runs and its findings come from one [`Grid`]. Where a [`Claim`] is judged, the sentence of the
//! criterion comes from that.

use crate::claim::{Claim, Test};
use crate::criterion::Criterion;
use crate::finding::{self, Findings, Paper, Power, Verdict};
use crate::grid::{Divergence, Grid};
use crate::measure::Results;
use crate::outcome::Outcome;
use crate::run_config::{RunConfig, Setting};
use crate::store::Runs;
use crate::view::View;
use exmy::error::Result;
use std::any::Any;

/// One figure or table of a paper.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    pub id: &'static str,
    pub(super) title: &'static str,
    /// The paper's own item.
    pub(super) source: &'static str,
    /// What is said there, or asked here.
    pub(super) says: &'static str,
    pub grid: Grid,
    pub judged: Judged,
    /// What is shown, in the order of the page.
    pub views: &'static [View],
}

/// How findings come about.
#[derive(Clone, Copy, Debug)]
pub enum Judged {
    /// By a claim; the views stand below.
    By(Claim),
    /// There is nothing to judge: what is computed is shown.
    Shown(Find),
    /// By an analysis of its own, with a criterion of its own; the views stand below what it shows.
    Own { asks: Criterion, effect: EffectSize, find: Find },
    /// The same of one that has more to judge by than runs.
    Computed { asks: Criterion, effect: EffectSize, find: Find },
}

/// What is known of the size of the effect that an analysis looks for, and so of its power.
#[derive(Clone, Copy, Debug)]
pub enum EffectSize {
    /// The paper says that it is there, and not how large.
    Unstated,
    /// There is no size that compares, and why.
    Incomparable(&'static str),
    /// The paper states a size, and the analysis computes its power.
    Stated,
    /// What must be by definition needs none.
    Certain,
}

impl EffectSize {
    fn judged(self, verdict: Verdict) -> Verdict {
        match self {
            Self::Unstated => verdict.with_power(Power::UNSTATED),
            Self::Incomparable(why) => verdict.with_power(Power::NoSize(why)),
            Self::Stated | Self::Certain => verdict,
        }
    }
}

/// What an analysis makes of runs.
type Find = fn(&Results<'_>) -> Result<Findings>;

/// By a claim with its own opposite.
pub(crate) const fn by(test: Test) -> Judged {
    Judged::By(Claim::new(test))
}

impl finding::Experiment for Figure {
    fn id(&self) -> &'static str {
        self.id
    }

    fn title(&self) -> &'static str {
        self.title
    }

    fn source(&self) -> &'static str {
        self.source
    }

    fn claim(&self) -> &'static str {
        self.says
    }

    fn criterion(&self) -> String {
        match &self.judged {
            Judged::By(claim) => claim.criterion(),
            Judged::Shown(_) => String::new(),
            Judged::Own { asks, .. } | Judged::Computed { asks, .. } => asks.sentence(),
        }
    }

    fn runs(&self, setting: &Setting) -> Vec<RunConfig> {
        self.grid.runs(setting)
    }

    fn is_of_larger_scale(&self, setting: &Setting) -> bool {
        let trains = !matches!(self.judged, Judged::Computed { .. }) && !self.grid.axes.is_empty();
        trains && self.grid.points(setting.scale).is_empty()
    }

    fn later(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Vec<RunConfig>> {
        let diverged = |run: &RunConfig| -> Result<Divergence> {
            match runs.has(run)? {
                true => Ok(Divergence::of(Outcome::of(runs.of(run)?, run).verdict.diverged)),
                false => Ok(Divergence::Unknown),
            }
        };
        self.grid.later(setting, &diverged)
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.is_of_larger_scale(setting) {
            return Ok(Findings::not_run());
        }
        let results = Results::new(setting, &self.grid, runs);
        let untrained = results.points.is_empty() && !self.grid.axes.is_empty();
        let mut findings = match &self.judged {
            Judged::By(claim) => claim.findings(&results)?,
            Judged::Shown(find) => find(&results)?,
            Judged::Own { effect, find, .. } | Judged::Computed { effect, find, .. } => {
                let found = find(&results)?;
                Findings { verdict: effect.judged(found.verdict), ..found }
            }
        };
        let views = if untrained { &[] } else { self.views };
        for view in views {
            findings.parts.extend(view.draw(&results)?);
        }
        Ok(findings)
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

impl Paper {
    /// The figures that are judged by a claim.
    pub fn claimed(&self) -> impl Iterator<Item = &'static Figure> + use<> {
        let figures =
            self.figures.iter().filter_map(|figure| figure.as_any()?.downcast_ref::<Figure>());
        figures.filter(|figure| matches!(figure.judged, Judged::By(_)))
    }
}
