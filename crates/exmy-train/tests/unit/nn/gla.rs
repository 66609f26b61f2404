//! The chunked form against the recurrence, the backward pass against the recurrence's own and
//! against central differences, and both against themselves on threads and levels.

use exmy::random::{Philox, Stream};
use exmy::simd::{Level, with_level};
use exmy::slice::{View, ViewMut};
use exmy_train::nn::gla::{
    Shape, decay, decay_backward, gla, gla_backward, recurrence, swish_gate, swish_gate_backward,
};
use exmy_train::nn::real::Real;

const SHAPES: [Shape; 5] = [
    Shape { batch: 2, sequence: 5, heads: 2, key: 3, value: 4 },
    Shape { batch: 1, sequence: 37, heads: 2, key: 5, value: 18 },
    Shape { batch: 2, sequence: 32, heads: 1, key: 16, value: 32 },
    Shape { batch: 1, sequence: 17, heads: 3, key: 20, value: 7 },
    Shape { batch: 3, sequence: 1, heads: 1, key: 1, value: 1 },
];

fn random(len: usize, size: f64, stream: u64) -> Vec<f64> {
    let philox = Philox::new(21, Stream::new("gla test").with(stream));
    (0..len as u64).map(|i| (2.0 * philox.uniform(i) - 1.0) * size).collect()
}

/// Gates from wide open to closed (decays from 1 - 1e-5 to 5e-4), rows wider than q|k|v.
struct Case {
    shape: Shape,
    stride: usize,
    qkv: Vec<f64>,
    z: Vec<f64>,
}

fn cases() -> Vec<Case> {
    let case = |(s, shape): (usize, Shape)| {
        let (n, stride) = (shape.batch * shape.sequence, shape.qkv_width() + 3 * (s % 2));
        let qkv = random(n * stride, 1.5, s as u64);
        let z = random(n * shape.keys(), 1.0, 50 + s as u64);
        let z = z.iter().map(|z| if *z > 0.0 { 12.0 * z } else { 125.0 * z * z * z }).collect();
        Case { shape, stride, qkv, z }
    };
    SHAPES.into_iter().enumerate().map(case).collect()
}

fn alpha(z: &[f64]) -> Vec<f64> {
    let mut alpha = vec![f64::NAN; z.len()];
    decay(z, 16.0, f64::NEG_INFINITY, &mut alpha);
    alpha
}

/// The buffers start as NaN, so that reading what was never written shows; there is room for two
/// pairs of a sequence and a head at a time.
fn chunked<T: Real>(shape: &Shape, qkv: &[T], stride: usize, alpha: &[T]) -> Vec<T> {
    let nan = T::from_f64(f64::NAN);
    let mut y = vec![nan; shape.batch * shape.sequence * shape.values()];
    let mut scratch = vec![nan; 2 * shape.unit() + 1];
    gla(shape, qkv, stride, alpha, &mut y, &mut [], &mut scratch);
    y
}

fn backward<T: Real>(case: &Shape, qkv: &[T], stride: usize, alpha: &[T], dy: &[T]) -> [Vec<T>; 2] {
    let nan = T::from_f64(f64::NAN);
    let (mut dqkv, mut dga) = (vec![T::ZERO; qkv.len()], vec![nan; alpha.len()]);
    // Three pairs at a time, which is no whole number of sequences.
    let mut scratch = vec![nan; 3 * case.unit()];
    gla_backward(case, qkv, stride, alpha, dy, &mut dqkv, &mut dga, &mut scratch);
    [dqkv, dga]
}

