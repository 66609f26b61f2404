//! An evaluation with the parameters of one piece of the model in memory at a time.
//!
//! Some windows go through the model together: all of them under each recipe through the embedding, then
//! through one block after the other, then they are scored. Parameters are loaded once for all of them. The
//! measures are those of [`block`](Evaluation::block), bit for bit.

use super::{Compared, Evaluation, Window, copy, engine};
use crate::nn::decoder::Piece;
use crate::nn::device::Buffer;
use crate::nn::parameters::Entry;
use crate::recipe::Phase;
use crate::recipe::device::Quantize;
use exmy::error::{Error, Result};

impl<D: Quantize> Evaluation<D> {
    /// Measures blocks of a text, the first of which has a number; `load` fills a parameter. If they are
    /// `watched`, there is one.
    ///
    /// # Errors
    /// If a parameter cannot be loaded, there is no memory for a piece, or the device failed.
    ///
    /// # Panics
    /// As [`block`](Self::block), and if several blocks are watched.
    pub fn blocks(
        &mut self,
        text: &[u32],
        windows: &[Window],
        first: u64,
        watched: bool,
        load: &mut dyn FnMut(&Entry, &mut [f32]) -> Result<()>,
    ) -> Result<()> {
        assert!(!watched || windows.len() == 1, "one block is watched at a time");
        let phase = |w: usize| Phase::Evaluate { step: 0, pass: first + w as u64 };
        let mut streams: Vec<Vec<Buffer<D>>> = Vec::new();
        streams.resize_with(self.recipes.len(), Vec::new);
        for piece in self.decoder.pieces() {
            let params = self.load(piece, load)?;
            let Self { device, decoder, recipes, images, .. } = self;
            if piece == Piece::Head {
                recipes.iter_mut().for_each(|compared| compared.kept.forget());
                let mut seen = None;
                for (w, window) in windows.iter().enumerate() {
                    for (compared, streams) in self.recipes.iter_mut().zip(&mut streams) {
                        compared.states = core::mem::take(&mut streams[w]);
                        if watched {
                            let layers = &mut compared.layers;
                            layers.compare(seen.get_or_insert_with(|| layers.streams()));
                        }
                    }
                    let start = self.decoder.range(piece).start;
                    self.score([params.all(); 2], start, text, window, phase(w), watched);
                }
                continue;
            }
            for (compared, streams) in recipes.iter_mut().zip(&mut streams) {
                let Compared { plan, kept, layers, .. } = compared;
                // The parameters of this piece alone.
                kept.forget();
                core::mem::swap(&mut images.kept, kept);
                for (w, window) in windows.iter().enumerate() {
                    let watcher = watched.then_some(&mut *layers);
                    let engine = &mut engine(plan, phase(w), images, watcher);
                    if piece == Piece::Embedding {
                        let tokens = &text[window.tokens.clone()];
                        let found = decoder.embedded(params.all(), tokens, engine);
                        let (mut stream, len) = (Buffer::default(), found.len());
                        device.grow(&mut stream, len);
                        copy(device, found, &mut stream, len);
                        streams.push(stream);
                        continue;
                    }
                    let len = window.tokens.len() * decoder.config().d_model;
                    let found = decoder.through(piece, params.all(), streams[w].first(len), engine);
                    copy(device, found, &mut streams[w], len);
                }
                core::mem::swap(&mut images.kept, kept);
            }
        }
        self.device.check()
    }

    /// The parameters of a piece.
    fn load(
        &self,
        piece: Piece,
        load: &mut dyn FnMut(&Entry, &mut [f32]) -> Result<()>,
    ) -> Result<Buffer<D>> {
        let range = self.decoder.range(piece);
        let mut numbers = Vec::new();
        exmy::reserve::reserve(&mut numbers, range.len())
            .map_err(|_| Error::new(format!("there is no memory for {piece:?} in f32")))?;
        numbers.resize(range.len(), 0.0);
        let inside =
            |entry: &&Entry| range.start <= entry.range.start && entry.range.end <= range.end;
        for entry in self.decoder.layout().iter().filter(inside) {
            let place = entry.range.start - range.start..entry.range.end - range.start;
            load(entry, &mut numbers[place])?;
        }
        Ok(self.device.buffer(numbers))
    }
}
