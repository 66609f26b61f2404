//! Norms and activation functions whose every step is rounded to bfloat16.
//!
//! The "vector operations" of the microxcaling library (<https://github.com/microsoft/microxcaling>,
//! `mx/layernorm.py`, `mx/activations.py`, `mx/vector_ops.py` with `bfloat=16`), which the study of
//! MX training instabilities (arXiv 2506.20752) trained with: inputs and weights are rounded first,
//! then the result of each addition, product, root, quotient and exponential; a sum along a row or
//! over rows is one operation. GELU there is `x sigmoid(1.59375 (x + 0.044677734 x³))`, its
//! constants rounded too. `RMSNorm`, which that study does not use, follows `LayerNorm` without the
//! mean.
//!
//! The order of sums is that of the plain layers. Speed is no aim here.

use core::ops::Range;

use super::activation::add_rows;
use super::norm::{Norm, ROW_BLOCK};
use super::real::{Real, sum};
use crate::nn::stopwatch::{Part, Way, lap};
use exmy::format::Format;
use exmy::parallel;
use exmy::round::{Overflow, Rounding};

/// One number to bfloat16, or left as it is.
fn maybe<T: Real>(rounding: Option<Rounding>, x: T) -> T {
    rounding.map_or(x, |rounding| round(rounding, x))
}

/// One number to bfloat16.
fn round<T: Real>(rounding: Rounding, x: T) -> T {
    let x = x.to_f64() as f32;
    let bits = x.to_bits();
    let rounded = match rounding {
        _ if x.is_nan() => x,
        Rounding::TiesToEven => f32::from_bits((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000),
        Rounding::TiesToAway => f32::from_bits((bits + 0x8000) & 0xFFFF_0000),
        Rounding::TowardZero => f32::from_bits(bits & 0xFFFF_0000),
        other => {
            let code = Format::BF16.encode_f32(x, other, Overflow::None, 0).code;
            f32::from_bits((code as u32) << 16)
        }
    };
    T::from_f64(f64::from(rounded))
}

/// Rounds all of `x`, or none.
pub(crate) fn round_all<T: Real>(rounding: Option<Rounding>, x: &mut [T]) {
    if let Some(rounding) = rounding {
        parallel::for_each_chunk(x, CHUNK, |_, x| {
            x.iter_mut().for_each(|x| *x = round(rounding, *x));
        });
    }
}

/// Elements a thread takes at once.
const CHUNK: usize = 1 << 13;

/// How a norm's forward steps are rounded: those up to the variance, the gain and the bias; and the
/// others.
pub(crate) type Steps = [Option<Rounding>; 2];

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
pub(crate) fn norm<T: Real>(
    norm: Norm,
    steps: Steps,
    x: &[T],
    gamma: &[T],
    beta: Option<&[T]>,
    eps: f64,
    y: &mut [T],
) {
    let _lap = lap(Part::Norm(Way::Forward));
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
pub(crate) fn norm_backward<T: Real>(
    norm: Norm,
    how: (Steps, Option<Rounding>),
    x: &[T],
    gamma: &[T],
    eps: f64,
    dy: &[T],
    dx: &mut [T],
    d_gamma: &mut [T],
    d_beta: &mut [T],
) {
    let _lap = lap(Part::Norm(Way::Backward));
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
            add_rows(d_beta, &sums[width..]);
        }
    });
    d_gamma.iter_mut().chain(d_beta).for_each(|d| *d = r16(*d));
}

/// [`norm_backward()`] of one row; `sums` are those of its block, `own` is room for two rows.
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
fn gelu_phi<T: Real>(r16: &impl Fn(T) -> T, x: T) -> T {
    let c = T::from_f64;
    let cube = r16(r16(x * x) * x);
    let u = r16(r16(r16(cube * c(0.044_677_734_375)) + x) * c(1.593_75));
    r16(T::ONE / r16(r16((-u).exp()) + T::ONE))
}