/// In f32 against the recurrence in f64, within the stated bound of each and with the sum of the
/// magnitudes from the recurrence of absolute values; in f64 within a hundredth of a millionth.
#[test]
fn chunks_are_the_recurrence() {
    for Case { shape, stride, qkv, z } in cases() {
        let alpha = alpha(&z);
        let single = |x: &[f64]| x.iter().map(|x| *x as f32).collect::<Vec<f32>>();
        let double = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let (qkv32, alpha32) = (single(&qkv), single(&alpha));
        let (qkv, alpha) = (double(&qkv32), double(&alpha32));
        let mut exact = vec![0.0; shape.batch * shape.sequence * shape.values()];
        recurrence(&shape, &qkv, stride, &alpha, &mut exact);
        let magnitudes: Vec<f64> = qkv.iter().map(|x| x.abs()).collect();
        let mut size = exact.clone();
        recurrence(&shape, &magnitudes, stride, &alpha, &mut size);
        let bound = |i: usize, unit: f64| {
            let t = (i / shape.values()) % shape.sequence + 1;
            2.0 * (2 * t + shape.key + 8) as f64 * unit * size[i]
        };
        let single = chunked(&shape, &qkv32, stride, &alpha32);
        let double = chunked(&shape, &qkv, stride, &alpha);
        let mut single_by_token = single.clone();
        recurrence(&shape, &qkv32, stride, &alpha32, &mut single_by_token);
        for (i, exact) in exact.iter().enumerate() {
            let unit = f64::from(f32::EPSILON) / 2.0;
            for got in [single[i], single_by_token[i]] {
                let error = (f64::from(got) - exact).abs();
                assert!(error <= bound(i, unit), "{shape:?} {i}: {got} {exact}");
            }
            let error = (double[i] - exact).abs();
            assert!(error <= bound(i, f64::EPSILON / 2.0), "{shape:?} {i}: {error:e}");
        }
    }
}

/// By hand: one channel, k v = 2, 3, 5, decays 1/2 after the first token and 1/4 after the second.
#[test]
fn three_tokens_by_hand() {
    let shape = Shape { batch: 1, sequence: 3, heads: 1, key: 1, value: 1 };
    let qkv = [1.0_f32, 2.0, 1.0, 1.0, 1.0, 3.0, 2.0, 5.0, 1.0];
    let y = chunked(&shape, &qkv, 3, &[0.1, 0.5, 0.25]);
    assert_eq!(y, [2.0, 4.0, 2.0 * (1.0 + 5.0)]);
}

/// Sequences in parts, each with the tokens behind the last whole chunk in front: no bit is another's.
#[test]
fn parts_have_the_bits_of_the_whole() {
    let shape = Shape { batch: 2, sequence: 77, heads: 3, key: 5, value: 18 };
    let (stride, rows) = (shape.qkv_width(), 2 * 77);
    let qkv = random(rows * stride, 1.5, 80);
    let alpha = alpha(&random(rows * shape.keys(), 9.0, 81));
    let whole = chunked(&shape, &qkv, stride, &alpha);
    let mut states = vec![0.0; shape.states()];
    let mut begin = 0;
    for end in [5, 6, 15, 16, 17, 40, 64, 70, 71, 77] {
        let first = begin / 16 * 16;
        let part = Shape { sequence: end - first, ..shape };
        let of = |x: &[f64], width: usize| -> Vec<f64> {
            let sequences = x.chunks(77 * width);
            sequences.flat_map(|x| x[first * width..end * width].to_vec()).collect()
        };
        let mut y = vec![f64::NAN; 2 * (end - first) * shape.values()];
        let mut scratch = vec![f64::NAN; 2 * part.unit()];
        let (qkv, alpha) = (of(&qkv, stride), of(&alpha, shape.keys()));
        gla(&part, &qkv, stride, &alpha, &mut y, &mut states, &mut scratch);
        assert_eq!(y, of(&whole, shape.values()), "{first} to {end}");
        begin = end;
    }
}

/// The published recurrence of the gradients, token by token, as one reads it.
fn backward_by_token(case: &Case, alpha: &[f64], dy: &[f64]) -> [Vec<f64>; 2] {
    let Case { shape, stride, qkv, .. } = case;
    let Shape { batch, sequence, heads, key, value } = *shape;
    let (mut dqkv, mut dga) = (vec![0.0; qkv.len()], vec![0.0; alpha.len()]);
    let scale = 1.0 / (key as f64).sqrt();
    for (b, h) in (0..batch).flat_map(|b| (0..heads).map(move |h| (b, h))) {
        let at = |t: usize| (b * sequence + t) * stride;
        let q = |t: usize, d: usize| at(t) + h * key + d;
        let k = |t: usize, d: usize| at(t) + shape.keys() + h * key + d;
        let v = |t: usize, e: usize| at(t) + 2 * shape.keys() + h * value + e;
        let a = |t: usize, d: usize| (b * sequence + t) * shape.keys() + h * key + d;
        let o = |t: usize, e: usize| (b * sequence + t) * shape.values() + h * value + e;
        let mut states = vec![vec![0.0; key * value]];
        for t in 0..sequence {
            let mut state = states[t].clone();
            for (i, s) in state.iter_mut().enumerate() {
                let (d, e) = (i / value, i % value);
                *s = alpha[a(t, d)] * *s + qkv[k(t, d)] * qkv[v(t, e)];
            }
            states.push(state);
        }
        let mut ds = vec![0.0; key * value];
        for t in (0..sequence).rev() {
            for d in 0..key {
                for e in 0..value {
                    dqkv[q(t, d)] += scale * states[t + 1][d * value + e] * dy[o(t, e)];
                    ds[d * value + e] += scale * qkv[q(t, d)] * dy[o(t, e)];
                    dqkv[k(t, d)] += ds[d * value + e] * qkv[v(t, e)];
                    dqkv[v(t, e)] += qkv[k(t, d)] * ds[d * value + e];
                    dga[a(t, d)] += alpha[a(t, d)] * ds[d * value + e] * states[t][d * value + e];
                    ds[d * value + e] *= alpha[a(t, d)];
                }
            }
        }
    }
    [dqkv, dga]
}

