//! Matrices transposed: what packing does where an operand's columns are rows in memory.
//!
//! Numbers are moved and nothing is computed. With AVX-512 whole squares of 16 x 16 words pass through
//! registers, since to read a column's numbers one by one touches as many cache lines. Else, and at
//! ragged ends, plain loops do the same.

#![allow(unsafe_code)]

/// Words of a side of a square.
#[cfg(feature = "fast-f32")]
const SIDE: usize = 16;

/// `out[k * step + j] = from[j * stride + k]` for rows `k` and columns `j` of the output.
///
/// # Panics
/// If an element lies outside of its slice.
#[cfg(feature = "fast-f32")]
pub(super) fn transpose(
    from: &[f32],
    stride: usize,
    (rows, cols): (usize, usize),
    out: &mut [f32],
    step: usize,
) {
    let mut done = 0;
    if crate::simd::level() >= crate::simd::Level::Avx512 && rows >= SIDE && cols >= SIDE {
        assert!(from.len() >= (cols - 1) * stride + rows && out.len() >= (rows - 1) * step + cols);
        done = cols / SIDE * SIDE;
        for j in (0..done).step_by(SIDE) {
            for k in (0..rows / SIDE * SIDE).step_by(SIDE) {
                let (from, to) = (&from[j * stride + k..], &mut out[k * step + j..]);
                // SAFETY: AVX-512 F by the level; the last of the square's rows and columns are among
                // those that the assertion found in the slices.
                unsafe {
                    x86::square(from.as_ptr().cast(), stride, to.as_mut_ptr().cast(), step);
                }
            }
            for k in rows / SIDE * SIDE..rows {
                (0..SIDE).for_each(|i| out[k * step + j + i] = from[(j + i) * stride + k]);
            }
        }
    }
    for j in done..cols {
        let column = &from[j * stride..][..rows];
        for (out, x) in out[j..].iter_mut().step_by(step).zip(column) {
            *out = *x;
        }
    }
}

pub(super) mod x86 {
    use core::arch::x86_64::*;

    /// Transposes 16 x 16 words; all are read before any is written.
    ///
    /// # Safety
    /// This CPU has AVX-512 F. There are 16 words at `from` and at 1 to 15 times `from_step` words
    /// behind it, and so at `to`.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::gemm) unsafe fn square(
        from: *const u32,
        from_step: usize,
        to: *mut u32,
        to_step: usize,
    ) {
        let mut rows = [_mm512_setzero_si512(); 16];
        for (i, row) in rows.iter_mut().enumerate() {
            // SAFETY: by the function's condition; no alignment is needed.
            *row = unsafe { _mm512_loadu_si512(from.add(i * from_step).cast()) };
        }
        // Squares of 2 x 2 words, of 4 x 4, and the 4 x 4 squares of those.
        let mut pairs = rows;
        for i in 0..8 {
            pairs[2 * i] = _mm512_unpacklo_epi32(rows[2 * i], rows[2 * i + 1]);
            pairs[2 * i + 1] = _mm512_unpackhi_epi32(rows[2 * i], rows[2 * i + 1]);
        }
        // Lane l of quads[4 g + w] holds column 4 l + w of rows 4 g to 4 g + 3.
        let mut quads = rows;
        for g in 0..4 {
            quads[4 * g] = _mm512_unpacklo_epi64(pairs[4 * g], pairs[4 * g + 2]);
            quads[4 * g + 1] = _mm512_unpackhi_epi64(pairs[4 * g], pairs[4 * g + 2]);
            quads[4 * g + 2] = _mm512_unpacklo_epi64(pairs[4 * g + 1], pairs[4 * g + 3]);
            quads[4 * g + 3] = _mm512_unpackhi_epi64(pairs[4 * g + 1], pairs[4 * g + 3]);
        }
        for w in 0..4 {
            let [a, b, c, d] = [quads[w], quads[4 + w], quads[8 + w], quads[12 + w]];
            let (low_ab, high_ab) =
                (_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xEE>(a, b));
            let (low_cd, high_cd) =
                (_mm512_shuffle_i32x4::<0x44>(c, d), _mm512_shuffle_i32x4::<0xEE>(c, d));
            let columns = [
                _mm512_shuffle_i32x4::<0x88>(low_ab, low_cd),
                _mm512_shuffle_i32x4::<0xDD>(low_ab, low_cd),
                _mm512_shuffle_i32x4::<0x88>(high_ab, high_cd),
                _mm512_shuffle_i32x4::<0xDD>(high_ab, high_cd),
            ];
            for (l, column) in columns.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { _mm512_storeu_si512(to.add((4 * l + w) * to_step).cast(), column) };
            }
        }
    }
}

#[cfg(all(test, feature = "fast-f32"))]
mod tests {
    use super::*;
    use crate::simd::{Level, with_level};
    use alloc::vec;
    use alloc::vec::Vec;

    /// Ragged in both sizes and rows wider than what is taken of them; the rest of the output stays.
    #[test]
    fn every_number_at_its_place() {
        for (rows, cols) in [(1, 1), (16, 16), (64, 48), (33, 50), (15, 64), (40, 7)] {
            let (stride, step) = (rows + 3, cols + 5);
            let from: Vec<f32> = (0..cols * stride).map(|i| i as f32).collect();
            for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                let mut out = vec![-1.0; rows * step];
                with_level(level, || transpose(&from, stride, (rows, cols), &mut out, step));
                for (at, got) in out.into_iter().enumerate() {
                    let (k, j) = (at / step, at % step);
                    let expected = if j < cols { (j * stride + k) as f32 } else { -1.0 };
                    assert_eq!(got, expected, "{rows} x {cols}, row {k}, column {j}, {level}");
                }
            }
        }
    }
}
