//! Norms and activation functions whose every step is rounded to bfloat16.
//!
//! The "vector operations" of the microxcaling library (<https://github.com/microsoft/microxcaling>,
//! `mx/layernorm.py`, `mx/activations.py`, `mx/vector_ops.py` with `bfloat=16`), which the study of
//! MX training instabilities (arXiv 2506.20752) trained with. Inputs and weights are rounded first,
//! then the result of each addition, product, root, quotient and exponential. A sum along a row or
//! over rows is one operation. GELU there is `x sigmoid(1.59375 (x + 0.044677734 x³))`, its
//! constants rounded too. `RMSNorm`, which that study does not use, follows `LayerNorm` without the
//! mean.
//!
//! The order of sums is that of the plain layers.

use core::ops::Range;

use super::activation::add_rows;
use super::norm::{Norm, ROW_BLOCK};
use super::real::{Real, sum};
use crate::nn::stopwatch::{Direction, Part, lap};
use exmy::format::Format;
use exmy::parallel;
use exmy::round::{Overflow, Rounding};
use exmy::simd::kernel;

/// How a number is rounded, as a type: loops are compiled for each of the usual ways.
trait Step: Copy {
    fn of<T: Real>(self, x: T) -> T;
}

/// Not at all.
#[derive(Clone, Copy)]
struct Exact;

/// To bfloat16, ties to even.
#[derive(Clone, Copy)]
struct ToEven;

/// To bfloat16, ties away from zero.
#[derive(Clone, Copy)]
struct ToAway;

/// To bfloat16 by any mode, or not at all.
#[derive(Clone, Copy)]
struct By(Option<Rounding>);

impl Step for Exact {
    #[inline(always)]
    fn of<T: Real>(self, x: T) -> T {
        x
    }
}

impl Step for ToEven {
    #[inline(always)]
    fn of<T: Real>(self, x: T) -> T {
        cut(x, |bits| bits.wrapping_add(0x7FFF + (bits >> 16 & 1)))
    }
}

impl Step for ToAway {
    #[inline(always)]
    fn of<T: Real>(self, x: T) -> T {
        cut(x, |bits| bits.wrapping_add(0x8000))
    }
}

impl Step for By {
    #[inline(always)]
    fn of<T: Real>(self, x: T) -> T {
        maybe(self.0, x)
    }
}

/// The upper half of what `rounded` makes of a number's bits; NaN stays.
#[inline(always)]
fn cut<T: Real>(x: T, rounded: impl Fn(u32) -> u32) -> T {
    let x = x.to_f64() as f32;
    let upper = f32::from_bits(rounded(x.to_bits()) & 0xFFFF_0000);
    T::from_f64(f64::from(if x.is_nan() { x } else { upper }))
}

/// Does the same for each of the usual pairs of roundings, those forward and those of something else.
macro_rules! each {
    ($forward:expr, $other:expr, |$f:ident, $o:ident| $work:expr) => {
        match ($forward, $other) {
            (Rounding::TiesToEven, None) => {
                let ($f, $o) = (ToEven, Exact);
                $work
            }
            (Rounding::TiesToAway, None) => {
                let ($f, $o) = (ToAway, Exact);
                $work
            }
            (Rounding::TiesToEven, Some(Rounding::TiesToEven)) => {
                let ($f, $o) = (ToEven, ToEven);
                $work
            }
            (Rounding::TiesToAway, Some(Rounding::TiesToAway)) => {
                let ($f, $o) = (ToAway, ToAway);
                $work
            }
            (forward, other) => {
                let ($f, $o) = (By(Some(forward)), By(other));
                $work
            }
        }
    };
}

/// One number to bfloat16, or left as it is.
pub fn maybe<T: Real>(rounding: Option<Rounding>, x: T) -> T {
    rounding.map_or(x, |rounding| round(rounding, x))
}

