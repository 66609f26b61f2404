//! Normal numbers by the million, by address: the rows and the noise of the [proxy](super::proxy).
//!
//! Box and Muller's transform (Ann. Math. Statist. 29, 1958) in f32 of two 24-bit uniforms: block b
//! of the generator gives elements 4 b to 4 b + 3, two pairs. The largest magnitude is `sqrt(48 ln 2)` =
//! 5.77. A step of 2048 rows of 512 takes four million of these numbers, which is why they are not formed in
//! f64 as initial weights are.

// Loops over a fixed number of blocks, indexed alike in several arrays, become vector code.
#![allow(clippy::needless_range_loop)]

use crate::nn::elementary::ln;
use crate::nn::real::Real;
use exmy::parallel;
use exmy::random::Philox;
use exmy::simd::kernel;

/// Blocks of the generator that are turned into numbers together.
const BLOCKS: usize = 64;

/// Elements a thread takes at once.
pub const CHUNK: usize = 1 << 14;

/// Elements `start..` of the generator's sequence of independent N(0, 1).
pub fn normals<T: Real>(values: &mut [T], start: u64, philox: &Philox) {
    with_normals(values, start, philox, |value, normal| *value = normal);
}

/// The same elements, `size` times each, added to what is there.
pub fn add_normals<T: Real>(values: &mut [T], start: u64, philox: &Philox, size: T) {
    with_normals(values, start, philox, |value, normal| *value += size * normal);
}

/// Calls `put` with each value and its element of that sequence.
fn with_normals<T: Real>(
    values: &mut [T],
    start: u64,
    philox: &Philox,
    put: impl Fn(&mut T, T) + Sync + Send,
) {
    parallel::for_each_chunk(values, CHUNK, |i, values| {
        let mut start = start + (i * CHUNK) as u64;
        let mut values = values;
        while !values.is_empty() {
            let skipped = (start % 4) as usize;
            let mut all = [0.0; 4 * BLOCKS];
            blocks(start / 4, *philox, &mut all);
            let len = values.len().min(all.len() - skipped);
            let (now, rest) = values.split_at_mut(len);
            for (value, &normal) in now.iter_mut().zip(&all[skipped..]) {
                put(value, T::from_f64(f64::from(normal)));
            }
            start += len as u64;
            values = rest;
        }
    });
}

kernel! {
    /// The numbers of the blocks from `first` on.
    fn blocks<'a>(first: u64, philox: Philox, out: &'a mut [f32; 4 * BLOCKS]) {
        let mut words = [[0_u32; BLOCKS]; 4];
        for b in 0..BLOCKS {
            let block = philox.block(first.wrapping_add(b as u64));
            for w in 0..4 {
                words[w][b] = block[w];
            }
        }
        let mut pairs = [[0.0_f32; BLOCKS]; 4];
        for half in [0, 2] {
            for b in 0..BLOCKS {
                let [cos, sin] = pair(words[half][b], words[half + 1][b]);
                pairs[half][b] = cos;
                pairs[half + 1][b] = sin;
            }
        }
        for b in 0..BLOCKS {
            for w in 0..4 {
                out[4 * b + w] = pairs[w][b];
            }
        }
    }
}

/// `sqrt(-2 ln u)` times cosine and sine of a whole turn's part; u in (0, 1].
#[inline(always)]
pub fn pair(radius: u32, turn: u32) -> [f32; 2] {
    const UNIT: f32 = 1.0 / 16_777_216.0;
    let radius = (-2.0 * ln(((radius >> 8) + 1) as f32 * UNIT)).max(0.0).sqrt();
    // An eighth of a turn to either side of a quarter: exact, as the turn has 24 bits.
    let turn = turn >> 8;
    let quarter = (turn + (1 << 21)) >> 22;
    let rest = (turn as i32 - (quarter << 22) as i32) as f32 * UNIT;
    let angle = core::f32::consts::TAU * rest;
    let square = angle * angle;
    // Taylor's series: the next terms are below 2e-9 at an eighth of a turn.
    let sin = 1.0 / 362_880.0_f32;
    let sin = sin.mul_add(square, -1.0 / 5040.0).mul_add(square, 1.0 / 120.0);
    let sin = (sin.mul_add(square, -1.0 / 6.0) * square).mul_add(angle, angle);
    let cos = -1.0 / 3_628_800.0_f32;
    let cos = cos.mul_add(square, 1.0 / 40_320.0).mul_add(square, -1.0 / 720.0);
    let cos = cos.mul_add(square, 1.0 / 24.0).mul_add(square, -0.5).mul_add(square, 1.0);
    let odd = quarter & 1 == 1;
    let (x, y) = if odd { (sin, cos) } else { (cos, sin) };
    let x = if (quarter + 1) & 2 == 2 { -x } else { x };
    let y = if quarter & 2 == 2 { -y } else { y };
    [radius * x, radius * y]
}
