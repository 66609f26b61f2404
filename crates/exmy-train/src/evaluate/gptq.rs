//! GPTQ: weights are rounded one input after the other, and those that follow make up for what was lost.
//!
//! "GPTQ: Accurate Post-Training Quantization for Generative Pre-trained Transformers" (arXiv 2210.17323),
//! algorithm 1. For a linear operator with calibration inputs X (tokens x in) let `H = Xᵀ X`, a hundredth of
//! its mean diagonal added to the diagonal, and U upper triangular with `H⁻¹ = Uᵀ U`. Of each row w of the
//! weights, for j = 0, 1, ...: `q_j` is `w_j` rounded, and `(w_j - q_j) / U_jj · U_jk` is taken from `w_k`
//! for all k > j. Inputs that are always zero get weights of zero, as in the authors' code
//! (<https://github.com/IST-DASLab/gptq>, `gptq.py`).
//!
//! A block's scale is that of its weights as they are when its first one is due, by the block format's own
//! rule; a tensor scale is that of the tensor before. Inputs are in their order (no `act-order`), and those
//! of the unrounded model. Sums are in f64.

use super::grid::{self, Grid, Stored};
use crate::nn::parameters::Layout;
use crate::nn::site::{Operand, Product, Site};
use crate::recipe::{Linear, Observer, Rounded};
use exmy::block::{BlockFormat, BlockTensor};
use exmy::error::{Error, Result};
use exmy::parallel;
use std::collections::BTreeMap;

/// What is added to the diagonal, as a share of its mean.
const DAMPING: f64 = 0.01;

/// Rows that one thread works at: each reads U once.
const TOGETHER: usize = 16;

/// `Xᵀ X` of each linear operator whose input was seen; operators that share an input share it.
#[derive(Debug, Default)]
pub struct Hessians {
    sites: BTreeMap<Site, Vec<f64>>,
}

impl Hessians {
    /// Bytes that they take, of a model that reads so many tokens at once, with what [`round_blocks`] works
    /// in.
    pub fn memory(layout: &Layout, tokens: usize) -> u64 {
        let all = Linear::all(layout);
        let inside: Vec<_> = all.iter().filter(|linear| linear.site.layer.is_some()).collect();
        let is_first = |i: usize| !inside[..i].iter().any(|a| a.site.shares_input(inside[i].site));
        let square = |linear: &Linear| linear.inputs * linear.inputs;
        let own = (0..inside.len()).filter(|&i| is_first(i)).map(|i| square(inside[i]));
        let widest = inside.iter().map(|linear| linear.inputs).max().unwrap_or(0);
        // The products of one operator again, their inverse's factor, and the rows that are rounded.
        let work = 2 * widest * widest + tokens * widest;
        (size_of::<f64>() * (own.sum::<usize>() + work)) as u64
    }

    /// That of an operator, (in, in), row-major.
    pub fn of(&self, site: Site) -> Option<&[f64]> {
        let shared = || self.sites.iter().find(|(other, _)| other.shares_input(site));
        self.sites.get(&site).or_else(|| shared().map(|(_, sums)| sums)).map(Vec::as_slice)
    }
}

/// Rounds the weights of all linear operators of the blocks, in their place in a model's parameters, to a
/// format; the head's stay.
///
/// # Errors
/// As [`gptq`], naming the operator.
///
/// # Panics
/// If `params` have not the layout's length, or the inputs are of another model.
pub fn round_blocks(
    layout: &Layout,
    params: &mut [f32],
    inputs: &Hessians,
    format: BlockFormat,
) -> Result<Stored> {
    grid::round_blocks(layout, params, "GPTQ", |site, weights, width| {
        gptq(weights, width, inputs.of(site).expect("every operator was seen"), format)
    })
}

impl Observer for Hessians {
    fn operand(&mut self, seen: &Rounded<'_>) {
        let Rounded { site, product, operand, before: x, .. } = *seen;
        let known = self.sites.keys().any(|&other| other != site && other.shares_input(site));
        if product != Product::Forward || operand != Operand::Input || known {
            return;
        }
        let n = x.cols();
        let sums = self.sites.entry(site).or_insert_with(|| vec![0.0; n * n]);
        let token = |t: usize| (0..n).map(|j| f64::from(x.at(t, j))).collect();
        let tokens: Vec<Vec<f64>> = (0..x.rows()).map(token).collect();
        parallel::for_each_chunk(sums, n, |i, row| {
            for token in &tokens {
                row.iter_mut().zip(token).for_each(|(sum, x)| *sum += token[i] * x);
            }
        });
    }
}

