//! The runs of a figure: axes whose levels are combined, over seeds, at each scale.
//!
//! A [`Level`] is a name and what it changes of a preset's configuration; a [`GridPoint`] is one level of
//! each axis, and its runs differ in their seed only.

use crate::run_config::{RunConfig, Setting};
use crate::study_scale::StudyScale;
use exmy::error::Result;
use exmy_train::nn::model::Config as Model;
use exmy_train::recipe::rule::{Selector, Start};
use exmy_train::recipe::{Recipe, TensorFormat};
use exmy_train::train::config::Config;
use exmy_train::train::data::Source;
use std::collections::VecDeque;
use std::fmt::Display;
use std::ops::Range;
use std::str::FromStr;

/// A value for each scale, the smallest first.
pub(super) type Scaled<T> = [T; 3];

/// One change of a configuration.
#[derive(Clone, Copy, Debug)]
pub enum Set {
    /// Another model.
    Model(&'static str),
    /// The recipe.
    Recipe(&'static str),
    /// More words of the recipe.
    With(&'static str),
    /// Other numbers of all operands after so many thirds of the run.
    Late(&'static str, u64),
    /// The peak learning rate.
    Rate(f64),
    /// Warm-up, as a part of all steps.
    Warmup(f64),
    /// The share of the text's tokens that are replaced by random ones.
    Noise(f64),
    /// What is measured on the way, so many times.
    Probes(&'static [&'static str], u64),
    /// Checkpoints after each third of the run but the last.
    KeepThirds,
    /// Whether the text is the task of recall in place of the setting's.
    Recall(Scaled<bool>),
    /// Whatever else.
    Change(fn(&mut Config, StudyScale)),
    /// Checkpoints after these steps.
    Keep(&'static [u64]),
    /// A recipe of no further words.
    Whole(&'static str),
    /// The rate stays what it is after the warm-up.
    Constant,
    /// Other steps than the grid's.
    Steps(u64),
    /// Steps and warm-up are the grid's at the paper's own sizes, too.
    Planned,
    /// Layers, and the width: of a language model with heads of 64 channels and a feed-forward layer of four
    /// widths.
    Layers(usize),
    Width(usize),
    /// Rows or sequences of a step.
    Batch(usize),
    /// What is measured, and the steps between two measurements.
    Measured(&'static [&'static str], Scaled<u64>),
    /// Several changes.
    All(&'static [Set]),
    /// Other changes at each scale.
    At(Scaled<&'static [Set]>),
    /// Changes where the point has that level of that axis.
    When(&'static str, &'static str, &'static [Set]),
    /// The run branches off from that of all changes before this; those after it are the branch's.
    After(After),
    /// At most so many seeds.
    Seeds(u64),
    /// There is no such grid point.
    Out,
}

/// When a branch leaves its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// After so many steps.
    Step(u64),
    /// After so many percent of the parent's steps.
    Percent(u64),
    /// So many steps before the parent diverges: a run of the [second stage](Grid::later).
    Before(u64),
    /// After so many percent of the steps until it diverges, likewise.
    Until(u64),
}

impl After {
    /// The step, unless it hangs on what becomes of the parent.
    fn step(self, steps: u64) -> Option<u64> {
        match self {
            Self::Step(step) => Some(step),
            Self::Percent(percent) => Some(steps * percent / 100),
            Self::Before(_) | Self::Until(_) => None,
        }
    }

    /// The step where the parent diverges at `end`; there is none before the first.
    fn in_second_stage(self, end: u64) -> Option<u64> {
        let step = match self {
            Self::Before(steps) => end.checked_sub(steps)?,
            Self::Until(percent) => end * percent / 100,
            Self::Step(_) | Self::Percent(_) => return None,
        };
        (step > 0).then_some(step)
    }
}

/// Whether a run diverged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divergence {
    /// It is not complete.
    Unknown,
    /// It came to its end without.
    None,
    /// At this step.
    At(u64),
}

impl Divergence {
    /// That of a complete run, by the step at which it diverged.
    pub fn of(step: Option<u64>) -> Self {
        step.map_or(Self::None, Self::At)
    }
}

/// What tells it.
pub(super) type Divergences<'a> = &'a dyn Fn(&RunConfig) -> Result<Divergence>;

/// One value of an axis; its name is unique on it.
#[derive(Clone, Copy, Debug)]
pub struct Level {
    /// What tables, pictures and claims call it.
    pub name: &'static str,
    /// Where it lies on an axis of numbers.
    pub(super) x: f64,
    pub(super) set: Set,
}

impl PartialEq for Level {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.x) == (other.name, other.x)
    }
}

/// A level that is no number.
pub const fn level(name: &'static str, set: Set) -> Level {
    Level { name, x: 0.0, set }
}

/// A level that is one.
pub(super) const fn number(name: &'static str, x: f64, set: Set) -> Level {
    Level { name, x, set }
}

/// A learning rate.
pub(crate) const fn rate(name: &'static str, lr: f64) -> Level {
    number(name, lr, Set::Rate(lr))
}

/// A preset.
pub(crate) const fn model(name: &'static str) -> Level {
    level(name, Set::Model(name))
}

/// A recipe.
pub(crate) const fn recipe(name: &'static str, text: &'static str) -> Level {
    level(name, Set::Recipe(text))
}

/// More words of a recipe.
pub(crate) const fn with(name: &'static str, words: &'static str) -> Level {
    level(name, Set::With(words))
}

/// What runs differ in.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// What one of its levels is: `rate`.
    pub(super) name: &'static str,
    pub(super) levels: Scaled<&'static [Level]>,
}

impl Axis {
    /// One with the same levels at every scale.
    pub const fn new(name: &'static str, levels: &'static [Level]) -> Self {
        Self::scaled(name, [levels; 3])
    }

    /// One with those of each scale.
    pub(crate) const fn scaled(name: &'static str, levels: Scaled<&'static [Level]>) -> Self {
        Self { name, levels }
    }
}

/// The runs of a figure.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// The preset.
    pub model: Scaled<&'static str>,
    /// Steps; the paper's own sizes come with the paper's own.
    pub steps: Scaled<u64>,
    /// The peak learning rate.
    pub rate: Scaled<f64>,
    /// How many seeds there are; where there are none, there are no grid points.
    pub seeds: Scaled<u64>,
    /// The first of them.
    pub first: Scaled<u64>,
    /// What else is changed of all runs.
    pub sets: &'static [Set],
    /// What grid points are made of, the first axis outermost.
    pub axes: &'static [Axis],
    /// A grid point in addition, with a level of one axis alone.
    pub extra: Option<(&'static str, Level)>,
    /// Grids of other figures whose runs are read, too.
    pub also: &'static [&'static Grid],
}

impl Grid {
    /// No runs.
    pub const NONE: Self = Self {
        model: [""; 3],
        steps: [0; 3],
        rate: [0.0; 3],
        seeds: [0; 3],
        first: [1; 3],
        sets: &[],
        axes: &[],
        extra: None,
        also: &[],
    };

