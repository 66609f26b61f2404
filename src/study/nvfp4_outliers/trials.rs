//! E27 and E28: the searches behind E12 and E18, which compare recipes in training and see no difference at their rate.
//!
//! Both read [differences](crate::study::differences) of gaps to bfloat16 of gated linear attention over the rates and depths of E21's
//! grid, in shorter runs: with channels planted, 16 times as large as others, as E12 has them, or 64 (E27), or without and with those of 16 (E28).

use super::common::{self, BF16, Kind, changed};
use super::grid::{self, Cell};
use crate::error::Result;
use crate::study::arm::{Arm, Scale, Setting};
use crate::study::differences::{self, Beside, Found, less};
use crate::study::finding::{Figure, Findings};
use crate::study::store::Runs;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// E27: patches where channels are planted.
    Patches,
    /// E28: NVFP4 beside MXFP4.
    Formats,
}

pub(super) const NVFP4: &str = "nv-nvfp4+last=0";

/// Patches of as many channels of each input as a quarter of the model's, and as all of the model's; inputs of down_proj have three
/// times as many.
fn patched(setting: &Setting) -> [&'static str; 2] {
    let few = ["nv-nvfp4+last=0+hcp=s-o2-b-k16", "nv-nvfp4+last=0+hcp=s-o2-b-k64"];
    let full = ["nv-nvfp4+last=0+hcp=s-o2-b-k256", "nv-nvfp4+last=0+hcp=s-o2-b-k1024"];
    setting.scale.pick([few, few, few, full])
}

const MXFP4: &str = "nv-mxfp4+last=0";
/// Every product in MXFP4, the head's as well, nothing rotated and nothing rounded stochastically: worse than either.
const WORSE: &str = "mxfp4";

/// Columns of a trial's words.
pub(super) const COLUMNS: [&str; 2] = ["layers", "planted, times"];

/// What runs of some seeds have in common that differ in their numbers only.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Trial {
    pub(super) lr: f64,
    pub(super) layers: usize,
    /// How many times as large four planted channels begin; none are planted if 1.
    pub(super) times: f64,
}

/// The steps of a trial.
pub(super) fn steps(setting: &Setting) -> u64 {
    setting.scale.pick([10, 300, 300, 14_305])
}

/// All cells, rate by rate, whose planted channels begin so many times as large.
pub(super) fn trials(setting: &Setting, times: [f64; 2]) -> Vec<Trial> {
    let mut trials = Vec::new();
    for lr in grid::rates(setting) {
        for layers in grid::depths(setting) {
            trials.extend(times.map(|times| Trial { lr, layers, times }));
        }
    }
    trials
}

impl Trial {
    fn arms(self, setting: &Setting, recipe: &str) -> Vec<Arm> {
        let seeds = common::seeds(setting, 4).into_iter();
        seeds.map(|seed| self.arm(setting, recipe, seed)).collect()
    }

    /// A run, without probes.
    pub(super) fn arm(self, setting: &Setting, recipe: &str, seed: u64) -> Arm {
        let Self { lr, layers, times } = self;
        let cell = Cell { kind: Kind::Gla, lr, layers, planted: false, recipe: BF16 };
        let hot = if times > 1.0 { 4 } else { 0 };
        // What is not planted is no setting of its own.
        let scale = if times > 1.0 { times } else { 16.0 };
        let changes =
            format!("recipe = {recipe:?}\nmodel.hot_channels = {hot}\nmodel.hot_scale = {scale:?}");
        changed(cell.trial(setting, seed, steps(setting)), &changes)
    }

    /// What tables call it beside its rate: layers, how many times as large planted channels begin.
    pub(super) fn words(self) -> Vec<String> {
        vec![self.layers.to_string(), self.times.to_string()]
    }

    /// Mean training losses of the last tenth of the steps, by seed.
    fn losses(self, setting: &Setting, runs: &Runs<'_>, recipe: &str) -> Result<Vec<f64>> {
        let tail = |arm: &Arm| Ok(runs.of(arm)?.tail_loss());
        self.arms(setting, recipe).iter().map(tail).collect()
    }
}

impl Search {
    /// All cells, rate by rate.
    fn trials(self, setting: &Setting) -> Vec<Trial> {
        let times = match self {
            Self::Patches => [16.0, 64.0],
            Self::Formats => [1.0, 16.0],
        };
        trials(setting, times)
    }

    /// What is trained in a cell: bfloat16, what is compared, and what the control is.
    fn recipes(self, setting: &Setting) -> [&'static str; 4] {
        let [few, all] = patched(setting);
        match self {
            Self::Patches => [BF16, NVFP4, few, all],
            Self::Formats => [BF16, NVFP4, MXFP4, WORSE],
        }
    }

    fn found(self, setting: &Setting, runs: &Runs<'_>, trial: Trial) -> Result<Found> {
        let of = |recipe: &str| trial.losses(setting, runs, recipe);
        let [base, own, other, control] = self.recipes(setting);
        let (base, own) = (of(base)?, of(own)?);
        let arms = trial.arms(setting, BF16);
        let model = arms.first().and_then(|arm| arm.config.model.decoder());
        let vocab = model.map_or(1, |model| model.vocab);
        // In percent of the loss in bfloat16, as gaps are, which like the others is at most that of a guess.
        let guess = libm::log(vocab as f64);
        let points = |a: &[f64], b: &[f64]| -> Vec<f64> {
            let pairs = less(a, b, vocab).into_iter().zip(&base);
            pairs.map(|(d, base)| 100.0 * d / base.min(guess)).collect()
        };
        let beside = points(&own, &base);
        let [searched, control] = match self {
            Self::Patches => [points(&own, &of(other)?), points(&own, &of(control)?)],
            Self::Formats => [points(&of(other)?, &own), points(&of(control)?, &own)],
        };
        Ok(Found { lr: trial.lr, words: trial.words(), searched, control, beside })
    }
}

