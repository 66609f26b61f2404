//! Statistics against a plain computation, and tensors transposed, cut up and put together.

use super::*;
use exmy::block::{PartsError, Statistics};

/// The figures by their definitions, one element after the other.
fn plain(x: &[f32], y: &[f32], limit: impl Fn(usize) -> f64) -> Statistics {
    let mut all = Statistics::default();
    for (i, (x, y)) in x.iter().zip(y).enumerate() {
        let (x, y) = (f64::from(*x), f64::from(*y));
        all.count += 1;
        if !x.is_finite() {
            all.non_finite += 1;
        }
        if !x.is_finite() || !y.is_finite() {
            all.lost += 1;
            continue;
        }
        all.flushed += u64::from(x != 0.0 && y == 0.0);
        all.saturated += u64::from(x.abs() > limit(i) && y != 0.0);
        all.amax = all.amax.max(x.abs() as f32);
        all.max_error = all.max_error.max((x - y).abs());
        all.signal += x * x;
        all.noise += (x - y) * (x - y);
    }
    all
}

/// `2^exponent`.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Counts and the largest magnitude are equal, sums and the largest difference up to roundings of
/// binary32.
fn close(found: &Statistics, plain: &Statistics, case: &str) {
    let exact = |s: &Statistics| {
        let mut s = *s;
        (s.signal, s.noise, s.max_error) = (0.0, 0.0, 0.0);
        s
    };
    assert_eq!(exact(found), exact(plain), "{case}");
    let sums = [(found.signal, plain.signal), (found.noise, plain.noise)];
    for (found, plain) in sums.into_iter().chain([(found.max_error, plain.max_error)]) {
        assert!((found - plain).abs() <= power(-19) * plain, "{case}: {found} {plain}");
    }
}

/// Lanes by halves.
fn halved(mut lanes: [f64; 16]) -> f64 {
    for half in [8, 4, 2, 1] {
        for l in 0..half {
            lanes[l] += lanes[l + half];
        }
    }
    lanes[0]
}

/// The sums of squares of a piece and of the differences from its images: by sixteen lanes, in binary32
/// where no lane has a number out of range.
fn of_piece(x: &[f32], y: &[f32]) -> [f64; 2] {
    let range = power(-60) as f32..=power(60) as f32;
    let (mut short, mut long) = ([[0.0_f32; 16]; 2], [[0.0_f64; 16]; 2]);
    let (mut most, mut strange) = ([[0.0_f32; 16]; 2], false);
    for (j, (x, y)) in x.iter().zip(y).enumerate() {
        strange |= !x.is_finite() || !y.is_finite();
        for (which, of) in [*x, *x - *y].into_iter().enumerate() {
            short[which][j % 16] += of * of;
            most[which][j % 16] = most[which][j % 16].max(of.abs());
        }
        if x.is_finite() && y.is_finite() {
            let (x, y) = (f64::from(*x), f64::from(*y));
            long[0][j % 16] += x * x;
            long[1][j % 16] += (x - y) * (x - y);
        }
    }
    strange |= most.as_flattened().iter().any(|most| *most != 0.0 && !range.contains(most));
    if strange { long.map(halved) } else { short.map(|lanes| halved(lanes.map(f64::from))) }
}

/// Sums by the written order: pieces of 256 columns from left to right, rows of a band of 32 from top to
/// bottom, then the bands.
fn ordered(x: &[f32], y: &[f32], cols: usize) -> [f64; 2] {
    let mut all = [0.0; 2];
    for (x, y) in x.chunks(32 * cols).zip(y.chunks(32 * cols)) {
        let mut band = [0.0; 2];
        for (x, y) in x.chunks(cols).zip(y.chunks(cols)) {
            let mut row = [0.0; 2];
            for (x, y) in x.chunks(256).zip(y.chunks(256)) {
                let piece = of_piece(x, y);
                (0..2).for_each(|which| row[which] += piece[which]);
            }
            (0..2).for_each(|which| band[which] += row[which]);
        }
        (0..2).for_each(|which| all[which] += band[which]);
    }
    all
}

