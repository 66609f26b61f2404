//! The fast product: its definition bit for bit at every level, which kernel computes what, and that
//! neither threads nor the layout of operands change a bit.

#![cfg(feature = "std")]

mod counts;
mod numbers;
mod oracle;
mod quantize;
mod report;
mod rounded;

use exmy::block::{Axis, BlockFormat, NAMED};
use exmy::format::Format;
use exmy::gemm::fast::{Packed, Scaling, Side, images_plain, multiply, multiply_plain};
use exmy::gemm::{Operand, Why};
use exmy::parallel::with_threads;
use exmy::simd::{Level, with_level};
use exmy::slice::{View, ViewMut};

use numbers::{KINDS, Kind, Matrix, Random};
use oracle::expected;

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// The product by the crate at the level in force.
fn product(a: &Operand<'_>, b: &Operand<'_>) -> Vec<f32> {
    let (m, n) = (a.rows(), b.cols());
    let mut c = vec![f32::NAN; m * n];
    let out = ViewMut::new(&mut c, m, n);
    multiply(&Packed::left(a), &Packed::right(b), out, Scaling::OVERWRITE).unwrap();
    c
}

fn same(found: &[f32], expected: &[f32], name: impl Fn() -> String) {
    assert_eq!(found.len(), expected.len());
    for (i, (x, y)) in found.iter().zip(expected).enumerate() {
        assert_eq!(x.to_bits(), y.to_bits(), "{}, element {i}: {x:e} for {y:e}", name());
    }
}

/// Compares a product at all levels with the oracle; how many outputs that were.
fn agrees(a: &Matrix, b: &Matrix) -> usize {
    let (a, b) = (a.operand(), b.operand());
    let expected = expected(&a, &b);
    for level in levels() {
        let found = with_level(level, || product(&a, &b));
        same(&found, &expected, || {
            let name = |x: &Operand<'_>| match x.block_format() {
                Some(format) => format!("{format} {:?}", x.shape()),
                None => format!("{} {:?}", x.format(), x.shape()),
            };
            format!("{level}, {} times {}", name(&a), name(&b))
        });
    }
    levels().count() * expected.len()
}

fn random_products(seed: u64, outputs: usize) {
    let mut random = Random::new(seed);
    let mut done = 0;
    while done < outputs {
        let [m, n, k] = [0; 3].map(|_| 1 + random.below(70) as usize);
        // Now and then more than a panel, and more than a slab.
        let [m, n, k] = match random.below(8) {
            0 => [m + 130, n + 64, k],
            1 => [m, n, k + 500],
            _ => [m, n, k],
        };
        let [a, b] = [0; 2].map(|_| KINDS[random.below(KINDS.len() as u64) as usize]);
        // Kinds that meet: extremes with extremes and the usual with the usual would rarely do so.
        let b = if random.below(2) == 0 { a } else { b };
        let a = Matrix::random(&mut random, a, (m, k), Axis::Cols);
        let b = Matrix::random(&mut random, b, (k, n), Axis::Rows);
        done += agrees(&a, &b);
    }
}

#[test]
fn all_levels_equal_the_definition() {
    random_products(1, 4_000_000);
}

/// `cargo test --test gemm_fast -- --ignored` (about a minute).
#[test]
#[ignore = "ten million outputs"]
fn all_levels_equal_the_definition_on_ten_million_outputs() {
    random_products(2, 10_000_000 * levels().count());
}

/// Every size from 1 to 70 on each side, the others following other cycles.
#[test]
fn all_ragged_sizes() {
    let mut random = Random::new(3);
    for size in 1..=70 {
        for (m, n, k) in [(size, 71 - size, 33), (33, size, 71 - size), (71 - size, 34, size)] {
            let a = Matrix::random(&mut random, Kind::Usual, (m, k), Axis::Cols);
            let b = Matrix::random(&mut random, Kind::Usual, (k, n), Axis::Rows);
            agrees(&a, &b);
        }
    }
}