#[test]
fn backward_is_the_recurrence_of_the_gradients() {
    for case in cases() {
        let alpha = alpha(&case.z);
        let dy = random(case.shape.batch * case.shape.sequence * case.shape.values(), 1.0, 9);
        let got = backward(&case.shape, &case.qkv, case.stride, &alpha, &dy);
        for (got, expected) in got.iter().zip(backward_by_token(&case, &alpha, &dy)) {
            let size = expected.iter().fold(1e-300_f64, |m, x| m.max(x.abs()));
            for (i, (got, expected)) in got.iter().zip(&expected).enumerate() {
                let error = (got - expected).abs() / size;
                assert!(error < 1e-13, "{:?} {i}: {got} {expected}", case.shape);
            }
        }
    }
}

/// Every element of q, k, v and z by central differences through decay, attention and output gate.
#[test]
fn backward_is_the_gradient() {
    for case in cases().into_iter().take(2) {
        let Case { shape, stride, mut qkv, z } = case;
        // Closed gates have no slope that differences could see.
        let mut z: Vec<f64> = z.iter().map(|z| z.clamp(-20.0, 6.0)).collect();
        let (n, wide) = (shape.batch * shape.sequence, shape.values() + 1);
        let gate = random(n * wide, 1.5, 70);
        let dy = random(n * shape.values(), 1.0, 71);
        let run = |qkv: &[f64], z: &[f64], gate: &[f64]| {
            let x = chunked(&shape, qkv, stride, &alpha(z));
            let mut y = vec![f64::NAN; x.len()];
            swish_gate(&x, View::new(gate, n, wide).cols_range(1..wide), &mut y);
            (x, y)
        };
        let loss = |qkv: &[f64], z: &[f64], gate: &[f64]| {
            let (_, y) = run(qkv, z, gate);
            y.iter().zip(&dy).map(|(y, dy)| y * dy).sum::<f64>()
        };
        let (x, _) = run(&qkv, &z, &gate);
        let (mut d, mut d_gate) = (dy.clone(), vec![0.0; gate.len()]);
        let gates = View::new(&gate, n, wide).cols_range(1..wide);
        let d_gates = ViewMut::with_row_stride(&mut d_gate[1..], n, wide - 1, wide).unwrap();
        swish_gate_backward(&x, gates, &mut d, d_gates);
        let [dqkv, mut dz] = backward(&shape, &qkv, stride, &alpha(&z), &d);
        decay_backward(&z, 16.0, f64::NEG_INFINITY, &mut dz);
        let check = |name: &str, found: f64, gradient: f64| {
            assert!((found - gradient).abs() < 2e-8, "{shape:?} {name}: {found} {gradient}");
        };
        let h = 1e-5;
        for i in 0..qkv.len() {
            let at = qkv[i];
            let [above, below] = [h, -h].map(|h| {
                qkv[i] = at + h;
                loss(&qkv, &z, &gate)
            });
            qkv[i] = at;
            check("q, k, v", (above - below) / (2.0 * h), dqkv[i]);
        }
        for i in 0..z.len() {
            let at = z[i];
            let [above, below] = [h, -h].map(|h| {
                z[i] = at + h;
                loss(&qkv, &z, &gate)
            });
            z[i] = at;
            check("z", (above - below) / (2.0 * h), dz[i]);
        }
        let mut gate = gate;
        for i in 0..gate.len() {
            let at = gate[i];
            let [above, below] = [h, -h].map(|h| {
                gate[i] = at + h;
                loss(&qkv, &z, &gate)
            });
            gate[i] = at;
            check("g", (above - below) / (2.0 * h), d_gate[i]);
        }
    }
}

