use crate::train::probe::registry::{measured, operand};
use exmy::block::Axis;
use exmy::slice::View;
use exmy_train::recipe::{Observer, Rounded};
use exmy_train::train::probe::Values;
use exmy_train::train::probe::rounding::{RoundingProbe, exponents, flushed_p95};

/// E2M1 in a block of 16 with the scale that 6 needs: 0.2 becomes 0, 6.9 is beyond 6.
#[test]
fn by_hand() {
    let mut before = [0.0_f32; 16];
    before[..5].copy_from_slice(&[6.9, 0.2, -1.25, 3.0, 0.0]);
    let mut after = [0.0_f32; 16];
    after[..5].copy_from_slice(&[6.0, 0.0, -1.0, 3.0, 0.0]);
    let (before, after) = (View::new(&before, 1, 16), View::new(&after, 1, 16));
    let mut probe = RoundingProbe::default();
    probe.operand(&operand("e2m1/16:e8m0@floor", before, after));
    let values = measured(&mut probe);
    let part = |name: &str| {
        values.parts[format!("layers.1.q_proj.forward.input.{name}").as_str()].number().unwrap()
    };
    let noise = 0.9_f64 * 0.9 + 0.2 * 0.2 + 0.25 * 0.25;
    assert!((part("mse") - noise / 16.0).abs() < 1e-6);
    let signal = 6.9_f64 * 6.9 + 0.2 * 0.2 + 1.25 * 1.25 + 9.0;
    assert!((part("sqnr_db") - 10.0 * libm::log10(signal / noise)).abs() < 1e-5);
    assert_eq!((part("flushed"), part("saturated")), (1.0 / 16.0, 1.0 / 16.0));
    assert_eq!((part("scales_zero"), part("scales_top")), (0.0, 0.0));
    // One block, whose scale is 2^0.
    let scales = &values.parts["layers.1.q_proj.forward.input.scales"];
    assert_eq!((part("scales_from"), scales.list().unwrap()), (0.0, &[1.0][..]));
    assert_eq!(values.value.unwrap().to_bits(), part("sqnr_db").to_bits());
    // What a step left does not stay for the next.
    assert!(measured(&mut probe).is_empty());
    // Nothing rounds, nothing is said.
    probe.operand(&operand("f32", before, before));
    assert!(measured(&mut probe).is_empty());
    // A clipped range: 6.9 is beyond 3.5.
    let clip = Some("clip-e2m2".parse().unwrap());
    probe.operand(&Rounded { clip, ..operand("f32", before, after) });
    let part =
        |values: &Values| values.parts["layers.1.q_proj.forward.input.saturated"].number().unwrap();
    assert_eq!(part(&measured(&mut probe)), 1.0 / 16.0);
    // A format without blocks.
    probe.operand(&operand("e2m1", before, after));
    let values = measured(&mut probe);
    assert_eq!(values.parts["layers.1.q_proj.forward.input.saturated"].number(), Some(1.0 / 16.0));
}

#[test]
fn scales_by_exponent() {
    // 1.75 is of exponent 0, 0.3 of -2, 2^-9 is the least of E4M3.
    let all = [1.0, 1.75, 0.3, 0.0, 4.0, 1.0, 0.25, 0.0];
    let (from, shares) = exponents(&all).unwrap();
    assert_eq!((from, shares), (-2.0, vec![0.25, 0.0, 0.375, 0.0, 0.125]));
    assert_eq!(exponents(&[1.0 / 512.0]), Some((-9.0, vec![1.0])));
    assert_eq!(exponents(&[0.0, 0.0]), None);
}

/// Twenty runs of 16: one loses all, one loses half, the others nothing; the 95th percentile is the
/// nineteenth.
#[test]
fn the_share_that_blocks_lose() {
    let x = [1.0_f32; 320];
    let mut q = x;
    q[..16].fill(0.0);
    q[32..40].fill(0.0);
    let (rows, after) = (View::new(&x, 10, 32), View::new(&q, 10, 32));
    let seen = operand("e2m1", rows, after);
    assert_eq!(flushed_p95(&seen), 0.5);
    // The transposed matrix, reduced down its columns, is the same.
    let (before, after) = (rows.t(), after.t());
    let transposed = Rounded { axis: Axis::Rows, before, after, ..seen };
    assert_eq!(flushed_p95(&transposed), 0.5);
    let across = Rounded { axis: Axis::Rows, ..seen };
    assert_eq!(flushed_p95(&across), 0.2, "eight columns of ten lose two, eight lose one");
}
