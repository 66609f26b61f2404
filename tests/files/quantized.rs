//! Quantized files: what is decoded from them is the quantizer's image, whatever the format, the
//! axis and the layout; and decoders written here from the layouts' definitions agree.

use crate::{convert, f32_bytes, numbers, places, power, write};
use exmy::block::NAMED;
use exmy::quantizer::{Axis, Quantizer};
use exmy::random::{Philox, Stream};
use exmy::safetensors::{
    CopyReason, Dtype, Output, Progress, QuantizeOptions, Reader, TensorOutcome, dequantize,
    quantize,
};
use exmy::slice::{View, ViewMut};
use safetensors::tensor::SafeTensors;
use std::ops::ControlFlow;
use std::path::Path;

/// The random bits of a tensor, by their definition.
pub(crate) fn random(name: &str, seed: u64) -> Philox {
    Philox::new(seed, Stream::new("quantize").with(Stream::new(name).id()))
}

pub(crate) fn image(
    quantizer: &str,
    x: &[f32],
    rows: usize,
    axis: Axis,
    random: Philox,
) -> Vec<f32> {
    let quantizer: Quantizer = quantizer.parse().unwrap();
    let mut image = vec![0.0; x.len()];
    let cols = x.len() / rows;
    let out = ViewMut::new(&mut image, rows, cols);
    quantizer.image_into(View::new(x, rows, cols), axis, random, out);
    image
}

pub(crate) fn options(quantizer: &str) -> QuantizeOptions {
    QuantizeOptions::new(quantizer.parse().unwrap())
}

pub(crate) fn assert_bits(found: &[f32], expected: &[f32], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.to_bits(), expected.to_bits(), "{what}: {found} {expected} at {i}");
    }
}

pub(crate) fn values(path: &Path, name: &str) -> Vec<f32> {
    Reader::open(path).unwrap().read_values(name).unwrap()
}

/// All formats with names, and others.
fn formats() -> impl Iterator<Item = &'static str> {
    NAMED.into_iter().map(|(name, _)| name).chain([
        "mxfp4@sr8",
        "nvfp4@sr8",
        "mxfp6-e2m3@rceil@rtz",
        "nvfp4@4over6",
        "e4m3/row:f32",
        "e5m2/tensor:f32",
        "e3m4/32x1:e8m0",
        "e4m3/16:e2m1",
        "e4m3/20:e2m3",
        "e2m1/8:e3m2",
        "e4m3/8x2:e2m1",
        "e4m3",
        "e5m2@sr4",
        "e4m3fnuz",
        "e3m4",
        "bf16@rtz",
        "bf16>e5m2@rna",
    ])
}

#[test]
fn codes_decode_to_the_image() {
    let (_folder, input, output) = places();
    let (rows, cols) = (6, 80);
    let x = numbers(rows * cols, 1);
    write(&input, &[("w", Dtype::F32, &[rows, cols], f32_bytes(&x))]);
    for format in formats() {
        for (axis, way) in [(-1, Axis::Cols), (0, Axis::Rows)] {
            let report = convert(&input, &output, &QuantizeOptions { axis, ..options(format) });
            let expected = image(format, &x, rows, way, random("w", 1));
            assert_bits(&values(&output, "w"), &expected, &format!("{format} {axis}"));
            let TensorOutcome::Quantized { statistics, .. } = &report.rows[0].outcome else {
                panic!("kept")
            };
            assert_eq!(statistics.count, x.len() as u64);
            // The same values without codes, and by way of codes.
            let rounded = QuantizeOptions { axis, output: Output::Values(None), ..options(format) };
            let direct = output.with_extension("direct");
            convert(&input, &direct, &rounded);
            let mut reader = Reader::open(&direct).unwrap();
            assert!(reader.header().records().unwrap().is_empty());
            assert_bits(&reader.read_f32("w").unwrap(), &expected, format);
            let back = output.with_extension("back");
            let mut go_on = |_: &Progress<'_>| ControlFlow::Continue(());
            dequantize(&output, &back, None, &mut go_on).unwrap().unwrap();
            assert_eq!(std::fs::read(&back).unwrap(), std::fs::read(&direct).unwrap(), "{format}");
        }
    }
}