/// Half the decays are 0, as f32 has them from z below -1.4e4 and as an exponent would not divide
/// by: everything stays finite, and what came before is forgotten.
#[test]
fn closed_gates_forget_and_do_not_overflow() {
    let shape = Shape { batch: 1, sequence: 40, heads: 1, key: 2, value: 3 };
    let qkv: Vec<f32> = random(40 * 7, 1.5, 3).iter().map(|x| *x as f32).collect();
    let z: Vec<f32> = (0..80).map(|i| if i % 4 < 2 { -1e30 } else { 5.0 }).collect();
    let mut alpha = vec![0.0; 80];
    decay(&z, 16.0, f64::NEG_INFINITY, &mut alpha);
    assert_eq!(alpha[..2], [0.0; 2]);
    let y = chunked(&shape, &qkv, 7, &alpha);
    let mut by_token = y.clone();
    recurrence(&shape, &qkv, 7, &alpha, &mut by_token);
    for (t, (y, expected)) in y.chunks(3).zip(by_token.chunks(3)).enumerate() {
        for (y, expected) in y.iter().zip(expected) {
            assert!((y - expected).abs() < 1e-5, "{t}: {y} {expected}");
        }
    }
    let grads = backward(&shape, &qkv, 7, &alpha, &[1.0; 120]);
    assert!(grads.iter().flatten().all(|d| d.is_finite()));
}

/// At z = 0 the decay is 2^(-1/16) = 0.957603; it is 5.5e-4 at z = -120 and above 0.999 from
/// z = 4.13 on; a smallest logarithm stops it and its gradient.
#[test]
fn decays_by_hand() {
    let z = [0.0, -120.0, 4.13, 4.12, 700.0];
    let mut found = [0.0; 5];
    decay(&z, 16.0, f64::NEG_INFINITY, &mut found);
    assert!((found[0] - 0.957_603_280_698_573_7).abs() < 1e-15);
    assert!((found[1] - 5.530_843_701_478_336e-4).abs() < 1e-18);
    assert!(found[2] > 0.999 && found[3] < 0.999 && found[4] == 1.0);
    decay(&z[..2], 16.0, -5.0, &mut found[..2]);
    assert!((found[1] - 6.737_946_999_085_467e-3).abs() < 1e-17 && found[0] > 0.95);
    let mut d = [16.0, 16.0];
    decay_backward(&z[..2], 16.0, -5.0, &mut d);
    assert_eq!(d, [0.5, 0.0]);
}

/// Infinities and NaNs at later positions do not reach earlier outputs; no bit changes.
#[test]
fn later_positions_contribute_nothing() {
    let Case { shape, stride, qkv, z } = cases().remove(1);
    let mut decays = alpha(&z);
    let expected = chunked(&shape, &qkv, stride, &decays);
    for cut in [1, 15, 16, 20] {
        let mut changed = qkv.clone();
        changed[cut * stride..].fill(f64::NAN);
        decays[cut * shape.keys()..].fill(f64::INFINITY);
        let got = chunked(&shape, &changed, stride, &decays);
        decays = alpha(&z);
        assert_eq!(got[..cut * shape.values()], expected[..cut * shape.values()], "{cut}");
    }
}

#[test]
fn threads_and_levels_change_no_bit() {
    let shape = Shape { batch: 3, sequence: 45, heads: 2, key: 19, value: 33 };
    let n = shape.batch * shape.sequence;
    let single =
        |len, stream| -> Vec<f32> { random(len, 1.0, stream).iter().map(|x| *x as f32).collect() };
    let (qkv, dy) = (single(n * shape.qkv_width(), 1), single(n * shape.values(), 2));
    let mut alpha = vec![0.0; n * shape.keys()];
    decay(&single(alpha.len(), 3), 4.0, f64::NEG_INFINITY, &mut alpha);
    let run = || {
        let y = chunked(&shape, &qkv, shape.qkv_width(), &alpha);
        let [dqkv, dga] = backward(&shape, &qkv, shape.qkv_width(), &alpha, &dy);
        [y, dqkv, dga].concat().iter().map(|x| x.to_bits()).collect::<Vec<_>>()
    };
    let expected = exmy::parallel::with_threads(1, run).unwrap();
    assert!(exmy::parallel::with_threads(3, run).unwrap() == expected);
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        assert!(with_level(level, run) == expected, "{level}");
    }
}
