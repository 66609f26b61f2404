//! The runs of a figure: axes whose levels are combined, over seeds, at each scale.
//!
//! A [`Level`] is a name and what it changes of a preset's configuration; a [`Cell`] is one level of each
//! axis, and its runs differ in their seed only.

use crate::arm::{Arm, Scale, Setting};
use exmy_train::recipe::Recipe;
use exmy_train::train::config::Config;
use exmy_train::train::data::Source;

/// A value for each scale, the smallest first.
pub(super) type Scaled<T> = [T; 3];

/// One change of a configuration.
#[derive(Clone, Copy, Debug)]
pub(super) enum Set {
    /// Another model.
    Model(&'static str),
    /// The recipe.
    Recipe(&'static str),
    /// A recipe with the step, so many thirds of the run, in place of `{}`.
    Switched(&'static str, u64),
    /// More words of the recipe.
    With(&'static str),
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
    Change(fn(&mut Config, Scale)),
    /// A run that goes on from another one.
    Branch(Branch),
    /// Several of these, in order.
    All(&'static [Set]),
}

/// A run that goes on from one of another recipe, without probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Branch {
    /// The recipe of that run, which keeps the checkpoint.
    pub(super) of: &'static str,
    /// After so many percent of its steps.
    pub(super) percent: u64,
    pub(super) recipe: &'static str,
    pub(super) change: fn(&mut Config, Scale),
}

impl Branch {
    fn off(&self, arm: &Arm, scale: Scale) -> Arm {
        let mut own = arm.branch(arm.config.train.steps * self.percent / 100, "");
        own.config.recipe = parsed(self.recipe);
        own.config.record.probes.clear();
        (self.change)(&mut own.config, scale);
        own
    }
}

impl Set {
    /// One by one.
    fn each(&self, all: &mut Vec<Self>) {
        match self {
            Self::All(sets) => sets.iter().for_each(|set| set.each(all)),
            one => all.push(*one),
        }
    }
}

/// A recipe of a table.
///
/// # Panics
/// If there is none: a mistake in a table.
fn parsed(text: &str) -> Recipe {
    match text.parse() {
        Ok(recipe) => recipe,
        Err(error) => panic!("a study's recipe {text:?}: {error}"),
    }
}

/// One of an axis, told from the others by its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct Level {
    /// What tables, pictures and claims call it.
    pub(super) name: &'static str,
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
pub(super) const fn level(name: &'static str, set: Set) -> Level {
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
pub(super) struct Axis {
    /// What one of its levels is: `rate`.
    pub(super) name: &'static str,
    pub(super) levels: Scaled<&'static [Level]>,
}

impl Axis {
    /// One with the same levels at every scale.
    pub(super) const fn new(name: &'static str, levels: &'static [Level]) -> Self {
        Self::scaled(name, [levels; 3])
    }

    /// One with those of each scale.
    pub(crate) const fn scaled(name: &'static str, levels: Scaled<&'static [Level]>) -> Self {
        Self { name, levels }
    }
}

/// The runs of a figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid {
    /// The preset.
    pub(super) model: Scaled<&'static str>,
    /// Steps; the paper's own sizes come with the paper's own.
    pub(super) steps: Scaled<u64>,
    /// The peak learning rate.
    pub(super) rate: Scaled<f64>,
    /// How many seeds there are, from 1 on.
    pub(super) seeds: Scaled<u64>,
    /// What else is changed of all runs.
    pub(super) sets: &'static [Set],
    /// What cells are made of, the first axis outermost.
    pub(super) axes: &'static [Axis],
    /// A cell beside those, with a level of one axis alone.
    pub(super) beside: Option<(&'static str, Level)>,
    /// Grids of other figures whose runs are read, too.
    pub(super) also: &'static [&'static Grid],
}

impl Grid {
    /// No runs.
    pub(super) const NONE: Self = Self {
        model: [""; 3],
        steps: [0; 3],
        rate: [0.0; 3],
        seeds: [0; 3],
        sets: &[],
        axes: &[],
        beside: None,
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

    /// All cells, that beside the others first.
    pub(super) fn cells(&self, scale: Scale) -> Vec<Cell> {
        let mut cells = vec![Cell::default(); usize::from(!self.axes.is_empty())];
        for axis in self.axes {
            let with = |cell: &Cell| -> Vec<Cell> {
                scale.pick(axis.levels).iter().map(|level| cell.with(axis.name, level)).collect()
            };
            cells = cells.iter().flat_map(with).collect();
        }
        let beside = self.beside.map(|(axis, level)| Cell(vec![(axis, level)]));
        beside.into_iter().chain(cells).collect()
    }

    /// The runs of a cell, seed by seed.
    ///
    /// # Panics
    /// If a model or a recipe does not exist: a mistake in a table.
    pub(super) fn arms_of(&self, setting: &Setting, cell: &Cell) -> Vec<Arm> {
        (1..=setting.scale.pick(self.seeds)).map(|seed| self.arm(setting, cell, seed)).collect()
    }

    fn arm(&self, setting: &Setting, cell: &Cell, seed: u64) -> Arm {
        let scale = setting.scale;
        let (mut model, steps) = (scale.pick(self.model), scale.pick(self.steps));
        let (mut lr, mut warmup) = (scale.pick(self.rate), 0.05);
        let (mut recipe, mut added) = (String::new(), String::new());
        let (mut text, mut branch, mut sets) = (None, None, Vec::new());
        let levels = cell.0.iter().map(|(_, level)| &level.set);
        self.sets.iter().chain(levels).for_each(|set| set.each(&mut sets));
        for set in &sets {
            match *set {
                Set::Model(name) => model = name,
                Set::Recipe(text) => recipe = text.to_owned(),
                Set::Switched(text, thirds) => {
                    recipe = text.replace("{}", &(thirds * (steps / 3)).to_string());
                }
                Set::With(words) => added += words,
                Set::Rate(rate) => lr = rate,
                Set::Warmup(share) => warmup = share,
                Set::Recall(is) if scale.pick(is) => text = Some(recall(scale)),
                Set::Branch(one) => {
                    recipe = one.of.to_owned();
                    branch = Some(one);
                }
                _ => {}
            }
        }
        let mut config = text.as_ref().unwrap_or(setting).config(model, "");
        config.recipe = parsed(&(recipe + &added));
        config.seed = seed;
        (config.train.lr, config.train.lr_min) = (lr, lr / 10.0);
        // The paper's own sizes come with the paper's own schedule.
        if setting.scale != Scale::Paper {
            (config.train.steps, config.train.warmup) = (steps, (warmup * steps as f64) as u64);
        }
        // Runs of a study are judged by their training losses; files are for resuming, evaluations for the
        // end.
        (config.record.eval_every, config.record.eval_windows) = (0, 32);
        config.record.checkpoint_every = 0;
        for set in sets {
            more(&mut config, set, steps, scale);
        }
        if let Err(error) = config.validate() {
            panic!("a study's configuration {cell:?}: {error}");
        }
        let arm = Arm::new(config);
        match branch {
            Some(branch) => branch.off(&arm, scale),
            None => arm,
        }
    }

    /// All runs, cell by cell, and those of other figures that are read.
    pub(super) fn arms(&self, setting: &Setting) -> Vec<Arm> {
        let own = self.cells(setting.scale).into_iter();
        let own = own.flat_map(|cell| self.arms_of(setting, &cell));
        own.chain(self.also.iter().flat_map(|grid| grid.arms(setting))).collect()
    }
}

/// The setting whose text is the task of recall.
///
/// # Panics
/// If it cannot be made, which no file has a part in.
fn recall(scale: Scale) -> Setting {
    match Setting::new(scale, Source::Recall { seed: 0 }) {
        Ok((setting, _)) => setting,
        Err(error) => panic!("the text of the task of recall: {error}"),
    }
}

/// What needs no other change.
fn more(config: &mut Config, set: Set, steps: u64, scale: Scale) {
    match set {
        Set::Change(change) => change(config, scale),
        Set::Noise(share) => config.data.noise = share,
        Set::Probes(names, times) => {
            config.record.probes = names.iter().map(|name| (*name).to_owned()).collect();
            config.record.probe_every = (steps / times).max(1);
        }
        Set::KeepThirds => config.record.checkpoint_at = vec![steps / 3, 2 * steps / 3],
        _ => {}
    }
}

/// Levels of some axes, of all in the cells of a [`Grid`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cell(pub(super) Vec<(&'static str, Level)>);

impl Cell {
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
    pub(super) fn level(&self, axis: &str) -> Option<&Level> {
        self.0.iter().find(|(name, _)| *name == axis).map(|(_, level)| level)
    }

    /// Whether it has a level of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(_, level)| level.name == name)
    }

    /// Its levels in words, but those of some axes.
    pub(super) fn words(&self, but: &[&str]) -> String {
        let own = self.0.iter().filter(|(axis, _)| !but.contains(axis));
        own.map(|(_, level)| level.name).collect::<Vec<_>>().join(", ")
    }
}
