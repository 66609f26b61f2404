//! Rows of weights in a block format whose scales are chosen one by one, not by the format's rule.
//!
//! A block's elements are `w / scale` rounded once to nearest even, saturating; its scale is that of the
//! block times that of the tensor, where there is one. The tensor's is that of the weights before.

use crate::nn::parameters::Layout;
use crate::nn::site::Site;
use exmy::block::{Axis, BlockFormat, BlockTensor, PlainBlocks, Shape};
use exmy::error::{Error, Result};
use exmy::round::{Overflow, Rounding, Rules};
use exmy::slice::{Converter, View};

/// A block format, for rows of the weights of one operator.
pub(super) struct Grid {
    format: BlockFormat,
    /// Elements of a block.
    pub(super) width: usize,
    /// The largest magnitude of the weights, and the scale that it gives the tensor.
    tensor: Option<(f32, f32)>,
    pub(super) element: Converter<'static>,
}

impl Grid {
    /// For some weights.
    ///
    /// # Errors
    /// If the format's blocks are no parts of rows; `who` needs them.
    pub(super) fn new(w: &[f32], format: BlockFormat, who: &str) -> Result<Self> {
        let width = match format.shape {
            Shape::Along(width) if width > 0 => width as usize,
            _ => {
                return Err(Error::new(format!(
                    "{who} rounds rows, and {format} has other blocks"
                ))
                .hint("a format with blocks along the sum, for example mxfp4 or nvfp4"));
            }
        };
        let element = Converter::new(format.element, Rules::SATURATING);
        let mut grid = Self { format, width, tensor: None, element };
        if format.tensor_scale {
            let amax = w.iter().map(|w| w.abs()).fold(0.0, f32::max);
            let zero = grid.by_its_rule(&[0.0], amax);
            grid.tensor = zero.tensor_scale().map(|scale| (amax, scale));
        }
        Ok(grid)
    }

    fn by_its_rule(&self, block: &[f32], amax: f32) -> BlockTensor {
        let (x, mode) = (View::new(block, 1, block.len()), Rounding::TiesToEven);
        match self.format.tensor_scale {
            true => BlockTensor::quantize_with_amax(x, Axis::Cols, self.format, mode, amax),
            false => BlockTensor::quantize(x, Axis::Cols, self.format, mode),
        }
    }

    /// The code of a block's scale by the format's rule.
    pub(super) fn rule(&self, block: &[f32]) -> u32 {
        self.by_its_rule(block, self.tensor.map_or(0.0, |(amax, _)| amax)).scales()[0]
    }

    /// The code nearest a number of times the scale of a code.
    pub(super) fn nearest(&self, code: u32, times: f32) -> u32 {
        let scale = self.format.scale;
        let wanted = scale.to_f32(code.into()) * times;
        scale.encode_f32(wanted, Rounding::TiesToEven, Overflow::Finite, 0).code as u32
    }

    /// What the elements under a scale are multiplied by.
    pub(super) fn scale(&self, code: u32) -> f64 {
        let scale = self.format.scale.decode(code.into()).to_f64();
        scale * self.tensor.map_or(1.0, |(_, tensor)| tensor.into())
    }

    /// The tensor of rounded rows, whose values are put in their place as they will be decoded.
    pub(super) fn tensor(&self, w: &mut [f32], inputs: usize, scales: Vec<u32>) -> BlockTensor {
        let outputs = w.len() / inputs;
        let across = inputs.div_ceil(self.width);
        let exact: Vec<f32> = w
            .iter()
            .enumerate()
            .map(|(at, &w)| {
                let scale = self.scale(scales[at / inputs * across + at % inputs / self.width]);
                if scale == 0.0 { 0.0 } else { (f64::from(w) / scale) as f32 }
            })
            .collect();
        let codes: Vec<u16> = self.element.encode(&exact);
        let (shape, block) = ((outputs, inputs), (1, self.width));
        let plain = PlainBlocks::new(self.format, shape, block, codes, scales)
            .with_tensor_scale(self.tensor.map(|(_, scale)| scale));
        let tensor = BlockTensor::from_plain(&plain, Axis::Cols);
        w.copy_from_slice(&tensor.dequantize());
        tensor
    }
}

/// Rounded weights by the names of their parameters.
pub type Stored = Vec<(String, BlockTensor)>;

/// Rounds the weights of all linear operators of the blocks, in their place in a model's parameters.
pub(super) fn round_blocks(
    layout: &Layout,
    params: &mut [f32],
    who: &str,
    mut round: impl FnMut(Site, &mut [f32], usize) -> Result<BlockTensor>,
) -> Result<Stored> {
    let mut stored = Vec::new();
    for entry in layout {
        let site = entry.site.filter(|site| site.layer.is_some());
        let (Some(site), [_, inputs]) = (site, &entry.shape[..]) else { continue };
        let rounded = round(site, &mut params[entry.range.clone()], *inputs)
            .map_err(|error| Error::new(format!("{who} of {site}")).because(error))?;
        stored.push((entry.name.clone(), rounded));
    }
    Ok(stored)
}

/// Rounds the weights of all linear operators of the blocks to nearest, by the format's rule.
///
/// # Panics
/// If `params` have not the layout's length, or the format's parts do not go together.
pub fn nearest_blocks(layout: &Layout, params: &mut [f32], format: BlockFormat) -> Stored {
    let rounded =
        round_blocks(layout, params, "rounding", |_, w, inputs| Ok(nearest(w, inputs, format)));
    rounded.expect("rounding to nearest cannot fail")
}

/// Rounds the head's weights to nearest, by the format's rule; none of a head that is the embedding.
///
/// # Panics
/// As [`nearest_blocks`].
pub fn nearest_head(layout: &Layout, params: &mut [f32], format: BlockFormat) -> Stored {
    let head = layout.find("lm_head.weight").into_iter();
    head.map(|entry| {
        let tensor = nearest(&mut params[entry.range.clone()], entry.shape[1], format);
        (entry.name.clone(), tensor)
    })
    .collect()
}

fn nearest(w: &mut [f32], inputs: usize, format: BlockFormat) -> BlockTensor {
    let x = View::new(w, w.len() / inputs, inputs);
    let tensor = BlockTensor::quantize(x, Axis::Cols, format, Rounding::TiesToEven);
    w.copy_from_slice(&tensor.dequantize());
    tensor
}
