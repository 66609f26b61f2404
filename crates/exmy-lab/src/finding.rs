//! What an experiment of a study is: which runs it needs, and what it makes of them.
//!
//! An [`Experiment`] is a figure of a paper, or a question of our own; [`studies`](crate::studies) lists
//! those of each. It names the paper's item and what that claims, asks for [runs](Experiment::runs), and
//! draws [`Findings`]: pictures, tables, sentences, and a verdict with the numbers it rests on. A claim is
//! only [reproduced](Verdict::Reproduced) when its criterion holds.

use crate::plot;
use crate::run_config::{RunConfig, Setting};
use crate::statistics::Interval;
use crate::store::Runs;
use exmy::error::Result;
use std::any::Any;

/// What the runs say about a claim, with the numbers.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// The criterion holds.
    Reproduced(String),
    /// It does not, and nothing shows the opposite either, though an effect of the paper's size would have
    /// been seen in four of five cases at least; or the runs have the paper's size, and it states none of its
    /// effect.
    NotSeen(String),
    /// The same, where such an effect would have been seen less often, or nobody knows how often.
    Untested(String),
    /// The opposite holds by the same criterion.
    Contradicted(String),
    /// A check of what follows from definitions, whatever the scale: what must be is.
    Holds(String),
    /// The same check, failed.
    Fails(String),
    /// There is no claim to judge, as of a definition that is drawn, or nothing to judge it by.
    Shown(String),
    /// Its runs belong to a larger scale.
    NotRun(String),
}

/// In how many cases a test would have seen an effect of the size that the paper states.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Power {
    /// In this share of them.
    Share(f64),
    /// Too few seeds say how they scatter.
    FewSeeds,
    /// There is no size that the test could be compared with, and why.
    NoSize(&'static str),
}

impl Power {
    /// That of a test of an effect of which the paper says that it is there, and not how large.
    pub const UNSTATED: Self = Self::NoSize("the paper states no size");
}

/// The share of cases in which an effect of the paper's size must be seen before its absence says anything.
pub(crate) const SEEN: f64 = 0.8;

impl Verdict {
    /// The word for it.
    pub const fn word(&self) -> &'static str {
        match self {
            Self::Reproduced(_) => "reproduced",
            Self::NotSeen(_) => "not seen at this scale",
            Self::Untested(_) => "untested at this size",
            Self::Contradicted(_) => "contradicted",
            Self::Holds(_) => "check holds",
            Self::Fails(_) => "check fails",
            Self::Shown(_) => "not judged",
            Self::NotRun(_) => "not run",
        }
    }

    /// Reproduced where the claim holds, contradicted where it does not and its opposite does.
    pub fn of(holds: bool, opposite: bool, text: String) -> Self {
        match (holds, opposite) {
            (true, _) => Self::Reproduced(text),
            (false, true) => Self::Contradicted(text),
            (false, false) => Self::NotSeen(text),
        }
    }

    /// What a check says of what must be.
    pub fn of_check(holds: bool, text: String) -> Self {
        if holds { Self::Holds(text) } else { Self::Fails(text) }
    }

    /// The same, where nothing is seen with the power that the test has.
    #[must_use]
    pub fn with_power(self, power: Power) -> Self {
        match (self, power) {
            (Self::NotSeen(text), Power::Share(share)) if share >= SEEN => Self::NotSeen(text),
            (Self::NotSeen(text), Power::Share(_)) => Self::Untested(text),
            (Self::NotSeen(text), Power::FewSeeds) => Self::Untested(format!(
                "{text}; too few seeds say how often this would see the paper's effect"
            )),
            (Self::NotSeen(text), Power::NoSize(why)) => Self::Untested(format!(
                "{text}; {why}, so how often this would see the effect is not known"
            )),
            (other, _) => other,
        }
    }

    /// What a difference that is claimed to be above 0 says, by its interval; `text` has the numbers.
    pub fn of_difference(gap: &Interval, text: String) -> Self {
        Self::of(gap.low > 0.0, gap.high < 0.0, text)
    }

    /// The same verdict with other words.
    pub fn with(&self, text: String) -> Self {
        match self {
            Self::Reproduced(_) => Self::Reproduced(text),
            Self::NotSeen(_) => Self::NotSeen(text),
            Self::Untested(_) => Self::Untested(text),
            Self::Contradicted(_) => Self::Contradicted(text),
            Self::Holds(_) => Self::Holds(text),
            Self::Fails(_) => Self::Fails(text),
            Self::Shown(_) => Self::Shown(text),
            Self::NotRun(_) => Self::NotRun(text),
        }
    }

    /// That of the first of several settings, with what was seen in the others.
    pub(crate) fn first_of(verdicts: &[Self]) -> Self {
        let Some((first, others)) = verdicts.split_first() else {
            return Self::Untested("nothing was tried".into());
        };
        let mut text = first.reason().to_owned();
        for other in others {
            text += &format!("; not judged ({}): {}", other.word(), other.reason());
        }
        first.with(text)
    }

    /// That on a claim which rests on a detector: whatever it says of the runs, nothing is tested unless it
    /// fires where it must.
    pub(crate) fn controlled(&self, fired: bool, control: &str) -> Self {
        let text = format!("{}; positive control: {control}", self.reason());
        if fired { self.with(text) } else { Self::Untested(format!("{text}, which did not fire")) }
    }

    /// How many parts of a claim are what: `2 of 3 parts reproduced, 1 not seen at this scale.`
    pub(crate) fn summary(parts: &[Self]) -> String {
        let mut words: Vec<(&str, usize)> = Vec::new();
        for part in parts {
            match words.iter_mut().find(|(word, _)| *word == part.word()) {
                Some((_, count)) => *count += 1,
                None => words.push((part.word(), 1)),
            }
        }
        let of = |(i, (word, count)): (usize, &(&str, usize))| match i {
            0 => format!("{count} of {} parts {word}", parts.len()),
            _ => format!("{count} {word}"),
        };
        words.iter().enumerate().map(of).collect::<Vec<_>>().join(", ") + "."
    }

    /// The numbers.
    pub fn reason(&self) -> &str {
        let (Self::Reproduced(text)
        | Self::NotSeen(text)
        | Self::Untested(text)
        | Self::Contradicted(text)
        | Self::Holds(text)
        | Self::Fails(text)
        | Self::Shown(text)
        | Self::NotRun(text)) = self;
        text
    }
}

