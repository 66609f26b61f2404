//! What tensors of blocks on the device are read as: their parts, codes one in each integer, values, and the
//! images that products of the order `fast` multiply.

#![allow(unsafe_code)]

use exmy::block::scale::Order;
use exmy::block::{Axis, BlockFormat};
use exmy::pack::packed_len;

use super::{BlockTensor, params};
use crate::convert::stride_grid;
use crate::launch::{Launch, Plain};
use crate::module::CONVERT;
use crate::pack::Narrow;
use crate::rounder::Rounder;
use crate::{Buffer, Error, Result, unpack};

/// How a tensor lies: `Stored` of `kernels/convert.cu`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Stored {
    element: Rounder,
    scale: Rounder,
    width: u32,
    scale_bytes: u32,
    cols: u32,
    block_rows: u32,
    block_cols: u32,
    across: u32,
    folds: u32,
    gap: u32,
    count: u64,
    size: u64,
}

const _: () = assert!((2 * size_of::<Rounder>()).is_multiple_of(8));

// SAFETY: two structures of 32-bit fields, of a multiple of 8 bytes together; eight fields of 32 bits and two
// of 64, without a gap.
unsafe impl Plain for Stored {}

impl BlockTensor {
    /// A tensor of what was stored; as [`exmy::BlockTensor::from_parts`], but codes of scales are not looked
    /// at.
    ///
    /// # Errors
    /// If the format's parts do not go together, there are more or fewer bytes than the shape needs, the
    /// tensor scale is missing, is given where the format has none, or is negative or not finite, or the
    /// device fails.
    pub fn from_parts(
        format: BlockFormat,
        axis: Axis,
        shape: (usize, usize),
        codes: Buffer<u8>,
        scales: Buffer<u8>,
        tensor_scale: Option<f32>,
    ) -> Result<Self> {
        let what = "a tensor of parts";
        let format = format.check().map_err(|error| Error::unfit(what, error.to_string()))?;
        let factors = match tensor_scale {
            Some(scale) => Some(codes.device().upload(&[0.0, scale])?),
            None => None,
        };
        let tensor = Self { format, axis, shape, codes, scales, factors };
        let (rows, cols) = shape;
        let size = |count| packed_len(count, format.element.bits());
        let codes = rows.checked_mul(cols).and_then(size).unwrap_or(usize::MAX);
        let (down, across) = tensor.blocks();
        let scales = (down * across).saturating_mul(tensor.scale_bytes());
        let found = (tensor.codes.len(), tensor.scales.len());
        if found != (codes, scales) {
            let why = format!(
                "{rows} x {cols} in {format} are {codes} bytes of codes and {scales} of scales, \
                 not {} and {}",
                found.0, found.1
            );
            return Err(Error::unfit(what, why));
        }
        match tensor_scale {
            None if !format.tensor_scale => Ok(tensor),
            Some(scale) if format.tensor_scale && scale.is_finite() && scale >= 0.0 => Ok(tensor),
            found => {
                let why = match format.tensor_scale {
                    true => "a finite scale of the tensor, not negative",
                    false => "no scale of the tensor",
                };
                Err(Error::unfit(what, format!("{format} has {why}, and {found:?} is given")))
            }
        }
    }

    /// The axis that a product sums along.
    pub const fn axis(&self) -> Axis {
        self.axis
    }

    /// Rows and columns of a block.
    pub fn block(&self) -> (usize, usize) {
        params::sides(self.format.shape, self.axis, self.shape)
    }

    /// Rows and columns of blocks.
    pub fn blocks(&self) -> (usize, usize) {
        let ((rows, cols), block) = (self.shape, self.block());
        (rows.div_ceil(block.0), cols.div_ceil(block.1))
    }

    /// Whether a product may sum along `axis`; as [`exmy::gemm::Operand::sums_along`].
    pub fn sums_along(&self, axis: Axis) -> bool {
        params::sides(self.format.shape, axis, self.shape) == self.block()
    }

    fn scale_bytes(&self) -> usize {
        self.format.scale.storage_bits() as usize / 8
    }

    /// The codes of the elements, one in each integer; as [`exmy::BlockTensor::codes`].
    ///
    /// # Errors
    /// If the integers are narrower than the codes, memory is full, or the device fails.
    pub fn codes<C: Narrow>(&self) -> Result<Buffer<C>> {
        unpack(&self.codes, self.format.element.bits(), self.shape.0 * self.shape.1)
    }

    /// Writes the values; as [`exmy::BlockTensor::dequantize_into`].
    ///
    /// # Errors
    /// If there is room for more or fewer, or the device fails.
    pub fn dequantize_into(&self, out: &mut Buffer<f32>) -> Result<()> {
        self.values_into(out, self.factors.as_ref())
    }

    /// Writes codes times block scales: the images of the order `fast`, which the scale of the tensor
    /// multiplies at last.
    ///
    /// # Errors
    /// As [`dequantize_into`](Self::dequantize_into).
    pub fn images_into(&self, out: &mut Buffer<f32>) -> Result<()> {
        self.values_into(out, None)
    }

    /// Where the scale of the tensor is, for [`Scales`](crate::Scales).
    pub fn factor(&self) -> Option<(&Buffer<f32>, usize)> {
        self.factors.as_ref().map(|factors| (factors, 1))
    }

    fn values_into(&self, out: &mut Buffer<f32>, factors: Option<&Buffer<f32>>) -> Result<()> {
        let BlockFormat { element, scale, rule, profile, .. } = self.format;
        let ((rows, cols), what) = (self.shape, "dequantize");
        if out.len() != rows * cols {
            let why = format!("{} numbers and room for {}", rows * cols, out.len());
            return Err(Error::unfit(what, why));
        }
        let stored = Stored {
            element: Rounder::decoder(what, element)?,
            scale: Rounder::decoder(what, scale)?,
            width: element.bits(),
            scale_bytes: self.scale_bytes() as u32,
            cols: cols as u32,
            block_rows: self.block().0 as u32,
            block_cols: self.block().1 as u32,
            across: self.blocks().1 as u32,
            folds: u32::from(profile.choices(rule).order == Order::Torchao),
            gap: 0,
            count: out.len() as u64,
            size: self.codes.len() as u64,
        };
        if out.is_empty() {
            return Ok(());
        }
        let device = out.device().clone();
        let launch = Launch::new(&device, &CONVERT, "dequantize").read(&self.codes);
        let launch = launch.read(&self.scales).read_if(factors).write(out).value(stored);
        // SAFETY: there are as many codes and scales as the shape has elements and blocks, and room for the
        // values.
        unsafe { launch.run(stride_grid(&device, out.len() * 4)) }
    }
}
