//! Matrices on the device in block formats: the twins of the library's
//! [`Quantizer::image_into`](exmy::Quantizer::image_into) and
//! [`Quantizer::quantize`](exmy::Quantizer::quantize).
//!
//! The kernel is chosen by the block's shape: along a row (8 to 256 elements, adjacent lanes share a block),
//! down columns and tiles, and any other shape in two passes. The bits do not depend on it.

#![allow(unsafe_code)]

mod params;
mod quick;
mod read;

use exmy::block::{Axis, BlockFormat, Shape};
use exmy::format::Format;
use exmy::minifloat::Bf16;
use exmy::quantizer::{Quantizer, Target};
use exmy::random::Philox;
use exmy::round::Rules;

use crate::convert::stride_grid;
use crate::launch::Launch;
use crate::module::BLOCKS;
use crate::rounder::Write;
use crate::{Buffer, Converter, Device, Element, Error, Grid, Result, View, ViewMut, pack};
use params::Blocks;

/// What images are stored as.
pub trait Image: Element {
    #[doc(hidden)]
    const KERNELS: Kernels;
    #[doc(hidden)]
    const CAST: &'static str;
}

/// The kernels of one kind of output; of the quick ones there are others for stochastic rounding.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Kernels {
    rows: &'static str,
    columns: &'static str,
    any: &'static str,
    four: &'static str,
    quick_rows: [&'static str; 2],
    quick_columns16: [&'static str; 2],
    quick_columns32: [&'static str; 2],
}

macro_rules! kernels {
    ($kind:literal) => {
        Kernels {
            rows: concat!("rows_", $kind),
            columns: concat!("columns_", $kind),
            any: concat!("any_", $kind),
            four: concat!("four_", $kind),
            quick_rows: [concat!("quick_rows_", $kind), concat!("quick_rows_random_", $kind)],
            quick_columns16: [
                concat!("quick_columns16_", $kind),
                concat!("quick_columns16_random_", $kind),
            ],
            quick_columns32: [
                concat!("quick_columns32_", $kind),
                concat!("quick_columns32_random_", $kind),
            ],
        }
    };
}

impl Image for f32 {
    const KERNELS: Kernels = kernels!("f32");
    const CAST: &'static str = "round_f32";
}

impl Image for Bf16 {
    const KERNELS: Kernels = kernels!("bf16");
    const CAST: &'static str = "round_bf16";
}

/// A matrix in a block format on the device; a device's [`exmy::BlockTensor`].
#[derive(Debug)]
pub struct BlockTensor {
    format: BlockFormat,
    axis: Axis,
    shape: (usize, usize),
    codes: Buffer<u8>,
    scales: Buffer<u8>,
    /// encode, decode, block, amax, and two numbers of kernels.
    factors: Option<Buffer<f32>>,
}

impl BlockTensor {
    /// The format.
    pub const fn format(&self) -> BlockFormat {
        self.format
    }

    /// Rows and columns.
    pub const fn shape(&self) -> (usize, usize) {
        self.shape
    }

    /// The elements' codes as a stream of bits, as [`exmy::BlockTensor::packed_codes`].
    pub const fn packed_codes(&self) -> &Buffer<u8> {
        &self.codes
    }

    /// The blocks' scale codes, little-endian, row-major over blocks.
    pub const fn packed_scales(&self) -> &Buffer<u8> {
        &self.scales
    }

    /// The scale of the whole tensor, if the format has one: what values are multiplied by last.
    ///
    /// # Errors
    /// If the device fails.
    pub fn tensor_scale(&self) -> Result<Option<f32>> {
        self.factors.as_ref().map(|factors| Ok(factors.to_vec()?[1])).transpose()
    }

    /// The codes alone.
    #[cfg(feature = "train")]
    pub(crate) fn into_codes(self) -> Buffer<u8> {
        self.codes
    }

    /// The same tensor on the host.
    ///
    /// # Errors
    /// If the tensor's scale is NaN, because a number is, or the device fails.
    pub fn to_host(&self) -> Result<exmy::BlockTensor> {
        let scale = self.tensor_scale()?;
        let (codes, scales) = (self.codes.to_vec()?, self.scales.to_vec()?);
        exmy::BlockTensor::from_parts(self.format, self.axis, self.shape, codes, scales, scale)
            .map_err(|error| Error::unfit("a tensor to the host", error.to_string()))
    }
}

/// What is asked of a quantizer, its operands checked.
struct Request<'a> {
    what: &'static str,
    quantizer: &'a Quantizer,
    x: View<'a, f32>,
    axis: Axis,
    random: Option<Philox>,
}

impl<'a> Request<'a> {
    fn new(
        what: &'static str,
        quantizer: &'a Quantizer,
        x: View<'a, f32>,
        axis: Axis,
        random: Option<Philox>,
    ) -> Result<Self> {
        if quantizer.is_stochastic() && random.is_none() {
            let why = format!("{quantizer} needs random words");
            return Err(Error::unfit(what, why));
        }
        if let Target::Block(format) = quantizer.target {
            format.check().map_err(|error| Error::unfit(what, error.to_string()))?;
        }
        quantizer
            .check_size(x.rows, x.cols, axis)
            .map_err(|error| Error::unfit(what, error.to_string()))?;
        Ok(Self { what, quantizer, x, axis, random })
    }

    fn device(&self) -> &Device {
        self.x.buffer.device()
    }

    /// Cast and rotation into a matrix without a stride.
    fn prepared(&self, blocks: &Blocks) -> Result<Buffer<f32>> {
        let View { rows, cols, stride, .. } = self.x;
        let mut out = Buffer::uninit(self.device(), rows * cols)?;
        let blocks = blocks.with_strides(stride, cols);
        let most = self.device().properties().processors * 64;
        let groups = (rows * cols).div_ceil(if blocks.rotation == 0 {
            128
        } else {
            blocks.rotation as usize
        });
        let device = self.device().clone();
        let launch = Launch::new(&device, &BLOCKS, "prepare").read_at(self.x.buffer, self.x.first);
        let grid = Grid::new(u32::try_from(groups).unwrap_or(most).clamp(1, most), 128);
        // SAFETY: the view lies in its buffer and the output has room for it.
        unsafe { launch.write(&mut out).value(blocks).run(grid)? };
        Ok(out)
    }

    /// The scale factors of the whole tensor, from its largest magnitude.
    fn factors(&self, x: View<'_, f32>, blocks: &Blocks) -> Result<Buffer<f32>> {
        let device = self.device();
        // Behind the four factors kernels find them.
        let mut factors = device.zeros::<f32>(6)?;
        let most = device.properties().processors * 8;
        if x.is_dense() && !blocks.has_first() && x.first.is_multiple_of(4) {
            let count = x.rows * x.cols;
            let grid = Grid::cover(count.div_ceil(16), 256);
            let grid = Grid::new(grid.blocks[0].min(most), 256);
            let launch = Launch::new(device, &BLOCKS, "tensor_amax").read_at(x.buffer, x.first);
            let launch = launch.write(&mut factors).value(count as u64).value(*blocks);
            // SAFETY: the view has as many elements, and begins where four numbers may.
            unsafe { launch.run(grid)? };
            return Ok(factors);
        }
        let mut amax = device.zeros::<u32>(1)?;
        self.amax(x, &blocks.as_one_block(), &mut amax)?;
        let launch = Launch::new(device, &BLOCKS, "tensor_scale").read(&amax).write(&mut factors);
        // SAFETY: one number in, four out.
        unsafe { launch.value(*blocks).run(Grid::new(1, 32))? };
        Ok(factors)
    }

    /// The largest magnitude of each block, into zeros.
    fn amax(&self, x: View<'_, f32>, blocks: &Blocks, amax: &mut Buffer<u32>) -> Result<()> {
        let device = self.device();
        let size = blocks.block_rows as usize * blocks.block_cols as usize;
        let most = device.properties().processors as usize * 8;
        let count = amax.len();
        let parts = size.div_ceil(256 * 8).clamp(1, most.div_ceil(count).max(1)) as u32;
        let launch =
            Launch::new(device, &BLOCKS, "block_amax").read_at(x.buffer, x.first).write(amax);
        let grid = Grid::planar(count.min(most * 8) as u32, parts.min(65535), 256);
        let blocks = blocks.with_strides(x.stride, x.stride);
        // SAFETY: the view lies in its buffer, and there is a place for each block.
        unsafe { launch.value(blocks).run(grid) }
    }

    /// Writes the output, and the scales if there is a place for them.
    fn write<T: Element>(
        &self,
        kernels: Kernels,
        blocks: Blocks,
        out: ViewMut<'_, T>,
        scales: Option<&mut Buffer<u8>>,
    ) -> Result<Option<Buffer<f32>>> {
        let device = self.device().clone();
        let aligned = |first: usize, stride: usize, size: usize, rows: usize| {
            first.is_multiple_of(size) && (stride.is_multiple_of(size) || rows <= 1)
        };
        let x = self.x;
        let fits = |x: View<'_, f32>, by: usize| {
            aligned(x.first, x.stride, by.min(4), x.rows)
                && aligned(out.first, out.stride, by, x.rows)
        };
        let (height, width) = (blocks.block_rows, blocks.block_cols);
        let along = height == 1
            && width.is_power_of_two()
            && (8..=256).contains(&width)
            && blocks.cols.is_multiple_of(width)
            && (blocks.rotation == 0 || blocks.down == 0);
        let along = along && fits(x, 8) && !blocks.is_four_over_six();
        // Only blocks along rows are rotated on the way, and a scale of the tensor asks for all of it first.
        let early = blocks.rotation != 0 && (!along || self.has_tensor());
        let prepared = if early { Some(self.prepared(&blocks)?) } else { None };
        let (x, blocks) = match &prepared {
            Some(buffer) => (View::new(buffer, x.rows, x.cols)?, blocks.prepared()),
            None => (x, blocks),
        };
        let blocks = blocks.with_strides(x.stride, out.stride);
        let factors = if self.has_tensor() { Some(self.factors(x, &blocks)?) } else { None };
        let count = x.rows * x.cols;
        // Columns of a tile are adjacent lanes of a warp.
        let shared = |most: u32| width.is_power_of_two() && width <= most;
        let tall = (2..=512).contains(&height);
        let bands = (blocks.rows.div_ceil(height)).min(65535);
        let number = blocks.rows.div_ceil(height) as usize * blocks.blocks_across as usize;
        let mut amax = None;
        let (kernel, grid) = if blocks.is_four_over_six() {
            let most = device.properties().processors * 64;
            (kernels.four, Grid::new(Grid::cover(number, 128).blocks[0].min(most), 128))
        } else if along {
            (kernels.rows, Grid::cover(count / 8, 256))
        } else if tall && shared(32) {
            (kernels.columns, Grid::planar(blocks.cols.div_ceil(128), bands, 128))
        } else {
            let mut found = device.zeros::<u32>(number)?;
            self.amax(x, &blocks, &mut found)?;
            amax = Some(found);
            (kernels.any, stride_grid(&device, count * 4))
        };
        let launch = Launch::new(&device, &BLOCKS, kernel).read_at(x.buffer, x.first);
        let launch = launch.write_at(out.buffer, out.first).write_if(scales);
        let launch = launch.read_if(factors.as_ref()).value(blocks);
        let launch = if amax.is_some() { launch.read_if(amax.as_ref()) } else { launch };
        // SAFETY: both views lie in their buffers and have one shape, the scales have a place for each block,
        // and wide accesses are made only where every row begins at a multiple of them.
        unsafe { launch.run(grid)? };
        Ok(factors)
    }

    fn has_tensor(&self) -> bool {
        params::block_format(self.quantizer).is_some_and(|format| format.tensor_scale)
    }
}