    /// The axis of that name.
    ///
    /// # Panics
    /// If there is none: a mistake in a table, which the test of all tables finds.
    pub(super) fn axis(&self, name: &str) -> &'static Axis {
        let found = self.axes.iter().find(|axis| axis.name == name);
        found.unwrap_or_else(|| panic!("a grid has no axis {name:?}"))
    }

    /// All grid points, the extra one first.
    pub fn points(&self, scale: StudyScale) -> Vec<GridPoint> {
        if scale.pick(self.seeds) == 0 {
            return Vec::new();
        }
        let mut points = vec![GridPoint::default(); usize::from(!self.axes.is_empty())];
        for axis in self.axes {
            let with = |point: &GridPoint| -> Vec<GridPoint> {
                scale.pick(axis.levels).iter().map(|level| point.with(axis.name, level)).collect()
            };
            points = points.iter().flat_map(with).collect();
        }
        points
            .retain(|point| !self.sets_of(scale, point).iter().any(|set| matches!(set, Set::Out)));
        let extra = self.extra.map(|(axis, level)| GridPoint(vec![(axis, level)]));
        extra.into_iter().chain(points).collect()
    }

    /// The runs of a grid point, seed by seed.
    ///
    /// # Panics
    /// If a model or a recipe does not exist: a mistake in a table.
    pub fn runs_of(&self, setting: &Setting, point: &GridPoint) -> Vec<RunConfig> {
        self.seeds_of(setting, point).map(|seed| self.run(setting, point, seed)).collect()
    }

