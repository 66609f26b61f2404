//! Losses and sums over rows: calls of `kernels/layers/sums.cu` and `loss.cu`.

#![allow(unsafe_code)]

use exmy::round::Rounding;
use exmy_train::nn::device::{Slice, SliceMut};
use exmy_train::nn::loss::RowLoss;
use exmy_train::nn::optimizer::CHUNK;

use super::Cuda;
use super::layers::of_width;
use super::memory::{Parts, Scalar, Tokens};
use super::norms::Step;
use crate::Buffer;
use crate::backend::Grid;
use crate::launch::Launch;
use crate::module::{LOSS, SUMS};

impl Cuda {
    pub(super) fn bias_back(
        &self,
        how: Option<Rounding>,
        dy: Slice<'_, Self>,
        d_bias: SliceMut<'_, Self>,
    ) {
        let (width, rows) = of_width("bias_backward", dy.len(), d_bias.len());
        self.start(&SUMS, "bias_backward", Grid::new(width.div_ceil(32) as u32, 256), |launch| {
            let launch = launch.slice(dy).value(rows as u64).value(width as u32);
            launch.slice(d_bias.read()).value(Step::new(how))
        });
    }

    pub(super) fn embedded_back(
        &self,
        tokens: &Tokens,
        dy: Slice<'_, Self>,
        d_table: SliceMut<'_, Self>,
    ) {
        if tokens.is_empty() {
            return;
        }
        let width = dy.len() / tokens.len();
        assert!(width > 0 && width * tokens.len() == dy.len(), "embed_backward: whole rows");
        tokens.check("embed_backward: token", d_table.len() / width);
        let grid = Grid::planar(tokens.distinct() as u32, width.div_ceil(128) as u32, 128);
        self.start(&SUMS, "embed_backward", grid, |launch| {
            let launch = launch.tokens(tokens).order(tokens).slice(dy);
            launch.value(width as u32).slice(d_table.read())
        });
    }

    pub(super) fn positions_back(
        &self,
        dy: Slice<'_, Self>,
        len: usize,
        d_positions: SliceMut<'_, Self>,
    ) {
        let (_, sequences) = of_width("positions_backward", dy.len(), len);
        assert!(d_positions.len() >= len, "positions_backward: {len} elements of positions");
        self.start(&SUMS, "positions_backward", Grid::cover(len, 256), |launch| {
            launch.slice(dy).value(sequences as u64).value(len as u64).slice(d_positions.read())
        });
    }

    pub(super) fn entropy(
        &self,
        logits: SliceMut<'_, Self>,
        vocab: usize,
        targets: &Tokens,
        scale: Option<[f32; 2]>,
        losses: SliceMut<'_, Self>,
    ) {
        let rows = targets.len();
        assert!(
            vocab > 0 && rows * vocab == logits.len() && losses.len() == rows,
            "cross_entropy: {} logits, {rows} targets and {} losses do not fit a vocabulary of {vocab}",
            logits.len(),
            losses.len()
        );
        targets.check("cross_entropy: target", vocab);
        if rows == 0 {
            return;
        }
        let [by, z] = scale.unwrap_or_default();
        self.start(&LOSS, "cross_entropy", Grid::cover(rows * 16, 128), |launch| {
            let launch = launch.slice(logits.read()).value(rows as u64).value(vocab as u32);
            let launch = launch.tokens(targets).value(u32::from(scale.is_some()));
            launch.value(by).value(z).slice(losses.read())
        });
    }

    pub(super) fn losses(
        &self,
        loss: RowLoss,
        [a, y]: [Slice<'_, Self>; 2],
        width: usize,
        losses: SliceMut<'_, Self>,
    ) {
        let (_, rows) = of_width("row_loss", a.len(), width);
        assert!(a.len() == y.len() && losses.len() == rows, "row_loss: rows of {width}");
        let name = match loss {
            RowLoss::Mse => "squared_error",
            RowLoss::Kl => "divergence",
        };
        self.start(&LOSS, name, Grid::cover(rows * 16, 256), |launch| {
            let launch = launch.slice(a).slice(y).value(rows as u64).value(width as u32);
            launch.slice(losses.read())
        });
    }

    pub(super) fn losses_back(
        &self,
        loss: RowLoss,
        [a, y]: [Slice<'_, Self>; 2],
        width: usize,
        da: SliceMut<'_, Self>,
    ) {
        let (_, rows) = of_width("row_loss_backward", a.len(), width);
        assert!(a.len() == y.len() && da.len() == a.len(), "row_loss_backward: rows of {width}");
        match loss {
            RowLoss::Mse => {
                let scale = (2.0 / a.len() as f64) as f32;
                self.each("squared_error_backward", a.len(), |launch| {
                    launch.slice(a).slice(y).value(scale).slice(da.read())
                });
            }
            RowLoss::Kl => {
                let scale = (1.0 / rows as f64) as f32;
                let grid = Grid::cover(rows * 16, 256);
                self.start(&LOSS, "divergence_backward", grid, |launch| {
                    let launch = launch.slice(a).slice(y).value(rows as u64).value(width as u32);
                    launch.value(scale).slice(da.read())
                });
            }
        }
    }

    pub(super) fn largest(&self, logits: Slice<'_, Self>, vocab: usize) -> Vec<u32> {
        let (_, rows) = of_width("likeliest", logits.len(), vocab);
        let mut found = vec![0; rows];
        if rows > 0 {
            self.attempt(|| {
                let mut places: Buffer<u32> = Buffer::uninit(self.device(), rows)?;
                let launch = Launch::new(self.device(), &LOSS, "likeliest").slice(logits);
                let launch = launch.value(rows as u64).value(vocab as u32).write(&mut places);
                // SAFETY: rows lie in the slice, and there is a place for each.
                unsafe { launch.run(Grid::cover(rows * 16, 256))? };
                places.read(&mut found)
            });
        }
        found
    }

    /// A number that a kernel forms.
    fn scalar(&self, form: impl FnOnce(&mut Buffer<f64>) -> crate::Result<()>) -> Scalar {
        Scalar(self.attempt(|| {
            let mut number = Buffer::uninit(self.device(), 1)?;
            form(&mut number)?;
            Ok(number)
        }))
    }

    pub(super) fn mean_of(&self, losses: Slice<'_, Self>) -> Scalar {
        self.scalar(|number| {
            let launch = Launch::new(self.device(), &SUMS, "mean").slice(losses);
            let launch = launch.value(losses.len() as u64).write(number);
            // SAFETY: it reads the slice and writes one number.
            unsafe { launch.run(Grid::new(1, 256)) }
        })
    }

    pub(super) fn norm_of(&self, x: Slice<'_, Self>) -> Scalar {
        let chunks = x.len().div_ceil(CHUNK);
        self.scalar(|number| {
            let mut sums: Buffer<f64> = Buffer::uninit(self.device(), chunks.max(1))?;
            if chunks > 0 {
                let launch = Launch::new(self.device(), &SUMS, "square_sums").slice(x);
                let launch = launch.value(x.len() as u64).write(&mut sums);
                // SAFETY: half a warp has a chunk, and there is a sum for each.
                unsafe { launch.run(Grid::cover(chunks * 16, 128))? };
            }
            let launch = Launch::new(self.device(), &SUMS, "root_of_sums").read(&sums);
            let launch = launch.value(chunks as u64).write(number);
            // SAFETY: it reads as many sums as there are, and writes one number.
            unsafe { launch.run(Grid::new(1, 256)) }
        })
    }
}