/// An axis between others: every outer index is a matrix of its own, whose blocks lie in its columns.
#[test]
fn an_axis_in_the_middle() {
    let (_folder, input, output) = places();
    let shape = [3, 40, 6];
    let x = numbers(720, 2);
    write(&input, &[("w", Dtype::F32, &shape, f32_bytes(&x))]);
    for format in ["mxfp4", "mxfp8-e4m3", "e2m1/16:ue4m3", "e5m2/row:f32", "e4m3/20:e2m1"] {
        for layout in ["torch", "byte"] {
            let layout = layout.parse().unwrap();
            convert(&input, &output, &QuantizeOptions { axis: 1, layout, ..options(format) });
            let slab = |x: &[f32]| image(format, x, 40, Axis::Rows, random("w", 1));
            let expected: Vec<f32> = x.chunks(240).flat_map(slab).collect();
            assert_bits(&values(&output, "w"), &expected, format);
        }
        convert(&input, &output, &QuantizeOptions { axis: 1, ..options(format) });
        let slab = |x: &[f32]| image(format, x, 40, Axis::Rows, random("w", 1));
        let expected: Vec<f32> = x.chunks(240).flat_map(slab).collect();
        assert_bits(&values(&output, "w"), &expected, format);
        let reader = Reader::open(&output).unwrap();
        let blocks = match format {
            "e2m1/16:ue4m3" => 3,
            "e5m2/row:f32" => 1,
            _ => 2,
        };
        // The values, without codes, are the same.
        let direct = output.with_extension("direct");
        let rounded = QuantizeOptions { axis: 1, output: Output::Values(None), ..options(format) };
        convert(&input, &direct, &rounded);
        assert_bits(&Reader::open(&direct).unwrap().read_f32("w").unwrap(), &expected, format);
        assert_eq!(reader.header().get("w_scale").unwrap().shape, [3, blocks, 6]);
        assert_eq!(reader.header().get("w").unwrap().shape, shape);
    }
    // Rank 1, by name, and a single number.
    let tensors = [
        ("v", Dtype::F32, &[40][..], f32_bytes(&x[..40])),
        ("one", Dtype::F32, &[][..], f32_bytes(&[3.3])),
    ];
    write(&input, &tensors);
    let all = QuantizeOptions { include: vec!["*".parse().unwrap()], ..options("mxfp8-e5m2") };
    convert(&input, &output, &all);
    assert_bits(
        &values(&output, "v"),
        &image("mxfp8-e5m2", &x[..40], 1, Axis::Cols, random("v", 1)),
        "v",
    );
    assert_eq!(values(&output, "one"), [3.5]);
    assert_eq!(Reader::open(&output).unwrap().header().get("v_scale").unwrap().shape, [2]);
}

/// 16-bit inputs are exact in f32; those of 64 bits are rounded once.
#[test]
fn inputs_of_other_types() {
    let (_folder, input, output) = places();
    // 1.0625 is the middle of two neighbours of E4M3; a little more must go up, in f32 it would not.
    let x = [1.0625 + f64::from(power(-40)), 1.0625, -464.0 - 1e-9, 1e300];
    let bytes: Vec<u8> = x.iter().flat_map(|x| x.to_le_bytes()).collect();
    let half: Vec<u8> = [0x3C01_u16, 0x7BFF, 0x0001, 0xBC00].map(u16::to_le_bytes).concat();
    let brain: Vec<u8> = [0x3F81_u16, 0x7F7F, 0x0001, 0xBF80].map(u16::to_le_bytes).concat();
    let tensors = [
        ("d", Dtype::F64, &[1, 4][..], bytes),
        ("h", Dtype::F16, &[1, 4][..], half),
        ("b", Dtype::BF16, &[1, 4][..], brain),
    ];
    write(&input, &tensors);
    convert(&input, &output, &options("e4m3"));
    assert_eq!(values(&output, "d"), [1.125, 1.0, -448.0, 448.0]);
    assert_eq!(values(&output, "h"), [1.0, 448.0, 0.0, -1.0]);
    // In a block the largest number, 1e300, counts as the largest f32: 2^127 times almost two.
    convert(&input, &output, &options("e4m3/1:e8m0"));
    assert_eq!(values(&output, "d")[..2], [1.125, 1.0]);
    assert_eq!(values(&output, "d")[3], 448.0 * power(119));
    // Values keep the type, and bf16 rounds them once more if it must.
    let rounded = QuantizeOptions { output: Output::Values(Some(Dtype::BF16)), ..options("e3m9") };
    convert(&input, &output, &rounded);
    let reader = Reader::open(&output).unwrap();
    assert!(reader.header().entries().iter().all(|entry| entry.dtype == Dtype::BF16));
    let double = QuantizeOptions { output: Output::Values(None), ..options("e11m45@rtz") };
    convert(&input, &output, &double);
    let bytes = std::fs::read(&output).unwrap();
    let read = SafeTensors::deserialize(&bytes).unwrap();
    let d: Vec<u64> = read
        .tensor("d")
        .unwrap()
        .data()
        .as_chunks()
        .0
        .iter()
        .map(|b| u64::from_le_bytes(*b))
        .collect();
    // 45 bits of significand: the lowest 7 of 52 are gone.
    assert_eq!(d, x.map(|x| x.to_bits() >> 7 << 7));
}

