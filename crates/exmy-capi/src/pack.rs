//! Codes in fewer bits than an integer has.

#![allow(unsafe_code)] // the caller's texts and arrays

use std::ffi::{c_char, c_void};
use std::mem::MaybeUninit;

use exmy::pack::Layout;

use crate::arrays::{Arrays, Codes, CodesMut, text};
use crate::status::{ExmyStatus, Failure, given, guard};

/// The layout of a name, and the bytes of so many codes in it.
///
/// # Safety
/// The name is a text.
unsafe fn layout(
    name: *const c_char,
    width: u32,
    count: usize,
) -> Result<(Layout, usize), Failure> {
    // SAFETY: the caller's word.
    let layout: Layout = unsafe { text(name, "layout") }?.parse().map_err(Failure::name)?;
    let size = layout.len(count, width).map_err(Failure::unsupported)?;
    Ok((layout, size))
}

/// The bytes that `count` codes of `width` bits (1 to 16) take. Layouts: `stream` (no bit between codes, the
/// first in the low bits), `byte`, and of 6 bits `fp6-padded4`, `fp6-padded32`, `tma16`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_packed_size(
    layout: *const c_char,
    width: u32,
    count: usize,
    size: Option<&mut MaybeUninit<usize>>,
) -> ExmyStatus {
    guard(|| {
        // SAFETY: the contract of the crate.
        let (_, found) = unsafe { self::layout(layout, width, count) }?;
        given(size, "size")?.write(found);
        Ok(())
    })
}

/// Packs `count` codes of `width` bits into as many bytes as `exmy_packed_size` says. A code with more bits
/// is refused, and all bytes are 0 then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_pack(
    layout: *const c_char,
    width: u32,
    count: usize,
    codes: *const c_void,
    bytes: *mut u8,
) -> ExmyStatus {
    guard(|| {
        let mut arrays = Arrays::default();
        // SAFETY: the contract of the crate.
        let (layout, codes, bytes) = unsafe {
            let (layout, size) = self::layout(layout, width, count)?;
            let codes = arrays.codes(codes, count, width, "codes")?;
            (layout, codes, arrays.write(bytes, size, "bytes")?)
        };
        let packed = match codes {
            Codes::U8(codes) => layout.pack_into(codes, width, bytes),
            Codes::U16(codes) => layout.pack_into(codes, width, bytes),
            Codes::U32(_) | Codes::U64(_) => unreachable!("no layout takes {width} bits"),
        };
        packed.map_err(Failure::argument)
    })
}

/// The way back: `count` codes out of as many bytes as `exmy_packed_size` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn exmy_unpack(
    layout: *const c_char,
    width: u32,
    count: usize,
    bytes: *const u8,
    codes: *mut c_void,
) -> ExmyStatus {
    guard(|| {
        let mut arrays = Arrays::default();
        // SAFETY: the contract of the crate.
        let (layout, bytes, codes) = unsafe {
            let (layout, size) = self::layout(layout, width, count)?;
            let bytes = arrays.read(bytes, size, "bytes")?;
            (layout, bytes, arrays.codes_mut(codes, count, width, "codes")?)
        };
        let unpacked = match codes {
            CodesMut::U8(codes) => layout.unpack_into(bytes, width, codes),
            CodesMut::U16(codes) => layout.unpack_into(bytes, width, codes),
            CodesMut::U32(_) | CodesMut::U64(_) => unreachable!("no layout takes {width} bits"),
        };
        unpacked.map_err(Failure::argument)
    })
}
