//! Activation functions of one number: GELU by name, and those of one line, ReLU, its square, the identity,
//! the hyperbolic tangent, and GELU by that tangent.
//!
//! GPT-2's GELU is the approximation `x (1 + tanh u) / 2`, `u = sqrt(2 / pi) (x + 0.044715 x³)` (Hendrycks
//! and Gimpel, 2016; PyTorch's `approximate="tanh"`, Hugging Face's `gelu_new`).

use super::activation::{gelu, gelu_backward};
use super::expect;
use super::real::Real;
use crate::nn::stopwatch::{Direction, Part, lap};
use exmy::parallel;
use exmy::simd::kernel;

/// Elements a thread takes at once.
const CHUNK: usize = 1 << 15;

/// Which function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// The exact [GELU](super::activation).
    Gelu,
    /// `max(x, 0)`; its slope at 0 is 0.
    Relu,
    /// `max(x, 0)²` (arXiv 2109.08668).
    SquaredRelu,
    /// `x`.
    Linear,
    /// `tanh(x)`.
    Tanh,
    /// GELU by the hyperbolic tangent.
    GeluTanh,
}

/// `tanh u` and `du / dx` of GELU by the hyperbolic tangent.
#[inline(always)]
fn gelu_tanh<T: Real>(x: T) -> (T, T) {
    let (cubic, scale) = (T::from_f64(0.044_715), T::from_f64(0.797_884_560_802_865_4));
    let square = x * x;
    let u = scale * (x * square).mul_add(cubic, x);
    (u.tanh(), scale * (T::from_f64(3.0) * cubic).mul_add(square, T::ONE))
}

/// `y = f(x)`, elementwise. A NaN stays one.
///
/// # Panics
/// If `x` and `y` differ in length.
#[track_caller]
pub fn apply<T: Real>(function: Function, x: &[T], y: &mut [T]) {
    if function == Function::Gelu {
        return gelu(x, y);
    }
    let _lap = lap(Part::Activation(Direction::Forward));
    expect("apply", "y", y.len(), x.len());
    parallel::for_each_chunk(y, CHUNK, |i, y| {
        apply_chunk(function, &x[i * CHUNK..][..y.len()], y);
    });
}

kernel! {
    fn apply_chunk<'a, T: Real>(function: Function, x: &'a [T], y: &'a mut [T]) {
        let each = y.iter_mut().zip(x);
        match function {
            Function::Relu => each.for_each(|(y, &x)| *y = if x < T::ZERO { T::ZERO } else { x }),
            Function::SquaredRelu => {
                each.for_each(|(y, &x)| *y = if x < T::ZERO { T::ZERO } else { x * x });
            }
            Function::Linear => y.copy_from_slice(x),
            Function::Gelu => unreachable!("done before"),
            Function::Tanh => each.for_each(|(y, &x)| *y = x.tanh()),
            Function::GeluTanh => each.for_each(|(y, &x)| {
                *y = T::from_f64(0.5) * x * (T::ONE + gelu_tanh(x).0);
            }),
        }
    }
}

/// Backward of [`apply`] in place: `d` comes in as the gradient of y and leaves as that of x.
///
/// # Panics
/// If `x` and `d` differ in length.
#[track_caller]
pub fn apply_backward<T: Real>(function: Function, x: &[T], d: &mut [T]) {
    if function == Function::Gelu {
        return gelu_backward(x, d);
    }
    let _lap = lap(Part::Activation(Direction::Backward));
    expect("apply_backward", "d", d.len(), x.len());
    parallel::for_each_chunk(d, CHUNK, |i, d| {
        backward_chunk(function, &x[i * CHUNK..][..d.len()], d);
    });
}

kernel! {
    fn backward_chunk<'a, T: Real>(function: Function, x: &'a [T], d: &'a mut [T]) {
        let each = d.iter_mut().zip(x);
        match function {
            Function::Relu => each.for_each(|(d, &x)| *d = if x > T::ZERO { *d } else { T::ZERO }),
            Function::SquaredRelu => {
                each.for_each(|(d, &x)| *d *= if x > T::ZERO { x + x } else { T::ZERO });
            }
            Function::Linear => {}
            Function::Gelu => unreachable!("done before"),
            Function::Tanh => each.for_each(|(d, &x)| {
                let y = x.tanh();
                *d *= (-y).mul_add(y, T::ONE);
            }),
            Function::GeluTanh => each.for_each(|(d, &x)| {
                let (y, slope) = gelu_tanh(x);
                let inner = x * (-y).mul_add(y, T::ONE) * slope;
                *d *= T::from_f64(0.5) * (T::ONE + y + inner);
            }),
        }
    }
}
