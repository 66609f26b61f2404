//! The grid of runs that E21 to E26 search: both kinds of attention over rates, depths, planted channels and formats.
//!
//! The best of many cells is found by chance, so what counts is what all cells of a kind of model and learning rate show.

use super::common::{self, BF16, Kind};
use crate::nn::{decoder, model};
use crate::study::arm::{Arm, Scale, Setting};
use crate::train::config::Config;

/// What runs are trained in.
pub(super) const FORMATS: [&str; 2] = [BF16, "nv-nvfp4"];
/// Planted channels, as many as a set of hot ones has.
fn planted(width: usize) -> usize {
    width.div_ceil(20).max(16)
}

/// By how much those of the control are larger, as those of the planted cells are at the start.
const SCALE: f64 = 16.0;
/// So many that each of the two claims has 200 runs: those of SA, and those without planted channels.
const SEEDS: u64 = 5;

/// What runs of some seeds have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Cell {
    pub(super) kind: Kind,
    pub(super) lr: f64,
    pub(super) layers: usize,
    pub(super) planted: bool,
    pub(super) recipe: &'static str,
}

/// The learning rates.
pub(super) fn rates(setting: &Setting) -> Vec<f64> {
    setting.scale.pick([
        vec![2e-3],
        vec![2e-4, 6e-4, 2e-3, 6e-3, 2e-2],
        vec![2e-4, 6e-4, 2e-3, 6e-3, 2e-2],
        vec![3e-5, 1e-4, 3e-4, 1e-3, 3e-3],
    ])
}

pub(super) fn depths(setting: &Setting) -> Vec<usize> {
    setting.scale.pick([vec![2], vec![2, 4], vec![2, 4], vec![12, 24]])
}

/// The steps of a run, after which its weights are kept.
pub(super) fn steps(setting: &Setting) -> u64 {
    setting.scale.pick([10, 600, 600, 14_305])
}

/// All cells: those of one kind of model at one rate after another.
pub(super) fn cells(setting: &Setting) -> Vec<Cell> {
    let mut cells = Vec::new();
    for kind in Kind::ALL {
        for lr in rates(setting) {
            for layers in depths(setting) {
                for planted in [false, true] {
                    cells.extend(FORMATS.map(|recipe| Cell { kind, lr, layers, planted, recipe }));
                }
            }
        }
    }
    cells
}

/// The seeds of each cell.
pub(super) fn seeds(setting: &Setting) -> Vec<u64> {
    common::seeds(setting, SEEDS)
}

/// The runs; none where the search belongs to a larger scale.
pub(super) fn arms(setting: &Setting) -> Vec<Arm> {
    if setting.scale == Scale::Small {
        return Vec::new();
    }
    let seeds = seeds(setting);
    let of = |cell: Cell| seeds.iter().map(move |&seed| cell.arm(setting, seed));
    cells(setting).into_iter().flat_map(of).collect()
}

impl Cell {
    /// Whether its runs go on with channels planted in their weights, as the control of drifting and settling.
    pub(super) fn is_replanted(self, setting: &Setting) -> bool {
        let (rates, depths) = (rates(setting), depths(setting));
        let is_middle = self.lr == rates[rates.len() / 2] && self.layers == depths[0];
        is_middle && !self.planted && self.recipe == BF16
    }

    /// Whether channels are planted in its trained weights, as the control of the ranking.
    pub(super) fn is_control(self) -> bool {
        self.kind == Kind::Sa && !self.planted && self.recipe == BF16
    }

    /// What tables call it: kind, rate, layers, whether channels are planted, and what it is trained in.
    pub(super) fn words(self) -> [String; 5] {
        let Self { kind, lr, layers, planted, recipe } = self;
        let recipe = if recipe == BF16 { "bfloat16" } else { recipe };
        let planted = if planted { "yes" } else { "no" };
        [kind.name().into(), format!("{lr:e}"), layers.to_string(), planted.into(), recipe.into()]
    }