/// Writes the values of a matrix that a product sums along `axis`, rounded: the twin of
/// [`Quantizer::image_into`](exmy::Quantizer::image_into). Images in bfloat16 are those of binary32 rounded
/// to it.
///
/// # Errors
/// If the shapes differ, a rotation does not divide the axis, random words are missing, a format is wider
/// than the device has it, or the device fails.
pub fn image_into<T: Image>(
    quantizer: &Quantizer,
    x: View<'_, f32>,
    axis: Axis,
    random: impl Into<Option<Philox>>,
    out: ViewMut<'_, T>,
) -> Result<()> {
    image(quantizer, x, axis, random.into(), out, true).map(drop)
}

/// As [`image_into`], without the factor of the whole tensor, which is returned and is left for a product to
/// multiply by; it is the second of four numbers.
///
/// # Errors
/// As [`image_into`].
pub fn factored_image_into<T: Image>(
    quantizer: &Quantizer,
    x: View<'_, f32>,
    axis: Axis,
    random: impl Into<Option<Philox>>,
    out: ViewMut<'_, T>,
) -> Result<Option<Buffer<f32>>> {
    image(quantizer, x, axis, random.into(), out, false)
}

/// As [`factored_image_into`], the transpose of the image.
///
/// # Errors
/// As [`image_into`].
#[cfg(feature = "train")]
pub(crate) fn turned_image_into<T: Image>(
    quantizer: &Quantizer,
    x: View<'_, f32>,
    axis: Axis,
    random: Option<Philox>,
    mut out: ViewMut<'_, T>,
) -> Result<Option<Buffer<f32>>> {
    let ((rows, cols), what) = (x.shape(), "image_into");
    if out.shape() != (cols, rows) {
        let why = format!("a matrix of {:?} and room for {:?}, turned", x.shape(), out.shape());
        return Err(Error::unfit(what, why));
    }
    if x.is_empty() {
        return Ok(None);
    }
    if let Some(format) = params::block_format(quantizer) {
        let work = Request::new(what, quantizer, x, axis, random)?;
        let mut blocks =
            Blocks::new(what, quantizer, format, axis, x.shape(), random, Write::Values)?;
        (blocks.turned, blocks.tensor_in_image) = (1, 0);
        match work.write_quickly(&blocks, format, out)? {
            Ok(factors) => return Ok(factors),
            Err(back) => out = back,
        }
    }
    let mut image = Buffer::uninit(x.buffer.device(), rows * cols)?;
    let factors = factored_image_into(
        quantizer,
        x,
        axis,
        random,
        ViewMut::<T>::new(&mut image, rows, cols)?,
    )?;
    pack::transpose_into(View::new(&image, rows, cols)?, out)?;
    Ok(factors)
}