/// GELU by its sigmoid approximation.
pub(crate) fn gelu<T: Real>(rounding: Rounding, x: &[T], y: &mut [T]) {
    let _lap = lap(Part::Activation(Way::Forward));
    let r16 = |x| round(rounding, x);
    parallel::for_each_chunk(y, CHUNK, |i, y| {
        for (y, &x) in y.iter_mut().zip(&x[i * CHUNK..]) {
            let x = r16(x);
            *y = r16(x * gelu_phi(&r16, x));
        }
    });
}

/// Backward of [`gelu`] in place, with the roundings of forward and of its own steps.
pub(crate) fn gelu_backward<T: Real>(
    (forward, rounding): (Rounding, Option<Rounding>),
    x: &[T],
    d: &mut [T],
) {
    let _lap = lap(Part::Activation(Way::Backward));
    let (r16, c) = (|x| maybe(rounding, x), T::from_f64);
    parallel::for_each_chunk(d, CHUNK, |i, d| {
        for (d, &x) in d.iter_mut().zip(&x[i * CHUNK..]) {
            let phi = gelu_phi(&|x| round(forward, x), round(forward, x));
            let x = r16(x);
            let slope = r16(r16(r16(x * x) * c(0.213_867_187_5)) + c(1.593_75));
            let inner = r16(slope * r16(phi * r16(T::ONE - phi)));
            *d = r16(r16(phi + r16(x * inner)) * r16(*d));
        }
    });
}

/// The sigmoid of a rounded gate, step by step.
fn sigmoid<T: Real>(r16: &impl Fn(T) -> T, gate: T) -> T {
    r16(T::ONE / r16(r16((-gate).exp()) + T::ONE))
}

/// `silu(gate) up`; gate|up in rows of 2 `hidden`. The last product has a rounding of its own, or none.
pub(crate) fn swiglu<T: Real>(
    (rounding, last): (Rounding, Option<Rounding>),
    gate_up: &[T],
    hidden: usize,
    y: &mut [T],
) {
    let _lap = lap(Part::Activation(Way::Forward));
    let r16 = |x| round(rounding, x);
    parallel::for_each_chunk(y, hidden, |i, y| {
        let (gate, up) = gate_up[2 * i * hidden..][..2 * hidden].split_at(hidden);
        for ((y, &gate), &up) in y.iter_mut().zip(gate).zip(up) {
            let gate = r16(gate);
            *y = maybe(last, r16(gate * sigmoid(&r16, gate)) * r16(up));
        }
    });
}