    /// A run of so many steps, without probes.
    pub(super) fn trial(self, setting: &Setting, seed: u64, steps: u64) -> Arm {
        let Self { kind, lr, layers, planted, recipe } = self;
        let preset = match kind {
            Kind::Gla => "gla-nano",
            Kind::Sa => "sa-micro",
        };
        let size = setting.scale.pick([64, 64, 64, 1024]);
        let heads = size / 32;
        let changes = format!(
            "model.layers = {layers}\nmodel.d_model = {size}\nmodel.hidden = {}\nmodel.heads = {heads}\nmodel.kv_heads = {heads}\n\
             model.context = {}\nmodel.sink = true\nmodel.hot_channels = {}\nrecipe = {recipe:?}\nseed = {seed}\n\
             train.steps = {steps}\ntrain.warmup = {}\ntrain.batch = 8\ntrain.lr = {lr:?}\ntrain.lr_min = {:?}\n\
             train.schedule = \"wsd\"\nrecord.eval_every = 0\nrecord.checkpoint_every = 0\nrecord.keep = 1\n\
             record.eval_windows = {}",
            3 * size,
            size,
            if planted { self::planted(size) } else { 0 },
            steps / 20,
            lr / 10.0,
            setting.scale.pick([4, 32, 32, 256]),
        );
        Arm::new(setting.config(preset, &changes))
    }

    /// A run of the grid, whose last weights are kept.
    pub(super) fn arm(self, setting: &Setting, seed: u64) -> Arm {
        let steps = steps(setting);
        let probes = match self.kind {
            Kind::Gla => r#"["hot"]"#,
            Kind::Sa => r#"["hot", "attention"]"#,
        };
        let every = (steps / 60).max(1);
        let changes = format!("record.probes = {probes}\nrecord.probe_every = {every}");
        common::changed(self.trial(setting, seed, steps), &changes).keeping(&[steps])
    }
}

/// Plants so many channels, by a run's seed, in its trained weights.
fn plant_some(config: &Config, params: &mut [f32], hot_channels: usize) {
    if let model::Config::Decoder(decoder) = &config.model {
        let planted = decoder::Config { hot_channels, ..*decoder };
        decoder.plant(params, &planted.hot(config.seed), SCALE);
    }
}

/// Plants as many as the planted cells have.
pub(super) fn plant(config: &Config, params: &mut [f32]) {
    plant_some(config, params, planted(config.model.decoder().map_or(0, |model| model.d_model)));
}

/// Plants one in the last layer alone. One, since kurtosis asks for few large values: the excess of normal ones is 9 at most where a quarter of them are
/// larger, and some 120 where each 64th is 16 times as large.
pub(super) fn plant_last(config: &Config, params: &mut [f32]) {
    let mut everywhere = params.to_vec();
    plant_some(config, &mut everywhere, 1);
    let layers = config.model.decoder().map_or(0, |model| model.layers);
    let last = format!("model.layers.{}.", layers.saturating_sub(1));
    for entry in config.model.layout().iter().filter(|entry| entry.name.starts_with(&last)) {
        params[entry.range.clone()].copy_from_slice(&everywhere[entry.range.clone()]);
    }
}

/// In how many cells something is seen, and at which rates in all of them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Hits {
    pub(super) hits: usize,
    pub(super) cells: usize,
    rates: Vec<f64>,
}

impl Hits {
    /// Of cells with their rates, each saying whether it shows it.
    pub(super) fn of(cells: impl IntoIterator<Item = (f64, bool)>) -> Self {
        let cells: Vec<(f64, bool)> = cells.into_iter().collect();
        let mut rates: Vec<f64> = cells.iter().map(|one| one.0).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        rates.retain(|rate| cells.iter().filter(|one| one.0 == *rate).all(|one| one.1));
        Self { hits: cells.iter().filter(|one| one.1).count(), cells: cells.len(), rates }
    }

    /// Whether there is a rate at which all cells show it.
    pub(super) fn any(&self) -> bool {
        !self.rates.is_empty()
    }

    /// `this in 8 of 20 cells, in all of them at 2e-4, 6e-4`.
    pub(super) fn told(&self, what: &str) -> String {
        format!("{what} in {} of {} cells, {}", self.hits, self.cells, self.words())
    }

