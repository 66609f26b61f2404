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

use crate::nn::parameters::Layout;
use crate::nn::site::{Operand, Product, Site};
use crate::recipe::{Observer, Rounded};
use exmy::block::{Axis, BlockFormat, BlockTensor, Shape};
use exmy::error::{Error, Result};
use exmy::parallel;
use exmy::round::{Rounding, Rules};
use exmy::slice::{Converter, View};
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
) -> Result<()> {
    for entry in layout {
        let Some(site) = site(&entry.name) else { continue };
        let h = inputs.of(site).expect("every operator was seen");
        let width = h.len().isqrt();
        let weights = &mut params[entry.range.clone()];
        gptq(weights, width, h, format)
            .map_err(|error| Error::new(format!("GPTQ of {site}")).because(error))?;
    }
    Ok(())
}

/// The operator of a block whose weight has this name.
fn site(name: &str) -> Option<Site> {
    let rest = name.strip_prefix("model.layers.")?.strip_suffix(".weight")?;
    let (layer, rest) = rest.split_once('.')?;
    let (_, operator) = rest.split_once('.')?;
    Some(Site { layer: Some(layer.parse().ok()?), operator: operator.parse().ok()? })
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
pub fn gptq(w: &mut [f32], inputs: usize, h: &[f64], format: BlockFormat) -> Result<()> {
    assert!(w.len().is_multiple_of(inputs) && h.len() == inputs * inputs, "sizes fit");
    let mut h = h.to_vec();
    let mean = (0..inputs).map(|i| h[i * inputs + i]).sum::<f64>() / inputs as f64;
    let dead: Vec<usize> = (0..inputs).filter(|i| h[i * inputs + i] == 0.0).collect();
    for i in 0..inputs {
        let diagonal = &mut h[i * inputs + i];
        *diagonal = if *diagonal == 0.0 { 1.0 } else { *diagonal } + DAMPING * mean;
    }
    let u = inverse_factor(h, inputs)?;
    let width = match format.shape {
        Shape::Along(width) if width > 0 => width as usize,
        _ => {
            return Err(Error::new(format!("GPTQ rounds rows, and {format} has other blocks"))
                .hint("a format with blocks along the sum, for example mxfp4 or nvfp4"));
        }
    };
    let amax = w.iter().map(|w| w.abs()).fold(0.0, f32::max);
    let element = Converter::new(format.element, Rules::SATURATING);
    parallel::for_each_chunk(w, TOGETHER * inputs, |_, rows| {
        let mut left: Vec<f64> = rows.iter().map(|&w| w.into()).collect();
        for &j in &dead {
            left.chunks_mut(inputs).for_each(|row| row[j] = 0.0);
        }
        let mut scales = Vec::new();
        for j in 0..inputs {
            if j % width == 0 {
                let block = j..inputs.min(j + width);
                let of = |row: &[f64]| scale(&row[block.clone()], format, amax);
                scales = left.chunks(inputs).map(of).collect();
            }
            let exact: Vec<f32> = left
                .chunks(inputs)
                .zip(&scales)
                .map(|(row, &scale)| if scale == 0.0 { 0.0 } else { (row[j] / scale) as f32 })
                .collect();
            let codes: Vec<u8> = element.encode(&exact);
            let factors = &u[j * inputs + j..(j + 1) * inputs];
            for (i, row) in left.chunks_mut(inputs).enumerate() {
                let q = f64::from(format.element.to_f32(codes[i].into())) * scales[i];
                let error = (row[j] - q) / factors[0];
                row[j] = q;
                let rest = row[j + 1..].iter_mut().zip(&factors[1..]);
                rest.for_each(|(w, factor)| *w -= error * factor);
            }
        }
        rows.iter_mut().zip(left).for_each(|(w, q)| *w = q as f32);
    });
    Ok(())
}

/// The scale of one block, a tensor scale included.
fn scale(block: &[f64], format: BlockFormat, amax: f32) -> f64 {
    let block: Vec<f32> = block.iter().map(|&w| w as f32).collect();
    let x = View::new(&block, 1, block.len());
    let tensor = match format.tensor_scale {
        true => BlockTensor::quantize_with_amax(x, Axis::Cols, format, Rounding::TiesToEven, amax),
        false => BlockTensor::quantize(x, Axis::Cols, format, Rounding::TiesToEven),
    };
    let scale = format.scale.decode(tensor.scales()[0].into()).to_f64();
    scale * tensor.tensor_scale().map_or(1.0, f64::from)
}
