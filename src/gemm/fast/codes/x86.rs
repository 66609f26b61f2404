//! The instructions of [`codes`](super).

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::super::Side;
use super::super::panel::{Facts, LANES, Line, PAIR_LINES, WIDE_LINES};
use super::{BlockCodes, Scales};
use crate::gemm::transpose::x86::square;

/// How bytes become values.
#[allow(clippy::large_enum_variant, reason = "registers, of which there is one set")]
enum Values {
    /// 64 entries.
    Short([__m512i; 2]),
    /// 128 entries and a sign.
    Signed([[__m512i; 2]; 2]),
    /// 256 entries.
    Any([[__m512i; 4]; 2]),
}

/// What is kept in registers while lanes pass by.
struct LaneReader {
    /// Bytes of eight codes, as they lie in memory.
    bytes: usize,
    /// Where the bytes of each group of eight codes are. Groups have the order 0 4 1 5 2 6 3 7, so
    /// that interleaving inside lanes of 16 bytes leaves results in order.
    spread: __m512i,
    /// Where codes begin in their groups.
    shifts: __m512i,
    mask: __m512i,
    values: Values,
}

impl LaneReader {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    fn new(codes: &BlockCodes<'_>) -> Self {
        let bits = codes.bits as usize;
        let mut spread = [0_u8; 64];
        let mut shifts = [0_u8; 64];
        for (at, (spread, shift)) in spread.iter_mut().zip(&mut shifts).enumerate() {
            let group = [0, 4, 1, 5, 2, 6, 3, 7][at / 8];
            *spread = (group * bits + at % 8 % bits) as u8;
            *shift = (at % 8 * bits) as u8;
        }
        let of = |table: &[u8; 256], i: usize| {
            // SAFETY: a quarter of the table from its begin, as `i` is 0 to 3.
            unsafe { _mm512_loadu_si512(table.as_ptr().add(64 * i).cast()) }
        };
        let tables = &codes.values.bytes;
        let values = match () {
            () if bits <= 6 => Values::Short([of(&tables[0], 0), of(&tables[1], 0)]),
            () if codes.values.signed => {
                Values::Signed([0, 1].map(|byte| [0, 1].map(|i| of(&tables[byte], i))))
            }
            () => Values::Any([0, 1].map(|byte| [0, 1, 2, 3].map(|i| of(&tables[byte], i)))),
        };
        // SAFETY: arrays of 64 bytes.
        let [spread, shifts] =
            [spread, shifts].map(|of| unsafe { _mm512_loadu_si512(of.as_ptr().cast()) });
        let mask = _mm512_set1_epi8(((1_u32 << bits) - 1) as u8 as i8);
        Self { bytes: bits, spread, shifts, mask, values }
    }

    /// The bfloat16 values of up to 64 codes, in order.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
    fn read(&self, codes: &[u8]) -> [__m512i; 2] {
        let len = codes.len().min(8 * self.bytes);
        // SAFETY: no more than `len` bytes are touched.
        let raw = unsafe { _mm512_maskz_loadu_epi8(u64::MAX >> (64 - len), codes.as_ptr().cast()) };
        let codes = _mm512_permutexvar_epi8(self.spread, raw);
        let codes = match self.values {
            Values::Short(_) => {
                _mm512_and_si512(_mm512_multishift_epi64_epi8(self.shifts, codes), self.mask)
            }
            _ => codes,
        };
        let (low, high) = match &self.values {
            Values::Short([low, high]) => {
                (_mm512_permutexvar_epi8(codes, *low), _mm512_permutexvar_epi8(codes, *high))
            }
            Values::Signed([low, high]) => {
                let high = _mm512_permutex2var_epi8(high[0], codes, high[1]);
                // Sign bits besides.
                let sign = _mm512_set1_epi8(i8::MIN);
                (
                    _mm512_permutex2var_epi8(low[0], codes, low[1]),
                    _mm512_ternarylogic_epi32::<0xF8>(high, codes, sign),
                )
            }
            Values::Any([low, high]) => {
                let upper = _mm512_movepi8_mask(codes);
                let entries = |table: &[__m512i; 4]| {
                    _mm512_mask_blend_epi8(
                        upper,
                        _mm512_permutex2var_epi8(table[0], codes, table[1]),
                        _mm512_permutex2var_epi8(table[2], codes, table[3]),
                    )
                };
                (entries(low), entries(high))
            }
        };
        [_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)]
    }
}

/// The scales of the 32 positions of block `block`: two neighbours share one.
#[inline]
#[target_feature(enable = "avx512f")]
fn scale(row: &[f32], sixteens: bool, block: usize) -> __m512 {
    match sixteens {
        false => _mm512_set1_ps(row[block]),
        true => {
            let pair = [row[2 * block], row[2 * block + 1]];
            _mm512_mask_blend_ps(0xFF00, _mm512_set1_ps(pair[0]), _mm512_set1_ps(pair[1]))
        }
    }
}

/// The images of the even and the odd ones of 32 values.
#[inline]
#[target_feature(enable = "avx512f")]
fn images(values: __m512i, scale: __m512) -> [__m512i; 2] {
    let even = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(values));
    let odd = _mm512_castsi512_ps(_mm512_and_si512(values, _mm512_set1_epi32(!0xFFFF)));
    [even, odd].map(|x| _mm512_castps_si512(_mm512_mul_ps(x, scale)))
}

