//! From numbers to packed operands: the bits of quantizing and packing one after the other, and the
//! statistics of the tensor in between.

use exmy::block::Axis;
use exmy::gemm::Operand;
use exmy::gemm::fast::{Packed, Side};
use exmy::parallel::with_threads;
use exmy::quantizer::{Quantizer, Target};
use exmy::random::{Philox, Stream};
use exmy::simd::with_level;
use exmy::slice::{View, ViewMut};

use super::levels;
use super::numbers::Random;

const RANDOM: Philox = Philox::new(7, Stream::new("quantize"));

/// Numbers of many sizes, some of them large, subnormal, zero or no numbers at all.
fn values(len: usize, specials: bool) -> Vec<f32> {
    let mut random = Random::new(len as u64);
    (0..len)
        .map(|_| match random.below(400) {
            0 if specials => f32::NAN,
            1 if specials => f32::INFINITY,
            2 => 3e38,
            3 => f32::from_bits(random.below(1 << 23) as u32),
            4..30 => 0.0,
            size => {
                let scale = (size as f32 / 400.0) * (size as f32 / 400.0);
                (random.below(1 << 24) as f32 / 1e7 - 0.8) * (scale * scale) * (scale * scale)
            }
        })
        .collect()
}

fn check(text: &str, x: View<'_, f32>, axis: Axis) {
    let quantizer: Quantizer = text.parse().unwrap();
    // What reaches the target.
    let (rows, cols) = (x.rows(), x.cols());
    let first = Quantizer { target: Target::None, ..quantizer };
    let mut before = vec![0.0; rows * cols];
    first.image_into(x, axis, RANDOM, ViewMut::new(&mut before, rows, cols));
    let tensor = quantizer.quantize(x, axis, RANDOM).unwrap();
    let expected = tensor.statistics(View::new(&before, rows, cols));
    for side in [Side::Left, Side::Right] {
        let operand = Operand::from(&tensor);
        let operand = if axis == side.axis() { operand } else { operand.t() };
        for level in levels() {
            with_level(level, || {
                let name = format!("{text} {rows} x {cols} {axis:?} {side:?} {level}");
                let one_by_one = match side {
                    Side::Left => Packed::left(&operand),
                    Side::Right => Packed::right(&operand),
                };
                let packed = Packed::quantize(side, x, axis, &quantizer, RANDOM).unwrap();
                assert!(format!("{packed:?}") == format!("{one_by_one:?}"), "{name}");
                for threads in [1, 3] {
                    let both =
                        || Packed::quantize_with_statistics(side, x, axis, &quantizer, RANDOM);
                    let (packed, found) = with_threads(threads, both).unwrap().unwrap();
                    assert!(format!("{packed:?}") == format!("{one_by_one:?}"), "{name}");
                    // NaN of SQNR aside, all figures are numbers.
                    assert_eq!(found, expected, "{name}, {threads} threads");
                    assert_eq!(found.signal.to_bits(), expected.signal.to_bits(), "{name}");
                    assert_eq!(found.noise.to_bits(), expected.noise.to_bits(), "{name}");
                }
            });
        }
    }
}

#[test]
fn statistics_are_those_of_the_tensor() {
    for text in [
        "mxfp8-e4m3",
        "mxfp8-e5m2@sr8",
        "mxfp6-e2m3",
        "mxfp4",
        "mxint8",
        "nvfp4",
        "nvfp4-16x16",
        "nvfp4@torchao-0.18",
        "e4m3/row:f32",
        "e3m4/24:e4m3",
        "e2m1/1:e8m0",
        "e5m7/32:bf16",
        "e4m3",
        "bf16>mxfp4",
        "e5m2@sr8",
    ] {
        for (rows, cols) in [(70, 600), (3, 1100), (530, 20), (0, 5), (5, 0)] {
            let data = values(rows * cols, false);
            check(text, View::new(&data, rows, cols), Axis::Cols);
            check(text, View::new(&data, rows, cols), Axis::Rows);
        }
        // Rows of whole blocks of 32.
        for (rows, cols) in [(70, 320), (64, 576)] {
            let data = values(rows * cols, false);
            check(text, View::new(&data, rows, cols), Axis::Cols);
            check(text, View::new(&data, rows, cols).t(), Axis::Rows);
        }
        let data = values(40 * 300, true);
        check(text, View::new(&data, 300, 40).t(), Axis::Cols);
    }
    let data = values(48 * 560, false);
    for axis in [Axis::Cols, Axis::Rows] {
        check("bf16>rht16>nvfp4@sr8", View::new(&data, 48, 560), axis);
    }
}

#[test]
fn what_has_no_codes_is_an_error() {
    let x = View::new(&[1.0; 12], 3, 4);
    let error = |text: &str| {
        let quantizer: Quantizer = text.parse().unwrap();
        let one = Packed::quantize(Side::Left, x, Axis::Cols, &quantizer, RANDOM).unwrap_err();
        let other = Packed::quantize_with_statistics(Side::Left, x, Axis::Cols, &quantizer, RANDOM);
        assert_eq!(other.unwrap_err(), one);
        one.to_string()
    };
    assert!(error("none").contains("has no codes"));
    assert!(error("f32").contains("at most 16 bits"));
    assert!(error("rht16>mxfp4").contains("12 zeros"));
}