/// Long rows, short ones, and ones that are no whole tiles.
#[test]
fn sums_have_one_order() {
    for (rows, cols) in [(70, 1100), (3, 5000), (500, 7), (65, 256), (1, 1)] {
        let data = &matrices(rows * cols)[1].1;
        let x = View::new(data, rows, cols);
        let check = |found: Statistics, y: &[f32], name: &str| {
            let sums = ordered(data, y, cols).map(f64::to_bits);
            assert_eq!([found.signal, found.noise].map(f64::to_bits), sums, "{name} {rows} {cols}");
        };
        for text in ["mxfp8-e4m3", "nvfp4"] {
            let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
            let format: BlockFormat = text.parse().unwrap();
            let tensor = BlockTensor::quantize(x, Axis::Cols, format, (rounding, overflow, RANDOM));
            check(tensor.statistics(x), &tensor.dequantize(), text);
        }
        let cast = Converter::new(Format::E4M3FN, Rules::SATURATING);
        let mut y = vec![0.0; data.len()];
        cast.fake_quantize_into(data, &mut y);
        check(Statistics::of_cast(x, &cast), &y, "cast");
        if rows == 1 || rows == 3 {
            // A lone row of binary64 is summed in binary64.
            let row: Vec<f64> = data[..cols].iter().map(|x| f64::from(*x)).collect();
            let single = Statistics::of_cast(View::new(&data[..cols], 1, cols), &cast);
            close(&Statistics::of_doubles(&row, &cast), &single, "binary64");
        }
    }
}

#[test]
fn statistics_are_those_of_the_definition() {
    let (rows, cols) = (70, 1100);
    for (name, data) in matrices(rows * cols) {
        let x = View::new(&data, rows, cols);
        for text in ["mxfp8-e4m3", "mxfp4", "nvfp4", "nvfp4-16x16", "e4m3/tensor:f32"] {
            let format: BlockFormat = text.parse().unwrap();
            let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
            let tensor = BlockTensor::quantize(x, Axis::Cols, format, (rounding, overflow, RANDOM));
            let y = tensor.dequantize();
            let largest = f64::from(format.element.max().to_f32());
            let limit = |i: usize| {
                let scale = f64::from(tensor.scale(i / cols, i % cols).to_f32());
                largest * scale * f64::from(tensor.tensor_scale().unwrap_or(1.0))
            };
            let found = tensor.statistics(x);
            close(&found, &plain(&data, &y, limit), &format!("{name} {text}"));
            let blocks = tensor.block_statistics(x);
            assert_eq!(blocks.len(), tensor.scales().len());
            let all = blocks.iter().fold(Statistics::default(), |all, block| all.and(block));
            close(&all, &found, &format!("{name} {text}, block by block"));
        }
        let cast = Converter::new(Format::E4M3FN, Rules::SATURATING);
        let mut y = vec![0.0; data.len()];
        cast.fake_quantize_into(&data, &mut y);
        close(&Statistics::of_cast(x, &cast), &plain(&data, &y, |_| 448.0), name);
        let transposed = Statistics::of_cast(x.t(), &cast);
        assert_eq!(
            (transposed.count, transposed.max_error),
            ((rows * cols) as u64, transposed.max_error)
        );
    }
}