/// Every named block format, as quantized and with any codes and scales, in both layouts.
#[test]
fn all_block_formats() {
    let mut random = Random::new(4);
    for (name, format) in NAMED {
        // Rows of whole blocks of 32 are packed by other code, two blocks at a time.
        for (m, n, k) in [(5, 40, 70), (37, 3, 48), (33, 18, 96), (50, 35, 288)] {
            for wild in [false, true] {
                let mut matrix = |shape, axis| {
                    let transposed = random.below(2) == 0;
                    Matrix::blocks(&mut random, format, shape, axis, wild, transposed)
                };
                let (a, b) = (matrix((m, k), Axis::Cols), matrix((k, n), Axis::Rows));
                assert!(agrees(&a, &b) > 0, "{name}");
            }
        }
    }
}

/// Codes of binary32's exponents and any mantissa, and others, all codes of the narrow ones among them.
#[test]
fn all_codes() {
    let mut random = Random::new(5);
    let names = [0, 1, 2, 3, 4, 5, 6, 7, 10, 13, 23].map(|bits| format!("e8m{bits}"));
    let others =
        ["e4m3", "e5m2", "e2m1", "int8", "f16", "e5m7", "e4m3fnuz", "e3m4", "e8m0", "e3m20"];
    for name in names.into_iter().chain(others.map(String::from)) {
        let format: Format = name.parse().unwrap();
        let mut matrix = |shape| Matrix::codes(&mut random, format, shape);
        agrees(&matrix((35, 70)), &matrix((70, 34)));
        agrees(&matrix((257, 64)), &matrix((64, 2)));
    }
}

/// The definition as the crate states it and as the test does.
#[test]
fn the_plain_product_is_the_definition() {
    let mut random = Random::new(6);
    for kind in KINDS {
        let a = Matrix::random(&mut random, kind, (9, 70), Axis::Cols);
        let b = Matrix::random(&mut random, kind, (70, 11), Axis::Rows);
        let (a, b) = (a.operand(), b.operand());
        let mut c = vec![0.0; 99];
        multiply_plain(&a, &b, ViewMut::new(&mut c, 9, 11), Scaling::OVERWRITE);
        same(&c, &expected(&a, &b), || format!("{kind:?}"));
    }
}

/// Sums that another order would round otherwise, worked out by hand.
#[test]
fn the_order_is_the_written_one() {
    let big = 16_777_216.0; // 2^24: the next number is 2 further
    let sum = |terms: &[(usize, f32)]| {
        let mut a = vec![0.0; 70];
        terms.iter().for_each(|(k, x)| a[*k] = *x);
        let b = vec![1.0; 70];
        let (a, b) = (View::new(&a, 1, 70), View::new(&b, 70, 1));
        let all: Vec<f32> =
            levels().map(|level| with_level(level, || product(&a.into(), &b.into())[0])).collect();
        assert!(all.windows(2).all(|pair| pair[0] == pair[1]), "{all:?}");
        all[0]
    };
    // In one chain ones are lost one by one; together, in the other, they count.
    assert_eq!(sum(&[(0, big), (2, 1.0), (4, 1.0)]), big);
    assert_eq!(sum(&[(0, big), (1, 1.0), (3, 1.0)]), big + 2.0);
    // The next block is a sum of its own, and a third one too.
    assert_eq!(sum(&[(0, big), (32, 1.0), (34, 1.0)]), big + 2.0);
    assert_eq!(sum(&[(0, big), (32, 1.0), (64, 1.0)]), big);
    // Both chains of a block are added to one another first.
    assert_eq!(sum(&[(0, big), (32, 1.0), (33, 1.0)]), big + 2.0);
    // Positions ascend: 1 is lost before the big ones cancel, not after.
    assert_eq!(sum(&[(0, 1.0), (2, big), (4, -big)]), 0.0);
    assert_eq!(sum(&[(0, big), (2, -big), (4, 1.0)]), 1.0);
}

