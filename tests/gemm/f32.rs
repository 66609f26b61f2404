//! The f32 product against its definition, on every layout, level and number of threads.

use exmy::gemm::f32::{K_BLOCK, Output, matmul, matmul_reference};
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};

fn random(len: usize, stream: u64) -> Vec<f32> {
    let philox = Philox::new(3, Stream::new("gemm test").with(stream));
    (0..len as u64).map(|i| philox.uniform(i) as f32 - 0.5).collect()
}

#[test]
fn reference_by_hand() {
    let (a, b) = ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]);
    let mut c = [1.0; 4];
    let (a, b) = (View::new(&a, 2, 2), View::new(&b, 2, 2));
    matmul_reference(a, b.t(), ViewMut::new(&mut c, 2, 2), Output::Overwrite);
    assert_eq!(c, [17.0, 23.0, 39.0, 53.0]);
    matmul_reference(a, b, ViewMut::new(&mut c, 2, 2), Output::Accumulate);
    assert_eq!(c, [36.0, 45.0, 82.0, 103.0]);
}

/// 2^24 + 1 is lost in f32 unless the multiply-add is fused; block sums are formed apart.
#[test]
fn order_is_fused_chains_in_blocks() {
    let mut a = vec![0.0; K_BLOCK + 1];
    (a[0], a[1], a[K_BLOCK]) = (1.0, 16_777_216.0, 1.0);
    let b = vec![1.0; a.len()];
    let mut c = [0.0];
    let (a, b) = (View::new(&a, 1, K_BLOCK + 1), View::new(&b, K_BLOCK + 1, 1));
    matmul_reference(a, b, ViewMut::new(&mut c, 1, 1), Output::Overwrite);
    assert_eq!(c, [16_777_216.0]);
    let (x, y) = (1.0 + f32::EPSILON, 1.0 - f32::EPSILON);
    let mut c = [-1.0];
    // Exact: x y = 1 - 2^-46; unfused it would round to 1 and the sum to 0.
    matmul_reference(
        View::new(&[1.0, x], 1, 2),
        View::new(&[-1.0, y], 2, 1),
        ViewMut::new(&mut c, 1, 1),
        Output::Overwrite,
    );
    assert_eq!(c, [-1.0 / 70_368_744_177_664.0]);
}

#[test]
fn fast_equals_reference_on_any_layout() {
    use exmy::simd::{Level, with_level};
    let shapes =
        [(1, 1, 0), (3, 5, 7), (70, 33, 300), (129, 64, 513), (13, 1050, 9), (300, 49, 256)];
    for (rows, cols, depth) in shapes {
        let (a, b) = (random(rows * depth, 1), random(depth * cols, 2));
        let a = [View::new(&a, rows, depth), View::new(&a, depth, rows).t()];
        let b = [View::new(&b, depth, cols), View::new(&b, cols, depth).t()];
        for (a, b) in [(a[0], b[0]), (a[0], b[1]), (a[1], b[0]), (a[1], b[1])] {
            for output in [Output::Overwrite, Output::Accumulate] {
                let before = random(rows * cols, 3);
                let mut expected = before.clone();
                matmul_reference(a, b, ViewMut::new(&mut expected, rows, cols), output);
                for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
                    let mut got = before.clone();
                    let c = ViewMut::new(&mut got, rows, cols);
                    with_level(level, || matmul(a, b, c, output));
                    assert_eq!(expected, got, "{rows} x {cols} x {depth}, {level}");
                }
            }
        }
    }
}

/// The sum of no products is +0, so that -0 becomes +0 where it is added.
#[test]
fn a_sum_of_nothing_is_positive_zero() {
    use exmy::simd::{Level, with_level};
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        for (output, before) in [(Output::Accumulate, -0.0), (Output::Overwrite, 7.0_f32)] {
            let mut c = [before; 15];
            let (a, b) = (View::new(&[], 3, 0), View::new(&[], 0, 5));
            with_level(level, || matmul(a, b, ViewMut::new(&mut c, 3, 5), output));
            assert!(c.iter().all(|x| x.to_bits() == 0), "{level}, {output:?}: {c:?}");
        }
    }
}

/// Square, long, wide and small outputs, on as many threads as make pieces of any shape; the last is
/// so deep that it is not packed at once.
#[test]
fn threads_change_nothing() {
    let shapes = [(192, 130, 520), (400, 20, 64), (9, 700, 90), (64, 64, 64), (50, 190, 7400)];
    for (rows, cols, depth) in shapes {
        let (a, b) = (random(rows * depth, 1), random(depth * cols, 2));
        let (a, b) = (View::new(&a, depth, rows).t(), View::new(&b, depth, cols));
        let mut expected = random(rows * cols, 3);
        let mut got = [2, 3, 16].map(|threads| (threads, expected.clone()));
        let c = ViewMut::new(&mut expected, rows, cols);
        matmul_reference(a, b, c, Output::Accumulate);
        for (threads, got) in &mut got {
            let c = ViewMut::new(got, rows, cols);
            exmy::parallel::with_threads(*threads, || matmul(a, b, c, Output::Accumulate)).unwrap();
            assert_eq!(&expected, got, "{rows} x {cols} x {depth}, {threads} threads");
        }
    }
}

/// Rows of an output that are not adjacent: what lies between is not written.
#[test]
fn gaps_between_rows_stay() {
    let (a, b) = (random(9 * 4, 1), random(4 * 17, 2));
    let (a, b) = (View::new(&a, 9, 4), View::new(&b, 4, 17));
    let (mut expected, mut got) = (vec![7.0; 9 * 20], vec![7.0; 9 * 20]);
    for (data, product) in [(&mut expected, true), (&mut got, false)] {
        let c = ViewMut::with_row_stride(data, 9, 17, 20).unwrap();
        match product {
            true => matmul_reference(a, b, c, Output::Overwrite),
            false => matmul(a, b, c, Output::Overwrite),
        }
    }
    assert_eq!(expected, got);
    assert_eq!(got[17..20], [7.0; 3]);
}

#[test]
#[should_panic(expected = "(2 x 3) times (2 x 2)")]
fn shapes_are_named_when_they_disagree() {
    let (a, b, mut c) = ([0.0; 6], [0.0; 4], [0.0; 4]);
    let c = ViewMut::new(&mut c, 2, 2);
    matmul(View::new(&a, 2, 3), View::new(&b, 2, 2), c, Output::Overwrite);
}