fn image<T: Image>(
    quantizer: &Quantizer,
    x: View<'_, f32>,
    axis: Axis,
    random: Option<Philox>,
    mut out: ViewMut<'_, T>,
    tensor_in_image: bool,
) -> Result<Option<Buffer<f32>>> {
    let what = "image_into";
    if x.shape() != out.shape() {
        let why = format!("a matrix of {:?} and room for {:?}", x.shape(), out.shape());
        return Err(Error::unfit(what, why));
    }
    let work = Request::new(what, quantizer, x, axis, random)?;
    if x.is_empty() {
        return Ok(None);
    }
    let shape = x.shape();
    let Some(format) = params::block_format(quantizer) else {
        return cast_image(&work, &mut out).map(|()| None);
    };
    let mut blocks = Blocks::new(what, quantizer, format, axis, shape, random, Write::Values)?;
    blocks.tensor_in_image &= u32::from(tensor_in_image);
    match work.write_quickly(&blocks, format, out)? {
        Ok(factors) => Ok(factors),
        Err(out) => work.write(T::KERNELS, blocks, out, None),
    }
}

/// Casts alone: to a format, or to none.
fn cast_image<T: Image>(work: &Request<'_>, out: &mut ViewMut<'_, T>) -> Result<()> {
    let Quantizer { before, rotation, target, rounding, overflow } = *work.quantizer;
    let x = work.x;
    let rules = Rules::DEFAULT.with_rounding(rounding).with_overflow(overflow);
    let converter = match target {
        Target::Format(format) => Converter::new(format, rules),
        _ => Converter::nothing(),
    };
    let converter = work.random.map_or(converter, |random| converter.with_random(random));
    let count = x.rows * x.cols;
    let whole = x.is_dense() && x.first.is_multiple_of(8);
    // Without a rotation both casts are one pass.
    let own = if rotation.is_none() && whole {
        None
    } else {
        let first = Quantizer { before: rotation.and(before), ..*work.quantizer };
        let blocks = Blocks::first(work.what, &first, work.axis, x.shape(), work.random)?;
        Some(work.prepared(&blocks)?)
    };
    let converter = converter.after(if rotation.is_none() { before } else { None });
    let from = own.as_ref().map_or((x.buffer, x.first), |own| (own, 0));
    let (how, dense) = ((work.what, T::CAST), out.stride == x.cols || x.rows <= 1);
    if dense && out.first.is_multiple_of(8) {
        return converter.run_at(how, Write::Values, from, (out.buffer, out.first), count);
    }
    let mut dense = Buffer::uninit(work.device(), count)?;
    converter.run_at(how, Write::Values, from, (&mut dense, 0), count)?;
    pack::copy_matrix(View::new(&dense, x.rows, x.cols)?, out)
}