#[test]
fn the_rest_passes_byte_for_byte() {
    let (_folder, input, output) = places();
    let x = f32_bytes(&numbers(64, 4));
    let tensors = [
        ("w.weight", Dtype::F32, &[2, 32][..], x.clone()),
        ("w.bias", Dtype::F32, &[64][..], x.clone()),
        ("head.weight", Dtype::F32, &[2, 32][..], x.clone()),
        ("ids", Dtype::I64, &[4, 8][..], x.clone()),
        ("small", Dtype::F8E4M3, &[2, 128][..], x.clone()),
        ("none", Dtype::F32, &[0, 4][..], Vec::new()),
        ("c", Dtype::C64, &[32][..], x.clone()),
    ];
    write(&input, &tensors);
    let options = QuantizeOptions { exclude: vec!["head.*".parse().unwrap()], ..options("mxfp4") };
    let report = convert(&input, &output, &options);
    let outcome = |name: &str| &report.rows.iter().find(|row| row.name == name).unwrap().outcome;
    assert!(matches!(outcome("w.weight"), TensorOutcome::Quantized { bits: 272, .. }));
    assert_eq!(*outcome("w.bias"), TensorOutcome::Copied(CopyReason::FewAxes));
    assert_eq!(*outcome("head.weight"), TensorOutcome::Copied(CopyReason::Excluded));
    assert_eq!(*outcome("ids"), TensorOutcome::Copied(CopyReason::Type(Dtype::I64)));
    assert_eq!(*outcome("small"), TensorOutcome::Copied(CopyReason::Type(Dtype::F8E4M3)));
    assert_eq!(*outcome("none"), TensorOutcome::Copied(CopyReason::Empty));
    let bytes = std::fs::read(&output).unwrap();
    let read = SafeTensors::deserialize(&bytes).unwrap();
    for (name, dtype, shape, data) in &tensors[1..] {
        let tensor = read.tensor(name).unwrap();
        let dtype_name = tensor.dtype().to_string();
        assert_eq!(
            (&*dtype_name, tensor.shape(), tensor.data()),
            (dtype.name(), *shape, &data[..])
        );
    }
    // What was quantized stays so, and the rest can follow in another format.
    let again = output.with_extension("again");
    let report = convert(&output, &again, &crate::quantized::options("e5m2"));
    let header = Reader::open(&again).unwrap().header().clone();
    assert_eq!(header.metadata()["exmy.format"], "e5m2, mxfp4");
    let kept = |row: &&exmy::safetensors::TensorReport| {
        row.outcome == TensorOutcome::Copied(CopyReason::Quantized)
    };
    assert_eq!(report.rows.iter().filter(kept).count(), 2);
    assert_bits(&values(&again, "w.weight"), &values(&output, "w.weight"), "w.weight");
    assert_eq!(header.get("head.weight").unwrap().dtype, Dtype::F8E5M2);
}

/// What was quantized before is copied only if it can be read again.
#[test]
fn codes_that_are_none_are_not_copied() {
    let (folder, input, output) = places();
    let x = f32_bytes(&numbers(64, 4));
    write(
        &input,
        &[("a", Dtype::F32, &[2, 32][..], x.clone()), ("b", Dtype::F32, &[2, 32][..], x)],
    );
    let again = folder.path().join("again");
    for (to, part, byte) in [("e2m3/32:e8m0", "a", 0xa0), ("nvfp4", "a_scale", 0x80)] {
        let layout = if to == "nvfp4" { "safetensors" } else { "byte" };
        let exclude = vec!["b".parse().unwrap()];
        let options = QuantizeOptions { exclude, layout: layout.parse().unwrap(), ..options(to) };
        convert(&input, &output, &options);
        let reader = Reader::open(&output).unwrap();
        let at = reader.header().get(part).unwrap().range.start as usize + 8;
        let mut bytes = std::fs::read(&output).unwrap();
        let header = u64::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
        bytes[header + at] = byte;
        std::fs::write(&output, bytes).unwrap();
        let go_on = &mut |_: &Progress<'_>| ControlFlow::Continue(());
        let options = crate::quantized::options("e5m2");
        let error = quantize(&output, &again, &options, go_on).unwrap_err().to_string();
        assert!(error.contains("\"a\""), "{error}");
        assert!(!again.exists());
    }
}

