//! Block formats of every rule, profile, scale and shape: the bits of the library.

use exmy::block::{Axis, BlockFormat};
use exmy::format::Format;
use exmy::minifloat::Bf16;
use exmy::quantizer::{Quantizer, Target};
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding, Rules};
use exmy::{View as HostView, ViewMut as HostViewMut};
use exmy_cuda::verify::inputs;
use exmy_cuda::{View, ViewMut, factored_image_into, image_into, quantize};

use super::device;

/// Blocks of all magnitudes, with zeros, infinities and NaN in some of them.
fn matrix(rows: usize, cols: usize, specials: bool) -> Vec<f32> {
    let random = Philox::new(9, Stream::new("matrix"));
    let edges = inputs(0);
    let mut x = Vec::with_capacity(rows * cols);
    for i in 0..rows * cols {
        let word = random.word(i as u64);
        // Each group of 16 around a power of two of its own; every 13th group among subnormal numbers.
        let group = random.word((i / 16) as u64 + (1 << 40));
        let field = match group % 13 {
            0 => 0,
            1 => group >> 8 & 0xFF,
            _ => 110 + (group >> 8 & 31),
        };
        let field = (field as i32 - (word >> 28) as i32 % 5).clamp(0, 254) as u32;
        let mut value = f32::from_bits(word & 0x807F_FFFF | field << 23);
        if word.is_multiple_of(31) {
            value = 0.0_f32.copysign(value);
        }
        if specials && group.is_multiple_of(11) && word.is_multiple_of(7) {
            value = edges[(word >> 9) as usize % edges.len()];
        }
        x.push(value);
    }
    x
}

fn same(what: &str, found: &[f32], expected: &[f32]) -> Result<(), String> {
    match (0..expected.len()).find(|i| found[*i].to_bits() != expected[*i].to_bits()) {
        Some(i) => {
            let (found, expected) = (found[i].to_bits(), expected[i].to_bits());
            Err(format!("{what}, element {i}: {found:#010x}, not {expected:#010x}"))
        }
        None => Ok(()),
    }
}

fn compare(
    quantizer: &Quantizer,
    x: &[f32],
    (rows, cols): (usize, usize),
    axis: Axis,
) -> Result<(), String> {
    let Some(device) = device() else { return Ok(()) };
    let what = format!("{quantizer} {rows} x {cols} {axis:?}");
    let random = Philox::new(4, Stream::new("blocks"));
    let host = HostView::new(x, rows, cols);
    let mut expected = vec![0.0; x.len()];
    quantizer.image_into(host, axis, random, HostViewMut::new(&mut expected, rows, cols));
    let input = device.upload(x).unwrap();
    let view = View::new(&input, rows, cols).unwrap();
    let mut out = device.zeros::<f32>(x.len()).unwrap();
    let place = ViewMut::new(&mut out, rows, cols).unwrap();
    image_into(quantizer, view, axis, random, place).map_err(|error| format!("{what}: {error}"))?;
    let found = out.to_vec().unwrap();
    // A rotation makes NaN, whose sign is the machine's, and a cast keeps it.
    let one_nan = |x: Vec<f32>| -> Vec<f32> {
        let rotated = quantizer.rotation.is_some();
        x.into_iter().map(|x| if rotated && x.is_nan() { f32::NAN } else { x }).collect()
    };
    let (found, expected) = (one_nan(found), one_nan(expected));
    same(&what, &found, &expected)?;
    let mut narrow = device.zeros::<Bf16>(x.len()).unwrap();
    let place = ViewMut::new(&mut narrow, rows, cols).unwrap();
    image_into(quantizer, view, axis, random, place).unwrap();
    let to_bf16 = exmy::Converter::new(Format::BF16, Rules::DEFAULT);
    let wide: Vec<u16> = to_bf16.encode(&expected);
    let narrow = one_nan(narrow.to_vec().unwrap().iter().map(|x| x.to_f32()).collect());
    let wide: Vec<f32> = wide.iter().map(|code| f32::from_bits(u32::from(*code) << 16)).collect();
    same(&format!("bfloat16 of {what}"), &narrow, &wide)?;
    if matches!(quantizer.target, Target::Block(_)) {
        let expected = quantizer.quantize(host, axis, random).unwrap();
        let found = quantize(quantizer, view, axis, random).unwrap();
        let differs = |what: &str, found: &[u8], expected: &[u8]| {
            let at = (0..expected.len()).find(|i| found[*i] != expected[*i])?;
            Some(format!("{what}, byte {at}: {:#x}, not {:#x}", found[at], expected[at]))
        };
        let scales = found.packed_scales().to_vec().unwrap();
        let codes = found.packed_codes().to_vec().unwrap();
        assert_eq!(
            (scales.len(), codes.len()),
            (expected.packed_scales().len(), expected.packed_codes().len())
        );
        let error = differs(&format!("scales of {what}"), &scales, expected.packed_scales());
        if let Some(error) =
            error.or_else(|| differs(&format!("codes of {what}"), &codes, expected.packed_codes()))
        {
            return Err(error);
        }
        let (found, expected) = (found.tensor_scale().unwrap(), expected.tensor_scale());
        if found.map(f32::to_bits) != expected.map(f32::to_bits) {
            return Err(format!("scale of the tensor of {what}: {found:?}, not {expected:?}"));
        }
    }
    Ok(())
}