/// By hand: squares beyond binary32, and below it, are summed in binary64, whatever stands next to them.
#[test]
fn sums_neither_overflow_nor_vanish() {
    let cast = Converter::new(Format::BF16, Rules::DEFAULT);
    for (exponent, other) in [
        (-100, 0.0),
        (-61, 0.0),
        (-60, 0.0),
        (-40, 0.0),
        (0, 1.0),
        (60, 0.0),
        (61, 1.0),
        (120, 1.0),
    ] {
        let (unit, mut data) = (power(exponent), [0.0_f32; 300]);
        // 1 + 2^-9 rounds to 1.
        data[..2].fill((unit * (1.0 + power(-9))) as f32);
        data[256] = other;
        let found = Statistics::of_cast(View::new(&data, 1, 300), &cast);
        let square = |x: f64| 2.0 * (unit * x) * (unit * x);
        let error = unit * power(-9);
        assert_eq!((found.amax, found.max_error), (data[0], error), "{exponent}");
        assert_eq!(found.noise, 2.0 * error * error, "{exponent}");
        let signal = square(1.0 + power(-9)) + f64::from(other);
        assert!((found.signal / signal - 1.0).abs() < 1e-12, "{exponent}");
    }
}

#[test]
fn statistics_do_not_show_threads() {
    let (rows, cols) = (90, 1100);
    let data = &matrices(rows * cols)[1].1;
    let x = View::new(data, rows, cols);
    let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
    let found = || {
        let format = BlockFormat::MXFP4;
        BlockTensor::quantize(x, Axis::Rows, format, (rounding, overflow, RANDOM)).statistics(x)
    };
    let with = |threads| exmy::parallel::with_threads(threads, found).unwrap();
    assert_eq!(with(1), with(3));
}

/// By hand: MXFP4, scale 1, so that 6 is the largest and 0.25 is a tie that goes to 0.
#[test]
fn statistics_by_hand() {
    let mut data = [0.0_f32; 32];
    (data[0], data[1], data[2], data[3], data[4]) = (6.5, -6.0, 0.25, 0.75, -2.5);
    let x = View::new(&data, 1, 32);
    let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
    let tensor =
        BlockTensor::quantize(x, Axis::Cols, BlockFormat::MXFP4, (rounding, overflow, RANDOM));
    assert_eq!(tensor.dequantize()[..5], [6.0, -6.0, 0.0, 1.0, -2.0]);
    let found = tensor.statistics(x);
    assert_eq!((found.count, found.saturated, found.flushed, found.lost), (32, 1, 1, 0));
    assert_eq!((found.amax, found.max_error), (6.5, 0.5));
    assert_eq!(found.signal, 42.25 + 36.0 + 0.0625 + 0.5625 + 6.25);
    assert_eq!(found.noise, 0.25 + 0.0625 + 0.0625 + 0.25);
    assert_eq!((found.share_saturated(), found.share_flushed()), (1.0 / 32.0, 1.0 / 32.0));
    assert!((found.sqnr_db() - 21.34).abs() < 0.01, "{}", found.sqnr_db());
}

