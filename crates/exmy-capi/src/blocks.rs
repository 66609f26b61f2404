//! Matrices of codes that share scales: MX, NVFP4 and anything of that shape.

#![allow(unsafe_code)] // the caller's texts and arrays

use std::ffi::c_char;
use std::fmt;
use std::mem::MaybeUninit;

use exmy::block::Axis;
use exmy::{BlockFormat, BlockTensor, Quantizer, View, ViewMut};

use crate::arrays::{Arrays, text, write_text};
use crate::random::{ExmyRandom, philox};
use crate::status::{ExmyStatus, Failure, given, guard, make};

/// A product sums along the columns: of a left operand.
pub const EXMY_AXIS_COLS: i32 = 0;
/// A product sums along the rows: of a right operand.
pub const EXMY_AXIS_ROWS: i32 = 1;

/// What rounds a matrix.
pub struct ExmyQuantizer(Quantizer);

/// A matrix of packed codes with the scales of its blocks.
pub struct ExmyBlocks(pub(crate) BlockTensor);

/// A matrix of blocks as it is stored. The arrays belong to the handle and live as long as it does.
#[repr(C)]
pub struct ExmyBlocksStored {
    /// Rows of the matrix.
    pub rows: usize,
    /// Columns of the matrix.
    pub cols: usize,
    /// Rows of a block.
    pub block_rows: usize,
    /// Columns of a block.
    pub block_cols: usize,
    /// Bits of an element's code.
    pub element_bits: u32,
    /// Bytes of a scale, little-endian.
    pub scale_bytes: u32,
    /// The codes as a stream: code `i * cols + j` of element (i, j), the first one in the low bits.
    pub codes: *const u8,
    /// Bytes of the codes.
    pub codes_size: usize,
    /// The scales, row-major over blocks.
    pub scales: *const u8,
    /// Bytes of the scales.
    pub scales_size: usize,
    /// The scale of the whole matrix, if it has one, else 1.
    pub tensor_scale: f32,
    /// 1 if it has one, else 0.
    pub has_tensor_scale: u8,
}

/// The quantizer, where it is stochastic.
fn needs_words(quantizer: &Quantizer) -> Option<&dyn fmt::Display> {
    quantizer.is_stochastic().then_some(quantizer as _)
}

fn axis(axis: i32) -> Result<Axis, Failure> {
    match axis {
        EXMY_AXIS_COLS => Ok(Axis::Cols),
        EXMY_AXIS_ROWS => Ok(Axis::Rows),
        _ => Err(Failure::argument(format_args!(
            "axis is {axis}: EXMY_AXIS_COLS (0) or EXMY_AXIS_ROWS (1)"
        ))),
    }
}

/// Elements from the first to the last of a matrix.
pub(crate) fn span(rows: usize, cols: usize, down: usize, right: usize) -> Result<usize, Failure> {
    if rows == 0 || cols == 0 {
        return Ok(0);
    }
    let last = (rows - 1).checked_mul(down).zip((cols - 1).checked_mul(right));
    let count = last.and_then(|(down, right)| down.checked_add(right)?.checked_add(1));
    count.ok_or_else(|| {
        let shape = format_args!("a matrix of {rows} x {cols}");
        Failure::argument(format_args!("{shape} with these strides is larger than any memory"))
    })
}

/// A matrix of the caller's.
///
/// # Safety
/// As [`Arrays::read`].
unsafe fn view<'a>(
    arrays: &mut Arrays,
    numbers: *const f32,
    rows: usize,
    cols: usize,
    row_stride: usize,
) -> Result<View<'a, f32>, Failure> {
    let stride = if row_stride == 0 { cols } else { row_stride };
    // SAFETY: the caller's word.
    let numbers = unsafe { arrays.read(numbers, span(rows, cols, stride, 1)?, "numbers") }?;
    View::with_strides(numbers, (rows, cols), (stride, 1)).map_err(Failure::argument)
}

/// The quantizer of a text: a block format or a format, with a mode and a policy: `mxfp8-e4m3`, `nvfp4`,
/// `mxfp4@rtz`, `e2m1/16:ue4m3+tensor`, `rht16>nvfp4@sr8`, `e5m2@sat-finite`. In `*out`; null if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_quantizer_new(
    name: *const c_char,
    out: Option<&mut MaybeUninit<Option<Box<ExmyQuantizer>>>>,
) -> ExmyStatus {
    make(out, || {
        // SAFETY: the contract of the crate.
        let name = unsafe { text(name, "name") }?;
        name.parse().map(ExmyQuantizer).map_err(Failure::name)
    })
}

/// Frees a quantizer.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_quantizer_free(quantizer: Option<Box<ExmyQuantizer>>) {
    drop(quantizer);
}

/// The codes and scales of a matrix of `rows` x `cols` numbers, row `i` of which begins at `i * row_stride`
/// (0: `cols`). Blocks lie along `axis`, EXMY_AXIS_*. Stochastic modes need `random`, of which element (i,
/// j) takes word `i * cols + j`; else it may be null. In `*out`; null if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_quantize(
    quantizer: Option<&ExmyQuantizer>,
    numbers: *const f32,
    rows: usize,
    cols: usize,
    row_stride: usize,
    axis: i32,
    random: Option<&ExmyRandom>,
    out: Option<&mut MaybeUninit<Option<Box<ExmyBlocks>>>>,
) -> ExmyStatus {
    make(out, || {
        let quantizer = &given(quantizer, "quantizer")?.0;
        let axis = self::axis(axis)?;
        // SAFETY: the contract of the crate.
        let (x, random) = unsafe {
            let x = view(&mut Arrays::default(), numbers, rows, cols, row_stride)?;
            (x, philox(random, needs_words(quantizer))?)
        };
        quantizer.quantize(x, axis, random).map(ExmyBlocks).map_err(Failure::unsupported)
    })
}