    /// The seeds of a grid point.
    fn seeds_of(&self, setting: &Setting, point: &GridPoint) -> Range<u64> {
        let first = setting.scale.pick(self.first);
        let most = self.sets_of(setting.scale, point).into_iter().filter_map(|set| match set {
            Set::Seeds(most) => Some(most),
            _ => None,
        });
        first..first + most.fold(setting.scale.pick(self.seeds), u64::min)
    }

    /// What is changed in a grid point, one by one.
    fn sets_of(&self, scale: StudyScale, point: &GridPoint) -> Vec<Set> {
        let mut all = Vec::new();
        let own = point.0.iter().map(|(_, level)| level.set);
        self.sets.iter().copied().chain(own).for_each(|set| flat(set, scale, point, &mut all));
        all
    }

    /// The run that a branch leaves, or the whole run, and when and with which changes a branch leaves it.
    fn begun(
        &self,
        setting: &Setting,
        point: &GridPoint,
        seed: u64,
    ) -> (RunConfig, Option<(After, Vec<Set>)>) {
        let sets = self.sets_of(setting.scale, point);
        let at = sets.iter().enumerate().find_map(|(at, set)| match set {
            Set::After(after) => Some((at, *after)),
            _ => None,
        });
        let own = &sets[..at.map_or(sets.len(), |(at, _)| at)];
        let run = RunConfig::new(self.config(setting, own, seed));
        (run, at.map(|(at, after)| (after, sets[at + 1..].to_vec())))
    }

    /// The run of a grid point; of one of the second stage, the run that it hangs on.
    fn run(&self, setting: &Setting, point: &GridPoint, seed: u64) -> RunConfig {
        let (run, branch) = self.begun(setting, point, seed);
        let step = branch.as_ref().and_then(|(after, _)| after.step(run.config.train.steps));
        let made = match (branch, step) {
            (Some((_, changes)), Some(step)) => self.branch(setting, &run, step, &changes),
            _ => run,
        };
        if let Err(error) = made.config.validate() {
            panic!("a study's configuration {point:?}: {error}");
        }
        made
    }

    fn branch(&self, setting: &Setting, run: &RunConfig, step: u64, changes: &[Set]) -> RunConfig {
        let (mut made, steps) = (run.branch(step), setting.scale.pick(self.steps));
        changes.iter().for_each(|set| more(&mut made.config, *set, steps, setting.scale));
        made
    }

    /// Whether a grid point is of the second stage.
    pub(super) fn is_later(&self, scale: StudyScale, point: &GridPoint) -> bool {
        let is = |set: &Set| matches!(set, Set::After(After::Before(_) | After::Until(_)));
        self.sets_of(scale, point).iter().any(is)
    }

