//! Slices larger than the caches, whose memory is treated otherwise: the same results.

use exmy::minifloat::Bits;
use exmy::quantizer::Cast;
use exmy::quantizer::{Axis, Quantizer};
use exmy::round::Rounding;
use exmy::slice::{Converter, View, ViewMut};

use super::{RANDOM, format, inputs};

/// Above the size from which conversions look ahead, of codes too; no multiple of any step.
const LEN: usize = (7 << 20) + 77;

/// As a large slice and as many small ones, from and to places that begin no line.
fn check<C: Bits>(x: &[f32], text: &str, mode: Rounding) {
    let converter =
        Converter::from(Cast::new(format(text)).with_rounding(mode)).with_random(RANDOM);
    let mut large = (vec![0.5; LEN + 3], vec![C::from_u64(1); LEN + 3]);
    let mut small = large.clone();
    converter.fake_quantize_into(x, &mut large.0[1..=LEN]);
    converter.encode_into(x, &mut large.1[1..=LEN]);
    let out = small.0[1..=LEN].chunks_mut(9973).zip(small.1[1..=LEN].chunks_mut(9973));
    for (i, (x, (values, codes))) in x.chunks(9973).zip(out).enumerate() {
        let part = converter.starting_at(9973 * i as u64);
        part.fake_quantize_into(x, values);
        part.encode_into(x, codes);
    }
    let same = large.0.iter().zip(&small.0).position(|(a, b)| a.to_bits() != b.to_bits());
    assert_eq!(same, None, "{text} {mode}");
    assert!(large.1 == small.1, "{text} {mode}");
    let mut in_place = x.to_vec();
    converter.fake_quantize(&mut in_place);
    assert!(in_place.iter().zip(&small.0[1..]).all(|(a, b)| a.to_bits() == b.to_bits()), "{text}");
}

#[test]
fn large_slices() {
    let some = inputs(exmy::format::Format::E4M3FN, 1000);
    let x: Vec<f32> = some.iter().cycle().take(LEN).copied().collect();
    for threads in [1, 2] {
        let work = || {
            check::<u8>(&x, "e4m3", Rounding::TiesToEven);
            check::<u16>(&x, "bf16", Rounding::TiesToEven);
            check::<u16>(&x, "e8m3", Rounding::TowardZero);
            check::<u8>(&x, "e2m1", Rounding::ToOdd);
            check::<u8>(&x, "e4m3", Rounding::stochastic(8));
        };
        exmy::parallel::with_threads(threads, work).expect("threads");
    }
}

/// Rows of blocks do not know of one another, but for the tensor's scale.
#[test]
fn large_matrices_of_blocks() {
    let some = inputs(exmy::format::Format::E4M3FN, 1000);
    let (rows, cols) = (71, 70_000);
    let finite = some.iter().filter(|x| x.abs() < 1e30);
    let x: Vec<f32> = finite.cycle().take(rows * cols).copied().collect();
    for text in ["mxfp8-e4m3", "nvfp4", "mxfp4@sr8", "bf16>mxfp6-e3m2"] {
        let quantizer: Quantizer = text.parse().expect("a quantizer");
        let image = |x: View<'_, f32>, axis| {
            let mut out = vec![0.0; x.rows() * x.cols() + 1];
            let into = ViewMut::new(&mut out[1..], x.rows(), x.cols());
            quantizer.image_into(x, axis, RANDOM, into);
            out.split_off(1)
        };
        let whole = image(View::new(&x, rows, cols), Axis::Cols);
        // Small enough for the caches; the largest magnitude, for the tensor's scale, is in both.
        let few = image(View::new(&x, 1, cols), Axis::Cols);
        let same = whole.iter().zip(&few).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "{text}");
        let down = image(View::new(&x, rows, cols), Axis::Rows);
        let part = View::with_strides(&x, (rows, 100), (cols, 1)).expect("a view");
        if !text.contains("nvfp4") && !text.contains("sr") {
            let few = image(part, Axis::Rows);
            for (row, few) in down.chunks(cols).zip(few.chunks(100)) {
                assert!(row.iter().zip(few).all(|(a, b)| a.to_bits() == b.to_bits()), "{text}");
            }
        }
    }
}
