//! `AdamW`. Its update is PyTorch's `torch.optim.AdamW` (Loshchilov and Hutter, 2019, with Kingma and Ba's
//! bias correction), in its order of operations: scalars are formed in f64 and rounded to f32 once,
//! elements are f32 (in f64 the same scalars are used),
//!
//! ```text
//! p *= 1 - lr weight_decay                     (where decay applies)
//! m += (g - m) (1 - beta1)
//! v  = v beta2 + (1 - beta2) g g
//! p += -(lr / (1 - beta1^t)) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
//! ```

use super::{CHUNK, Update, single};
use crate::nn::real::Real;
use crate::nn::stopwatch::{Part, lap};
use exmy::parallel;
use exmy::simd::kernel;

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
    /// [`clip_scale`](super::clip_scale).
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