/// Quantizes to packed codes and scales: the twin of [`Quantizer::quantize`](exmy::Quantizer::quantize).
///
/// # Errors
/// As [`image_into`], or if the target is none, or a format of more than 16 bits.
pub fn quantize(
    quantizer: &Quantizer,
    x: View<'_, f32>,
    axis: Axis,
    random: impl Into<Option<Philox>>,
) -> Result<BlockTensor> {
    let (what, random) = ("quantize", random.into());
    let format = match quantizer.target {
        Target::Block(format) => format,
        Target::Format(format) => return quantize_to(format, quantizer, x, axis, random),
        target => {
            let why = format!("the target `{target}` has no codes: a format or a block format has");
            return Err(Error::unfit(what, why));
        }
    };
    let work = Request::new(what, quantizer, x, axis, random)?;
    let device = work.device();
    let shape = x.shape();
    let blocks = Blocks::new(what, quantizer, format, axis, shape, random, Write::Codes)?;
    let across = blocks.blocks_across as usize;
    let down = shape.0.div_ceil(blocks.block_rows.max(1) as usize);
    let (across, down) = if x.is_empty() { (0, 0) } else { (across, down) };
    let size = format.scale.storage_bits() as usize / 8;
    let mut scales = Buffer::uninit(device, across * down * size)?;
    let width = format.element.bits();
    if x.is_empty() {
        // The host has its own scale for a tensor of nothing.
        let nothing = exmy::View::new(&[], shape.0, shape.1);
        let scale = quantizer.quantize(nothing, axis, random).ok().and_then(|x| x.tensor_scale());
        let factors = scale.map(|scale| device.upload(&[0.0, scale])).transpose()?;
        let codes = device.zeros(0)?;
        return Ok(BlockTensor { format, axis, shape, codes, scales, factors });
    }
    let count = shape.0 * shape.1;
    let (codes, factors) = if width <= 8 {
        let mut codes = Buffer::<u8>::uninit(device, count)?;
        let out = ViewMut::new(&mut codes, shape.0, shape.1)?;
        let factors = work.write(kernels!("u8"), blocks, out, Some(&mut scales))?;
        (if width == 8 { codes } else { pack::pack(&codes, width)? }, factors)
    } else {
        let mut codes = Buffer::<u16>::uninit(device, count)?;
        let out = ViewMut::new(&mut codes, shape.0, shape.1)?;
        let factors = work.write(kernels!("u16"), blocks, out, Some(&mut scales))?;
        (pack::pack(&codes, width)?, factors)
    };
    Ok(BlockTensor { format, axis, shape, codes, scales, factors })
}