/// The values that a matrix has in low precision, without codes: as `exmy_quantize` and `exmy_dequantize`,
/// and after a rotation still rotated. `results` has `rows` x `cols` places, row by row.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_quantize_values(
    quantizer: Option<&ExmyQuantizer>,
    numbers: *const f32,
    rows: usize,
    cols: usize,
    row_stride: usize,
    axis: i32,
    random: Option<&ExmyRandom>,
    results: *mut f32,
) -> ExmyStatus {
    guard(|| {
        let quantizer = &given(quantizer, "quantizer")?.0;
        let axis = self::axis(axis)?;
        let count = span(rows, cols, cols, 1)?;
        let mut arrays = Arrays::default();
        // SAFETY: the contract of the crate.
        let (x, random, results) = unsafe {
            let x = view(&mut arrays, numbers, rows, cols, row_stride)?;
            let random = philox(random, needs_words(quantizer))?;
            (x, random, arrays.write(results, count, "results")?)
        };
        quantizer.check_size(rows, cols, axis).map_err(Failure::unsupported)?;
        quantizer.image_into(x, axis, random, ViewMut::new(results, rows, cols));
        Ok(())
    })
}

/// A matrix of blocks from its parts, which are copied. `format` is a block format (`mxfp4`),
/// `tensor_scale` is null unless the format has one. In `*out`; null if it fails.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_blocks_from_parts(
    format: *const c_char,
    axis: i32,
    rows: usize,
    cols: usize,
    codes: *const u8,
    codes_size: usize,
    scales: *const u8,
    scales_size: usize,
    tensor_scale: Option<&f32>,
    out: Option<&mut MaybeUninit<Option<Box<ExmyBlocks>>>>,
) -> ExmyStatus {
    make(out, || {
        let axis = self::axis(axis)?;
        let mut arrays = Arrays::default();
        // SAFETY: the contract of the crate.
        let (format, codes, scales) = unsafe {
            let codes = arrays.read(codes, codes_size, "codes")?;
            (text(format, "format")?, codes, arrays.read(scales, scales_size, "scales")?)
        };
        let format: BlockFormat = format.parse().map_err(Failure::name)?;
        let (codes, scales) = (codes.to_vec(), scales.to_vec());
        let made = BlockTensor::from_parts(
            format,
            axis,
            (rows, cols),
            codes,
            scales,
            tensor_scale.copied(),
        );
        made.map(ExmyBlocks).map_err(Failure::unsupported)
    })
}

/// Frees a matrix of blocks.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_blocks_free(blocks: Option<Box<ExmyBlocks>>) {
    drop(blocks);
}

/// The block format, as `exmy_format_name` writes a format's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_blocks_name(
    blocks: Option<&ExmyBlocks>,
    text: *mut c_char,
    size: usize,
    length: Option<&mut MaybeUninit<usize>>,
) -> ExmyStatus {
    guard(|| {
        let name = given(blocks, "blocks")?.0.format().to_string();
        // SAFETY: the contract of the crate.
        unsafe { write_text(&name, text, size, length) }
    })
}

/// The matrix as it is stored.
#[unsafe(no_mangle)]
pub extern "C" fn exmy_blocks_parts(
    blocks: Option<&ExmyBlocks>,
    parts: Option<&mut MaybeUninit<ExmyBlocksStored>>,
) -> ExmyStatus {
    guard(|| {
        let tensor = &given(blocks, "blocks")?.0;
        let (codes, scales) = (tensor.packed_codes(), tensor.packed_scales());
        given(parts, "parts")?.write(ExmyBlocksStored {
            rows: tensor.rows(),
            cols: tensor.cols(),
            block_rows: tensor.block().0,
            block_cols: tensor.block().1,
            element_bits: tensor.format().element.bits(),
            scale_bytes: tensor.format().scale.storage_bits() / 8,
            codes: codes.as_ptr(),
            codes_size: codes.len(),
            scales: scales.as_ptr(),
            scales_size: scales.len(),
            tensor_scale: tensor.tensor_scale().unwrap_or(1.0),
            has_tensor_scale: tensor.tensor_scale().is_some().into(),
        });
        Ok(())
    })
}

/// The values of a matrix of blocks, row by row: rows x cols of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_dequantize(
    blocks: Option<&ExmyBlocks>,
    results: *mut f32,
) -> ExmyStatus {
    guard(|| {
        let tensor = &given(blocks, "blocks")?.0;
        let (rows, cols) = (tensor.rows(), tensor.cols());
        let count = span(rows, cols, cols, 1)?;
        // SAFETY: the contract of the crate.
        let results = unsafe { Arrays::default().write(results, count, "results") }?;
        tensor.dequantize_into(ViewMut::new(results, rows, cols));
        Ok(())
    })
}