/// By hand: INT8 counts 64ths from -2 to 127/64 = 1.984375. What clamps symmetrically has no -2.
#[test]
fn saturation_in_twos_complement() {
    let data = [-2.0_f32, -1.99, -1.984375, 1.984375, 1.99, -2.01, 2.5, -3.0, 0.001, f32::INFINITY];
    let x = View::new(&data, 2, 5);
    for (overflow, beyond) in [
        (Overflow::None, 4),      // 1.99, -2.01, 2.5, -3
        (Overflow::Infinity, 4),  // the same: INT8 has no infinity
        (Overflow::Finite, 6),    // and -2, -1.99
        (Overflow::Propagate, 6), // and -2, -1.99
    ] {
        let cast = Converter::new(Format::INT8, Rules::DEFAULT.with_overflow(overflow));
        let found = Statistics::of_cast(x, &cast);
        assert_eq!((found.saturated, found.flushed), (beyond, 1), "{overflow:?}");
        assert_eq!((found.count, found.non_finite), (10, 1), "{overflow:?}");
    }
    // The largest magnitude of a block decides its scale: 1 for all below 2.
    let mut data = [0.0_f32; 64];
    data[..5].copy_from_slice(&[-1.9999, 1.999, -1.99, 1.984375, -1.984375]);
    (data[32], data[33]) = (-3.9999, 1.0);
    let x = View::new(&data, 1, 64);
    let quantize = |overflow| {
        let format = BlockFormat::MXINT8;
        BlockTensor::quantize(x, Axis::Cols, format, (Rounding::TiesToEven, overflow, RANDOM))
    };
    // -1.9999 becomes -2, which is no saturation, and -3.9999 becomes -4.
    for (overflow, low, values, saturated) in [
        (Overflow::None, -4.0, [-2.0, 1.984375, -1.984375, 1.984375, -1.984375], [2, 0]),
        (Overflow::Finite, -3.96875, [-1.984375, 1.984375, -1.984375, 1.984375, -1.984375], [3, 1]),
    ] {
        let tensor = quantize(overflow);
        let found = tensor.dequantize();
        assert_eq!((&found[..5], found[32]), (&values[..], low), "{overflow:?}");
        assert_eq!(tensor.statistics(x).saturated, saturated[0] + saturated[1], "{overflow:?}");
        let blocks = tensor.block_statistics(x);
        assert_eq!(
            blocks.iter().map(|b| b.saturated).collect::<Vec<_>>(),
            saturated,
            "{overflow:?}"
        );
    }
    // The code 0x80 is -2, at the scale 2^0.
    let parts = (vec![0x80, 0x7F, 0x81], vec![127]);
    let tensor =
        BlockTensor::from_parts(BlockFormat::MXINT8, Axis::Cols, (1, 3), parts.0, parts.1, None);
    let found = tensor.unwrap().statistics(View::new(&[-2.0, 1.984375, -1.984375], 1, 3));
    assert_eq!((found.saturated, found.noise), (0, 0.0));
}

/// Each element of a stochastic cast has the random word of its place in the whole matrix.
#[test]
fn statistics_of_stochastic_casts() {
    let (rows, cols) = (70, 1100);
    let data = &matrices(rows * cols)[1].1;
    let rounding = Rounding::Stochastic { bits: 8, variant: Default::default() };
    for start in [0, 12_345] {
        let cast = Cast::new(Format::E4M3FN).with_rounding(rounding);
        let cast = Converter::from(cast).with_random(RANDOM).starting_at(start);
        let check = |x: View<'_, f32>, name: &str| {
            let (rows, cols) = (x.rows(), x.cols());
            let x_all: Vec<f32> = (0..rows * cols).map(|i| x.at(i / cols, i % cols)).collect();
            let mut y = vec![0.0; x_all.len()];
            cast.fake_quantize_plain(&x_all, &mut y);
            let found = Statistics::of_cast(x, &cast);
            close(&found, &plain(&x_all, &y, |_| 448.0), &format!("{name} from {start}"));
            let other = cast.starting_at(start + 1);
            assert_ne!(found.noise, Statistics::of_cast(x, &other).noise, "words do not matter");
        };
        let x = View::new(data, rows, cols);
        check(x, "rows");
        check(x.t(), "columns");
        check(x.cols_range(7..700), "rows apart");
    }
}

/// A transposed tensor is the tensor of the transposed matrix; tiles serve both axes.
#[test]
fn turned_tensors() {
    let (rows, cols) = (50, 35);
    let data = &matrices(rows * cols)[1].1;
    let x = View::new(data, rows, cols);
    let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
    for format in formats() {
        let quantize =
            |x, axis| BlockTensor::quantize(x, axis, format, (rounding, overflow, RANDOM));
        let tensor = quantize(x, Axis::Cols);
        assert_eq!(tensor.t(), quantize(x.t(), Axis::Rows), "{format}");
        assert_eq!(tensor.t().t(), tensor, "{format}");
        let down = quantize(x, Axis::Rows);
        if let Ok(along) = tensor.clone().along(Axis::Rows) {
            assert_eq!(along, down, "{format}");
        } else {
            assert_ne!(tensor.block(), down.block(), "{format}");
        }
        let values = tensor.dequantize();
        assert_eq!(
            tensor.requantize(Axis::Rows, format, (rounding, overflow, RANDOM)),
            quantize(View::new(&values, rows, cols), Axis::Rows),
            "{format}"
        );
    }
}