#[test]
fn what_cannot_be_done_is_refused_before_anything_is_written() {
    let (folder, input, output) = places();
    let x = f32_bytes(&numbers(96, 5));
    let tensors = [("w", Dtype::F32, &[3, 32][..], x.clone()), ("w_scale", Dtype::F32, &[96], x)];
    write(&input, &tensors);
    let refused = |options: &QuantizeOptions, parts: &[&str]| {
        let mut go_on = |_: &Progress<'_>| ControlFlow::Continue(());
        let error = exmy::safetensors::quantize(&input, &output, options, &mut go_on).unwrap_err();
        for part in parts {
            assert!(error.to_string().contains(part), "no {part:?} in {error}");
        }
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    };
    let layout = |format: &str, layout: &str| QuantizeOptions {
        layout: layout.parse().unwrap(),
        exclude: vec!["*_scale".parse().unwrap()],
        ..options(format)
    };
    refused(&options("mxfp4"), &["\"w_scale\"", "\"w\"", "--exclude"]);
    refused(&options("none"), &["rounds nothing"]);
    refused(&options("e3m0"), &["e3m0", "4 bits wide", "--dequantize"]);
    refused(&options("e5m6/32:e8m0"), &["e5m6", "12 bits wide", "--dequantize"]);
    refused(&options("f32"), &["f32", "32 bits wide", "--dequantize"]);
    refused(&QuantizeOptions { axis: 2, ..options("mxfp4") }, &["\"w\"", "no axis 2", "-2 to -1"]);
    refused(&QuantizeOptions { axis: -3, ..options("mxfp4") }, &["no axis -3"]);
    refused(&layout("mxfp8-e4m3", "gpt-oss"), &["gpt-oss", "e2m1/32:e8m0"]);
    refused(&layout("nvfp4", "ggml"), &["ggml", "e2m1/32:e8m0"]);
    refused(&QuantizeOptions { axis: 0, ..layout("mxfp4", "ggml") }, &["last axis"]);
    refused(&layout("e4m3", "cublas"), &["cublas", "scales"]);
    refused(&layout("e4m3/32:f32", "cublas"), &["scales of 8 bits"]);
    refused(&layout("mxfp4", "fp6-padded4"), &["fp6-padded4", "6"]);
    let glob = |glob: &str| vec![glob.parse().unwrap()];
    refused(
        &QuantizeOptions { include: glob("w_scal"), ..options("mxfp4") },
        &["did you mean \"w_scale\"?"],
    );
    let parts = ["--exclude \"w_scal\"", "none of the file's", "did you mean \"w_scale\"?"];
    refused(&QuantizeOptions { exclude: glob("w_scal"), ..options("mxfp4") }, &parts);
    let parts = ["no tensor", "2 excluded", "--exclude takes out"];
    refused(&QuantizeOptions { exclude: glob("*"), ..options("mxfp4") }, &parts);
    // 3 x 11 codes of 4 bits end within a byte.
    write(&input, &[("odd", Dtype::F32, &[3, 11], f32_bytes(&numbers(33, 1)))]);
    let layout = |format: &str, layout: &str| QuantizeOptions {
        layout: layout.parse().unwrap(),
        ..options(format)
    };
    refused(&options("mxfp4"), &["\"odd\"", "132 bits"]);
    refused(&layout("mxfp4", "torch"), &["\"odd\"", "two codes"]);
    refused(&layout("mxfp4", "gpt-oss"), &["\"odd\"", "11"]);
    // Three scales of 4 bits too; the codes are whole bytes.
    refused(&options("e4m3/16:e2m1"), &["\"odd\"", "12 bits of scales", "--layout byte"]);
}