impl Figure for Search {
    fn id(&self) -> &'static str {
        match self {
            Self::Patches => "E27",
            Self::Formats => "E28",
        }
    }

    fn title(&self) -> &'static str {
        match self {
            Self::Patches => "patches in training with planted channels: the search",
            Self::Formats => "NVFP4 and MXFP4: the search",
        }
    }

    fn source(&self) -> &'static str {
        match self {
            Self::Patches => {
                "a question of this study's own, behind E12 (arXiv 2602.02047, hot-channel patches)"
            }
            Self::Formats => {
                "a question of this study's own, behind E18 (arXiv 2509.25149, Figure 6)"
            }
        }
    }

    fn claim(&self) -> &'static str {
        match self {
            Self::Patches => {
                "There is a learning rate at which patching 16 channels of each input, of 64 or 192, makes the gap of NVFP4 to bfloat16 smaller, over \
                 models of two and four layers of which four channels begin 16 or 64 times as large, in runs of 300 steps at five rates (at medium). \
                 Reproduced if at a rate the interval of the paired differences lies above 0, of the means over cells of each seed, at 99 % as there are \
                 five. The control: patching 64 channels of each input, all but down_proj's, must be seen to make it smaller."
            }
            Self::Formats => {
                "There is a learning rate at which the gap of NVFP4 to bfloat16 is below that of MXFP4 under the same recipe, over models of two and \
                 four layers without planted channels and with four of 16 times, in runs of 300 steps at five rates (at medium). Reproduced if at a \
                 rate the interval of the paired differences lies above 0, of the means over cells of each seed, at 99 % as there are five. The control: \
                 MXFP4 in every product, the head's as well, without rotations and stochastic rounding, must be seen above NVFP4."
            }
        }
    }

    fn arms(&self, setting: &Setting) -> Vec<Arm> {
        if setting.scale == Scale::Small {
            return Vec::new();
        }
        let of = |trial: Trial| {
            self.recipes(setting).into_iter().flat_map(move |recipe| trial.arms(setting, recipe))
        };
        self.trials(setting).into_iter().flat_map(of).collect()
    }

    fn find(&self, setting: &Setting, runs: &Runs<'_>) -> Result<Findings> {
        if self.arms(setting).is_empty() {
            return Ok(Findings::not_run());
        }
        let trials = self.trials(setting).into_iter();
        let found: Vec<Found> =
            trials.map(|trial| self.found(setting, runs, trial)).collect::<Result<_>>()?;
        let (title, names, legend) = match self {
            Self::Patches => (
                "What patches save of the gap of NVFP4, by learning rate",
                [
                    "NVFP4 above NVFP4 with 16 channels patched",
                    "NVFP4 above NVFP4 with 64 patched",
                    "NVFP4 above bfloat16",
                ],
                ["saved by 16", "saved by 64", "the gap"],
            ),
            Self::Formats => (
                "How much MXFP4 is above NVFP4, by learning rate",
                ["MXFP4 above NVFP4", "MXFP4 everywhere above NVFP4", "NVFP4 above bfloat16"],
                ["MXFP4 - NVFP4", "everywhere", "NVFP4 - bf16"],
            ),
        };
        let search = differences::Search {
            title,
            names,
            legend,
            unit: "% of the loss in bfloat16",
            least: 0.0,
            asks: Beside::Told,
            rates: grid::rates(setting),
            columns: COLUMNS.to_vec(),
        };
        Ok(search.find(&found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_searches_are_large_enough_to_count() {
        let setting = Setting::unread(Scale::Medium);
        let count = |search: Search, recipes: &[&str]| {
            let of = |trial: Trial| {
                recipes.iter().flat_map(|one| trial.arms(&setting, one)).collect::<Vec<_>>()
            };
            let mut names: Vec<String> =
                search.trials(&setting).into_iter().flat_map(of).map(|arm| arm.name()).collect();
            names.sort();
            names.dedup();
            names.len()
        };
        assert_eq!(count(Search::Patches, &Search::Patches.recipes(&setting)[..3]), 240);
        assert_eq!(count(Search::Formats, &Search::Formats.recipes(&setting)[..3]), 240);
        let rates = grid::rates(&setting);
        assert!(rates.len() >= 5 && rates[rates.len() - 1] >= 99.0 * rates[0]);
    }

    #[test]
    fn channels_are_planted_where_said() {
        let setting = Setting::unread(Scale::Medium);
        let of = |times: f64| {
            let trial = Trial { lr: 1e-3, layers: 2, times };
            let config = trial.arms(&setting, NVFP4).remove(0).config;
            let model = *config.model.decoder().unwrap();
            (model.hot_channels, model.hot_scale, config.recipe.to_string())
        };
        assert_eq!(of(64.0), (4, 64.0, NVFP4.to_owned()));
        assert_eq!(of(1.0).0, 0);
        // What E28 has of planted channels it shares with E27.
        let names = |search: Search| -> Vec<String> {
            search.arms(&setting).iter().map(Arm::name).collect()
        };
        let (patches, formats) = (names(Search::Patches), names(Search::Formats));
        assert_eq!(formats.iter().filter(|name| patches.contains(name)).count(), 80);
    }
}
