//! From binary32 numbers to a packed operand in one call, and what became of them.

use super::{Packed, Side};
use crate::block::{Axis, BlockTensor, Statistics};
use crate::gemm::Operand;
use crate::quantizer::{QuantizeError, Quantizer, Target};
use crate::random::Philox;
use crate::slice::{View, ViewMut};
use alloc::vec;

impl Packed {
    /// Quantizes a matrix and packs it.
    ///
    /// `axis` is the one of `x` that the sums run along. A left operand is M x K along [`Axis::Cols`],
    /// or K x M along [`Axis::Rows`]. A right one is K x N along `Rows`, or N x K along `Cols`, as
    /// weights are stored. The bits are those of packing what [`Quantizer::quantize`] returns, but only
    /// its codes and scales are formed in between.
    ///
    /// ```
    /// use exmy::gemm::fast::{Packed, Scaling, Side, multiply};
    /// use exmy::quantizer::{Axis, Quantizer};
    /// use exmy::random::{Philox, Stream};
    /// use exmy::slice::{View, ViewMut};
    ///
    /// let quantizer: Quantizer = "mxfp4".parse()?;
    /// let random = Philox::new(0, Stream::new("example")); // read by stochastic modes alone
    /// let x = View::new(&[1.0, 2.6, 4.0, -0.5], 2, 2); // 2.6 becomes 3
    /// let w = View::new(&[4.0, 1.0], 1, 2); // one output of two inputs
    /// let x = Packed::quantize(Side::Left, x, Axis::Cols, &quantizer, random)?;
    /// let w = Packed::quantize(Side::Right, w, Axis::Cols, &quantizer, random)?;
    /// let mut y = [0.0; 2];
    /// multiply(&x, &w, ViewMut::new(&mut y, 2, 1), Scaling::OVERWRITE)?;
    /// assert_eq!(y, [7.0, 15.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Quantizer::quantize`].
    ///
    /// # Panics
    /// If a mode is stochastic with a bit count outside 1..=32.
    pub fn quantize(
        side: Side,
        x: View<'_, f32>,
        axis: Axis,
        quantizer: &Quantizer,
        random: Philox,
    ) -> Result<Self, QuantizeError> {
        let tensor = quantizer.quantize(x, axis, random)?;
        let mut packed = Self::empty(side);
        packed.repack(&oriented(&tensor, side, axis));
        Ok(packed)
    }

    /// As [`quantize`](Self::quantize), and the figures of [`BlockTensor::statistics`], bit for bit,
    /// gathered while numbers become codes. What is compared is what reaches the target: after a cast
    /// before it and a rotation, if the quantizer has them.
    ///
    /// ```
    /// use exmy::gemm::fast::{Packed, Side};
    /// use exmy::quantizer::{Axis, Quantizer};
    /// use exmy::random::{Philox, Stream};
    /// use exmy::slice::View;
    ///
    /// let quantizer: Quantizer = "mxfp4".parse()?;
    /// let random = Philox::new(0, Stream::new("example")); // read by stochastic modes alone
    /// let x = View::new(&[7.0, -1.0, 0.2, f32::MIN_POSITIVE], 1, 4);
    /// let (_, found) =
    ///     Packed::quantize_with_statistics(Side::Left, x, Axis::Cols, &quantizer, random)?;
    /// assert_eq!((found.amax, found.max_error), (7.0, 1.0)); // 7 saturates at 6
    /// assert_eq!((found.saturated, found.flushed), (1, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`quantize`](Self::quantize).
    ///
    /// # Panics
    /// As [`quantize`](Self::quantize).
    pub fn quantize_with_statistics(
        side: Side,
        x: View<'_, f32>,
        axis: Axis,
        quantizer: &Quantizer,
        random: Philox,
    ) -> Result<(Self, Statistics), QuantizeError> {
        let first = Quantizer { target: Target::None, ..*quantizer };
        let last = Quantizer { before: None, rotation: None, ..*quantizer };
        let (rows, cols) = (x.rows(), x.cols());
        let mut buffer = vec![];
        let x = if first.is_none() {
            x
        } else {
            quantizer.check_size(rows, cols, axis)?;
            buffer.resize(rows * cols, 0.0);
            first.image_into(x, axis, random, ViewMut::new(&mut buffer, rows, cols));
            View::new(&buffer, rows, cols)
        };
        let (tensor, found) = last.quantize_with_statistics(x, axis, random)?;
        let mut packed = Self::empty(side);
        packed.repack(&oriented(&tensor, side, axis));
        Ok((packed, found.unwrap_or_else(|| tensor.statistics(x))))
    }
}

/// A tensor whose blocks run along `axis` as an operand of a side.
fn oriented(tensor: &BlockTensor, side: Side, axis: Axis) -> Operand<'_> {
    let operand = Operand::from(tensor);
    if axis == side.axis() { operand } else { operand.t() }
}
