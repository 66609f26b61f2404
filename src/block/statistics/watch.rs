//! The largest magnitudes of a stored tensor's blocks, laid out per element.

use alloc::vec;
use alloc::vec::Vec;

use super::limits::{self, Limits};
use crate::block::BlockTensor;

/// What the blocks of a tensor can express.
pub(super) struct Watch<'a> {
    tensor: &'a BlockTensor,
    /// Of each block, row-major, if they depend on the sign.
    limits: Vec<Limits>,
    /// The same as binary32 numbers, if they do not.
    alike: Option<Vec<f32>>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(tensor: &'a BlockTensor) -> Self {
        let of = Limits::of(tensor.format().element);
        let Some(largest) = of.of_both_signs() else {
            return Self { tensor, limits: tensor.limits(), alike: None };
        };
        let scales = tensor.scale_values();
        let mut alike = vec![0.0; scales.len()];
        limits::of_scales(largest, tensor.tensor_scale().unwrap_or(1.0), &scales, &mut alike);
        Self { tensor, limits: Vec::new(), alike: Some(alike) }
    }

    /// The largest magnitudes there are for the images `y`, of which the first is element (i, j).
    pub(super) fn limits(&self, i: usize, j: usize, y: &[f32], out: &mut [f32]) {
        let ((down, width), right) = (self.tensor.block(), self.tensor.blocks().1);
        let blocks = i / down * right..(i / down + 1) * right;
        let alike = self.alike.as_ref().map(|alike| &alike[blocks.clone()]);
        if let (Some(alike), 1) = (alike, width) {
            return out.copy_from_slice(&alike[j..j + out.len()]);
        }
        let (mut at, mut block) = (0, j / width);
        while at < out.len() {
            let end = ((block + 1) * width - j).min(out.len());
            match alike {
                Some(alike) => out[at..end].fill(alike[block]),
                None => self.limits[blocks.start + block].of_images(&y[at..end], &mut out[at..end]),
            }
            (at, block) = (end, block + 1);
        }
    }
}