/// U, upper triangular and row-major, with `H⁻¹ = Uᵀ U`.
///
/// # Errors
/// If H, of n rows, is not positive definite.
pub fn inverse_factor(mut h: Vec<f64>, n: usize) -> Result<Vec<f64>> {
    // H = R Rᵀ with R upper triangular, from the last column to the first; then U is the inverse of R.
    for j in (0..n).rev() {
        let row_j: Vec<f64> = h[j * n + j + 1..(j + 1) * n].to_vec();
        let pivot = h[j * n + j] - row_j.iter().map(|r| r * r).sum::<f64>();
        if !(pivot > 0.0 && pivot.is_finite()) {
            return Err(Error::new("the products of calibration inputs are not positive definite")
                .hint("calibrate with more tokens"));
        }
        let pivot = libm::sqrt(pivot);
        h[j * n + j] = pivot;
        for i in 0..j {
            let row_i = &h[i * n + j + 1..(i + 1) * n];
            let dot: f64 = row_i.iter().zip(&row_j).map(|(a, b)| a * b).sum();
            h[i * n + j] = (h[i * n + j] - dot) / pivot;
        }
    }
    let mut u = vec![0.0; n * n];
    for i in (0..n).rev() {
        let (head, tail) = u.split_at_mut((i + 1) * n);
        let own = &mut head[i * n..];
        let pivot = h[i * n + i];
        own[i] = 1.0 / pivot;
        for k in i + 1..n {
            let factor = h[i * n + k] / pivot;
            let row = &tail[(k - i - 1) * n..(k - i) * n];
            for j in k..n {
                own[j] -= factor * row[j];
            }
        }
    }
    Ok(u)
}

/// Rounds `w`, (out, inputs), in place to a block format with blocks along its rows, by the `Xᵀ X` of its
/// inputs.
///
/// # Errors
/// If the format's blocks are no rows, or the factor cannot be formed.
///
/// # Panics
/// If `w` has no whole rows or `h` not `inputs²` elements.
pub fn gptq(w: &mut [f32], inputs: usize, h: &[f64], format: BlockFormat) -> Result<BlockTensor> {
    assert!(w.len().is_multiple_of(inputs) && h.len() == inputs * inputs, "sizes fit");
    let mut h = h.to_vec();
    let mean = (0..inputs).map(|i| h[i * inputs + i]).sum::<f64>() / inputs as f64;
    let dead: Vec<usize> = (0..inputs).filter(|i| h[i * inputs + i] == 0.0).collect();
    for i in 0..inputs {
        let diagonal = &mut h[i * inputs + i];
        *diagonal = if *diagonal == 0.0 { 1.0 } else { *diagonal } + DAMPING * mean;
    }
    let u = inverse_factor(h, inputs)?;
    let grid = Grid::new(w, format, "GPTQ")?;
    let (width, across) = (grid.width, inputs.div_ceil(grid.width));
    let mut scales = vec![0; w.len() / inputs * across];
    let (rows, codes) = ((&mut *w, TOGETHER * inputs), (&mut scales[..], TOGETHER * across));
    parallel::for_each_chunk_of_two(rows, codes, |_, rows, scales| {
        let mut left: Vec<f64> = rows.iter().map(|&w| w.into()).collect();
        for &j in &dead {
            left.chunks_mut(inputs).for_each(|row| row[j] = 0.0);
        }
        let mut block_scales = Vec::new();
        for j in 0..inputs {
            if j % width == 0 {
                let block = j..inputs.min(j + width);
                let of = |(row, scales): (&[f64], &mut [u32])| {
                    let block: Vec<f32> = row[block.clone()].iter().map(|&w| w as f32).collect();
                    scales[j / width] = grid.rule(&block);
                    grid.scale(scales[j / width])
                };
                block_scales = left.chunks(inputs).zip(scales.chunks_mut(across)).map(of).collect();
            }
            let exact: Vec<f32> = left
                .chunks(inputs)
                .zip(&block_scales)
                .map(|(row, &scale)| if scale == 0.0 { 0.0 } else { (row[j] / scale) as f32 })
                .collect();
            let codes: Vec<u8> = grid.element.encode(&exact);
            let factors = &u[j * inputs + j..(j + 1) * inputs];
            for (i, row) in left.chunks_mut(inputs).enumerate() {
                let q = f64::from(format.element.to_f32(codes[i].into())) * block_scales[i];
                let error = (row[j] - q) / factors[0];
                row[j] = q;
                let rest = row[j + 1..].iter_mut().zip(&factors[1..]);
                rest.for_each(|(w, factor)| *w -= error * factor);
            }
        }
        rows.iter_mut().zip(left).for_each(|(w, q)| *w = q as f32);
    });
    Ok(grid.tensor(w, inputs, scales))
}