/// Whoever has to leave tensors out hears of all of them at once.
#[test]
fn all_that_does_not_fit_is_named_at_once() {
    let (folder, input, output) = places();
    let odd = |name| (name, Dtype::F32, &[3, 11][..], f32_bytes(&numbers(33, 1)));
    let even = ("even", Dtype::F32, &[3, 32][..], f32_bytes(&numbers(96, 1)));
    write(&input, &[odd("a"), even, odd("b\n"), odd("c")]);
    let mut go_on = |_: &Progress<'_>| ControlFlow::Continue(());
    let mut refused = |options: &QuantizeOptions| {
        let error = exmy::safetensors::quantize(&input, &output, options, &mut go_on).unwrap_err();
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        error.to_string()
    };
    let error = refused(&options("mxfp4"));
    let all = "--exclude \"a\" --exclude \"b\\n\" --exclude \"c\"";
    for part in
        ["3 tensors", "\"a\", [3, 11]", "\"b\\n\", [3, 11]", "\"c\", [3, 11]", all, "stream"]
    {
        assert!(error.contains(part), "no {part} in {error}");
    }
    assert!(!error.contains("even"), "{error}");
    let error = refused(&QuantizeOptions { axis: 2, ..options("mxfp4") });
    assert!(error.contains("4 tensors") && error.contains("0 to 1"), "{error}");
}

/// Scales of 4 and 6 bits, decoded by hand out of their own types.
#[test]
fn narrow_scales_by_hand() {
    let (_folder, input, output) = places();
    let x = numbers(6 * 32, 11);
    write(&input, &[("w", Dtype::F32, &[6, 32], f32_bytes(&x))]);
    let expected = image("e2m1/16:e2m1", &x, 6, Axis::Cols, random("w", 1));
    let e2m1 = |code: u8| {
        let size = [0.0_f32, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0][usize::from(code & 7)];
        if code & 8 == 0 { size } else { -size }
    };
    let nibble = |bytes: &[u8], i: usize| bytes[i / 2] >> (i % 2 * 4) & 15;
    for (layout, dtype) in [("safetensors", "F4"), ("torch", "U8"), ("cublas", "U8")] {
        let layout = layout.parse().unwrap();
        convert(&input, &output, &QuantizeOptions { layout, ..options("e2m1/16:e2m1") });
        let bytes = std::fs::read(&output).unwrap();
        let file = SafeTensors::deserialize(&bytes).unwrap();
        let (codes, scales) = (file.tensor("w").unwrap(), file.tensor("w_scale").unwrap());
        assert_eq!(scales.dtype().to_string(), dtype);
        let scale = |block: usize| match (dtype, scales.shape()) {
            ("F4", [6, 2]) => nibble(scales.data(), block),
            (_, [6, 2]) => scales.data()[block],
            (_, [128, 4]) => scales.data()[block / 2 * 16 + block % 2],
            (_, shape) => panic!("{shape:?}"),
        };
        let value = |i: usize| e2m1(nibble(codes.data(), i)) * e2m1(scale(i / 16));
        let found: Vec<f32> = (0..x.len()).map(value).collect();
        assert_bits(&found, &expected, &layout.to_string());
        assert_bits(&values(&output, "w"), &expected, &layout.to_string());
    }
}

