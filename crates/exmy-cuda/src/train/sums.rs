//! Losses, normal numbers and the optimizer: calls of `kernels/layers/loss.cu`, `sums.cu` and
//! `elementwise.cu`.

#![allow(unsafe_code)]

use exmy::random::Philox;
use exmy_train::nn::device::{Slice, SliceMut, Training};
use exmy_train::nn::loss::RowLoss;
use exmy_train::nn::optimizer::{CHUNK, Optimizer, Update};

use super::Cuda;
use super::layers::of_width;
use super::memory::{Parts, Scalar, Tokens};
use crate::Buffer;
use crate::backend::Grid;
use crate::launch::{Launch, Plain};
use crate::module::{ELEMENTWISE, LOSS, SUMS};
use crate::rounder::Words;

/// A list of numbers of 32 bits that a kernel takes as one structure.
#[repr(transparent)]
#[derive(Clone, Copy)]
struct Scalars<const N: usize>([f32; N]);

// SAFETY: an array of numbers has no gaps.
unsafe impl<const N: usize> Plain for Scalars<N> {}

impl Cuda {
    /// A number that a kernel forms.
    fn scalar(&self, form: impl FnOnce(&mut Buffer<f64>) -> crate::Result<()>) -> Scalar {
        Scalar(self.attempt(|| {
            let mut number = Buffer::uninit(self.device(), 1)?;
            form(&mut number)?;
            Ok(number)
        }))
    }
}

impl Training for Cuda {
    fn cross_entropy(
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

    fn row_loss(
        &self,
        loss: RowLoss,
        a: Slice<'_, Self>,
        y: Slice<'_, Self>,
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

    fn row_loss_backward(
        &self,
        loss: RowLoss,
        a: Slice<'_, Self>,
        y: Slice<'_, Self>,
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

    fn likeliest(&self, logits: Slice<'_, Self>, vocab: usize) -> Vec<u32> {
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

    fn mean(&self, losses: Slice<'_, Self>) -> Scalar {
        self.scalar(|number| {
            let launch = Launch::new(self.device(), &SUMS, "mean").slice(losses);
            let launch = launch.value(losses.len() as u64).write(number);
            // SAFETY: it reads the slice and writes one number.
            unsafe { launch.run(Grid::new(1, 256)) }
        })
    }

    fn normals(&self, x: SliceMut<'_, Self>, start: u64, philox: &Philox, size: Option<f32>) {
        if x.is_empty() {
            return;
        }
        let words = Words::new(Some(*philox), start);
        let blocks = (start % 4) as usize + x.len();
        self.start(&ELEMENTWISE, "normals", Grid::cover(blocks.div_ceil(4), 256), |launch| {
            let launch = launch.slice(x.read()).value(x.len() as u64).value(words);
            launch.value(u32::from(size.is_some())).value(size.unwrap_or_default())
        });
    }

    fn global_norm(&self, x: Slice<'_, Self>) -> Scalar {
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

    fn update(
        &self,
        optimizer: &Optimizer,
        at: &Update,
        params: SliceMut<'_, Self>,
        grads: Slice<'_, Self>,
        [m, v]: [SliceMut<'_, Self>; 2],
    ) {
        let len = params.len();
        let moments = optimizer.moments().len();
        assert!(
            grads.len() == len
                && m.len() == if moments > 0 { len } else { 0 }
                && v.len() == if moments > 1 { len } else { 0 },
            "{optimizer:?}: {len} parameters, {} gradients, moments of {} and {} elements",
            grads.len(),
            m.len(),
            v.len()
        );
        match optimizer {
            Optimizer::AdamW(adamw) => {
                let c = adamw.coefficients::<f32>(at);
                let numbers =
                    [c.keep, c.rise1, c.beta2, c.rise2, c.step, c.correction2, c.eps, c.grad_scale];
                self.each("adamw", len, |launch| {
                    let launch = launch.value(Scalars(numbers)).slice(params.read());
                    launch.slice(grads).slice(m.read()).slice(v.read())
                });
            }
            Optimizer::Sgd(sgd) => {
                let keep = if at.decay { (1.0 - at.lr * sgd.weight_decay) as f32 } else { 1.0 };
                let name = if moments == 0 { "sgd" } else { "sgd_momentum" };
                self.each(name, len, |launch| {
                    let launch = launch.value(keep).value(-at.lr as f32);
                    if moments == 0 {
                        return launch.value(at.grad_scale).slice(params.read()).slice(grads);
                    }
                    let launch = launch.value(sgd.momentum as f32).value(at.grad_scale);
                    launch.slice(params.read()).slice(grads).slice(m.read())
                });
            }
        }
    }
}