/// Backward of [`swiglu`], with the roundings of forward and of its own steps: `d_gate_up` is overwritten.
pub(crate) fn swiglu_backward<T: Real>(
    (forward, rounding): (Rounding, Option<Rounding>),
    gate_up: &[T],
    hidden: usize,
    dy: &[T],
    d_gate_up: &mut [T],
) {
    let _lap = lap(Part::Activation(Way::Backward));
    let (r16, f16) = (|x| maybe(rounding, x), |x| round(forward, x));
    parallel::for_each_chunk(d_gate_up, 2 * hidden, |i, d| {
        let (gate, up) = gate_up[2 * i * hidden..][..2 * hidden].split_at(hidden);
        let (d_gate, d_up) = d.split_at_mut(hidden);
        for (h, (&gate, &up)) in gate.iter().zip(up).enumerate() {
            let (gate, dy) = (f16(gate), r16(dy[i * hidden + h]));
            let s = sigmoid(&f16, gate);
            let y = f16(gate * s);
            d_up[h] = r16(dy * y);
            let slope = r16(s + r16(y * r16(T::ONE - s)));
            d_gate[h] = r16(r16(dy * r16(up)) * slope);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::norm::{layer_norm, layer_norm_backward};

    fn values(n: usize, stream: u64) -> Vec<f32> {
        use exmy::random::{Philox, Stream};
        let philox = Philox::new(31, Stream::new("steps").with(stream));
        (0..n as u64).map(|i| (4.0 * philox.uniform(i) - 2.0) as f32).collect()
    }

    /// Layer norm whose ties all go away from zero.
    fn away_norm(x: &[f32], gamma: &[f32], beta: Option<&[f32]>, y: &mut [f32]) {
        norm(Norm::LayerNorm, [Some(Rounding::TiesToAway); 2], x, gamma, beta, 1e-5, y);
    }

    /// The integer shortcuts against the rounding core, on halves, neighbours and specials.
    #[test]
    fn shortcuts_round_as_the_core_does() {
        for high in [0_u32, 1, 0x3F80, 0x3F81, 0x7F7F, 0x7F80, 0x8000, 0xBF80, 0xFF7F] {
            for low in [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF] {
                let x = f32::from_bits(high << 16 | low);
                if x.is_nan() {
                    continue;
                }
                for rounding in [Rounding::TiesToEven, Rounding::TiesToAway, Rounding::TowardZero] {
                    let code = Format::BF16.encode_f32(x, rounding, Overflow::None, 0).code;
                    assert_eq!(round(rounding, x).to_bits(), (code as u32) << 16, "{x:e}");
                }
            }
        }
    }

    /// A row of 2, worked out by hand: 1 and 1 + 2^-8 (a tie, to even 1); mean 1, c = 0, so that
    /// only beta is left; then 1 and 3, whose deviations are -1 and 1.
    #[test]
    fn a_norm_by_hand() {
        let x = [1.0, 1.0 + 1.0 / 256.0, 1.0, 3.0];
        let mut y = [9.0_f32; 4];
        norm(
            Norm::LayerNorm,
            [Some(Rounding::TiesToEven); 2],
            &x,
            &[2.0, 1.0],
            Some(&[0.5, 0.25]),
            1e-5,
            &mut y,
        );
        assert_eq!(y, [0.5, 0.25, -1.5, 1.25]);
        // Away from zero the tie is 1 + 2^-7; the sum 2 + 2^-7 is a tie again, 2 + 2^-6.
        away_norm(&x, &[2.0, 1.0], None, &mut y);
        assert!(y[0] < 0.0 && y[1] == 0.0, "{y:?}");
    }

    /// Within a few units of bfloat16 of the plain layers, and every output a bfloat16.
    #[test]
    fn steps_follow_the_plain_layers() {
        let (rows, width) = (40, 32);
        let (x, dy) = (values(rows * width, 0), values(rows * width, 1));
        let (gamma, beta) = (values(width, 2), values(width, 3));
        let mut plain = vec![0.0; x.len()];
        let (mut mean, mut rstd) = (vec![0.0; rows], vec![0.0; rows]);
        layer_norm(&x, &gamma, Some(&beta), 1e-5, &mut plain, &mut mean, &mut rstd);
        let mut y = vec![f32::NAN; x.len()];
        away_norm(&x, &gamma, Some(&beta), &mut y);
        let close = |name: &str, got: &[f32], expected: &[f32], bound: f32| {
            for (got, expected) in got.iter().zip(expected) {
                assert!((got - expected).abs() <= bound, "{name}: {got} {expected}");
                assert_eq!(got.to_bits() & 0xFFFF, 0, "{name}: {got}");
            }
        };
        close("norm", &y, &plain, 0.06);
        let mut expected = vec![0.0; x.len()];
        let (mut g, mut b) = (vec![0.0; width], vec![0.0; width]);
        let d = Some(&mut b[..]);
        layer_norm_backward(&x, &gamma, &mean, &rstd, &dy, &mut expected, &mut g, d);
        let mut dx = vec![f32::NAN; x.len()];
        let (mut g16, mut b16) = (vec![0.0; width], vec![0.0; width]);
        let rounding = Rounding::TiesToAway;
        norm_backward(
            Norm::LayerNorm,
            ([Some(rounding); 2], Some(rounding)),
            &x,
            &gamma,
            1e-5,
            &dy,
            &mut dx,
            &mut g16,
            &mut b16,
        );
        close("dx", &dx, &expected, 0.08);
        close("dgamma", &g16, &g, 0.3);
        close("dbeta", &b16, &b, 0.3);

        use crate::nn::activation as plain_layer;
        let mut expected = vec![0.0; x.len()];
        plain_layer::gelu(&x, &mut expected);
        gelu(rounding, &x, &mut y);
        close("gelu", &y, &expected, 0.04);
        let (mut d, mut d16) = (dy.clone(), dy.clone());
        plain_layer::gelu_backward(&x, &mut d);
        gelu_backward((rounding, Some(rounding)), &x, &mut d16);
        close("gelu backward", &d16, &d, 0.08);
        let half = x.len() / 2;
        plain_layer::swiglu(&x, 16, &mut expected[..half]);
        swiglu((rounding, Some(rounding)), &x, 16, &mut y[..half]);
        close("swiglu", &y[..half], &expected[..half], 0.03);
        plain_layer::swiglu_backward(&x, 16, &dy[..half], &mut expected);
        let both = (rounding, Some(rounding));
        swiglu_backward(both, &x, 16, &dy[..half], &mut dx);
        close("swiglu backward", &dx, &expected, 0.08);
    }

    /// Two rows of small variance, where it matters that epsilon is added as it is: every number from a
    /// restatement of microxcaling's functions in numpy, ties away from zero. Gradients in f32 follow from the
    /// same rounded forward pass.
    #[test]
    #[allow(clippy::excessive_precision, reason = "bfloat16 numbers, written out")]
    fn a_norm_as_the_library_has_it() {
        let x = [-0.0025, -0.0015, 0.0, -0.0045, 0.0009, -0.0003, -0.0036, -0.0072_f32];
        let (gamma, beta) = ([1.01, 0.93, 1.13, 0.877_f32], [0.1, -0.2, 0.05, 0.33_f32]);
        let dy = [0.11, -0.23, 0.37, 0.51, -0.71, 0.13, 0.29, -0.43_f32];
        let mut y = [0.0_f32; 8];
        away_norm(&x, &gamma, Some(&beta), &mut y);
        let expected = [
            -0.00830078125,
            -0.0390625,
            0.7265625,
            -0.255859375,
            0.8828125,
            0.26953125,
            -0.2177734375,
            -0.59375,
        ];
        assert_eq!(y, expected);
        let back = |rounding: Option<Rounding>| {
            let (mut dx, mut g, mut b) = ([0.0_f32; 8], [0.0_f32; 4], [0.0_f32; 4]);
            let ways = ([Some(Rounding::TiesToAway); 2], rounding);
            let gamma = gamma.map(|gamma| maybe(rounding, gamma));
            norm_backward(Norm::LayerNorm, ways, &x, &gamma, 1e-5, &dy, &mut dx, &mut g, &mut b);
            (dx, g, b)
        };
        let dx = [-23.5, -113.0, 68.0, 68.0, -116.0, 68.0, 107.0, -59.0];
        let d_gamma = [-0.5625, 0.025390625, 0.15234375, 0.107421875];
        let d_beta = [-0.6015625, -0.1005859375, 0.66015625, 0.08203125];
        assert_eq!(back(Some(Rounding::TiesToAway)), (dx, d_gamma, d_beta));
        let (dx, d_gamma, d_beta) = back(None);
        let near = |got: &[f32], expected: &[f32]| {
            got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-5 * b.abs())
        };
        let plain = [
            -23.110086, -112.59886, 68.11293, 67.59602, -116.88707, 68.2646, 107.29826, -58.675797,
        ];
        assert!(near(&dx, &plain), "{dx:?}");
        assert!(near(&d_gamma, &[-0.560957, 0.025527336, 0.15259767, 0.10949221]), "{d_gamma:?}");
        assert!(near(&d_beta, &[-0.6, -0.1, 0.66, 0.08]), "{d_beta:?}");
    }

    /// Mean and deviations are 1/2 + 2^-9 and the variance 1/4 + 2^-9 + 2^-18, none of them bfloat16. Then by hand, away
    /// from zero: the variance becomes 129 2^-9, its root 0.501949 a half, the reciprocal 2; twice the deviation, 1 + 2^-8,
    /// is a tie and 1 + 2^-7. The gain is a little below 1 + 2^-8 and would be 1 in bfloat16: 1.011748 is above the tie of
    /// 1 + 2^-7 and 1 + 2^-6, which it becomes. The bias is a little below 2^-8, which it would be in bfloat16 and make a
    /// tie: so 1 + 2^-6 stays.
    #[test]
    fn the_tail_of_a_norm_by_hand() {
        let (unit, little) = (1.0 / 256.0, 1.0 / 1_048_576.0);
        let x = [0.0, 1.0 + unit];
        let (gamma, beta) = ([1.0 + unit - little; 2], [unit - little; 2]);
        let mut y = [9.0_f32; 2];
        norm(
            Norm::LayerNorm,
            [None, Some(Rounding::TiesToAway)],
            &x,
            &gamma,
            Some(&beta),
            0.0,
            &mut y,
        );
        assert_eq!(y, [-1.0 - 4.0 * unit, 1.0 + 4.0 * unit]);
        // With nothing rounded it is the plain norm, whose rows are -1 and 1.
        norm(Norm::LayerNorm, [None; 2], &x, &[1.0; 2], None, 0.0, &mut y);
        assert!((y[0] + 1.0).abs() < 1e-6 && (y[1] - 1.0).abs() < 1e-6, "{y:?}");
        // With all rounded the mean is 1/2 + 2^-8, the gain 1 and the bias 2^-8.
        let all = [Some(Rounding::TiesToAway); 2];
        norm(Norm::LayerNorm, all, &x, &gamma, Some(&beta), 0.0, &mut y);
        assert_eq!(y, [-1.0 + unit, 1.0 + 2.0 * unit]);
    }

    /// GELU and `SwiGLU`'s gate by the same restatement.
    #[test]
    #[allow(clippy::excessive_precision, reason = "bfloat16 numbers, written out")]
    fn activations_as_the_library_has_them() {
        let x = [0.3, -1.27, 2.11, -0.041, 1.9_f32];
        let (dy, up) = ([1.0, 0.7, -0.3, 0.9, 1.1_f32], [0.5, 1.25, -0.75, 2.0, 1.5_f32]);
        let (rna, mut y) = (Rounding::TiesToAway, [0.0_f32; 5]);
        gelu(rna, &x, &mut y);
        assert_eq!(y, [0.185546875, -0.130859375, 2.078125, -0.0196533203125, 1.8359375]);
        let back = |rounding| {
            let mut d = dy;
            gelu_backward((rna, rounding), &x, &mut d);
            d
        };
        let expected = [0.73046875, -0.087890625, -0.322265625, 0.41796875, 1.21875];
        assert_eq!(back(Some(rna)), expected);
        let near = |got: &[f32], expected: [f32; 5]| {
            got.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-6)
        };
        let plain = [0.731517, -0.0868275, -0.3200997, 0.41773865, 1.2153133];
        assert!(near(&back(None), plain), "{:?}", back(None));

        let gate_up = [x, up].concat();
        let back = |rounding| {
            let mut d = [0.0_f32; 10];
            swiglu_backward((rna, rounding), &gate_up, 5, &dy, &mut d);
            d
        };
        let d = back(Some(rna));
        assert_eq!(d[..5], [0.32421875, 0.0008544921875, 0.2470703125, 0.859375, 1.796875]);
        let plain = [0.32390785, 0.0007243156, 0.24653321, 0.86046636, 1.7895814];
        assert!(near(&back(None)[..5], plain), "{:?}", back(None));
    }

    /// x = 1: u = 1.6640625, from 1.044677734 -> 1.046875, times 1.59375 = 1.66845 -> 1.671875 or
    /// below; phi about 0.84, y about 0.84: between the bfloat16 neighbours of gelu(1) = 0.8413.
    #[test]
    fn gelu_by_hand() {
        let mut y = [0.0_f32];
        gelu(Rounding::TiesToEven, &[1.0], &mut y);
        assert_eq!(y, [0.843_75]);
    }
}