    /// `in all of them at 2e-4, 6e-4`.
    pub(super) fn words(&self) -> String {
        match self.rates.as_slice() {
            [] => "at no rate in all of them".to_owned(),
            some => {
                let some: Vec<String> = some.iter().map(|lr| format!("{lr:e}")).collect();
                format!("in all of them at {}", some.join(", "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::train::run::load_data;
    use crate::train::trainer::Trainer;
    use std::collections::BTreeSet;

    #[test]
    fn all_cells_of_a_rate_count() {
        let hits = Hits::of([(1e-3, true), (1e-2, false), (1e-3, true), (1e-2, true)]);
        assert_eq!(
            (hits.hits, hits.cells, hits.words().as_str()),
            (3, 4, "in all of them at 1e-3")
        );
        assert_eq!(hits.told("tails"), "tails in 3 of 4 cells, in all of them at 1e-3");
        assert!(hits.any() && !Hits::of([(1e-3, true), (1e-3, false)]).any());
        assert_eq!(Hits::of([]).words(), "at no rate in all of them");
    }

    /// Planting in trained weights must change nothing but what is hot.
    #[test]
    fn planting_keeps_the_function_and_moves_the_magnitudes() {
        let setting = Setting::unread(Scale::Medium);
        let cell = Cell { kind: Kind::Sa, lr: 1e-3, layers: 2, planted: false, recipe: BF16 };
        assert!(cell.is_control());
        let config = cell.arm(&setting, 1).config;
        let before = config.model.initialize(config.seed);
        let mut after = before.clone();
        plant(&config, &mut after);
        let layout = config.model.layout();
        let of =
            |params: &[f32], name: &str| params[layout.find(name).unwrap().range.clone()].to_vec();
        let gains = of(&after, "model.layers.1.input_layernorm.weight");
        assert_eq!(gains.iter().filter(|gain| **gain == SCALE as f32).count(), planted(64));
        let name = "model.layers.1.self_attn.v_proj.weight";
        let (old, new) = (of(&before, name), of(&after, name));
        for (at, gain) in gains.iter().cycle().take(old.len()).enumerate() {
            assert_eq!(old[at], new[at] * gain, "{at}");
        }
        let name = "model.layers.1.mlp.down_proj.weight";
        assert_eq!(of(&before, name), of(&after, name));
    }

    #[test]
    fn planting_in_the_last_layer_moves_one_channel_there_alone() {
        let setting = Setting::unread(Scale::Medium);
        for kind in Kind::ALL {
            let cell = Cell { kind, lr: 1e-3, layers: 4, planted: false, recipe: BF16 };
            let config = cell.arm(&setting, 1).config;
            let before = config.model.initialize(config.seed);
            let mut after = before.clone();
            plant_last(&config, &mut after);
            let mut changed = Vec::new();
            for entry in config.model.layout().iter() {
                let pairs = before[entry.range.clone()].iter().zip(&after[entry.range.clone()]);
                let columns = pairs.enumerate().filter(|(_, (a, b))| a != b).map(|(at, _)| at % 64);
                let columns: BTreeSet<usize> = columns.collect();
                if !columns.is_empty() {
                    assert!(entry.name.starts_with("model.layers.3."), "{}", entry.name);
                    changed.push(columns);
                }
            }
            // Two gains, and what reads them.
            assert_eq!(changed.len(), if kind == Kind::Sa { 7 } else { 9 });
            assert!(changed.iter().all(|columns| columns.len() == 1 && *columns == changed[0]));
        }
    }

    #[test]
    fn planting_changes_no_bit_of_the_loss_in_bfloat16() {
        let setting = Setting::unread(Scale::Medium);
        let cell = Cell { kind: Kind::Sa, lr: 1e-3, layers: 2, planted: false, recipe: BF16 };
        let mut config = cell.arm(&setting, 1).config;
        config.data.fingerprint.clear();
        let data = load_data(&mut config).unwrap();
        let mut trainer = Trainer::new(&config, &data).unwrap();
        let mut loss = |params: &[f32], recipe: &str| {
            trainer.begin(params.to_vec());
            trainer.set_recipe(&recipe.parse().unwrap()).unwrap();
            trainer.validation_loss()
        };
        let before = config.model.initialize(1);
        for plant in [plant, plant_last] {
            let mut after = before.clone();
            plant(&config, &mut after);
            assert_eq!(loss(&before, BF16).to_bits(), loss(&after, BF16).to_bits());
            let nvfp4 = "nv-nvfp4+last=0";
            assert_ne!(loss(&before, nvfp4).to_bits(), loss(&after, nvfp4).to_bits());
        }
    }

    #[test]
    fn the_search_is_large_enough_to_count() {
        let setting = Setting::unread(Scale::Medium);
        let runs = |of: fn(&Cell) -> bool| {
            let mut names = Vec::new();
            for cell in cells(&setting).into_iter().filter(of) {
                names.extend(
                    seeds(&setting).into_iter().map(|seed| cell.arm(&setting, seed).name()),
                );
            }
            names.sort();
            names.dedup();
            names.len()
        };
        assert_eq!(runs(|cell| cell.kind == Kind::Sa), 200, "for the ranking of softmax attention");
        assert_eq!(runs(|cell| !cell.planted), 200, "for settling, tails and flushing");
        assert_eq!(arms(&setting).len(), 400);
        let rates = rates(&setting);
        assert!(rates.len() >= 5 && rates[rates.len() - 1] >= 99.0 * rates[0]);
    }
}
