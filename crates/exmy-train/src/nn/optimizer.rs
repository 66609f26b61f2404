//! `AdamW` and stochastic gradient descent on flat slices, and clipping by the global norm.
//!
//! `AdamW`'s update is PyTorch's `torch.optim.AdamW` (Loshchilov and Hutter, 2019, with Kingma and Ba's
//! bias correction), in its order of operations: scalars are formed in f64 and rounded to f32 once,
//! elements are f32 (in f64 the same scalars are used),
//!
//! ```text
//! p *= 1 - lr weight_decay                     (where decay applies)
//! m += (g - m) (1 - beta1)
//! v  = v beta2 + (1 - beta2) g g
//! p += -(lr / (1 - beta1^t)) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
//! ```
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

use crate::nn::real::Real;
use crate::nn::stopwatch::{Part, lap};
use exmy::parallel;
use exmy::simd::kernel;

/// Elements a thread takes at once: four slices of 64 KiB stay in a second-level cache.
pub const CHUNK: usize = 1 << 14;

/// The constants of the update; moments belong to the caller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the denominator, outside the square root.
    pub eps: f64,
    /// Decoupled weight decay, times the learning rate.
    pub weight_decay: f64,
}

/// PyTorch's defaults: betas 0.9 and 0.999, eps 1e-8, weight decay 0.01.
impl Default for AdamW {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01 }
    }
}

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

/// The scalars of one step, as the elements see them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coefficients<T> {
    /// Multiplies the parameter: 1 less the decay.
    pub keep: T,
    /// The share of the gradient in the first moment.
    pub rise1: T,
    /// Multiplies the second moment.
    pub beta2: T,
    /// The share of the squared gradient in the second moment.
    pub rise2: T,
    /// Minus the learning rate over the first bias correction.
    pub step: T,
    /// The root of the second bias correction.
    pub correction2: T,
    /// Added to the denominator.
    pub eps: T,
    /// Multiplies the gradient.
    pub grad_scale: T,
}

impl AdamW {
    /// The scalars of an update.
    ///
    /// # Panics
    /// If `t` is 0.
    #[track_caller]
    pub fn coefficients<T: Real>(&self, at: &Update) -> Coefficients<T> {
        assert!(at.t > 0, "AdamW: steps are counted from 1");
        let t = at.t as f64;
        Coefficients {
            keep: if at.decay { single(1.0 - at.lr * self.weight_decay) } else { T::ONE },
            rise1: single(1.0 - self.beta1),
            beta2: single(self.beta2),
            rise2: single(1.0 - self.beta2),
            step: single(-at.lr / (1.0 - libm::pow(self.beta1, t))),
            correction2: single((1.0 - libm::pow(self.beta2, t)).sqrt()),
            eps: single(self.eps),
            grad_scale: single(at.grad_scale.into()),
        }
    }

    /// One update of `params` and its moments `m` and `v` at step `t`, counted from 1.
    ///
    /// `decay` says whether this range of parameters is decayed (matrices usually are, norms and
    /// biases are not); gradients are multiplied by `grad_scale` as they are read, see
    /// [`clip_scale`].
    ///
    /// # Panics
    /// If the slices differ in length or `t` is 0.
    #[track_caller]
    pub fn step<T: Real>(
        &self,
        t: u64,
        lr: f64,
        decay: bool,
        params: &mut [T],
        grads: &[T],
        m: &mut [T],
        v: &mut [T],
        grad_scale: f32,
    ) {
        let _lap = lap(Part::Optimizer);
        let len = params.len();
        assert!(
            grads.len() == len && m.len() == len && v.len() == len,
            "AdamW: {len} parameters, {} gradients, moments of {} and {} elements",
            grads.len(),
            m.len(),
            v.len()
        );
        let coefficients = self.coefficients(&Update { t, lr, decay, grad_scale });
        let (params, m, v) = ((params, CHUNK), (m, CHUNK), (v, CHUNK));
        parallel::for_each_chunk_of_three(params, m, v, |i, params, m, v| {
            update(coefficients, params, &grads[i * CHUNK..][..params.len()], m, v);
        });
    }
}

kernel! {
    fn update<'a, T: Real>(
        c: Coefficients<T>,
        params: &'a mut [T],
        grads: &'a [T],
        m: &'a mut [T],
        v: &'a mut [T],
    ) {
        for (((p, &g), m), v) in params.iter_mut().zip(grads).zip(m).zip(v) {
            let g = g * c.grad_scale;
            let first = *m + (g - *m) * c.rise1;
            let second = *v * c.beta2 + c.rise2 * g * g;
            let denominator = second.sqrt() / c.correction2 + c.eps;
            *p = *p * c.keep + c.step * first / denominator;
            (*m, *v) = (first, second);
        }
    }
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