#[test]
fn parts_make_the_tensor_again() {
    let (rows, cols) = (9, 45);
    let data = &matrices(rows * cols)[1].1;
    for format in formats() {
        let (rounding, overflow) = (Rounding::TiesToEven, Overflow::Finite);
        let x = View::new(data, rows, cols);
        let tensor = BlockTensor::quantize(x, Axis::Cols, format, (rounding, overflow, RANDOM));
        let (right, size) = (tensor.blocks().1, format.scale.storage_bits() as usize / 8);
        for (bi, bj) in [(0, 0), (0, right - 1), (tensor.blocks().0 - 1, right - 1)] {
            let code = tensor.scale_code(bi, bj);
            let at = (bi * right + bj) * size;
            let stored = &tensor.packed_scales()[at..at + size];
            assert_eq!(code.to_le_bytes()[..size], *stored, "{format}");
        }
        let width = format.element.bits();
        for i in 0..rows {
            let codes = &tensor.codes()[i * cols..(i + 1) * cols];
            let aligned = (cols * width as usize).is_multiple_of(8);
            let row = tensor.packed_row(i).map(<[u8]>::to_vec);
            assert_eq!(row, aligned.then(|| exmy::pack::pack(codes, width).unwrap()), "{format}");
        }
        let (codes, scales, tensor_scale) = tensor.clone().into_parts();
        let again = |codes, scales| {
            let shape = (rows, cols);
            BlockTensor::from_parts(format, Axis::Cols, shape, codes, scales, tensor_scale)
        };
        assert_eq!(again(codes.clone(), scales.clone()).as_ref(), Ok(&tensor));
        let short = again(codes[1..].to_vec(), scales.clone());
        assert!(matches!(short, Err(PartsError::Codes { .. })), "{format}");
        let long = again(codes, [scales, vec![0]].concat());
        assert!(matches!(long, Err(PartsError::Scales { .. })), "{format}");
    }
    let nvfp4 = |scale, tensor_scale| {
        let format = BlockFormat::NVFP4;
        BlockTensor::from_parts(format, Axis::Cols, (1, 2), vec![0x21], vec![scale], tensor_scale)
    };
    // 1.5 as E4M3 is 0x3C; the sign bit of a byte is none of UE4M3's.
    assert_eq!(nvfp4(0x3C, Some(2.0)).unwrap().dequantize(), [1.5, 3.0]);
    let error = nvfp4(0xBC, Some(2.0)).unwrap_err();
    assert_eq!(error.to_string(), "the scale of block 0 is 0xbc, more than the 7 bits of ue4m3");
    let error = nvfp4(0x3C, None).unwrap_err();
    assert_eq!(error.to_string(), "nvfp4 has a scale of the tensor, and none was given");
    for scale in [f32::NAN, -2.0, f32::INFINITY, f32::NEG_INFINITY, -0.0] {
        let error = nvfp4(0x3C, Some(scale)).unwrap_err();
        let number =
            format!("the scale of the tensor in nvfp4 is a finite number from 0 on, found {scale}");
        assert_eq!(error.to_string(), number);
    }
    assert_eq!(nvfp4(0x3C, Some(0.0)).unwrap().dequantize(), [0.0; 2]); // torchao's, of zeros
    let huge = (usize::MAX, 2);
    let parts = |shape| {
        BlockTensor::from_parts(BlockFormat::MXFP4, Axis::Cols, shape, vec![], vec![], None)
    };
    assert!(parts(huge).unwrap_err().to_string().contains("found 0"));
    assert!(parts((0, 7)).unwrap().dequantize().is_empty());
}
