//! Who watches a plan at work, and what is shown.

use crate::nn::site::{Operand, Place, Product, Site};
use crate::recipe::clip::Clip;
use exmy::quantizer::{Axis, Quantizer};
use exmy::slice::View;

/// One operand of one product, before and after rounding.
#[derive(Clone, Copy, Debug)]
pub struct Rounded<'a> {
    /// Which linear operator.
    pub site: Site,
    /// Which of its products.
    pub product: Product,
    /// Which operand of that.
    pub operand: Operand,
    /// What rounds it; [`Quantizer::NONE`] if nothing does. Its cast and rotation have been applied to
    /// `before` already if it rotates.
    pub quantizer: Quantizer,
    /// The range that is clipped before that, if one is.
    pub clip: Option<Clip>,
    /// The axis of the reduction, along which blocks run.
    pub axis: Axis,
    /// Input (tokens x in), weight (out x in) or output gradient (tokens x out). A rotated operand is
    /// shown in the coordinates in which it is rounded, filled up with zeros if its groups need that.
    pub before: View<'a, f32>,
    /// What is multiplied, of the same shape.
    pub after: View<'a, f32>,
}

/// Watches what happens at the sites; it draws no random bits and changes nothing. Each method does
/// nothing unless it is written.
pub trait Observer {
    /// An operand that is about to be multiplied. An input that several operators share is shown
    /// under each of them.
    fn operand(&mut self, seen: &Rounded<'_>) {
        let _ = seen;
    }

    /// What a product of one operator gave, patched and rounded: forward (tokens x out), `grad_input`
    /// (tokens x in) or `grad_weight` (out x in). The weight's gradient has what earlier parts of the
    /// step have added up. The input's is one sum for all operators of a group, shown under its first.
    fn output(&mut self, site: Site, product: Product, values: View<'_, f32>) {
        let _ = (site, product, values);
    }

    /// A tensor at a place, or (`gradient`) its gradient, after the recipe's rounding there, if any:
    /// (tokens x features). The rows of [`Place::Scores`] and [`Place::Probabilities`] are those of
    /// queries, and are shown only where a recipe rounds them.
    fn place(&mut self, layer: Option<u32>, place: Place, gradient: bool, values: View<'_, f32>) {
        let _ = (layer, place, gradient, values);
    }
}

/// Several observers, each of which sees everything.
impl Observer for Vec<&mut dyn Observer> {
    fn operand(&mut self, seen: &Rounded<'_>) {
        self.iter_mut().for_each(|one| one.operand(seen));
    }

    fn output(&mut self, site: Site, product: Product, values: View<'_, f32>) {
        self.iter_mut().for_each(|one| one.output(site, product, values));
    }

    fn place(&mut self, layer: Option<u32>, place: Place, gradient: bool, values: View<'_, f32>) {
        self.iter_mut().for_each(|one| one.place(layer, place, gradient, values));
    }
}