    /// The runs of a grid point of the second stage, of those seeds whose run diverged and of as many whose
    /// run did not: the first of these is left at the steps at which the first that diverged is, and so on. A
    /// run is replayed from its last checkpoint before the first step at which any grid point leaves it, and
    /// keeps a checkpoint at all these steps.
    pub(super) fn later_of(
        &self,
        setting: &Setting,
        point: &GridPoint,
        diverged: Divergences<'_>,
    ) -> Result<Vec<RunConfig>> {
        let seeds: Vec<u64> = self.seeds_of(setting, point).collect();
        let parent = |&seed: &u64| diverged(&self.begun(setting, point, seed).0);
        let parents: Vec<Divergence> = seeds.iter().map(parent).collect::<Result<_>>()?;
        let ends = parents.iter().filter_map(|parent| match parent {
            Divergence::At(end) => Some(*end),
            _ => None,
        });
        // Until all are complete, who diverges first is not known.
        let all_known = !parents.contains(&Divergence::Unknown);
        let mut lent: VecDeque<u64> = ends.filter(|_| all_known).collect();
        let mut all = Vec::new();
        for (seed, end) in seeds.into_iter().zip(parents) {
            let (parent, Some((after, changes))) = self.begun(setting, point, seed) else {
                continue;
            };
            let end = match end {
                Divergence::At(end) => Some(end),
                Divergence::None => lent.pop_front(),
                Divergence::Unknown => None,
            };
            let Some(end) = end else { continue };
            let Some(step) = after.in_second_stage(end) else { continue };
            let others = self.points(setting.scale).into_iter().filter_map(|other| {
                let (run, branch) = self.begun(setting, &other, seed);
                branch.filter(|_| run == parent)?.0.in_second_stage(end)
            });
            let mut steps: Vec<u64> = others.collect();
            steps.sort_unstable();
            steps.dedup();
            let kept = parent.config.record.checkpoint_at.iter().copied();
            let replay = match kept.filter(|&kept| kept < steps[0]).max() {
                Some(kept) => parent.branch(kept),
                None => parent,
            };
            all.push(self.branch(setting, &replay.keeping(&steps), step, &changes));
        }
        Ok(all)
    }

    /// All runs of the second stage: their steps come from the outcome of the first one's.
    pub fn later(&self, setting: &Setting, diverged: Divergences<'_>) -> Result<Vec<RunConfig>> {
        let mut all = Vec::new();
        for point in self.points(setting.scale) {
            if self.is_later(setting.scale, &point) {
                all.extend(self.later_of(setting, &point, diverged)?);
            }
        }
        for grid in self.also {
            all.extend(grid.later(setting, diverged)?);
        }
        Ok(all)
    }

    fn config(&self, setting: &Setting, sets: &[Set], seed: u64) -> Config {
        let scale = setting.scale;
        let (mut model, mut steps) = (scale.pick(self.model), scale.pick(self.steps));
        let (mut lr, mut warmup) = (scale.pick(self.rate), 0.05);
        let mut planned = setting.scale != StudyScale::Paper;
        let mut text = None;
        for set in sets {
            match *set {
                Set::Model(name) => model = name,
                Set::Rate(rate) => lr = rate,
                Set::Warmup(share) => warmup = share,
                Set::Recall(is) if scale.pick(is) => text = Some(recall(scale)),
                Set::Steps(own) => steps = own,
                Set::Planned => planned = true,
                _ => {}
            }
        }
        let mut config = text.as_ref().unwrap_or(setting).config(model);
        config.recipe = recipe_of(sets, steps);
        config.seed = seed;
        (config.train.lr, config.train.lr_min) = (lr, lr / 10.0);
        // The paper's own sizes come with the paper's own schedule.
        if planned {
            (config.train.steps, config.train.warmup) = (steps, (warmup * steps as f64) as u64);
        }
        // Runs of a study are judged by their training losses; files are for resuming, evaluations for the
        // end.
        (config.record.eval_every, config.record.eval_windows) = (0, 32);
        config.record.checkpoint_every = 0;
        for set in sets {
            match *set {
                Set::Whole(_) => {}
                Set::Measured(names, every) => measured(&mut config, names, scale.pick(every)),
                set => more(&mut config, set, steps, scale),
            }
        }
        config
    }

    /// All runs, grid point by grid point, and those of other figures that are read.
    pub fn runs(&self, setting: &Setting) -> Vec<RunConfig> {
        let own = self.points(setting.scale).into_iter();
        let own = own.flat_map(|point| self.runs_of(setting, &point));
        own.chain(self.also.iter().flat_map(|grid| grid.runs(setting))).collect()
    }
}

/// The setting whose text is the task of recall.
///
/// # Panics
/// If it cannot be made, which no file has a part in.
fn recall(scale: StudyScale) -> Setting {
    match Setting::new(scale, Source::Recall { seed: 0 }) {
        Ok((setting, _)) => setting,
        Err(error) => panic!("the text of the task of recall: {error}"),
    }
}

