//! Any block shape, scale, rule and axis: the stored tensor against the definition, and what can be
//! done with it.

use super::*;
use exmy::block::Shape;
use proptest::prelude::*;

fn any_shape() -> impl Strategy<Value = Shape> {
    let side = || prop_oneof![1..=40_u32, Just(16_u32), Just(32_u32)];
    prop_oneof![
        side().prop_map(Shape::Along),
        side().prop_map(Shape::Across),
        (side(), side()).prop_map(|(m, n)| Shape::Tile(m, n)),
        side().prop_map(|n| Shape::Tile(n, n)),
        Just(Shape::Row),
        Just(Shape::Tensor),
    ]
}

/// A named format, as it is or with another shape, scale, rule, profile.
fn any_format() -> impl Strategy<Value = BlockFormat> {
    let scales = [Format::E8M0, Format::UE4M3, Format::F32, Format::BF16, Format::E5M2];
    let rules = ScaleRule::NAMED.map(|(_, rule)| rule);
    let profiles = BlockProfile::NAMED.map(|(_, profile)| profile);
    let named = proptest::sample::select(NAMED.map(|(_, format)| format).to_vec());
    let others = (
        proptest::sample::select(scales.to_vec()),
        proptest::sample::select(rules.to_vec()),
        proptest::sample::select(profiles.to_vec()),
        any::<bool>(),
    );
    let other = (named.clone(), others).prop_map(|(named, (scale, rule, profile, tensor))| {
        let rule = if profile.has(rule) { rule } else { profile.default_rule(scale) };
        BlockFormat { scale, rule, profile, tensor_scale: tensor, ..named }
    });
    (prop_oneof![named, other], prop::option::of(any_shape()))
        .prop_map(|(format, shape)| BlockFormat { shape: shape.unwrap_or(format.shape), ..format })
        .prop_filter_map("parts that do not go together", |format| format.check().ok())
}

/// Numbers of one magnitude, of all, and now and then a special one.
fn any_numbers(n: usize) -> impl Strategy<Value = Vec<f32>> {
    let any_bits = any::<u32>().prop_map(f32::from_bits);
    let special =
        proptest::sample::select(vec![0.0, -0.0, f32::INFINITY, f32::NAN, f32::MAX, 1e-40]);
    prop_oneof![
        4 => proptest::collection::vec(-8.0_f32..8.0, n),
        2 => proptest::collection::vec(any_bits, n),
        1 => proptest::collection::vec(prop_oneof![60 => -1.0_f32..1.0, 1 => special], n),
    ]
}

fn any_matrix() -> impl Strategy<Value = (usize, usize, Vec<f32>)> {
    (1..=36_usize, 1..=70_usize)
        .prop_flat_map(|(rows, cols)| (Just(rows), Just(cols), any_numbers(rows * cols)))
}

fn axis_of(cols: bool) -> Axis {
    if cols { Axis::Cols } else { Axis::Rows }
}

