//! Scales of blocks by a search: of many scales the one with the least squared error.
//!
//! The rule of a block format looks at the largest magnitude of a block. Where that is an outlier, a smaller
//! scale that cuts it off loses less; where a rule cuts something off, as `floor` does, a larger one may.
//! Tried are the rule's scale, then k/32 times that for k from 16 to 64, to the nearest value of the scale
//! format: of E8M0 half the rule's, the rule's and twice that. The sum of `(w - q)²` over the block, in f64,
//! decides; of equal ones the first. So no block is worse than by the rule.
//!
//! It is what "Integer Quantization for Deep Learning Inference" (arXiv 2004.09602, section 3.3) calls a
//! calibration by mean squared error, here of weights, block by block: there is no calibration text.

use super::grid::{Grid, Stored, round_blocks};
use crate::nn::parameters::Layout;
use exmy::block::{BlockFormat, BlockTensor};
use exmy::error::Result;
use exmy::parallel;

/// Thirty-seconds of the rule's scale that are tried.
const TRIED: core::ops::RangeInclusive<u32> = 16..=64;

/// Rows that one thread works at.
const TOGETHER: usize = 16;

/// Rounds the weights of all linear operators of the blocks, in their place in a model's parameters, to a
/// format; the head's stay.
///
/// # Errors
/// As [`search`], naming the operator.
///
/// # Panics
/// If `params` have not the layout's length.
pub fn search_blocks(layout: &Layout, params: &mut [f32], format: BlockFormat) -> Result<Stored> {
    round_blocks(layout, params, "a search of scales", |_, w, inputs| search(w, inputs, format))
}

/// Rounds `w`, (out, inputs), in place to a block format with blocks along its rows.
///
/// # Errors
/// If the format's blocks are no rows.
///
/// # Panics
/// If `w` has no whole rows.
pub fn search(w: &mut [f32], inputs: usize, format: BlockFormat) -> Result<BlockTensor> {
    assert!(w.len().is_multiple_of(inputs), "rows are whole");
    let grid = Grid::new(w, format, "a search of scales")?;
    let across = inputs.div_ceil(grid.width);
    let mut scales = vec![0; w.len() / inputs * across];
    let (rows, codes) = ((&mut *w, TOGETHER * inputs), (&mut scales[..], TOGETHER * across));
    parallel::for_each_chunk_of_two(rows, codes, |_, rows, codes| {
        for (row, codes) in rows.chunks_mut(inputs).zip(codes.chunks_mut(across)) {
            best(&grid, row, codes);
        }
    });
    Ok(grid.tensor(w, inputs, scales))
}

/// Rounds one row, and writes the codes of its blocks' scales.
fn best(grid: &Grid, row: &mut [f32], codes: &mut [u32]) {
    let rules: Vec<u32> = row.chunks(grid.width).map(|block| grid.rule(block)).collect();
    codes.copy_from_slice(&rules);
    let mut least = vec![f64::INFINITY; rules.len()];
    let (mut best, mut rounded, mut last) = (vec![0.0; row.len()], row.to_vec(), Vec::new());
    for times in [32].into_iter().chain(TRIED) {
        let scales: Vec<u32> =
            rules.iter().map(|&rule| grid.nearest(rule, times as f32 / 32.0)).collect();
        if scales == last {
            continue;
        }
        rounded.copy_from_slice(row);
        for (block, &code) in rounded.chunks_mut(grid.width).zip(&scales) {
            let scale = grid.scale(code);
            block.iter_mut().for_each(|w| *w = (f64::from(*w) / scale) as f32);
        }
        grid.element.fake_quantize(&mut rounded);
        let blocks = rounded.chunks_mut(grid.width).zip(row.chunks(grid.width));
        for (b, (block, w)) in blocks.enumerate() {
            let (scale, mut error) = (grid.scale(scales[b]), 0.0);
            for (q, &w) in block.iter_mut().zip(w) {
                let (value, w) = (f64::from(*q) * scale, f64::from(w));
                error += (value - w) * (value - w);
                *q = value as f32;
            }
            // A scale of zero has no elements, and NaN is no error.
            if error < least[b] {
                (least[b], codes[b]) = (error, scales[b]);
                let at = b * grid.width;
                best[at..at + block.len()].copy_from_slice(block);
            }
        }
        last = scales;
    }
    row.copy_from_slice(&best);
}
