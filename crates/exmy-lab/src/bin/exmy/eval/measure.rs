//! The windows of a text, measured on a device: all weights at once, or one layer of them at a time.

use super::bar::Bar;
use crate::methods::Methods;
use crate::phase::Phase;
use exmy::error::Result;
use exmy_lab::device::Place;
use exmy_train::evaluate::layers::Layers;
use exmy_train::evaluate::rotate::untied;
use exmy_train::evaluate::{Measures, Window, shape, together};
use exmy_train::inference::InferenceDevice;
use exmy_train::nn::decoder::Config;
use exmy_train::nn::parameters::Entry;
use exmy_train::published::Published;
use exmy_train::recipe::Recipe;

/// What is measured, and how.
pub(super) struct Job<'a> {
    pub(super) model: &'a mut Published,
    pub(super) tokens: &'a [u32],
    /// The model's, for windows of this length.
    pub(super) config: &'a Config,
    pub(super) recipes: &'a [Recipe],
    pub(super) blocks: &'a [Window],
    pub(super) methods: &'a Methods,
    /// A text that calibrates.
    pub(super) calibrating: &'a [u32],
    /// Tokens of it that the model sees at once.
    pub(super) together: usize,
    pub(super) by_layer: bool,
    /// Bytes of memory for rounded weights.
    pub(super) spare: u64,
    /// Whether operators are looked at in the first window.
    pub(super) watched: bool,
    pub(super) quiet: bool,
}

impl Job<'_> {
    /// What was found of each recipe.
    pub(super) fn measure(self, place: &Place) -> Result<Vec<(Measures, Layers)>> {
        let compiling = Phase::begin("preparing the device", self.quiet);
        let device = place.ready_for(self.config, self.recipes)?;
        drop(compiling);
        if self.by_layer { self.by_piece(&*device) } else { self.whole(&*device) }
    }

    fn by_piece(self, device: &dyn InferenceDevice) -> Result<Vec<(Measures, Layers)>> {
        let Self { model, tokens, config, recipes, blocks, spare, watched, quiet, .. } = self;
        let mut evaluation = device.evaluation(*config, None, recipes, spare)?;
        let mut bar = Bar::new(blocks.len(), quiet);
        let (mut done, together) = (0, together(config, recipes.len()));
        while done < blocks.len() {
            let watched = watched && done == 0;
            let to = if watched { 1 } else { blocks.len().min(done + together) };
            let load = &mut |entry: &Entry, values: &mut [f32]| model.fill(entry, values);
            evaluation.blocks(tokens, &blocks[done..to], done as u64, watched, load)?;
            done = to;
            bar.done(done, evaluation.measures());
        }
        bar.end(evaluation.measures());
        Ok(evaluation.found())
    }

    fn whole(self, device: &dyn InferenceDevice) -> Result<Vec<(Measures, Layers)>> {
        let Self { model, tokens, recipes, blocks, spare, quiet, .. } = self;
        let reading = Phase::begin("reading the weights", quiet);
        let params = model.weights(|_| {})?;
        let (config, params) = match self.methods.rotate {
            Some(_) => untied(self.config, params),
            None => (*self.config, params),
        };
        drop(reading);
        let changed = if self.methods.changes() {
            let mut changed = params.clone();
            let longest = Config { context: model.config().context, ..config };
            let mut seen = shape(&longest, self.together);
            self.methods.apply(&mut seen, &mut changed, self.calibrating, quiet)?;
            Some((Config { context: config.context, ..seen }, changed))
        } else {
            None
        };
        let mut evaluation = device.evaluation(config, Some(params), recipes, spare)?;
        changed.into_iter().for_each(|(config, changed)| evaluation.change(&config, changed));
        let mut bar = Bar::new(blocks.len(), quiet);
        for (number, window) in blocks.iter().enumerate() {
            let watched = self.watched && number == 0;
            evaluation.block(tokens, window, number as u64, watched)?;
            bar.done(number + 1, evaluation.measures());
        }
        bar.end(evaluation.measures());
        Ok(evaluation.found())
    }
}