fn transposed_bits(x: &[f32], rows: usize, cols: usize) -> Vec<u32> {
    (0..cols).flat_map(|j| (0..rows).map(move |i| x[i * cols + j].to_bits())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn stored_is_the_definition(
        format in any_format(),
        (rows, cols, data) in any_matrix(),
        along_rows in any::<bool>(),
        mode in proptest::sample::select(vec!["rne", "rna", "rtz", "rup", "sr8"]),
    ) {
        let (x, axis) = (View::new(&data, rows, cols), axis_of(along_rows));
        let (rounding, overflow) = (mode.parse().unwrap(), Overflow::Finite);
        let plain = PlainBlocks::quantize(x, axis, format, (rounding, overflow, RANDOM));
        let tensor = BlockTensor::quantize(x, axis, format, (rounding, overflow, RANDOM));
        prop_assert_eq!(tensor.codes(), &plain.codes[..]);
        prop_assert_eq!(tensor.scales(), &plain.scales[..]);
        prop_assert_eq!(tensor.block(), plain.block);
        let values = plain.dequantize();
        prop_assert_eq!(bits(&tensor.dequantize()), bits(&values));
        let quantizer = Quantizer::new(format.into()).with_rounding(rounding).with_overflow(overflow);
        prop_assert_eq!(bits(&image(quantizer, x, axis)), bits(&values));

        // Round trips: number a code, parts, transposed twice.
        let same = |other: &BlockTensor| {
            other.packed_codes() == tensor.packed_codes()
                && other.packed_scales() == tensor.packed_scales()
                && other.tensor_scale().map(f32::to_bits) == tensor.tensor_scale().map(f32::to_bits)
                && (other.block(), other.axis()) == (tensor.block(), tensor.axis())
        };
        prop_assert!(same(&BlockTensor::from_plain(&tensor.to_plain(), axis)));
        let (codes, scales, tensor_scale) = tensor.clone().into_parts();
        let shape = (rows, cols);
        let parts = BlockTensor::from_parts(format, axis, shape, codes, scales, tensor_scale);
        match tensor.tensor_scale() {
            Some(scale) if !scale.is_finite() => prop_assert!(parts.is_err()),
            _ => prop_assert!(same(&parts.unwrap())),
        }
        let transposed = tensor.t();
        prop_assert_eq!(bits(&transposed.dequantize()), transposed_bits(&values, rows, cols));
        prop_assert!(same(&transposed.t()));

        // Quantizing the transpose along the other axis is transposing.
        let other = axis_of(!along_rows);
        if !mode.starts_with("sr") {
            let of_transpose =
                BlockTensor::quantize(x.t(), other, format, (rounding, overflow, RANDOM));
            prop_assert_eq!(of_transpose.codes(), transposed.codes());
            prop_assert_eq!(of_transpose.scales(), transposed.scales());
        }

        // Blocks that are the same both ways serve a sum along the other axis.
        let (blocks, fits) = (tensor.block(), tensor.clone().along(other));
        match &fits {
            Ok(along) | Err(along) => prop_assert_eq!(along.block(), blocks),
        }
        let both_ways = match format.shape {
            Shape::Along(n) | Shape::Across(n) => n == 1,
            Shape::Tile(m, n) => m == n,
            Shape::Row => rows == 1 && cols == 1,
            Shape::Tensor => true,
        _ => unreachable!("not of this test"),
};
        prop_assert_eq!(fits.is_ok(), both_ways);
    }

    /// Scales of the caller's own, which see each block in the order of its sums.
    #[test]
    fn own_scales_are_the_definition(
        shape in any_shape(),
        (rows, cols, data) in any_matrix(),
        along_rows in any::<bool>(),
        scale in proptest::sample::select(vec!["e8m0", "ue4m3", "f32", "e2m1"]),
        mode in proptest::sample::select(vec!["rne", "rtz", "rup", "sr8", "sr20"]),
    ) {
        let format: BlockFormat = format!("e4m3/{shape}:{scale}").parse().unwrap();
        let (x, axis) = (View::new(&data, rows, cols), axis_of(along_rows));
        let (rounding, overflow) = (mode.parse().unwrap(), Overflow::Finite);
        let own = |block: &[f32]| block.iter().fold(0.1, |sum: f32, x| 0.7 * sum + x.abs() / 64.0);
        let plain = PlainBlocks::quantize_with(x, axis, format, (rounding, overflow, RANDOM), own);
        let tensor = BlockTensor::quantize_with(x, axis, format, (rounding, overflow, RANDOM), own);
        prop_assert_eq!(tensor.codes(), &plain.codes[..]);
        prop_assert_eq!(tensor.scales(), &plain.scales[..]);
        let quantizer = Quantizer::new(format.into()).with_rounding(rounding).with_overflow(overflow);
        let mut image = vec![0.0; rows * cols];
        let out = ViewMut::new(&mut image, rows, cols);
        quantizer.image_with(x, axis, RANDOM, own, out);
        prop_assert_eq!(bits(&image), bits(&plain.dequantize()));
        let stored = quantizer.quantize_with(x, axis, RANDOM, own).unwrap();
        prop_assert_eq!(stored.packed_codes(), tensor.packed_codes());
    }

    /// A quantizer's codes have the values of its image, in every type.
    #[test]
    fn codes_of_quantizers_are_their_images(
        text in proptest::sample::select(vec![
            "e4m3", "e2m1@sr8", "bf16>e3m2@rtz", "e5m2@sat-none", "bf16", "bf16>rht4>int8", "f16",
            "mxfp4", "bf16>nvfp4@sr8", "rht2>mxfp6-e3m2", "e2m1/row:ue4m3@4over6",
        ]),
        quarters in (1..=9_usize, 1..=20_usize),
        along_rows in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let (rows, cols) = (quarters.0 * 4, quarters.1 * 4);
        let random = Philox::new(seed, Stream::new("codes"));
        let number = |i| random.uniform(i as u64) as f32 * 40.0 - 20.0;
        let data: Vec<f32> = (0..rows * cols).map(number).collect();
        // Columns apart in memory: a transposed view.
        let (x, axis) = (View::new(&data, cols, rows).t(), axis_of(along_rows));
        let quantizer: Quantizer = text.parse().unwrap();
        let wanted = image(quantizer, x, axis);
        let tensor = quantizer.quantize(x, axis, RANDOM).unwrap();
        prop_assert_eq!(bits(&tensor.dequantize()), bits(&wanted), "{}", text);
        let stride = cols + 3;
        let mut wide = vec![7.0_f64; rows * stride];
        tensor.dequantize_into(ViewMut::with_row_stride(&mut wide, rows, cols, stride).unwrap());
        for (row, wanted) in wide.chunks(stride).zip(wanted.chunks(cols)) {
            let found: Vec<u64> = row[..cols].iter().map(|x| x.to_bits()).collect();
            let wanted: Vec<u64> = wanted.iter().map(|x| f64::from(*x).to_bits()).collect();
            prop_assert_eq!(found, wanted);
            prop_assert_eq!(&row[cols..], &[7.0; 3][..]);
        }
        #[cfg(feature = "half")]
        {
            let mut short = vec![half::bf16::ZERO; rows * cols];
            tensor.dequantize_into(ViewMut::new(&mut short, rows, cols));
            let wanted: Vec<u16> = wanted.iter().map(|x| half::bf16::from_f32(*x).to_bits()).collect();
            let short: Vec<u16> = short.iter().map(|x| x.to_bits()).collect();
            prop_assert_eq!(short, wanted);
        }
    }
}

/// More elements than a thread takes at once, codes of every width.
#[test]
fn codes_of_long_rows() {
    let data = &matrices(70_003)[1].1;
    let x = View::new(data, 1, data.len());
    for text in ["e2m1@sr8", "e3m2", "e4m3", "e5m6", "bf16>e2m0"] {
        let quantizer: Quantizer = text.parse().unwrap();
        let tensor = quantizer.quantize(x, Axis::Cols, RANDOM).unwrap();
        assert_eq!(bits(&tensor.dequantize()), bits(&image(quantizer, x, Axis::Cols)), "{text}");
    }
}

/// What has no codes says so.
#[test]
fn refusals() {
    let x = View::new(&[1.0_f32; 6], 2, 3);
    let refused = |text: &str| {
        text.parse::<Quantizer>().unwrap().quantize(x, Axis::Cols, RANDOM).unwrap_err().to_string()
    };
    assert!(refused("none").contains("no codes"));
    assert!(refused("bf16>none").contains("no codes"));
    assert!(refused("f64").contains("at most 16 bits"));
    assert!(refused("e8m0").contains("has a zero"));
    assert!(refused("rht2>mxfp4").contains("1 zero"));
}

/// Blocks that several threads share, and rows and columns longer than one thread takes.
#[test]
fn threads_do_not_show_in_tall_and_long_blocks() {
    let n = 140_008;
    let data = &matrices(n)[9].1;
    let cases = [
        ("e4m3/row:f32", Axis::Rows, (n / 4, 4)),
        ("nvfp4", Axis::Cols, (1, n - 3)),
        ("e3m2/row:e8m0", Axis::Cols, (1, n - 3)),
        ("e2m1/row:ue4m3+tensor", Axis::Rows, (n / 8, 8)),
        ("e4m3/row:bf16@max-abs", Axis::Rows, (n / 7, 7)),
        ("mxfp6-e2m3@sr8", Axis::Rows, (1, n - 3)),
        ("e4m3/tensor:e8m0@microxcaling-torch", Axis::Rows, (2, n / 2)),
        ("nvfp4@4over6", Axis::Cols, (1, n - 3)),
        ("e4m3", Axis::Cols, (1, n - 3)),
    ];
    for (text, axis, (rows, cols)) in cases {
        let (quantizer, x) = (text.parse::<Quantizer>().unwrap(), View::new(data, rows, cols));
        let with = |threads| {
            let work = || {
                let tensor = quantizer.quantize(x, axis, RANDOM).unwrap();
                (bits(&image(quantizer, x, axis)), bits(&tensor.dequantize()), tensor)
            };
            exmy::parallel::with_threads(threads, work).unwrap()
        };
        let (one, three) = (with(1), with(3));
        assert!(one == three, "{text}: threads show");
        assert!(one.0 == one.1, "{text}: image and codes differ");
        if let Target::Block(format) = quantizer.target {
            let Quantizer { rounding, overflow, .. } = quantizer;
            let plain = PlainBlocks::quantize(x, axis, format, (rounding, overflow, RANDOM));
            assert!(bits(&plain.dequantize()) == one.0, "{text}: not the definition");
            assert!(plain.scales == one.2.scales(), "{text}: scales");
        }
    }
}

/// Matrices of nothing, however many rows or columns of it they have, give nothing at once.
#[test]
fn empty_of_any_shape() {
    let texts = [
        "mxfp4",
        "nvfp4",
        "nvfp4-16x16",
        "nvfp4@4over6",
        "e4m3/tensor:f32@max-abs",
        "e2m1/row:bf16",
        "bf16>mxint8",
        "e5m2",
        "e3m2/1x7:e8m0@microxcaling-torch",
    ];
    for shape in [(usize::MAX, 0), (0, 1 << 40), (0, usize::MAX), (1 << 40, 0), (0, 0)] {
        for (text, axis) in texts.iter().flat_map(|text| [(text, Axis::Cols), (text, Axis::Rows)]) {
            let case = format!("{text} {shape:?} {axis:?}");
            let quantizer: Quantizer =
                text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
            let x = View::new(&[], shape.0, shape.1);
            let place = ViewMut::new(&mut [], shape.0, shape.1);
            quantizer.image_into(x, axis, RANDOM, place);
            let tensor = quantizer.quantize(x, axis, RANDOM).unwrap();
            assert_eq!((tensor.rows(), tensor.cols()), shape, "{case}");
            assert!(tensor.packed_codes().is_empty() && tensor.scales().is_empty(), "{case}");
            assert!(tensor.dequantize().is_empty(), "{case}");
            assert_eq!(tensor.statistics(x), Default::default(), "{case}");
            assert!(tensor.block_statistics(x).is_empty(), "{case}");
            let Target::Block(format) = quantizer.target else { continue };
            let Quantizer { rounding, overflow, .. } = quantizer;
            let plain = PlainBlocks::quantize(x, axis, format, (rounding, overflow, RANDOM));
            assert_eq!((plain.shape, plain.scales.len()), (shape, 0), "{case}");
            assert_eq!(plain.tensor_scale, tensor.tensor_scale(), "{case}");
        }
    }
}
