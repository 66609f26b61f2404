//! Maxima of blocks, and a block's number laid out per element.

#[cfg(all(target_arch = "x86_64", feature = "std"))]
mod avx512;

use super::MAGNITUDE;
use crate::simd::kernel;

/// The numbers of blocks of `width` elements, laid out per element.
pub(crate) fn spread(width: usize, numbers: &[f32], out: &mut [f32]) {
    for (block, number) in out.chunks_mut(width).zip(numbers) {
        block.fill(*number);
    }
}

/// Folds the magnitudes of a row into the maxima of blocks of `width` columns, as bits.
pub(crate) fn fold(width: usize, row: &[f32], amax: &mut [u32]) {
    match width {
        1 => fold_columns(row, amax),
        _ => {
            #[cfg(all(target_arch = "x86_64", feature = "std"))]
            let (row, amax) = avx512::sixteens(width, row, amax);
            if !amax.is_empty() {
                fold_blocks(width, row, amax);
            }
        }
    }
}

kernel! {
    fn fold_columns<'a>(row: &'a [f32], amax: &'a mut [u32]) {
        for (x, amax) in row.iter().zip(amax) {
            *amax = (*amax).max(x.to_bits() & MAGNITUDE);
        }
    }
}

kernel! {
    fn fold_blocks<'a>(width: usize, row: &'a [f32], amax: &'a mut [u32]) {
        let (row, amax) = match width {
            // The widths of NVFP4 and MX, so that a block costs no counting.
            16 => sixteens::<16>(row, amax),
            32 => sixteens::<32>(row, amax),
            _ => (row, amax),
        };
        for (block, amax) in row.chunks(width).zip(amax) {
            *amax = (*amax).max(largest_of(block));
        }
    }
}

/// Sixteen blocks of `W` elements at a time: their maxima over 16 lanes, and then of neighbours,
/// which takes a third of the shuffles of sixteen reductions. What is left is returned.
#[inline(always)]
fn sixteens<'a, const W: usize>(row: &'a [f32], amax: &'a mut [u32]) -> (&'a [f32], &'a mut [u32]) {
    let sixteen = row.len() / (16 * W);
    let (row, row_left) = row.split_at(sixteen * 16 * W);
    let (amax, amax_left) = amax.split_at_mut(sixteen * 16);
    let blocks = row.as_chunks::<W>().0.as_chunks::<16>().0;
    for (blocks, amax) in blocks.iter().zip(amax.as_chunks_mut::<16>().0) {
        let mut lanes = [[0_u32; 16]; 16];
        for (block, lanes) in blocks.iter().zip(&mut lanes) {
            let mut max = [0_u32; 16];
            for group in block.as_chunks::<16>().0 {
                for (max, x) in max.iter_mut().zip(group) {
                    *max = (*max).max(x.to_bits() & MAGNITUDE);
                }
            }
            *lanes = max;
        }
        let mut pairs = [0_u32; 128];
        neighbours(lanes.as_flattened(), &mut pairs);
        let mut fours = [0_u32; 64];
        neighbours(&pairs, &mut fours);
        let mut eights = [0_u32; 32];
        neighbours(&fours, &mut eights);
        let mut all = [0_u32; 16];
        neighbours(&eights, &mut all);
        for (amax, found) in amax.iter_mut().zip(all) {
            *amax = (*amax).max(found);
        }
    }
    (row_left, amax_left)
}

/// The larger one of each two neighbours.
#[inline(always)]
fn neighbours(from: &[u32], to: &mut [u32]) {
    for (pair, to) in from.as_chunks::<2>().0.iter().zip(to) {
        *to = pair[0].max(pair[1]);
    }
}

kernel! {
    /// The largest magnitude, as bits.
    pub(crate) fn largest<'a>(row: &'a [f32]) -> u32 {
        largest_of(row)
    }
}

/// As integers, magnitudes order with their bits, infinity above and NaN above that; a maximum
/// does not depend on its order. The plainest loop is the one that compilers make lanes of: written
/// with sixteen lanes, it was gathered from memory element by element.
#[inline(always)]
fn largest_of(row: &[f32]) -> u32 {
    row.iter().fold(0, |max, x| max.max(x.to_bits() & MAGNITUDE))
}

/// Whether one of the numbers is NaN.
pub(crate) fn any_nan(numbers: &[f32]) -> bool {
    largest(numbers) > 0x7F80_0000
}