#[test]
fn factors_follow_the_written_order() {
    let format = BlockFormat::NVFP4;
    let mut random = Random::new(7);
    let a = Matrix::blocks(&mut random, format, (40, 64), Axis::Cols, false, false);
    let b = Matrix::blocks(&mut random, format, (64, 70), Axis::Rows, false, true);
    let (a, b) = (a.operand(), b.operand());
    let (s, t) = (a.tensor_scale().unwrap(), b.tensor_scale().unwrap());
    let sums = oracle::sums(&a, &b);
    let old: Vec<f32> = (0..40 * 70).map(|i| (i as f32 - 900.0) / 7.0).collect();
    for (alpha, beta) in [(1.0, 0.0), (0.3, 0.0), (1.0, 1.0), (-0.7, 0.1), (1.0, f32::NAN)] {
        let with = Scaling { alpha, beta };
        for level in levels() {
            let mut c = old.clone();
            with_level(level, || {
                let c = ViewMut::new(&mut c, 40, 70);
                multiply(&Packed::left(&a), &Packed::right(&b), c, with).unwrap();
            });
            for ((c, sum), old) in c.iter().zip(&sums).zip(&old) {
                let product = ((alpha * s) * t) * sum;
                let x = if beta == 0.0 { product } else { product + beta * old };
                let x = if x.is_nan() { f32::from_bits(0x7FC0_0000) } else { x };
                assert_eq!(c.to_bits(), x.to_bits(), "{level}, {alpha} {beta}");
            }
        }
    }
    // With beta = 0 what is there is not read.
    let mut c = vec![f32::NAN; 40 * 70];
    let out = ViewMut::new(&mut c, 40, 70);
    multiply(&Packed::left(&a), &Packed::right(&b), out, Scaling::OVERWRITE).unwrap();
    assert!(c.iter().all(|x| x.is_finite()));
}

/// Many rows, few rows and many columns, and outputs with gaps between rows.
#[test]
fn threads_change_nothing() {
    let mut random = Random::new(8);
    for (m, n, k) in [(300, 70, 64), (3, 900, 300), (65, 65, 33), (1, 1, 9)] {
        let a = Matrix::random(&mut random, Kind::Usual, (m, k), Axis::Cols);
        let b = Matrix::random(&mut random, Kind::Usual, (k, n), Axis::Rows);
        let (a, b) = (a.operand(), b.operand());
        let expected = expected(&a, &b);
        for threads in [1, 2, 3, 7] {
            let found = with_threads(threads, || {
                let (a, b) = (Packed::left(&a), Packed::right(&b));
                let mut c = vec![7.0; m * (n + 5)];
                let out = ViewMut::with_row_stride(&mut c[..m * (n + 5) - 5], m, n, n + 5).unwrap();
                multiply(&a, &b, out, Scaling::OVERWRITE).unwrap();
                let (mut twice, mut dense) = (c.clone(), Vec::new());
                let out =
                    ViewMut::with_row_stride(&mut twice[..m * (n + 5) - 5], m, n, n + 5).unwrap();
                multiply(&a, &b, out, Scaling::ACCUMULATE).unwrap();
                for (row, twice) in c.chunks(n + 5).zip(twice.chunks(n + 5)) {
                    dense.extend_from_slice(&row[..n]);
                    assert_eq!((&row[n..], &twice[n..]), (&[7.0; 5][..], &[7.0; 5][..]));
                    let sum = |(x, y): (&f32, &f32)| (x + x).to_bits() == y.to_bits() || x.is_nan();
                    assert!(row[..n].iter().zip(twice).all(sum));
                }
                dense
            });
            same(&found.unwrap(), &expected, || format!("{threads} threads, {m} {n} {k}"));
        }
    }
}