fn report(results: Vec<Result<(), String>>) {
    let count = results.len();
    let failures: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    let first = failures[..failures.len().min(25)].join("\n");
    assert!(failures.is_empty(), "{} of {count} differ, first\n{first}", failures.len());
}

fn quantizer(text: &str) -> Quantizer {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn shapes_axes_and_edges() {
    let texts = [
        "mxfp8-e4m3",
        "mxfp4",
        "nvfp4",
        "nvfp4-16x16",
        "mxint8",
        "e4m3fn/32x1:e8m0",
        "e4m3fn/row:e8m0",
        "e4m3fn/tensor:f32",
        "e2m1/4:e4m3fn",
        "e3m2/128:e8m0",
        "e4m3fn/3x5:e8m0",
        "e2m1/8:e8m0",
        "e5m2/16x16:e8m0",
        "e4m3fn/128x128:f32",
        "nvfp4@4over6",
        "nvfp4-16x16@4over6-mse",
        "e8m3/32:e8m0",
        "e2m1/256:e4m3fn",
    ];
    let mut results = Vec::new();
    for (rows, cols, specials) in
        [(32, 256, false), (33, 70, true), (1, 64, true), (7, 1, false), (48, 36, false)]
    {
        let x = matrix(rows, cols, specials);
        for text in texts {
            for axis in [Axis::Cols, Axis::Rows] {
                results.push(compare(&quantizer(text), &x, (rows, cols), axis));
            }
        }
    }
    report(results);
}

#[test]
fn rules_profiles_and_scales() {
    let (x, finite) = (matrix(8, 128, true), matrix(8, 128, false));
    let mut results = Vec::new();
    for profile in exmy::block::BlockProfile::NAMED {
        for rule in exmy::block::scale::ScaleRule::NAMED {
            for element in ["e4m3fn", "e2m1", "e5m2", "int8", "e3m4", "e2m3"] {
                for scale in ["e8m0", "ue4m3", "e4m3fn", "f32", "e5m3", "ue5m3"] {
                    for tensor in ["", "+tensor"] {
                        let text = format!("{element}/32:{scale}{tensor}@{}@{}", rule.0, profile.0);
                        let Ok(quantizer) = text.parse::<Quantizer>() else { continue };
                        let Target::Block(format) = quantizer.target else { continue };
                        if format.check().is_ok() {
                            // One NaN makes a tensor of NaN.
                            let x = if format.tensor_scale { &finite } else { &x };
                            results.push(compare(&quantizer, x, (8, 128), Axis::Cols));
                        }
                    }
                }
            }
        }
    }
    assert!(results.len() > 400, "{}", results.len());
    report(results);
}

#[test]
fn modes_policies_and_streams() {
    let (odd, finite) = (matrix(32, 32, true), matrix(32, 32, false));
    let mut modes = Rounding::DETERMINISTIC.to_vec();
    modes.extend(
        ["sr1", "sr8", "sr16", "sr32", "sr8b", "sr8c"]
            .map(|text| text.parse::<Rounding>().unwrap()),
    );
    let mut results = Vec::new();
    for text in [
        "mxfp8-e4m3",
        "mxfp4",
        "nvfp4",
        "e5m2/16x16:e8m0",
        "e4m3fn/16:e4m3fn@max-abs",
        "mxint8",
        "e8m3/32:e8m0",
    ] {
        for rounding in &modes {
            for overflow in [Overflow::Finite, Overflow::None, Overflow::Nan] {
                let quantizer = quantizer(text).with_rounding(*rounding).with_overflow(overflow);
                for (x, axis) in [(&odd, Axis::Cols), (&finite, Axis::Rows)] {
                    results.push(compare(&quantizer, x, (32, 32), axis));
                }
            }
        }
    }
    report(results);
}

#[test]
fn casts_and_rotations_before() {
    let texts = [
        "bf16>e8m3@rtz",
        "bf16>rht16>nvfp4@sr8",
        "rht16>mxfp4",
        "ht32-f32>mxfp8-e4m3",
        "rht128>e4m3fn/128:e8m0",
        "ht2>mxfp4",
        "rht4-seed7>mxfp4",
        "bf16@rna>mxfp8-e4m3@rna",
        "rht16>nvfp4-16x16",
        "e5m2@sr8>mxfp4",
        "rht8>none",
        "e8m3",
        "e4m3fn@sr8",
        "none",
        "rht64>e5m2",
        "bf16>nvfp4@4over6",
        "rht16>nvfp4@4over6",
        "bf16>e4m3fn/row:e8m0",
    ];
    let mut results = Vec::new();
    for specials in [false, true] {
        for text in texts {
            let x = matrix(128, 128, specials);
            for axis in [Axis::Cols, Axis::Rows] {
                results.push(compare(&quantizer(text), &x, (128, 128), axis));
            }
        }
    }
    report(results);
}

#[test]
fn views_have_strides() {
    let Some(device) = device() else { return };
    let x = matrix(40, 64, false);
    let quantizer = quantizer("mxfp8-e4m3");
    let input = device.upload(&x).unwrap();
    // Rows 1.. and columns 32..64, into the middle of something larger.
    for (first, stride) in [(96, 64), (97, 64), (96, 50)] {
        let view = View::with_stride(&input, first, 20, 32, stride).unwrap();
        let mut out = device.zeros::<f32>(2000).unwrap();
        let place = ViewMut::with_stride(&mut out, 5, 20, 32, 72).unwrap();
        image_into(&quantizer, view, Axis::Cols, None, place).unwrap();
        let out = out.to_vec().unwrap();
        let mut expected = vec![0.0; 2000];
        let host = HostView::with_strides(&x[first..], 20, 32, stride, 1).unwrap();
        let mut dense = vec![0.0; 640];
        quantizer.image_into(host, Axis::Cols, None, HostViewMut::new(&mut dense, 20, 32));
        for i in 0..20 {
            expected[5 + i * 72..][..32].copy_from_slice(&dense[i * 32..][..32]);
        }
        assert_eq!(out, expected, "{first} {stride}");
    }
    assert!(View::with_stride(&input, 2500, 2, 64, 64).is_err());
    assert!(View::with_stride(&input, 0, 2, 64, 63).is_err());
}

#[test]
fn the_tensor_scale_may_stay_out() {
    let Some(device) = device() else { return };
    let x = matrix(16, 64, false);
    let quantizer = Quantizer::new(BlockFormat::NVFP4.into());
    let input = device.upload(&x).unwrap();
    let mut out = device.zeros::<f32>(x.len()).unwrap();
    let view = View::new(&input, 16, 64).unwrap();
    let place = ViewMut::new(&mut out, 16, 64).unwrap();
    let factors = factored_image_into(&quantizer, view, Axis::Cols, None, place).unwrap().unwrap();
    let tensor = quantizer.quantize(HostView::new(&x, 16, 64), Axis::Cols, None).unwrap();
    assert_eq!(factors.to_vec().unwrap()[1], tensor.tensor_scale().unwrap());
    let operand = exmy::gemm::Operand::from(&tensor);
    assert_eq!(out.to_vec().unwrap(), exmy::gemm::fast::images_plain(&operand).0);
}

#[test]
fn packing_and_transposes() {
    let Some(device) = device() else { return };
    for width in 1..=16_u32 {
        for count in [0, 1, 7, 8, 9, 100] {
            let codes: Vec<u16> = (0..count).map(|i| (i * 40503 % (1 << width)) as u16).collect();
            let packed = exmy_cuda::pack(&device.upload(&codes).unwrap(), width).unwrap();
            assert_eq!(packed.to_vec().unwrap(), exmy::pack::pack(&codes, width).unwrap());
            let back = exmy_cuda::unpack::<u16>(&packed, width, count as usize).unwrap();
            assert_eq!(back.to_vec().unwrap(), codes);
        }
    }
    let x: Vec<u16> = (0..37 * 70).collect();
    let input = device.upload(&x).unwrap();
    let mut out = device.zeros::<u16>(37 * 70).unwrap();
    let place = ViewMut::new(&mut out, 70, 37).unwrap();
    exmy_cuda::transpose_into(View::new(&input, 37, 70).unwrap(), place).unwrap();
    let expected: Vec<u16> = (0..70).flat_map(|j| (0..37).map(move |i| i * 70 + j)).collect();
    assert_eq!(out.to_vec().unwrap(), expected);
    let place = ViewMut::new(&mut out, 37, 70).unwrap();
    assert!(exmy_cuda::transpose_into(View::new(&input, 37, 70).unwrap(), place).is_err());
}