/// One number to bfloat16.
pub fn round<T: Real>(rounding: Rounding, x: T) -> T {
    match rounding {
        Rounding::TiesToEven => ToEven.of(x),
        Rounding::TiesToAway => ToAway.of(x),
        Rounding::TowardZero => cut(x, |bits| bits),
        other => {
            let single = x.to_f64() as f32;
            let rounded = if single.is_nan() {
                single
            } else {
                let code = Format::BF16.encode_f32(single, other, Overflow::None, 0).code;
                f32::from_bits((code as u32) << 16)
            };
            T::from_f64(f64::from(rounded))
        }
    }
}

/// Rounds all of `x`, or none.
pub fn round_all<T: Real>(rounding: Option<Rounding>, x: &mut [T]) {
    if let Some(rounding) = rounding {
        parallel::for_each_chunk(x, CHUNK, |_, x| round_chunk(rounding, x));
    }
}

kernel! {
    fn round_chunk<'a, T: Real>(rounding: Rounding, x: &'a mut [T]) {
        each!(rounding, None, |step, _other| x.iter_mut().for_each(|x| *x = step.of(*x)));
    }
}

/// Elements a thread takes at once.
const CHUNK: usize = 1 << 13;

/// How a norm's forward steps are rounded: those up to the variance, the gain and the bias; and the
/// others.
pub type Steps = [Option<Rounding>; 2];

/// Normalizes the rounded `x` into `h`; variance or mean square, plus epsilon. The backward pass forms both
/// again.
fn normalize<T: Real>(norm: Norm, [head, tail]: Steps, eps: f64, x: &[T], h: &mut [T]) -> T {
    let (r16, t16) = (|x| maybe(head, x), |x| maybe(tail, x));
    let n = T::from_f64(x.len() as f64);
    for (h, &x) in h.iter_mut().zip(x) {
        *h = r16(x);
    }
    if norm == Norm::LayerNorm {
        let mean = r16(r16(sum(h, |x| x)) / n);
        h.iter_mut().for_each(|h| *h = r16(*h - mean));
    }
    let square = r16(r16(sum(h, |c| r16(c * c))) / n);
    // The library adds a number that it has not rounded.
    let v = t16(square + T::from_f64(eps));
    let sd = t16(v.sqrt());
    let r = t16(T::ONE / sd);
    h.iter_mut().for_each(|h| *h = t16(*h * r));
    v
}

/// `y = round(gamma h) + beta`, rounded, with `h` the normalized row; rows of `gamma.len()`.
pub fn norm<T: Real>(
    norm: Norm,
    steps: Steps,
    x: &[T],
    gamma: &[T],
    beta: Option<&[T]>,
    eps: f64,
    y: &mut [T],
) {
    let _lap = lap(Part::Norm(Direction::Forward));
    let width = gamma.len();
    let (r16, t16) = (|x| maybe(steps[0], x), |x| maybe(steps[1], x));
    parallel::for_each_chunk(y, ROW_BLOCK * width, |i, y| {
        let x = &x[i * ROW_BLOCK * width..][..y.len()];
        for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
            normalize(norm, steps, eps, x, y);
            for (d, y) in y.iter_mut().enumerate() {
                *y = t16(r16(gamma[d]) * *y);
                if let Some(beta) = beta {
                    *y = t16(*y + r16(beta[d]));
                }
            }
        }
    });
}

/// Backward of [`norm()`] with the roundings of forward and of its own steps: `dx` is overwritten,
/// `d_gamma` and `d_beta` are accumulated. What forward kept (variance and normalized rows) is what it
/// had rounded, whatever the steps back are.
pub fn norm_backward<T: Real>(
    norm: Norm,
    how: (Steps, Option<Rounding>),
    x: &[T],
    gamma: &[T],
    eps: f64,
    dy: &[T],
    dx: &mut [T],
    d_gamma: &mut [T],
    mut d_beta: Option<&mut [T]>,
) {
    let _lap = lap(Part::Norm(Direction::Backward));
    let (width, r16) = (gamma.len(), |x| maybe(how.1, x));
    let blocks = (x.len() / width).div_ceil(ROW_BLOCK);
    // A block's rows of sums: d_gamma, then d_beta.
    T::with_scratch(blocks * 2 * width, |sums| {
        let chunks = (&mut *dx, ROW_BLOCK * width);
        parallel::for_each_chunk_of_two(chunks, (&mut *sums, 2 * width), |i, dx, sums| {
            let range: Range<usize> = i * ROW_BLOCK * width..i * ROW_BLOCK * width + dx.len();
            sums.fill(T::ZERO);
            let rows = x[range.clone()].chunks_exact(width).zip(dy[range].chunks_exact(width));
            let rows = rows.zip(dx.chunks_exact_mut(width));
            T::with_scratch(2 * width, |own| {
                rows.for_each(|((x, dy), dx)| {
                    row_backward(norm, how, x, gamma, eps, dy, dx, sums, own)
                });
            });
        });
        for sums in sums.chunks(2 * width) {
            add_rows(d_gamma, &sums[..width]);
            if let Some(d_beta) = d_beta.as_deref_mut() {
                add_rows(d_beta, &sums[width..]);
            }
        }
    });
    d_gamma.iter_mut().chain(d_beta.into_iter().flatten()).for_each(|d| *d = r16(*d));
}

