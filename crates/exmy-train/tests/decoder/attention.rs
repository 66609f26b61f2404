//! Attention against its definition and central differences in f64, and what later positions leave
//! alone; the rotation of positions.

use super::{Scaling, difference, dot, random};
use exmy_train::nn::attention::{self, Shape};
use exmy_train::nn::rope::{frequencies, rotate, tables};
use exmy_train::nn::stopwatch::Direction;

const SHAPES: [Shape; 5] = [
    Shape { batch: 2, sequence: 5, heads: 2, kv_heads: 2, head_dim: 3 },
    Shape { batch: 1, sequence: 19, heads: 4, kv_heads: 2, head_dim: 4 },
    Shape { batch: 2, sequence: 6, heads: 3, kv_heads: 1, head_dim: 18 },
    Shape { batch: 1, sequence: 33, heads: 1, kv_heads: 1, head_dim: 16 },
    Shape { batch: 3, sequence: 2, heads: 2, kv_heads: 1, head_dim: 2 },
];

struct Attended {
    y: Vec<f64>,
    probabilities: Vec<f64>,
    scratch: Vec<f64>,
}

/// The buffers start as NaN, so that reading what was never written shows.
fn attend(shape: &Shape, qkv: &[f64]) -> Attended {
    let n = shape.batch * shape.sequence;
    let mut y = vec![f64::NAN; n * shape.width()];
    let mut probabilities = vec![f64::NAN; shape.probabilities()];
    let mut scratch = vec![f64::NAN; shape.scratch()];
    attention::attention(shape, qkv, &mut y, &mut probabilities, &mut scratch);
    Attended { y, probabilities, scratch }
}

/// The definition, with nothing shared with the code under test.
fn attention_by_definition(shape: &Shape, qkv: &[f64]) -> Vec<f64> {
    let Shape { batch, sequence, heads, kv_heads, head_dim: hd } = *shape;
    let width = (heads + 2 * kv_heads) * hd;
    let mut y = Vec::new();
    for b in 0..batch {
        for i in 0..sequence {
            for h in 0..heads {
                let kv = h / (heads / kv_heads);
                let at = |position: usize, head: usize, d: usize| {
                    qkv[(b * sequence + position) * width + head * hd + d]
                };
                let score = |j: usize| -> f64 {
                    let sum: f64 = (0..hd).map(|d| at(i, h, d) * at(j, heads + kv, d)).sum();
                    (sum / (hd as f64).sqrt()).exp()
                };
                let total: f64 = (0..=i).map(score).sum();
                for d in 0..hd {
                    let v = |j: usize| at(j, heads + kv_heads + kv, d);
                    y.push((0..=i).map(|j| score(j) / total * v(j)).sum());
                }
            }
        }
    }
    y
}

#[test]
fn attention_is_its_definition() {
    for (s, shape) in SHAPES.iter().enumerate() {
        let qkv = random(shape.batch * shape.sequence * shape.qkv_width(), 1.5, s as u64);
        let got = attend(shape, &qkv);
        for (got, expected) in got.y.iter().zip(attention_by_definition(shape, &qkv)) {
            assert!((got - expected).abs() < 1e-13, "{shape:?}: {got} {expected}");
        }
        // Rows sum to 1 and hold exact zeros (not -0) after their own position.
        for (r, row) in got.probabilities.chunks(shape.row()).enumerate() {
            let seen = r % shape.sequence + 1;
            assert!((row[..seen].iter().sum::<f64>() - 1.0).abs() < 1e-14);
            assert!(row[seen..].iter().all(|p| p.to_bits() == 0));
        }
    }
}

#[test]
fn attention_backward_is_the_gradient() {
    for (s, shape) in SHAPES.iter().enumerate() {
        let mut qkv = random(shape.batch * shape.sequence * shape.qkv_width(), 1.5, s as u64);
        let dy = random(shape.batch * shape.sequence * shape.width(), 1.0, 100 + s as u64);
        let Attended { probabilities, mut scratch, .. } = attend(shape, &qkv);
        let mut dqkv = vec![f64::NAN; qkv.len()];
        scratch.fill(f64::NAN);
        attention::attention_backward(shape, &qkv, &probabilities, &dy, &mut dqkv, &mut scratch);
        let error = difference(&mut qkv, &dqkv, |qkv| dot(&attend(shape, qkv).y, &dy));
        assert!(error < 1e-8, "{shape:?}: {error:e}");
    }
}

/// Infinities and NaNs at later positions do not reach earlier outputs; no bit changes.
#[test]
fn later_positions_contribute_nothing() {
    for (s, shape) in SHAPES.iter().enumerate() {
        let (width, out) = (shape.qkv_width(), shape.width());
        let clean = random(shape.batch * shape.sequence * width, 1.5, s as u64);
        let expected = attend(shape, &clean).y;
        for cut in 1..shape.sequence {
            let mut qkv = clean.clone();
            for sequence in qkv.chunks_mut(shape.sequence * width) {
                for (i, value) in sequence[cut * width..].iter_mut().enumerate() {
                    *value = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY][i % 3];
                }
            }
            let got = attend(shape, &qkv).y;
            let sequences = got.chunks(shape.sequence * out);
            for (got, expected) in sequences.zip(expected.chunks(shape.sequence * out)) {
                assert_eq!(got[..cut * out], expected[..cut * out], "{shape:?} cut at {cut}");
            }
        }
    }
}

/// Values that overflow at later positions leave the gradients of earlier queries alone.
#[test]
fn later_positions_contribute_nothing_backward() {
    let shape = SHAPES[1];
    let (width, hd) = (shape.qkv_width(), shape.head_dim);
    let clean = random(shape.sequence * width, 1.5, 1);
    let dy = random(shape.sequence * shape.width(), 1.0, 2);
    let backward = |qkv: &[f64]| {
        let Attended { probabilities, mut scratch, .. } = attend(&shape, qkv);
        let mut dqkv = vec![f64::NAN; qkv.len()];
        attention::attention_backward(&shape, qkv, &probabilities, &dy, &mut dqkv, &mut scratch);
        dqkv
    };
    let expected = backward(&clean);
    let cut = 6;
    let mut qkv = clean.clone();
    for row in qkv.chunks_mut(width).skip(cut) {
        row[(shape.heads + shape.kv_heads) * hd..].fill(f64::INFINITY);
    }
    let got = backward(&qkv);
    for (got, expected) in got.chunks(width).zip(expected.chunks(width)).take(cut) {
        assert_eq!(got[..shape.width()], expected[..shape.width()]);
    }
}

#[test]
fn rope_backward_is_the_gradient() {
    let (sequence, width, heads, hd) = (5, 20, 3, 6);
    let [cos, sin] = tables::<f64>(7, &frequencies(hd, 100.0, Scaling::None));
    let sizes = [width, heads, hd / 2];
    let mut x = random(2 * sequence * width, 1.0, 0);
    let dy = random(x.len(), 1.0, 1);
    let mut dx = dy.clone();
    rotate(&mut dx, sizes, sequence, [&cos, &sin], Direction::Backward);
    let error = difference(&mut x, &dx, |x| {
        let mut y = x.to_vec();
        rotate(&mut y, sizes, sequence, [&cos, &sin], Direction::Forward);
        dot(&y, &dy)
    });
    assert!(error < 1e-9, "{error:e}");
}
