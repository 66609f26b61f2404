//! The matrix tiles of x86-64 (AMX): 32 x 32 sums at a time, in four tiles of 16 x 16.
//!
//! `tdpbf16ps` multiplies a tile of 16 rows of 32 bfloat16 numbers by one of 16 pairs of rows. For
//! every sum there is a chain of fused multiply-adds over the even positions and one over the odd
//! ones, both from +0. Their sum is added to the accumulator. That is one block of the order of
//! [`fast`](super), except that it takes subnormal numbers as zero and writes zero for them.

#![allow(unsafe_code)]

use core::arch::asm;
use core::marker::PhantomData;

use super::panel::{Line, PAIR_LINES};
use crate::simd::{Level, level_of_products};

/// Tiles prepared on this thread; given back when dropped.
pub(super) struct Tiles {
    /// Not to be sent to another thread, which has tiles of its own.
    _here: PhantomData<*const ()>,
}

/// What `ldtilecfg` reads.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

impl Tiles {
    /// Makes all eight tiles 16 rows of 64 bytes, if the level in force has tiles and Linux gives them.
    pub(super) fn new() -> Option<Self> {
        if level_of_products() != Level::Amx {
            return None;
        }
        let mut configuration = Configuration {
            palette: 1,
            start_row: 0,
            reserved: [0; 14],
            row_bytes: [0; 16],
            rows: [0; 16],
        };
        configuration.row_bytes[..8].fill(64);
        configuration.rows[..8].fill(16);
        // SAFETY: the level says that the CPU has tiles and the process may use them. The operand
        // is 64 readable bytes that describe eight tiles of the largest size of palette 1.
        unsafe {
            asm!(
                "ldtilecfg [{}]",
                in(reg) &raw const configuration,
                out("tmm0") _,
                out("tmm1") _,
                out("tmm2") _,
                out("tmm3") _,
                out("tmm4") _,
                out("tmm5") _,
                out("tmm6") _,
                out("tmm7") _,
                options(nostack, readonly)
            );
        }
        Some(Self { _here: PhantomData })
    }

    /// Sums over the blocks of a left and a right panel, to 32 rows of 32 numbers that are `stride`
    /// apart; onto what these hold, or from +0.
    ///
    /// # Panics
    /// If the panels have different lengths, are no whole blocks, or the output is too short.
    pub(super) fn sums(
        &self,
        left: &[Line],
        right: &[Line],
        out: &mut [f32],
        stride: usize,
        onto: bool,
    ) {
        let blocks = left.len() / PAIR_LINES;
        assert!(blocks > 0 && left.len() == right.len() && left.len().is_multiple_of(PAIR_LINES));
        assert!(stride >= 32 && out.len() >= 32 && (out.len() - 32) / 31 >= stride);
        let upper = out.as_mut_ptr();
        // SAFETY: the assertion says that 31 strides and 32 numbers fit the output.
        let lower = unsafe { upper.add(16 * stride) };
        let row = stride * size_of::<f32>();
        // SAFETY: the tiles are configured as `new` did, since `self` exists on this thread. Each
        // tile reads or writes 16 rows of 64 bytes. Of the output these are rows 0 to 15 and 16 to
        // 31 of 32 numbers, which fit. Of the panels they are two tiles of 1024 bytes a block,
        // `blocks` times.
        unsafe {
            asm!(
                "test {onto}, {onto}",
                "jnz 3f",
                "tilezero tmm0",
                "tilezero tmm1",
                "tilezero tmm2",
                "tilezero tmm3",
                "jmp 2f",
                "3:",
                "tileloadd tmm0, [{upper} + {row}*1]",
                "tileloadd tmm1, [{upper} + {row}*1 + 64]",
                "tileloadd tmm2, [{lower} + {row}*1]",
                "tileloadd tmm3, [{lower} + {row}*1 + 64]",
                "2:",
                "tileloadd tmm4, [{left} + {line}*1]",
                "tileloadd tmm6, [{right} + {line}*1]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "tileloadd tmm7, [{right} + {line}*1 + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "tileloadd tmm5, [{left} + {line}*1 + 1024]",
                "tdpbf16ps tmm2, tmm5, tmm6",
                "tdpbf16ps tmm3, tmm5, tmm7",
                "add {left}, 2048",
                "add {right}, 2048",
                "dec {blocks}",
                "jnz 2b",
                "tilestored [{upper} + {row}*1], tmm0",
                "tilestored [{upper} + {row}*1 + 64], tmm1",
                "tilestored [{lower} + {row}*1], tmm2",
                "tilestored [{lower} + {row}*1 + 64], tmm3",
                left = inout(reg) left.as_ptr() => _,
                right = inout(reg) right.as_ptr() => _,
                blocks = inout(reg) blocks => _,
                line = in(reg) 64_usize,
                upper = in(reg) upper,
                lower = in(reg) lower,
                row = in(reg) row,
                onto = in(reg) usize::from(onto),
                out("tmm0") _,
                out("tmm1") _,
                out("tmm2") _,
                out("tmm3") _,
                out("tmm4") _,
                out("tmm5") _,
                out("tmm6") _,
                out("tmm7") _,
                options(nostack)
            );
        }
    }
}

impl Drop for Tiles {
    fn drop(&mut self) {
        // SAFETY: `new` has found that the CPU has tiles; nothing uses them any more.
        unsafe {
            asm!(
                "tilerelease",
                out("tmm0") _,
                out("tmm1") _,
                out("tmm2") _,
                out("tmm3") _,
                out("tmm4") _,
                out("tmm5") _,
                out("tmm6") _,
                out("tmm7") _,
                options(nostack, nomem)
            );
        }
    }
}
