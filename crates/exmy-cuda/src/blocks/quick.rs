//! The quick kernels of images: which formats and shapes they have, and how they are started.

#![allow(unsafe_code)]

use exmy::block::BlockFormat;

use super::params::Blocks;
use super::{Image, Request};
use crate::launch::Launch;
use crate::module::QUICK;
use crate::{Buffer, Grid, Result, View, ViewMut};

/// A walk through a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Walk {
    Rows,
    Columns16,
    Columns32,
}

impl Walk {
    /// The one that a format's blocks of this matrix have, if there is one.
    fn of(blocks: &Blocks, format: BlockFormat, x: &View<'_, f32>, aligned: bool) -> Option<Self> {
        if !blocks.is_quick(format) {
            return None;
        }
        let (height, width, rotation) = (blocks.block_rows, blocks.block_cols, blocks.rotation);
        let down = blocks.down == 1;
        if height == 1 {
            let whole = width.is_power_of_two() && (8..=256).contains(&width);
            let fits = whole && blocks.cols.is_multiple_of(width) && aligned;
            return (fits && (rotation == 0 || !down)).then_some(Self::Rows);
        }
        let shared = width.is_power_of_two() && width <= 32;
        let rotated = rotation == 0 || down && rotation <= height;
        let words = !blocks.is_stochastic() || blocks.cols.is_multiple_of(4);
        let walk = match height {
            16 => Self::Columns16,
            32 => Self::Columns32,
            _ => return None,
        };
        let bands = x.rows.div_ceil(height as usize);
        (shared && rotated && words && bands <= 65535).then_some(walk)
    }

    /// For outputs, and for largest magnitudes, of which a processor has a few blocks of threads.
    fn grid(self, blocks: &Blocks, most: Option<u32>) -> Grid {
        let (rows, cols) = (blocks.rows, blocks.cols);
        let bands = match self {
            Self::Rows => {
                let grid = Grid::cover(rows as usize * cols as usize / 8, 256);
                return Grid::new(
                    most.map_or(grid.blocks[0], |most| grid.blocks[0].min(most)),
                    256,
                );
            }
            Self::Columns16 => rows.div_ceil(16),
            Self::Columns32 => rows.div_ceil(32),
        };
        let across = cols.div_ceil(128);
        match most {
            Some(most) => Grid::new(across.saturating_mul(bands).min(most), 128),
            None => Grid::planar(across, bands, 128),
        }
    }
}

impl Request<'_> {
    /// Writes the images if the quick kernels have them, and returns the factors of the tensor; the output
    /// comes back if they do not.
    pub(super) fn write_quickly<'o, T: Image>(
        &self,
        blocks: &Blocks,
        format: BlockFormat,
        out: ViewMut<'o, T>,
    ) -> Result<Result<Option<Buffer<f32>>, ViewMut<'o, T>>> {
        let x = self.x;
        let fits = |first: usize, stride: usize, by: usize| {
            first.is_multiple_of(by) && (stride.is_multiple_of(by) || x.rows <= 1)
        };
        let aligned =
            fits(x.first, x.stride, 4) && fits(out.first, out.stride, 16 / size_of::<T>());
        let walk = Walk::of(blocks, format, &x, aligned);
        let Some(walk) = walk.filter(|walk| blocks.turned == 0 || *walk != Walk::Rows) else {
            return Ok(Err(out));
        };
        let device = self.device().clone();
        let blocks = blocks.with_strides(x.stride, out.stride);
        let factors =
            if format.tensor_scale { Some(self.quick_factors(walk, &blocks)?) } else { None };
        let [plain, random] = match walk {
            Walk::Rows => T::KERNELS.quick_rows,
            Walk::Columns16 => T::KERNELS.quick_columns16,
            Walk::Columns32 => T::KERNELS.quick_columns32,
        };
        let kernel = if blocks.is_stochastic() { random } else { plain };
        let launch = Launch::new(&device, &QUICK, kernel).read_at(x.buffer, x.first);
        let launch = launch.write_at(out.buffer, out.first).read_if(factors.as_ref());
        // SAFETY: both views lie in their buffers and have one shape, or the output that of the transpose.
        // Wide accesses are made only where every row begins at a multiple of them.
        unsafe { launch.value(blocks).run(walk.grid(&blocks, None))? };
        Ok(Ok(factors))
    }

    fn quick_factors(&self, walk: Walk, blocks: &Blocks) -> Result<Buffer<f32>> {
        let x = self.x;
        if !blocks.has_first() && x.is_dense() && x.first.is_multiple_of(4) {
            return self.factors(x, blocks);
        }
        let device = self.device();
        let mut factors = device.zeros::<f32>(6)?;
        let kernel = match walk {
            Walk::Rows => "quick_rows_amax",
            Walk::Columns16 => "quick_columns16_amax",
            Walk::Columns32 => "quick_columns32_amax",
        };
        let grid = walk.grid(blocks, Some(device.properties().processors * 8));
        let launch =
            Launch::new(device, &QUICK, kernel).read_at(x.buffer, x.first).write(&mut factors);
        // SAFETY: the view lies in its buffer, and its rows begin where four numbers may if they are read so.
        unsafe { launch.value(*blocks).run(grid)? };
        Ok(factors)
    }
}