/// The changes that one stands for in a grid point.
fn flat(set: Set, scale: StudyScale, point: &GridPoint, all: &mut Vec<Set>) {
    let sets = match set {
        Set::All(sets) => sets,
        Set::At(sets) => scale.pick(sets),
        Set::When(axis, name, sets) => {
            if point.level(axis).is_some_and(|level| level.name == name) { sets } else { &[] }
        }
        one => return all.push(one),
    };
    sets.iter().for_each(|set| flat(*set, scale, point, all));
}

/// The recipe that changes give: the last whole one, or the last base with all that is added to it.
fn recipe_of(sets: &[Set], steps: u64) -> Recipe {
    let last = |of: fn(&Set) -> Option<&'static str>| sets.iter().rev().find_map(of);
    if let Some(words) = last(|set| if let Set::Whole(words) = *set { Some(words) } else { None }) {
        return parsed(words);
    }
    let base = last(|set| if let Set::Recipe(words) = *set { Some(words) } else { None });
    sets.iter().fold(parsed(base.unwrap_or_default()), |recipe, set| match *set {
        Set::With(words) => read(words, recipe.with(words)),
        Set::Late(numbers, thirds) => {
            let from = Some(Start::Step(thirds * (steps / 3)));
            let numbers: TensorFormat = parsed(numbers);
            recipe.with_rule(Selector { from, ..Selector::ALL }.to(numbers))
        }
        _ => recipe,
    })
}

fn parsed<T: FromStr<Err: Display>>(text: &str) -> T {
    read(text, text.parse())
}

/// What was read of a recipe.
///
/// # Panics
/// If it cannot be: a mistake in a table.
fn read<T, E: Display>(text: &str, result: std::result::Result<T, E>) -> T {
    match result {
        Ok(read) => read,
        Err(error) => panic!("a study's recipe {text:?}: {error}"),
    }
}

fn measured(config: &mut Config, names: &[&str], every: u64) {
    config.record.probes = names.iter().map(|name| (*name).to_owned()).collect();
    config.record.probe_every = every;
}

/// What needs no other change.
fn more(config: &mut Config, set: Set, steps: u64, scale: StudyScale) {
    match set {
        Set::Change(change) => change(config, scale),
        Set::Noise(share) => config.data.noise = share,
        Set::Probes(names, times) => measured(config, names, (steps / times).max(1)),
        Set::KeepThirds => config.record.checkpoint_at = vec![steps / 3, 2 * steps / 3],
        Set::Keep(steps) => config.record.checkpoint_at = steps.to_vec(),
        Set::Whole(words) => config.recipe = parsed(words),
        Set::Constant => config.train.lr_min = config.train.lr,
        Set::Batch(rows) => config.train.batch = rows,
        Set::Layers(layers) => match &mut config.model {
            Model::Decoder(model) => model.layers = layers,
            Model::Proxy(model) => model.layers = layers,
        },
        Set::Width(width) => match &mut config.model {
            Model::Decoder(model) => {
                let heads = (width / 64).max(1);
                (model.d_model, model.hidden) = (width, 4 * width);
                (model.heads, model.kv_heads) = (heads, heads);
            }
            Model::Proxy(model) => model.width = width,
        },
        _ => {}
    }
}

/// Levels of some axes, of all in the grid points of a [`Grid`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GridPoint(pub(super) Vec<(&'static str, Level)>);

impl GridPoint {
    /// The same with a level of one more axis, or another one of an axis that it has.
    pub(super) fn with(&self, axis: &'static str, level: &Level) -> Self {
        let mut levels = self.0.clone();
        match levels.iter_mut().find(|(name, _)| *name == axis) {
            Some(own) => own.1 = *level,
            None => levels.push((axis, *level)),
        }
        Self(levels)
    }

    /// Its level of an axis.
    pub fn level(&self, axis: &str) -> Option<&Level> {
        self.0.iter().find(|(name, _)| *name == axis).map(|(_, level)| level)
    }

    /// Whether it has a level of that name.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(_, level)| level.name == name)
    }

    /// Its levels in words, but those of some axes.
    pub(super) fn words(&self, but: &[&str]) -> String {
        let own = self.0.iter().filter(|(axis, _)| !but.contains(axis));
        own.map(|(_, level)| level.name).collect::<Vec<_>>().join(", ")
    }
}
