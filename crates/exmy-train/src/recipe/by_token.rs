//! Whether a recipe takes each token by itself in a forward pass: its products are then the same bits
//! whatever other tokens are given together with it, and a sequence may be computed piece by piece.
//!
//! It does not where rows share a scale or a block, where random bits or the memory of earlier steps enter,
//! where operators are patched, and where scores or probabilities of the attention are rounded, which a cache
//! of keys and values does not hold. Weights may have any numbers but random ones.

use crate::nn::site::{Operand, Place, Product, Site, Vector};
use crate::recipe::plan::Plan;
use crate::recipe::sums::Sums;
use crate::recipe::tensor_format::{Prior, TensorFormat};
use exmy::block::Shape;
use exmy::quantizer::{Quantizer, Target};

/// Whether no random bits and nothing of other steps enters.
fn is_fixed(numbers: &TensorFormat) -> bool {
    !numbers.is_random() && numbers.window == 0
}

/// Whether a quantizer rounds each row by itself.
fn rounds_rows(quantizer: Quantizer) -> bool {
    match quantizer.target {
        Target::None | Target::Format(_) => true,
        Target::Block(format) => {
            !format.tensor_scale && matches!(format.shape, Shape::Along(_) | Shape::Row)
        }
        _ => false,
    }
}

/// Whether numbers of rows of tokens are each row's own.
fn is_by_row(numbers: &TensorFormat) -> bool {
    let prior = match numbers.prior {
        None | Some(Prior::Mask(_) | Prior::Zero | Prior::Times(_)) => true,
        Some(Prior::Clip(clip)) => !clip.scaled,
        Some(Prior::Quantizer(first)) => rounds_rows(first),
    };
    prior
        && is_fixed(numbers)
        && rounds_rows(numbers.quantizer)
        && !numbers.across
        && !numbers.by_position
}

impl Plan {
    /// Whether forward passes in a step take each token by itself; see the [module](self).
    pub(crate) fn is_by_token(&self, step: u64) -> bool {
        let forward = |site: Site, operand| self.operand(step, site, Product::Forward, operand);
        let linear = |site: Site| {
            let sums = match self.sums(step, site, Product::Forward) {
                Some(Sums::Steps(sum)) => !sum.accumulator.rounding.is_stochastic(),
                Some(Sums::Cores(_)) | None => true,
            };
            sums && self.patch(step, site).is_none()
                && is_by_row(&forward(site, Operand::Input))
                && is_fixed(&forward(site, Operand::Weight))
                && is_by_row(&self.output(step, site, Product::Forward))
        };
        let layers = || self.linears().iter().map(|linear| linear.site.layer).chain([None]);
        let place = |(layer, place)| {
            let numbers = self.place(step, layer, place, false);
            match place {
                Place::Scores | Place::Probabilities => numbers.is_none(),
                _ => is_by_row(&numbers),
            }
        };
        let vector = |(layer, vector)| {
            self.vector(step, layer, vector, false).is_none_or(|rounding| !rounding.is_stochastic())
        };
        let places = |layer| Place::ALL.iter().map(move |&place| (layer, place));
        let vectors = |layer| Vector::ALL.iter().map(move |&vector| (layer, vector));
        self.linears().iter().all(|of| linear(of.site))
            && layers().flat_map(places).all(place)
            && layers().flat_map(vectors).all(vector)
    }
}