/// [`norm_backward()`] of one row; `sums` are those of its block, `own` is memory for two rows.
fn row_backward<T: Real>(
    norm: Norm,
    (forward, rounding): (Steps, Option<Rounding>),
    x: &[T],
    gamma: &[T],
    eps: f64,
    dy: &[T],
    dx: &mut [T],
    sums: &mut [T],
    own: &mut [T],
) {
    let (width, r16) = (gamma.len(), |x| maybe(rounding, x));
    let n = T::from_f64(width as f64);
    let (d_gamma, d_beta) = sums.split_at_mut(width);
    let (h, lanes) = own.split_at_mut(width);
    let v = normalize(norm, forward, eps, x, h);
    let sd = r16(v.sqrt());
    let r = r16(T::ONE / sd);
    for d in 0..width {
        let g = r16(dy[d]);
        d_gamma[d] += r16(g * h[d]);
        d_beta[d] += g;
        dx[d] = r16(g * r16(gamma[d]));
    }
    // dx holds dn; t = mean(dn h sd) / v, its products from left to right.
    lanes.copy_from_slice(h);
    for (lane, &dn) in lanes.iter_mut().zip(&*dx) {
        *lane = r16(r16(dn * *lane) * sd);
    }
    let mean = r16(r16(sum(lanes, |x| x)) / n);
    let t = r16(mean * r16(T::ONE / v));
    for (dx, &h) in dx.iter_mut().zip(&*h) {
        *dx = r16(r16(*dx * r) + r16(-t * h));
    }
    if norm == Norm::LayerNorm {
        let mean = r16(r16(sum(dx, |x| x)) / n);
        dx.iter_mut().for_each(|dx| *dx = r16(*dx - mean));
    }
}

/// The sigmoid of a rounded number, and that number's GELU argument.
#[inline(always)]
fn gelu_cdf<T: Real>(r16: impl Step, x: T) -> T {
    let c = T::from_f64;
    let cube = r16.of(r16.of(x * x) * x);
    let u = r16.of(r16.of(r16.of(cube * c(0.044_677_734_375)) + x) * c(1.593_75));
    r16.of(T::ONE / r16.of(r16.of((-u).exp()) + T::ONE))
}

/// GELU by its sigmoid approximation.
pub fn gelu<T: Real>(rounding: Rounding, x: &[T], y: &mut [T]) {
    let _lap = lap(Part::Activation(Direction::Forward));
    parallel::for_each_chunk(y, CHUNK, |i, y| gelu_chunk(rounding, &x[i * CHUNK..][..y.len()], y));
}

kernel! {
    fn gelu_chunk<'a, T: Real>(rounding: Rounding, x: &'a [T], y: &'a mut [T]) {
        each!(rounding, None, |r16, _other| for (y, &x) in y.iter_mut().zip(x) {
            let x = r16.of(x);
            *y = r16.of(x * gelu_cdf(r16, x));
        });
    }
}