/// What only the type of the values cannot hold is counted as lost.
#[test]
fn values_beyond_the_type_that_is_written() {
    let (_folder, input, output) = places();
    // 65 519 is the last number that binary16 rounds to a finite one; E5M8 holds it and 2^16.
    let x = [65536.0_f32, -1e9, 65504.0, 65519.0, f32::INFINITY, 1.0, -65536.0, 0.0];
    write(&input, &[("w", Dtype::F32, &[2, 4], f32_bytes(&x))]);
    let found = |format: &str, dtype: Dtype| {
        let rounded = QuantizeOptions { output: Output::Values(Some(dtype)), ..options(format) };
        let report = convert(&input, &output, &rounded);
        let written = Reader::open(&output).unwrap().read_f32("w").unwrap();
        let TensorOutcome::Quantized { statistics, overflowed, .. } = &report.rows[0].outcome
        else {
            panic!("kept")
        };
        let infinite = written.iter().filter(|x| x.is_infinite()).count() as u64;
        assert_eq!(infinite, statistics.lost, "{format} {dtype}");
        (statistics.lost, *overflowed)
    };
    assert_eq!(found("bf16", Dtype::F32), (1, 0));
    // BF16 rounds 65 504 and 65 519 to 65 536.
    assert_eq!(found("bf16", Dtype::F16), (6, 5));
    // 13 bits make 65 520 of 65 519, which is the first number beyond.
    assert_eq!(found("e8m12", Dtype::F16), (5, 4));
    // Blocks, there and back.
    convert(&input, &output, &options("e5m2/1:e8m0"));
    let beyond = |x: &&f32| x.is_finite() && x.abs() >= 65520.0;
    let expected = values(&output, "w").iter().filter(beyond).count() as u64;
    assert!(expected >= 3);
    let rounded =
        QuantizeOptions { output: Output::Values(Some(Dtype::F16)), ..options("e5m2/1:e8m0") };
    let report = convert(&input, &output, &rounded);
    let TensorOutcome::Quantized { overflowed, .. } = report.rows[0].outcome else {
        panic!("kept")
    };
    assert_eq!(overflowed, expected);
    convert(&input, &output, &options("e5m2/1:e8m0"));
    let back = output.with_extension("back");
    let mut go_on = |_: &Progress<'_>| ControlFlow::Continue(());
    let report = dequantize(&output, &back, Some(Dtype::F16), &mut go_on).unwrap().unwrap();
    let TensorOutcome::Decoded { overflowed, .. } = report.rows[0].outcome else {
        panic!("not decoded")
    };
    assert_eq!(overflowed, expected);
    // F64 to F32.
    let wide: Vec<u8> = [1e300_f64, 1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    write(&input, &[("w", Dtype::F64, &[1, 2], wide)]);
    assert_eq!(found("e11m45", Dtype::F32), (1, 1));
}

/// Formats without a type of their own, and rows that end within a byte.
#[test]
fn any_width_as_bytes() {
    let (_folder, input, output) = places();
    let x = numbers(21, 8);
    write(&input, &[("w", Dtype::F32, &[3, 7], f32_bytes(&x))]);
    for (layout, format, bytes) in
        [("stream", "e2m2", 5), ("byte", "e2m2", 7), ("stream", "e5m6", 11), ("byte", "e5m6", 14)]
    {
        convert(
            &input,
            &output,
            &QuantizeOptions { layout: layout.parse().unwrap(), ..options(format) },
        );
        let header = Reader::open(&output).unwrap().header().clone();
        assert_eq!(header.get("w").unwrap().shape, [3, bytes]);
        let expected = image(format, &x, 3, Axis::Cols, random("w", 1));
        assert_bits(&values(&output, "w"), &expected, &format!("{format} {layout}"));
    }
}

#[test]
fn stopped_on_the_way_nothing_is_left() {
    let (folder, input, output) = places();
    let x = f32_bytes(&numbers(4096, 7));
    write(&input, &[("a", Dtype::F32, &[64, 64], x.clone()), ("b", Dtype::F32, &[4096], x)]);
    std::fs::write(&output, "what was there").unwrap();
    let mut seen = Vec::new();
    let mut stop = |progress: &Progress<'_>| {
        seen.push((progress.tensor.to_owned(), progress.done, progress.total));
        if progress.tensor == "b" { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let report =
        exmy::safetensors::quantize(&input, &output, &options("mxfp4"), &mut stop).unwrap();
    assert!(report.is_none());
    assert_eq!(seen, [("a".into(), 16384, 32768), ("b".into(), 32768, 32768)]);
    assert_eq!(std::fs::read(&output).unwrap(), b"what was there");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2);
}

/// Infinities and NaN are counted, and do not spoil the figures of the rest.
#[test]
fn the_report_by_hand() {
    let (_folder, input, output) = places();
    let x = [500.0_f32, 1.0, 1.1, 1e-5, 0.0, f32::INFINITY, f32::NAN, -2.0];
    write(&input, &[("w", Dtype::F32, &[2, 4], f32_bytes(&x))]);
    let report = convert(&input, &output, &options("e4m3"));
    let (found, bits) = report.total();
    assert_eq!((found.count, found.saturated, found.flushed, found.non_finite), (8, 1, 1, 2));
    assert_eq!((found.max_error, bits), (52.0, 64));
    let error = f64::from(1.1_f32) - 1.125;
    let noise = 52.0 * 52.0 + error * error + 1e-10;
    assert!((found.noise - noise).abs() < 1e-9, "{}", found.noise);
    assert_eq!((report.bytes_before, report.bytes_after), (32, 8));
}
