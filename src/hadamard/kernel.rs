//! The butterflies, 16 elements at a time; one body for every level.
//!
//! A step of span `h < 16` inside a vector is `y_l = x_(l xor h) + (-1)^[l & h] x_l`: a shuffle, a flip
//! of signs and an addition, which gives both `a + b` and `a - b`. Longer spans are between vectors.

use crate::simd::kernel;

/// All that the kernels need to know.
#[derive(Clone)]
pub(super) struct Steps {
    pub(super) size: usize,
    /// Sign bits of 128 elements, a multiple of the size.
    pub(super) signs: [u32; 128],
    /// `1 / sqrt size`.
    pub(super) scale: f32,
    pub(super) inverse: bool,
    pub(super) bf16: bool,
}

type Lanes = [f32; 16];

/// A group, or as many groups as fill a vector: at most 128 elements.
type Group = [Lanes; 8];

/// The nearest bfloat16, ties to even; NaN is quiet, keeps its sign and loses its payload.
#[inline(always)]
fn to_bf16(x: f32) -> f32 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000;
    f32::from_bits(if x.is_nan() { bits & 0x8000_0000 | 0x7FC0_0000 } else { rounded })
}

#[inline(always)]
fn inside<const H: usize>(x: &mut Lanes) {
    let old = *x;
    for l in 0..16 {
        let flip = if l & H != 0 { 0x8000_0000 } else { 0 };
        x[l] = old[l ^ H] + f32::from_bits(old[l].to_bits() ^ flip);
    }
}

/// The whole transform of the first `vectors` vectors of a group.
#[inline(always)]
fn transform(of: &Steps, signs: &[[u32; 16]; 8], group: &mut Group, vectors: usize) {
    let flip = |group: &mut Group| {
        for (x, signs) in group[..vectors].iter_mut().zip(signs) {
            for (x, sign) in x.iter_mut().zip(signs) {
                *x = f32::from_bits(x.to_bits() ^ sign);
            }
        }
    };
    if !of.inverse {
        flip(group);
    }
    for x in &mut group[..vectors] {
        inside::<1>(x);
        if of.size > 2 {
            inside::<2>(x);
        }
        if of.size > 4 {
            inside::<4>(x);
        }
        if of.size > 8 {
            inside::<8>(x);
        }
    }
    let mut span = 1;
    while span < vectors {
        for i in (0..vectors).filter(|i| i & span == 0) {
            for l in 0..16 {
                let (a, b) = (group[i][l], group[i + span][l]);
                (group[i][l], group[i + span][l]) = (a + b, a - b);
            }
        }
        span *= 2;
    }
    for x in &mut group[..vectors] {
        for x in x.iter_mut() {
            *x *= of.scale;
        }
    }
    if of.inverse {
        flip(group);
    }
    if of.bf16 {
        for x in &mut group[..vectors] {
            for x in x.iter_mut() {
                *x = to_bf16(*x);
            }
        }
    }
}

kernel! {
    /// Groups of consecutive elements.
    pub(super) fn along<'a>(of: &'a Steps, x: &'a mut [f32]) {
        let mut signs = [[0; 16]; 8];
        for (to, from) in signs.iter_mut().zip(of.signs.chunks(16)) {
            to.copy_from_slice(from);
        }
        let vectors = of.size.div_ceil(16);
        for run in x.chunks_mut(16 * vectors) {
            let mut group = [[0.0; 16]; 8];
            for (to, from) in group.iter_mut().zip(run.chunks(16)) {
                match from.try_into() {
                    Ok(from) => *to = from,
                    // The end of the slice, with groups smaller than a vector.
                    Err(_) => to[..from.len()].copy_from_slice(from),
                }
            }
            transform(of, &signs, &mut group, vectors);
            for (to, from) in run.chunks_mut(16).zip(&group) {
                to.copy_from_slice(&from[..to.len()]);
            }
        }
    }
}

kernel! {
    /// One group of rows, `stride` apart, down the columns.
    pub(super) fn down<'a>(of: &'a Steps, x: &'a mut [f32], cols: usize, stride: usize) {
        let size = of.size;
        let flip = |x: &mut [f32]| {
            for (row, sign) in x.chunks_mut(stride).zip(&of.signs) {
                for x in &mut row[..cols] {
                    *x = f32::from_bits(x.to_bits() ^ sign);
                }
            }
        };
        if !of.inverse {
            flip(x);
        }
        let mut span = 1;
        while span < size {
            for i in (0..size).filter(|i| i & span == 0) {
                let (upper, lower) = x.split_at_mut((i + span) * stride);
                let upper = &mut upper[i * stride..i * stride + cols];
                for (a, b) in upper.iter_mut().zip(&mut lower[..cols]) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
            span *= 2;
        }
        for row in x.chunks_mut(stride) {
            for x in &mut row[..cols] {
                *x *= of.scale;
            }
        }
        if of.inverse {
            flip(x);
        }
        if of.bf16 {
            for row in x.chunks_mut(stride) {
                for x in &mut row[..cols] {
                    *x = to_bf16(*x);
                }
            }
        }
    }
}
