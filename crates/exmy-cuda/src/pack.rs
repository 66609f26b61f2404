//! Elements to other places: codes packed to a stream of bits and back (the twins of
//! [`exmy::pack::pack`] and [`exmy::pack::unpack`]), transposes, and matrices with strides.

#![allow(unsafe_code)]

use exmy::pack::packed_len;

use crate::convert::stride_grid;
use crate::launch::Launch;
use crate::module::MOVE;
use crate::{Buffer, Code, Element, Error, Grid, Result, View, ViewMut};

/// Codes of at most 16 bits.
pub trait Narrow: Code {
    #[doc(hidden)]
    const PACK: &'static str;
    #[doc(hidden)]
    const UNPACK: &'static str;
}

impl Narrow for u8 {
    const PACK: &'static str = "pack_u8";
    const UNPACK: &'static str = "unpack_u8";
}

impl Narrow for u16 {
    const PACK: &'static str = "pack_u16";
    const UNPACK: &'static str = "unpack_u16";
}

fn length<C: Narrow>(what: &'static str, count: usize, width: u32) -> Result<usize> {
    let fits = (1..=C::BITS).contains(&width);
    packed_len(count, width)
        .filter(|_| fits)
        .ok_or_else(|| Error::unfit(what, format!("{count} codes of {width} bits in {}", C::BITS)))
}

/// Codes as a dense stream of bits; as [`exmy::pack::pack`], but bits of a code above the width are dropped.
///
/// # Errors
/// If the width is 0 or more than that of the integers, memory is full, or the device fails.
pub fn pack<C: Narrow>(codes: &Buffer<C>, width: u32) -> Result<Buffer<u8>> {
    let size = length::<C>("pack", codes.len(), width)?;
    let mut bytes = Buffer::uninit(codes.device(), size)?;
    if size > 0 {
        let launch = Launch::new(codes.device(), &MOVE, C::PACK).read(codes).write(&mut bytes);
        let launch = launch.value(codes.len() as u64).value(width).value(size as u64);
        // SAFETY: the buffers have as many elements as the kernel is told.
        unsafe { launch.run(stride_grid(codes.device(), codes.len() / 2))? };
    }
    Ok(bytes)
}

/// `count` codes of a dense stream of bits; as [`exmy::pack::unpack`].
///
/// # Errors
/// If the width is 0 or more than that of the integers, there are not as many bytes, memory is full, or the
/// device fails.
pub fn unpack<C: Narrow>(bytes: &Buffer<u8>, width: u32, count: usize) -> Result<Buffer<C>> {
    let size = length::<C>("unpack", count, width)?;
    if size != bytes.len() {
        let why = format!("{count} codes of {width} bits are {size} bytes, not {}", bytes.len());
        return Err(Error::unfit("unpack", why));
    }
    let mut codes = Buffer::uninit(bytes.device(), count)?;
    if count > 0 {
        let launch = Launch::new(bytes.device(), &MOVE, C::UNPACK).read(bytes).write(&mut codes);
        let launch = launch.value(count as u64).value(width).value(size as u64);
        // SAFETY: the buffers have as many elements as the kernel is told.
        unsafe { launch.run(stride_grid(bytes.device(), count * 4))? };
    }
    Ok(codes)
}

fn kernel<T: Element>(what: &'static str, kernels: [&'static str; 3]) -> Result<&'static str> {
    match size_of::<T>() {
        1 => Ok(kernels[0]),
        2 => Ok(kernels[1]),
        4 => Ok(kernels[2]),
        size => Err(Error::unfit(what, format!("elements of {size} bytes; 1, 2 and 4 are there"))),
    }
}

fn moved<T: Element>(
    (what, kernels): (&'static str, [&'static str; 3]),
    x: View<'_, T>,
    out: &mut ViewMut<'_, T>,
    shape: (usize, usize),
    grid: Grid,
) -> Result<()> {
    if out.shape() != shape {
        let why = format!("a matrix of {:?} into one of {:?}", x.shape(), out.shape());
        return Err(Error::unfit(what, why));
    }
    let kernel = kernel::<T>(what, kernels)?;
    if x.is_empty() {
        return Ok(());
    }
    let launch = Launch::new(x.buffer.device(), &MOVE, kernel).read_at(x.buffer, x.first);
    let launch = launch.write_at(out.buffer, out.first).value(x.rows as u32).value(x.cols as u32);
    // SAFETY: both views lie in their buffers.
    unsafe { launch.value(x.stride as u64).value(out.stride as u64).run(grid) }
}

/// Writes the transpose of `x` to `out`.
///
/// # Errors
/// If the shapes do not fit each other, elements have other than 1, 2 or 4 bytes, or the device fails.
pub fn transpose_into<T: Element>(x: View<'_, T>, mut out: ViewMut<'_, T>) -> Result<()> {
    let tiles = x.rows.div_ceil(32) * x.cols.div_ceil(32);
    let most = x.buffer.device().properties().processors as usize * 32;
    let grid = Grid::new(tiles.clamp(1, most) as u32, 256);
    let kernels = ["transpose_u8", "transpose_u16", "transpose_u32"];
    moved(("transpose", kernels), x, &mut out, (x.cols, x.rows), grid)
}

/// Writes `x` to `out`, which may have another stride.
///
/// # Errors
/// As [`transpose_into`].
pub fn copy_matrix<T: Element>(x: View<'_, T>, out: &mut ViewMut<'_, T>) -> Result<()> {
    let grid = stride_grid(x.buffer.device(), x.rows * x.cols * 2);
    moved(("copy", ["copy_u8", "copy_u16", "copy_u32"]), x, out, x.shape(), grid)
}