/// Backward of [`gelu`] in place, with the roundings of forward and of its own steps.
pub fn gelu_backward<T: Real>(
    (forward, rounding): (Rounding, Option<Rounding>),
    x: &[T],
    d: &mut [T],
) {
    let _lap = lap(Part::Activation(Direction::Backward));
    parallel::for_each_chunk(d, CHUNK, |i, d| {
        gelu_backward_chunk(forward, rounding, &x[i * CHUNK..][..d.len()], d);
    });
}

kernel! {
    fn gelu_backward_chunk<'a, T: Real>(
        forward: Rounding,
        rounding: Option<Rounding>,
        x: &'a [T],
        d: &'a mut [T],
    ) {
        let c = T::from_f64;
        each!(forward, rounding, |f16, r16| for (d, &x) in d.iter_mut().zip(x) {
            let phi = gelu_cdf(f16, f16.of(x));
            let x = r16.of(x);
            let slope = r16.of(r16.of(r16.of(x * x) * c(0.213_867_187_5)) + c(1.593_75));
            let inner = r16.of(slope * r16.of(phi * r16.of(T::ONE - phi)));
            *d = r16.of(r16.of(phi + r16.of(x * inner)) * r16.of(*d));
        });
    }
}

/// The sigmoid of a rounded gate, step by step.
#[inline(always)]
fn sigmoid<T: Real>(r16: impl Step, gate: T) -> T {
    r16.of(T::ONE / r16.of(r16.of((-gate).exp()) + T::ONE))
}

/// `silu(gate) up`; gate|up in rows of 2 `hidden`. The last product has a rounding of its own, or none.
pub fn swiglu<T: Real>(
    (rounding, last): (Rounding, Option<Rounding>),
    gate_up: &[T],
    hidden: usize,
    y: &mut [T],
) {
    let _lap = lap(Part::Activation(Direction::Forward));
    parallel::for_each_chunk(y, hidden, |i, y| {
        swiglu_row(rounding, last, &gate_up[2 * i * hidden..][..2 * hidden], y);
    });
}

kernel! {
    fn swiglu_row<'a, T: Real>(
        rounding: Rounding,
        last: Option<Rounding>,
        gate_up: &'a [T],
        y: &'a mut [T],
    ) {
        let (gate, up) = gate_up.split_at(y.len());
        each!(rounding, last, |r16, last| for ((y, &gate), &up) in y.iter_mut().zip(gate).zip(up) {
            let gate = r16.of(gate);
            *y = last.of(r16.of(gate * sigmoid(r16, gate)) * r16.of(up));
        });
    }
}

/// Backward of [`swiglu`], with the roundings of forward and of its own steps: `d_gate_up` is overwritten.
pub fn swiglu_backward<T: Real>(
    (forward, rounding): (Rounding, Option<Rounding>),
    gate_up: &[T],
    hidden: usize,
    dy: &[T],
    d_gate_up: &mut [T],
) {
    let _lap = lap(Part::Activation(Direction::Backward));
    parallel::for_each_chunk(d_gate_up, 2 * hidden, |i, d| {
        let gate_up = &gate_up[2 * i * hidden..][..2 * hidden];
        swiglu_backward_row(forward, rounding, gate_up, &dy[i * hidden..][..hidden], d);
    });
}

kernel! {
    fn swiglu_backward_row<'a, T: Real>(
        forward: Rounding,
        rounding: Option<Rounding>,
        gate_up: &'a [T],
        dy: &'a [T],
        d_gate_up: &'a mut [T],
    ) {
        let (gate, up) = gate_up.split_at(dy.len());
        let (d_gate, d_up) = d_gate_up.split_at_mut(dy.len());
        let inputs = gate.iter().zip(up).zip(dy);
        let all = d_gate.iter_mut().zip(d_up).zip(inputs);
        each!(forward, rounding, |f16, r16| for ((d_gate, d_up), ((&gate, &up), &dy)) in all {
            let (gate, dy) = (f16.of(gate), r16.of(dy));
            let s = sigmoid(f16, gate);
            let y = f16.of(gate * s);
            *d_up = r16.of(dy * y);
            let slope = r16.of(s + r16.of(y * r16.of(T::ONE - s)));
            *d_gate = r16.of(r16.of(dy * r16.of(up)) * slope);
        });
    }
}
