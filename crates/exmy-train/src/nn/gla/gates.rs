//! The gates of gated linear attention: the decay and the output gate, elementwise.

use crate::nn::real::Real;
use crate::nn::stopwatch::{Direction, Part, lap};
use exmy::parallel;
use exmy::simd::kernel;
use exmy::slice::{View, ViewMut};

/// Elements a thread takes at once.
const CHUNK: usize = 1 << 14;

/// `alpha = exp(max(logsigmoid(z) / tau, least))`, elementwise; `logsigmoid(z) = min(z, 0) -
/// ln(1 + e^-|z|)`. `least` is the smallest logarithm of a decay; minus infinity for none.
///
/// # Panics
/// If `z` and `alpha` differ in length.
#[track_caller]
pub fn decay<T: Real>(z: &[T], tau: f64, least: f64, alpha: &mut [T]) {
    let _lap = lap(Part::Recurrence(Direction::Forward));
    assert_eq!(z.len(), alpha.len(), "decay: one decay for each gate");
    let (rate, least) = (T::from_f64(1.0 / tau), T::from_f64(least));
    parallel::for_each_chunk(alpha, CHUNK, |i, alpha| {
        decay_chunk(&z[i * CHUNK..][..alpha.len()], rate, least, alpha);
    });
}

#[inline(always)]
fn log_decay<T: Real>(z: T, rate: T) -> T {
    (z.min(T::ZERO) - (T::ONE + (-z.abs()).exp()).ln()) * rate
}

kernel! {
    fn decay_chunk<'a, T: Real>(z: &'a [T], rate: T, least: T, alpha: &'a mut [T]) {
        for (alpha, &z) in alpha.iter_mut().zip(z) {
            let log = log_decay(z, rate);
            // Not `max`, which would hide a NaN.
            *alpha = (if log < least { least } else { log }).exp();
        }
    }
}

/// Backward of [`decay`] in place: `d` comes in as the gradient of the decay's logarithm and leaves
/// as that of z, multiplied by `sigmoid(-z) / tau`, or by 0 where `least` took over.
///
/// # Panics
/// If `z` and `d` differ in length.
#[track_caller]
pub fn decay_backward<T: Real>(z: &[T], tau: f64, least: f64, d: &mut [T]) {
    let _lap = lap(Part::Recurrence(Direction::Backward));
    assert_eq!(z.len(), d.len(), "decay_backward: one gradient for each gate");
    let (rate, least) = (T::from_f64(1.0 / tau), T::from_f64(least));
    parallel::for_each_chunk(d, CHUNK, |i, d| {
        decay_backward_chunk(&z[i * CHUNK..][..d.len()], rate, least, d);
    });
}

kernel! {
    fn decay_backward_chunk<'a, T: Real>(z: &'a [T], rate: T, least: T, d: &'a mut [T]) {
        for (d, &z) in d.iter_mut().zip(z) {
            // sigmoid(-z) without an overflow on either side.
            let e = (-z.abs()).exp();
            let share = if z < T::ZERO { T::ONE } else { e } / (T::ONE + e);
            let share = if log_decay(z, rate) < least { T::ZERO } else { share };
            *d *= share * rate;
        }
    }
}

/// `y = x silu(g)`: x, g and y (N, W), rows of g any distance apart.
///
/// # Panics
/// If the shapes do not fit each other.
#[track_caller]
pub fn swish_gate<T: Real>(x: &[T], gates: View<'_, T>, y: &mut [T]) {
    let _lap = lap(Part::Recurrence(Direction::Forward));
    let (stride, width) = shape("swish_gate", x, gates);
    assert_eq!(x.len(), y.len(), "swish_gate: y has the elements of x");
    let n = (CHUNK / width).max(1);
    parallel::for_each_chunk(y, n * width, |i, y| {
        let gates = &gates.data()[i * n * stride..];
        swish_rows(&x[i * n * width..][..y.len()], gates, stride, width, y);
    });
}

/// The distance of rows and their width.
#[track_caller]
fn shape<T: Real>(name: &str, x: &[T], gates: View<'_, T>) -> (usize, usize) {
    let (rows, width) = (gates.rows(), gates.cols());
    assert!(
        width > 0 && gates.col_stride() == 1 && rows * width == x.len(),
        "{name}: {rows} rows of {width} gates for {} elements",
        x.len()
    );
    (gates.row_stride().max(width), width)
}

kernel! {
    fn swish_rows<'a, T: Real>(
        x: &'a [T],
        gates: &'a [T],
        stride: usize,
        width: usize,
        y: &'a mut [T],
    ) {
        let rows = gates.chunks(stride);
        for ((x, y), row) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)).zip(rows) {
            for ((y, &x), &g) in y.iter_mut().zip(x).zip(&row[..width]) {
                *y = x * (g / (T::ONE + (-g).exp()));
            }
        }
    }
}

/// Backward of [`swish_gate`]: `d` comes in as dy and leaves as dx; dg is written to `d_gates`, which is
/// shaped as `gates`.
///
/// # Panics
/// If the shapes do not fit each other.
#[track_caller]
pub fn swish_gate_backward<T: Real>(
    x: &[T],
    gates: View<'_, T>,
    d: &mut [T],
    d_gates: ViewMut<'_, T>,
) {
    let _lap = lap(Part::Recurrence(Direction::Backward));
    let (stride, width) = shape("swish_gate_backward", x, gates);
    let like = (d_gates.rows(), d_gates.cols(), d_gates.row_stride().max(width));
    assert!(
        d.len() == x.len() && like == (gates.rows(), width, stride),
        "gradients are shaped as values"
    );
    let n = (CHUNK / width).max(1);
    let parts = d.chunks_mut(n * width).zip(d_gates.into_data().chunks_mut(n * stride));
    parallel::for_each(parts, |i, (d, d_gates)| {
        let (x, gates) = (&x[i * n * width..][..d.len()], &gates.data()[i * n * stride..]);
        swish_backward_rows(x, gates, stride, width, d, d_gates);
    });
}

kernel! {
    fn swish_backward_rows<'a, T: Real>(
        x: &'a [T],
        gates: &'a [T],
        stride: usize,
        width: usize,
        d: &'a mut [T],
        d_gates: &'a mut [T],
    ) {
        let rows = gates.chunks(stride).zip(d_gates.chunks_mut(stride));
        for ((x, d), (row, d_row)) in x.chunks_exact(width).zip(d.chunks_exact_mut(width)).zip(rows)
        {
            let (gates, d_gates) = (&row[..width], &mut d_row[..width]);
            for (((d, d_gate), &x), &g) in d.iter_mut().zip(d_gates).zip(x).zip(gates) {
                let s = T::ONE / (T::ONE + (-g).exp());
                *d_gate = *d * x * (s * g.mul_add(T::ONE - s, T::ONE));
                *d *= g * s;
            }
        }
    }
}