/// A table of a report.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What it shows, in what units.
    pub caption: String,
    /// Names of the columns.
    pub header: Vec<String>,
    /// Cells, row by row; numbers as they are to be read.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(caption: impl Into<String>, header: &[&str]) -> Self {
        let header = header.iter().map(|name| (*name).to_owned()).collect();
        Self { caption: caption.into(), header, rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The same as comma-separated values.
    pub fn csv(&self) -> String {
        let cell = |cell: &String| match cell.contains([',', '"', '\n']) {
            true => format!("\"{}\"", cell.replace('"', "\"\"")),
            false => cell.clone(),
        };
        let line =
            |cells: &Vec<String>| cells.iter().map(cell).collect::<Vec<_>>().join(",") + "\n";
        std::iter::once(&self.header).chain(&self.rows).map(line).collect()
    }
}

/// A part of what a figure shows, in the order of the page.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// A paragraph.
    Text(String),
    /// A picture.
    Picture(plot::Figure),
    /// A table.
    Table(Table),
}

/// What a figure makes of its runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// What it says about the claim.
    pub verdict: Verdict,
    /// What it says about each part of a claim that has several.
    pub judged: Vec<Verdict>,
    /// What it shows.
    pub parts: Vec<Part>,
}

impl Findings {
    /// Those of a figure whose runs are trained at a larger scale.
    pub fn not_run() -> Self {
        let verdict = Verdict::NotRun("its runs belong to a larger scale".into());
        Self::of(verdict, Vec::new())
    }

    /// Those of a claim in one part.
    pub fn of(verdict: Verdict, parts: Vec<Part>) -> Self {
        Self { verdict, judged: Vec::new(), parts }
    }
}

/// One figure or table of a paper, or a question of our own.
pub trait Experiment: Sync {
    /// How the command line calls it: `BR-6`.
    fn id(&self) -> &'static str;

    /// What it shows, in a few words.
    fn title(&self) -> &'static str;

    /// The paper's own item.
    fn source(&self) -> &'static str;

    /// What is claimed, and when it counts as reproduced here.
    fn claim(&self) -> &'static str;

    /// When it counts as reproduced, if the claim does not say so.
    fn criterion(&self) -> String {
        String::new()
    }

    /// The runs it needs; none if it computes what it shows.
    fn runs(&self, setting: &Setting) -> Vec<RunConfig>;

    /// Whether all its runs belong to a larger scale, so that it shows nothing at this one.
    fn is_of_larger_scale(&self, _setting: &Setting) -> bool {
        false
    }

    /// The runs of a second stage, whose steps come from what became of those: asked for when these are
    /// trained, and of those that are complete.
    ///
    /// # Errors
    /// If a run's files cannot be read.
    fn later(&self, _setting: &Setting, _runs: &Runs<'_>) -> Result<Vec<RunConfig>> {
        Ok(Vec::new())
    }

    /// What the runs show.
    ///
    /// # Errors
    /// If a run's files cannot be read.
    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings>;

    /// Itself as its type, where others may ask for that.
    fn as_any(&self) -> Option<&dyn Any> {
        None
    }
}

/// A study: what one paper measured.
#[derive(Clone, Copy)]
pub struct Paper {
    /// How the command line calls it.
    pub name: &'static str,
    /// Of its report.
    pub title: &'static str,
    /// The paper.
    pub source: &'static str,
    /// What it is about, and what the report can and cannot say.
    pub about: &'static str,
    /// Its figures.
    pub figures: &'static [&'static dyn Experiment],
}