/// # Safety
/// The instructions must be available, and of each lane that has codes there must be scales for as
/// many blocks as `lines` take.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn halves(
    codes: &BlockCodes<'_>,
    rows: &[&[u8]; LANES],
    scales: Scales<'_>,
    side: Side,
    lines: &mut [Line],
) -> Option<Facts> {
    let reader = LaneReader::new(codes);
    let (magnitude, one) = (_mm512_set1_epi16(0x7FFF), _mm512_set1_epi16(1));
    let zero = _mm512_setzero_si512();
    let (mut lost, mut any, mut least, mut most) = (zero, zero, _mm512_set1_epi16(-1), zero);
    for (two, lines) in lines.chunks_mut(2 * PAIR_LINES).enumerate() {
        for (lane, row) in rows.iter().enumerate() {
            if row.is_empty() {
                lines.iter_mut().skip(lane).step_by(PAIR_LINES).for_each(|line| *line = Line::ZERO);
                continue;
            }
            let values = reader.read(&row[two * 8 * reader.bytes..]);
            for (at, lines) in lines.as_chunks_mut::<PAIR_LINES>().0.iter_mut().enumerate() {
                let scale = scale(scales.rows[lane], scales.sixteens, 2 * two + at);
                let [even, odd] = images(values[at], scale);
                lost = _mm512_ternarylogic_epi32::<0xFE>(lost, even, odd);
                // The upper halves: odd where the mask is, else even.
                let upper = _mm512_set1_epi32(!0xFFFF);
                let even = _mm512_srli_epi32::<16>(even);
                let line = _mm512_ternarylogic_epi32::<0xF8>(even, odd, upper);
                let size = _mm512_and_si512(line, magnitude);
                any = _mm512_or_si512(any, size);
                least = _mm512_min_epu16(least, _mm512_sub_epi16(size, one));
                most = _mm512_max_epu16(most, size);
                // SAFETY: a line is 64 bytes at a multiple of 64.
                unsafe { _mm512_store_si512((&raw mut lines[lane]).cast(), line) };
            }
        }
        if side == Side::Right {
            for lines in lines.as_chunks_mut::<16>().0 {
                let lines = lines.as_mut_ptr();
                // SAFETY: 16 lines, read before any is written.
                unsafe { square(lines.cast(), 16, lines.cast(), 16) };
            }
        }
    }
    if _mm512_test_epi32_mask(lost, _mm512_set1_epi32(0xFFFF)) != 0 {
        return None;
    }
    let halves = |of: __m512i| {
        let mut halves = [0_u16; 32];
        // SAFETY: an array of 64 bytes.
        unsafe { _mm512_storeu_si512(halves.as_mut_ptr().cast(), of) };
        halves
    };
    let any = halves(any).into_iter().fold(0, |all, half| all | half);
    let least = halves(least).into_iter().fold(u16::MAX, u16::min);
    let most = halves(most).into_iter().fold(0, u16::max);
    Some(Facts::of_extremes(any, least, most))
}

/// # Safety
/// As for [`halves`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi")]
pub(super) unsafe fn singles(
    codes: &BlockCodes<'_>,
    rows: &[&[u8]; LANES],
    scales: Scales<'_>,
    side: Side,
    lines: &mut [Line],
) {
    let reader = LaneReader::new(codes);
    let first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    let second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    // Lane by lane the even positions of a block and the odd ones.
    let mut parts = [[Line::ZERO; 2 * LANES]; 2];
    for (two, lines) in lines.chunks_mut(2 * WIDE_LINES).enumerate() {
        for (lane, row) in rows.iter().enumerate() {
            let values = match row.is_empty() {
                true => [_mm512_setzero_si512(); 2],
                false => reader.read(&row[two * 8 * reader.bytes..]),
            };
            for (at, lines) in lines.as_chunks_mut::<WIDE_LINES>().0.iter_mut().enumerate() {
                let [even, odd] = match row.is_empty() {
                    true => [_mm512_setzero_si512(); 2],
                    false => {
                        images(values[at], scale(scales.rows[lane], scales.sixteens, 2 * two + at))
                    }
                };
                let (to, images) = match side {
                    Side::Left => {
                        let both = [first, second].map(|i| _mm512_permutex2var_epi32(even, i, odd));
                        (lines.as_mut_ptr().wrapping_add(2 * lane), both)
                    }
                    // Even ones and odd ones apart.
                    Side::Right => (parts[at].as_mut_ptr().wrapping_add(2 * lane), [even, odd]),
                };
                // SAFETY: two lines, number `2 * lane` and the next of 64; aligned as lines are.
                unsafe {
                    _mm512_store_si512(to.cast(), images[0]);
                    _mm512_store_si512(to.add(1).cast(), images[1]);
                }
            }
        }
        if side == Side::Right {
            for (parts, lines) in parts.iter().zip(lines.as_chunks_mut::<WIDE_LINES>().0) {
                // Lanes 0 to 15 and 16 to 31, of even and of odd positions, each 4 lines apart.
                for half in 0..2 {
                    for odd in 0..2 {
                        let from = parts.as_ptr().wrapping_add(32 * half + odd);
                        let to = lines.as_mut_ptr().wrapping_add(2 * odd + half);
                        // SAFETY: lines 32 half + odd + 2 i and 2 odd + half + 4 i of 64 lines each,
                        // i up to 15.
                        unsafe { square(from.cast(), 32, to.cast(), 64) };
                    }
                }
            }
        }
    }
}