/// The same to a format without scales: one block, whose scale is 1.
fn quantize_to(
    format: Format,
    quantizer: &Quantizer,
    x: View<'_, f32>,
    axis: Axis,
    random: Option<Philox>,
) -> Result<BlockTensor> {
    let blocks = BlockFormat { shape: Shape::Tensor, ..BlockFormat::mx(format) };
    let blocks = blocks.check().map_err(|error| Error::unfit("quantize", error.to_string()))?;
    // Missing words and sizes that do not fit are refused by name.
    let work = Request::new("quantize", quantizer, x, axis, random)?;
    let ((rows, cols), device) = (x.shape(), work.device());
    let mut image = Buffer::uninit(device, rows * cols)?;
    let first = Quantizer { target: Target::None, ..*quantizer };
    image_into(&first, x, axis, random, ViewMut::new(&mut image, rows, cols)?)?;
    let rules = Rules::DEFAULT.with_rounding(quantizer.rounding).with_overflow(quantizer.overflow);
    let converter = Converter::new(format, rules);
    let converter = random.map_or(converter, |random| converter.with_random(random));
    let codes = match format.bits() {
        8 => converter.encode(&image)?,
        0..8 => pack::pack(&converter.encode::<u8>(&image)?, format.bits())?,
        _ => pack::pack(&converter.encode::<u16>(&image)?, format.bits())?,
    };
    /// 2^0 in E8M0.
    const ONE: u8 = 127;
    let scales = device.upload(&[ONE][..usize::from(rows * cols > 0)])?;
    Ok(BlockTensor { format: blocks, axis, shape: (rows, cols), codes, scales, factors: None })
}
