//! What recipes ask of a device: rounding, packed products, products in orders of their own, patches.
//!
//! [`Quantize`] goes on from [`Device`], whose numbers are f32 here. The [`Engine`](super::Engine) decides
//! what is rounded how; a device does it. Every device gives the bits of [`Cpu`](crate::nn::Cpu). Sums and
//! failures are as [there](crate::nn::device) described.

mod cpu;

use core::fmt::Debug;

use crate::nn::device::{Buffer, Device, Matrix, MatrixMut, SliceMut};
use crate::nn::site::Product;
use crate::recipe::clip::Clip;
use crate::recipe::sums::TensorCores;
use exmy::format::Format;
use exmy::gemm::Sum;
use exmy::gemm::f32::Output;
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::Philox;
use exmy::round::Rules;

/// A matrix, as it is stored, that is rounded by a quantizer of its own while it is packed.
#[derive(Debug)]
pub struct Source<'a, D: Device> {
    /// The matrix.
    pub matrix: Matrix<'a, D>,
    /// What rounds it.
    pub quantizer: Quantizer,
    /// Random bits by element.
    pub random: Philox,
}

impl<D: Device> Clone for Source<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Device> Copy for Source<'_, D> {}

/// Matrices that are packed into one operand at most: gated linear attention has five.
pub const MOST_SOURCES: usize = 8;

/// The operations of recipes. See the [module](self).
pub trait Quantize: Device<Real = f32> {
    /// Two operands of a product in the order in which they are multiplied; its memory is used again.
    type Packed: Default + Debug + Send;

    /// The dequantized values of a matrix ([`Quantizer::image_into`]), or those by one given scale for all
    /// blocks. Blocks run along `axis`; random bits are addressed by row-major index.
    fn quantize(
        &self,
        quantizer: &Quantizer,
        x: Matrix<'_, Self>,
        axis: Axis,
        random: Philox,
        scale: Option<f32>,
        out: MatrixMut<'_, Self>,
    );

    /// The same with exponents bumped by position (`recipe::bump`); blocks along rows are those of `sequence`
    /// rows, where it is not 0.
    fn quantize_by_position(
        &self,
        quantizer: &Quantizer,
        x: Matrix<'_, Self>,
        axis: Axis,
        random: Philox,
        sequence: usize,
        out: MatrixMut<'_, Self>,
    );

    /// Clips the range of a tensor, in place ([`clip`](super::clip)).
    fn clip(&self, clip: Clip, x: SliceMut<'_, Self>);

    /// Rounds to bfloat16, to nearest even, and clears all but the first `bits` mantissa bits; NaN stays.
    fn mask(&self, bits: u8, x: SliceMut<'_, Self>);

    /// Multiplies by a number, in place; each product is rounded to nearest even.
    fn times(&self, factor: f32, x: SliceMut<'_, Self>);

    /// Rounds to a format, in place, by rules that are not stochastic.
    fn cast(&self, to: (Format, Rules), x: MatrixMut<'_, Self>);

    /// Writes the largest magnitude to the one element of `to`; NaN if there is one.
    fn amax(&self, x: Matrix<'_, Self>, to: SliceMut<'_, Self>);

    /// Rounds and packs the operands of a product, matrices as they are stored: those of the left operand lie
    /// beside each other, those of the right below each other. What is an empty list stays as it was packed.
    /// Of several matrices none has a tensor scale. For tensor cores it packs their codes: of bfloat16 what
    /// the values without tensor scales are, rounded to nearest even; of E4M3 those of the quantizer, of
    /// which the block scale is then the tensor's.
    fn pack(
        &self,
        packed: &mut Self::Packed,
        cores: Option<TensorCores>,
        product: Product,
        left: &[Source<'_, Self>],
        right: &[Source<'_, Self>],
    );

    /// Multiplies what is packed in the order [`fast`](exmy::gemm::fast) or in that of tensor cores, times
    /// the tensors' scales. The result replaces `out` or is added to it, and is rounded at last, where there
    /// is something to round it to. A device without such tensor cores fails.
    fn multiply(
        &self,
        packed: &Self::Packed,
        out: MatrixMut<'_, Self>,
        mode: Output,
        to: Option<(Format, Rules)>,
    );

    /// Exchanges the left operands of two products, and their memory.
    fn exchange_left(&self, one: &mut Self::Packed, other: &mut Self::Packed);

    /// One of the three products, of matrices as they are stored, in an order and an accumulator of the
    /// recipe's ([`gemm`](mod@exmy::gemm)). The sum is then stored, or added to `out` in f32.
    fn sums(
        &self,
        sum: Sum,
        random: Philox,
        product: Product,
        left: Matrix<'_, Self>,
        right: Matrix<'_, Self>,
        out: MatrixMut<'_, Self>,
        mode: Output,
    );

    /// The sum of the magnitudes, or of the squares, of each column of `x`, or of `x - minus`: in f64, rows
    /// ascending.
    fn column_sums(
        &self,
        x: Matrix<'_, Self>,
        minus: Option<Matrix<'_, Self>>,
        squared: bool,
    ) -> Vec<f64>;

    /// Some columns of `x`, or of `x - minus`, side by side.
    fn take_columns(
        &self,
        x: Matrix<'_, Self>,
        minus: Option<Matrix<'_, Self>>,
        columns: &Self::Tokens,
        out: MatrixMut<'_, Self>,
    );

    /// Adds each column of `x` to one of `out`.
    fn add_to_columns(&self, x: Matrix<'_, Self>, columns: &Self::Tokens, out: MatrixMut<'_, Self>);

    /// Moves rows of `cols` elements apart in their own memory, to begin `wide` elements apart: a second
    /// image would be the largest tensor of a layer.
    fn widen(&self, buffer: &mut Buffer<Self>, rows: usize, cols: usize, wide: usize);
}
