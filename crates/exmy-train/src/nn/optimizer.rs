//! `AdamW` and stochastic gradient descent on flat slices, and clipping by the global norm.
//!
//! [`AdamW`] has a file of its own, with its formulas.
//!
//! [`Sgd`] is `torch.optim.SGD` without dampening and Nesterov's term, but for the decay. PyTorch adds it
//! to the gradient and so to the momentum. Here it is decoupled (Loshchilov and Hutter's SGDW) as in
//! `AdamW`, so that one number means one thing whatever the optimizer:
//!
//! ```text
//! p *= 1 - lr weight_decay                     (where decay applies)
//! b  = b momentum + g                          (from 0; without momentum there is no b)
//! p += -lr b
//! ```
//!
//! One pass over memory, in fixed chunks that any thread may take. Elements do not meet, so the result is the
//! same bits for any number of threads and any level. Nothing is allocated.

mod adamw;

pub use adamw::{AdamW, Coefficients};

use crate::nn::real::Real;
use crate::nn::stopwatch::{Part, lap};
use exmy::parallel;
use exmy::simd::kernel;

/// Elements a thread takes at once: four slices of 64 KiB stay in a second-level cache.
pub const CHUNK: usize = 1 << 14;

/// Stochastic gradient descent; the buffer of momentum belongs to the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sgd {
    /// What is kept of the buffer from step to step, 0 for none.
    pub momentum: f64,
    /// Decoupled weight decay, times the learning rate.
    pub weight_decay: f64,
}

impl Sgd {
    /// One update of `params`; `buffer` is empty where the momentum is 0. `decay` and `grad_scale` are
    /// those of [`AdamW::step`].
    ///
    /// # Panics
    /// If the slices differ in length.
    #[track_caller]
    pub fn step<T: Real>(
        &self,
        lr: f64,
        decay: bool,
        params: &mut [T],
        grads: &[T],
        buffer: &mut [T],
        grad_scale: f32,
    ) {
        let _lap = lap(Part::Optimizer);
        let (len, wanted) = (params.len(), if self.momentum == 0.0 { 0 } else { params.len() });
        assert!(
            grads.len() == len && buffer.len() == wanted,
            "SGD of momentum {}: {len} parameters, {} gradients, a buffer of {}",
            self.momentum,
            grads.len(),
            buffer.len()
        );
        let keep = if decay { single(1.0 - lr * self.weight_decay) } else { T::ONE };
        let (momentum, step) = (single(self.momentum), single::<T>(-lr));
        let grad_scale = single(grad_scale.into());
        if buffer.is_empty() {
            return parallel::for_each_chunk(params, CHUNK, |i, params| {
                let grads = &grads[i * CHUNK..][..params.len()];
                descend(keep, step, grad_scale, params, grads);
            });
        }
        parallel::for_each_chunk_of_two((params, CHUNK), (buffer, CHUNK), |i, params, buffer| {
            let grads = &grads[i * CHUNK..][..params.len()];
            roll(keep, step, momentum, grad_scale, params, grads, buffer);
        });
    }
}

kernel! {
    fn descend<'a, T: Real>(
        keep: T,
        step: T,
        grad_scale: T,
        params: &'a mut [T],
        grads: &'a [T],
    ) {
        for (p, &g) in params.iter_mut().zip(grads) {
            *p = *p * keep + step * (g * grad_scale);
        }
    }
}

kernel! {
    fn roll<'a, T: Real>(
        keep: T,
        step: T,
        momentum: T,
        grad_scale: T,
        params: &'a mut [T],
        grads: &'a [T],
        buffer: &'a mut [T],
    ) {
        for ((p, &g), b) in params.iter_mut().zip(grads).zip(buffer) {
            *b = *b * momentum + g * grad_scale;
            *p = *p * keep + step * *b;
        }
    }
}

/// What moves the parameters of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Optimizer {
    /// With two moments.
    AdamW(AdamW),
    /// With a buffer, or none.
    Sgd(Sgd),
}

impl Optimizer {
    /// What the names of its tensors in a checkpoint begin with: one prefix for each number that it keeps
    /// of a parameter.
    pub const fn moments(&self) -> &'static [&'static str] {
        match self {
            Self::AdamW(_) => &["adamw.m.", "adamw.v."],
            Self::Sgd(Sgd { momentum: 0.0, .. }) => &[],
            Self::Sgd(_) => &["sgd.b."],
        }
    }

    /// One update; moments that are not kept are empty.
    ///
    /// # Panics
    /// As [`AdamW::step`] and [`Sgd::step`].
    #[track_caller]
    pub fn step<T: Real>(&self, at: &Update, params: &mut [T], grads: &[T], [m, v]: [&mut [T]; 2]) {
        let Update { t, lr, decay, grad_scale } = *at;
        match self {
            Self::AdamW(adamw) => adamw.step(t, lr, decay, params, grads, m, v, grad_scale),
            Self::Sgd(sgd) => sgd.step(lr, decay, params, grads, m, grad_scale),
        }
    }
}

/// What an update is made with, besides the optimizer's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// The step, counted from 1.
    pub t: u64,
    /// Learning rate.
    pub lr: f64,
    /// Whether these parameters are decayed: matrices usually are, norms and biases are not.
    pub decay: bool,
    /// What gradients are multiplied by as they are read, see [`clip_scale`].
    pub grad_scale: f32,
}

/// A scalar rounded to f32, whatever elements are.
fn single<T: Real>(x: f64) -> T {
    T::from_f64((x as f32).into())
}

/// The Euclidean norm of all gradients: squares summed in f64, in fixed chunks of sixteen lanes,
/// chunk sums added in ascending order.
pub fn global_norm<T: Real>(grads: &[T]) -> f64 {
    let _lap = lap(Part::Optimizer);
    f64::with_scratch(grads.len().div_ceil(CHUNK), |sums| {
        parallel::for_each_chunk(sums, 1, |i, sum| {
            sum[0] = sum_of_squares(&grads[i * CHUNK..grads.len().min((i + 1) * CHUNK)]);
        });
        sums.iter().fold(0.0, |sum, x| sum + x).sqrt()
    })
}

kernel! {
    fn sum_of_squares<'a, T: Real>(x: &'a [T]) -> f64 {
        let mut lanes = [0.0_f64; 16];
        let (whole, rest) = x.as_chunks::<16>();
        for x in whole {
            for i in 0..16 {
                lanes[i] += x[i].to_f64() * x[i].to_f64();
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane += x.to_f64() * x.to_f64();
        }
        let mut half = 8;
        while half > 0 {
            for i in 0..half {
                lanes[i] += lanes[i + half];
            }
            half /= 2;
        }
        lanes[0]
    }
}

/// What to multiply gradients by so that their norm is at most `max_norm`:
/// `max_norm / (norm + 1e-6)`, at most 1, as PyTorch's `clip_grad_norm_`.
///
/// A norm that is NaN gives NaN, and an infinite one 0, so a broken gradient is not hidden.
pub fn clip_scale(norm: f64, max_norm: f64) -> f32 {
    let scale = max_norm / (norm + 1e-6);
    // Not `min`, which would turn NaN into 1.
    if scale > 1.0 { 1.0 } else { scale as f32 }
}
