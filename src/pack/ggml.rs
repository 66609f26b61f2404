//! The blocks of ggml's MXFP4, as GGUF files hold them: `block_mxfp4` of ggml-common.h
//! (github.com/ggml-org/ggml).
//!
//! A block of 32 codes of E2M1 is 17 bytes: the E8M0 scale, then 16 bytes of codes. Byte `j` of
//! these holds code `j` in its low nibble and code `j + 16` in its high one. Halves are split,
//! where the dense stream puts neighbours together. Rows are whole blocks.
//!
//! Two facts about the values, which are not this module's: ggml decodes with doubled element values
//! and a halved scale, which is the same number. It does not read the scale 0xFF as NaN.

use alloc::vec;
use alloc::vec::Vec;

use super::{Code, PackError, check_width, code_too_wide};

/// Codes of a block.
pub const BLOCK: usize = 32;

/// Bytes of a block.
pub const BLOCK_BYTES: usize = 17;

const NAME: &str = "ggml-mxfp4";

/// Bytes that `count` codes and their scales take.
///
/// # Errors
/// If `count` is not a multiple of [`BLOCK`], or the bytes are more than a `usize` can say.
///
/// ```
/// use exmy::pack::ggml;
///
/// assert_eq!(ggml::len(64)?, 34);
/// let error = ggml::len(40).unwrap_err();
/// assert_eq!(error.to_string(), "ggml-mxfp4 holds whole blocks of 32 codes; 40 are none");
/// # Ok::<(), exmy::pack::PackError>(())
/// ```
pub fn len(count: usize) -> Result<usize, PackError> {
    if !count.is_multiple_of(BLOCK) {
        return Err(PackError::Blocks { container: NAME, block: BLOCK, codes: count });
    }
    // 17 bytes for 32 codes are fewer than the codes.
    Ok(count / BLOCK * BLOCK_BYTES)
}

fn check(count: usize, scales: usize, found: usize) -> Result<(), PackError> {
    let needed = len(count)?;
    let blocks = count / BLOCK;
    if scales != blocks {
        let (rows, cols) = (1, blocks);
        return Err(PackError::Scales {
            container: NAME,
            needed: blocks,
            found: scales,
            rows,
            cols,
        });
    }
    if found != needed {
        return Err(PackError::Length { container: NAME, needed, found, codes: count, width: 4 });
    }
    Ok(())
}

/// Puts codes of 4 bits and the scales of their blocks into `bytes`. On an error about a code all
/// bytes are zero.
///
/// # Errors
/// If a code has more than 4 bits, or a length does not fit the others.
///
/// ```
/// use exmy::pack::ggml;
///
/// let mut codes = [0_u8; 32];
/// (codes[0], codes[1], codes[16]) = (0x3, 0x5, 0xA);
/// let mut bytes = [0xFF; 17];
/// ggml::pack_into(&codes, &[127], &mut bytes)?;
/// assert_eq!(bytes[..4], [127, 0xA3, 0x05, 0x00]); // code 16 and code 0
/// # Ok::<(), exmy::pack::PackError>(())
/// ```
pub fn pack_into<C: Code>(codes: &[C], scales: &[u8], bytes: &mut [u8]) -> Result<(), PackError> {
    check(codes.len(), scales.len(), bytes.len())?;
    if let Some(error) = code_too_wide(codes, 4) {
        bytes.fill(0);
        return Err(error);
    }
    let blocks = codes.as_chunks::<BLOCK>().0.iter().zip(scales);
    for (block, (codes, scale)) in bytes.as_chunks_mut::<BLOCK_BYTES>().0.iter_mut().zip(blocks) {
        block[0] = *scale;
        let (low, high) = codes.split_at(BLOCK / 2);
        for ((byte, low), high) in block[1..].iter_mut().zip(low).zip(high) {
            *byte = low.low_byte() | high.low_byte() << 4;
        }
    }
    Ok(())
}

/// Codes and scales in new bytes.
///
/// # Errors
/// As [`pack_into`].
///
/// ```
/// let bytes = exmy::pack::ggml::pack(&[0x1_u8; 64], &[127, 128])?;
/// assert_eq!((bytes.len(), bytes[0], bytes[17]), (34, 127, 128)); // scales lie between the codes
/// # Ok::<(), exmy::pack::PackError>(())
/// ```
pub fn pack<C: Code>(codes: &[C], scales: &[u8]) -> Result<Vec<u8>, PackError> {
    let mut bytes = vec![0; len(codes.len())?];
    pack_into(codes, scales, &mut bytes)?;
    Ok(bytes)
}

/// Takes codes of 4 bits and the scales of their blocks out of `bytes`.
///
/// # Errors
/// If a length does not fit the others.
///
/// ```
/// use exmy::pack::ggml;
///
/// let mut bytes = [0_u8; 17];
/// (bytes[0], bytes[1]) = (0xFF, 0xA3);
/// let (mut codes, mut scales) = ([0_u8; 32], [0]);
/// ggml::unpack_into(&bytes, &mut codes, &mut scales)?;
/// assert_eq!((codes[0], codes[1], codes[16], scales[0]), (0x3, 0, 0xA, 0xFF));
/// # Ok::<(), exmy::pack::PackError>(())
/// ```
pub fn unpack_into<C: Code>(
    bytes: &[u8],
    codes: &mut [C],
    scales: &mut [u8],
) -> Result<(), PackError> {
    check(codes.len(), scales.len(), bytes.len())?;
    check_width(4, C::BITS)?;
    let blocks = codes.as_chunks_mut::<BLOCK>().0.iter_mut().zip(scales);
    for (block, (codes, scale)) in bytes.as_chunks::<BLOCK_BYTES>().0.iter().zip(blocks) {
        *scale = block[0];
        let (low, high) = codes.split_at_mut(BLOCK / 2);
        for ((byte, low), high) in block[1..].iter().zip(low).zip(high) {
            *low = C::from_low_bits(u16::from(byte & 0xF));
            *high = C::from_low_bits(u16::from(byte >> 4));
        }
    }
    Ok(())
}