/// Memory that held a larger operand, of another kind.
#[test]
fn packed_memory_is_used_again() {
    let mut random = Random::new(9);
    for level in levels() {
        with_level(level, || {
            let none = Matrix::codes(&mut random, Format::BF16, (0, 0));
            let (mut left, mut right) =
                (Packed::left(&none.operand()), Packed::right(&none.operand()));
            for (kind, m, n, k) in [
                (Kind::Any, 100, 70, 300),
                (Kind::Usual, 33, 34, 35),
                (Kind::Single, 65, 31, 31),
                (Kind::Usual, 1, 1, 1),
            ] {
                let a = Matrix::random(&mut random, kind, (m, k), Axis::Cols);
                let b = Matrix::random(&mut random, kind, (k, n), Axis::Rows);
                left.repack(&a.operand());
                right.repack(&b.operand());
                assert_eq!((left.shape(), right.shape()), ((m, k), (k, n)));
                let mut c = vec![0.0; m * n];
                multiply(&left, &right, ViewMut::new(&mut c, m, n), Scaling::OVERWRITE).unwrap();
                same(&c, &expected(&a.operand(), &b.operand()), || format!("{level} {kind:?}"));
            }
        });
    }
}

/// An operand that was packed at one level serves at all.
#[test]
fn packed_at_another_level() {
    let mut random = Random::new(10);
    let a = Matrix::random(&mut random, Kind::Usual, (70, 300), Axis::Cols);
    let b = Matrix::random(&mut random, Kind::Specials, (300, 40), Axis::Rows);
    let expected = expected(&a.operand(), &b.operand());
    for (one, other, third) in
        levels().flat_map(|x| levels().flat_map(move |y| levels().map(move |z| (x, y, z))))
    {
        let left = with_level(one, || Packed::left(&a.operand()));
        let right = with_level(other, || Packed::right(&b.operand()));
        let mut c = vec![0.0; 70 * 40];
        let out = ViewMut::new(&mut c, 70, 40);
        with_level(third, || multiply(&left, &right, out, Scaling::OVERWRITE)).unwrap();
        same(&c, &expected, || format!("{one} {other} {third}"));
    }
}

#[test]
fn empty_products() {
    for (m, n, k) in [(0, 3, 4), (3, 0, 4), (3, 40, 0), (0, 0, 0)] {
        let (a, b) = (vec![1.0_f32; m * k], vec![1.0_f32; k * n]);
        let (a, b) = (View::new(&a, m, k), View::new(&b, k, n));
        let mut c = vec![5.0; m * n];
        let (a, b) = (Packed::left(&a.into()), Packed::right(&b.into()));
        multiply(&a, &b, ViewMut::new(&mut c, m, n), Scaling::ACCUMULATE).unwrap();
        assert!(c.iter().all(|x| *x == 5.0));
        multiply(&a, &b, ViewMut::new(&mut c, m, n), Scaling::OVERWRITE).unwrap();
        assert!(c.iter().all(|x| x.to_bits() == 0), "a sum of nothing is +0");
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let x = [1.0_f32; 12];
    let operand = |rows, cols| Operand::from(View::new(&x, rows, cols));
    let (a, b) = (Packed::left(&operand(3, 4)), Packed::right(&operand(3, 4)));
    let mut c = [7.0; 12];
    let mut try_it = |a: &Packed, b: &Packed| {
        let error = multiply(a, b, ViewMut::new(&mut c, 3, 4), Scaling::OVERWRITE).unwrap_err();
        assert_eq!(c, [7.0; 12]);
        error
    };
    let error = try_it(&a, &b);
    assert_eq!((error.a, error.b, error.why), ((3, 4), (3, 4), Why::Inner));
    let c = Packed::right(&operand(4, 3));
    let error = try_it(&a, &c).to_string();
    let expected = "(3 x 4) times (4 x 3): the product has 3 rows and 3 columns, C has 3 and 4";
    assert_eq!(error, expected);
    assert_eq!(try_it(&a, &a).why, Why::Packed(Side::Right));
    let error = try_it(&b, &b).to_string();
    assert!(
        error.ends_with("the left operand is packed for the other side: pack it by Packed::left")
    );
}

/// Blocks across the sum are refused, with both shapes and the fix; square tiles serve both ways.
#[test]
fn blocks_must_run_along_the_sum() {
    let mut random = Random::new(11);
    let mut matrix = |format, axis, transposed| {
        Matrix::blocks(&mut random, format, (64, 64), axis, false, transposed)
    };
    let mut c = [7.0; 64 * 64];
    let mut try_it = |a: &Matrix, b: &Matrix| {
        let (a, b) = (Packed::left(&a.operand()), Packed::right(&b.operand()));
        let result = multiply(&a, &b, ViewMut::new(&mut c, 64, 64), Scaling::OVERWRITE);
        let untouched = c == [7.0; 64 * 64];
        c = [7.0; 64 * 64];
        assert_eq!(result.is_err(), untouched);
        result.map_err(|error| error.to_string())
    };
    for transposed in [false, true] {
        let along = matrix(BlockFormat::MXFP8_E4M3, Axis::Cols, transposed);
        let across = matrix(BlockFormat::MXFP8_E4M3, Axis::Rows, transposed);
        let square = matrix(BlockFormat::NVFP4_16X16, Axis::Rows, transposed);
        let whole = matrix("e4m3/tensor:f32".parse().unwrap(), Axis::Rows, transposed);
        assert!(try_it(&along, &across).is_ok() && try_it(&square, &square).is_ok());
        assert!(try_it(&whole, &whole).is_ok());
        // The axis is that of the tensor as it is stored.
        let axis = |axis: Axis| match (axis, transposed) {
            (Axis::Cols, false) | (Axis::Rows, true) => "Axis::Cols",
            _ => "Axis::Rows",
        };
        let left = try_it(&across, &across).unwrap_err();
        assert!(left.starts_with(
            "(64 x 64) times (64 x 64): the left operand is mxfp8-e4m3 in blocks of 32 x 1"
        ));
        assert!(left.contains(axis(Axis::Cols)), "{left}");
        let right = try_it(&along, &along).unwrap_err();
        assert!(right.contains("the right operand is mxfp8-e4m3 in blocks of 1 x 32"), "{right}");
        assert!(right.contains(axis(Axis::Rows)), "{right}");
    }
}

/// Images of 2^128 and more are infinite, and counted; codes and scales that are infinite or NaN are
/// not.
#[test]
fn overflows_are_counted() {
    use exmy::block::BlockTensor;
    // Scales 2^127, 2^126 and NaN.
    let codes = [0x21, 0x54, 0x76, 0xEF].repeat(12);
    let scales = vec![254, 253, 255];
    let tensor =
        BlockTensor::from_parts(BlockFormat::MXFP4, Axis::Cols, (1, 96), codes, scales, None)
            .unwrap();
    let (images, count) = images_plain(&Operand::from(&tensor));
    let infinite = images.iter().filter(|x| x.is_infinite()).count() as u64;
    // Codes 1 2 4 5 6 7 F E are 0.5 1 2 3 4 6 -6 -4. Times 2^127 six of eight are infinite, times
    // 2^126 the four of magnitude 4 and 6.
    assert_eq!((count, infinite), (4 * 6 + 4 * 4, 40));
    for level in levels() {
        with_level(level, || {
            assert_eq!(Packed::left(&Operand::from(&tensor)).overflows(), 40);
            assert_eq!(Packed::right(&Operand::from(&tensor).t()).overflows(), 40);
        });
    }
}

/// -2 of INT8 is the only value of its magnitude.
#[test]
fn the_last_value_below_zero_overflows_alone() {
    use exmy::block::BlockTensor;
    let (codes, scales) = ([0x7F, 0x80].repeat(16), vec![254]);
    let tensor =
        BlockTensor::from_parts(BlockFormat::MXINT8, Axis::Cols, (1, 32), codes, scales, None)
            .unwrap();
    assert_eq!(images_plain(&Operand::from(&tensor)).1, 16);
    for level in levels() {
        with_level(level, || {
            assert_eq!(Packed::left(&Operand::from(&tensor)).overflows(), 16);
            assert_eq!(Packed::right(&Operand::from(&tensor).t()).overflows(), 16);
        });
    }
}
