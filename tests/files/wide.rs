//! Numbers and formats beyond `f32`, files of many tensors, and what rotated tensors say of themselves.

use crate::{convert, f32_bytes, numbers, places, write};
use exmy::safetensors::{
    Dtype, FileLayout, Output, Progress, QuantizeOptions, Reader, TensorOutcome, dequantize,
    quantize,
};
use std::ops::ControlFlow;
use std::path::Path;

fn f64_bytes(x: &[f64]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_le_bytes()).collect()
}

fn doubles(path: &Path, name: &str) -> Vec<f64> {
    let mut bytes = Vec::new();
    Reader::open(path).unwrap().read_into(name, &mut bytes).unwrap();
    bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect()
}

fn options(format: &str) -> QuantizeOptions {
    QuantizeOptions::new(format.parse().unwrap())
}

/// Codes and values are two ways to the same numbers.
#[test]
fn codes_wider_than_f32_keep_their_numbers() {
    let (folder, input, output) = places();
    let [back, direct] = ["back", "direct"].map(|name| folder.path().join(name));
    let x = [1e300, -1e-300, 1e39, 0.1, 1.5, -1e200, 3.0, 1e-46];
    write(&input, &[("w", Dtype::F64, &[2, 4], f64_bytes(&x))]);
    let mut go_on = |_: &Progress<'_>| ControlFlow::Continue(());
    for layout in [FileLayout::Safetensors, "byte".parse().unwrap()] {
        let report = convert(&input, &output, &QuantizeOptions { layout, ..options("e11m4") });
        let TensorOutcome::Quantized { statistics, .. } = report.rows[0].outcome else {
            panic!("kept")
        };
        assert_eq!((statistics.lost, statistics.flushed, statistics.saturated), (0, 0, 0));
        let report = dequantize(&output, &back, None, &mut go_on).unwrap().unwrap();
        assert!(matches!(report.rows[0].outcome, TensorOutcome::Decoded { overflowed: 0, .. }));
        let values = Output::Values(None);
        convert(&input, &direct, &QuantizeOptions { output: values, ..options("e11m4") });
        let found = doubles(&back, "w");
        assert_eq!(found, doubles(&direct, "w"));
        for (x, y) in x.iter().zip(&found) {
            // Five bits of precision: half a unit of the last place.
            assert!((x - y).abs() <= x.abs() / 32.0, "{x} {y}");
        }
        assert_eq!(Reader::open(&output).unwrap().read_values("w").unwrap()[0], f32::INFINITY);
        // 1e300, 1e39 and -1e200 are finite and beyond every type that is written.
        for dtype in [Dtype::F32, Dtype::BF16, Dtype::F16] {
            let report = dequantize(&output, &back, Some(dtype), &mut go_on).unwrap().unwrap();
            let outcome = &report.rows[0].outcome;
            assert!(
                matches!(outcome, TensorOutcome::Decoded { overflowed: 3, .. }),
                "{dtype} {outcome:?}"
            );
        }
    }
}

/// Against the differences themselves.
#[test]
fn figures_of_f64_are_those_of_its_numbers() {
    let (_folder, input, output) = places();
    let x: Vec<f64> = numbers(6000, 3)
        .iter()
        .map(|x| f64::from(*x) * (1.0 + 1.0 / (1_u64 << 40) as f64))
        .collect();
    write(&input, &[("w", Dtype::F64, &[3, 2000], f64_bytes(&x))]);
    let output_of =
        |format: &str| QuantizeOptions { output: Output::Values(None), ..options(format) };
    let report = convert(&input, &output, &output_of("f32"));
    let TensorOutcome::Quantized { statistics, .. } = report.rows[0].outcome else {
        panic!("kept")
    };
    let errors = x.iter().map(|x| (x - f64::from(*x as f32)).abs());
    assert_eq!(statistics.max_error, errors.clone().fold(0.0, f64::max));
    let noise: f64 = errors.map(|error| error * error).sum();
    assert!((statistics.noise / noise - 1.0).abs() < 1e-9 && noise > 0.0);
    let found = convert(&input, &output, &output_of("f64")).total().0;
    assert_eq!((found.noise, found.max_error), (0.0, 0.0));
}

/// What was read for each tensor again took minutes here.
#[test]
fn many_tensors_are_read_once() {
    let (folder, input, output) = places();
    let names: Vec<String> = (0..3000).map(|i| format!("layers.{i}.weight")).collect();
    let bytes = f32_bytes(&numbers(32, 1));
    let tensors: Vec<_> =
        names.iter().map(|name| (&**name, Dtype::F32, &[1, 32][..], bytes.clone())).collect();
    write(&input, &tensors);
    convert(&input, &output, &options("mxfp4"));
    let mut go_on = |_: &Progress<'_>| ControlFlow::Continue(());
    let back = folder.path().join("back");
    let report = dequantize(&output, &back, None, &mut go_on).unwrap().unwrap();
    assert_eq!(report.rows.len(), 3000);
    let mut reader = Reader::open(&output).unwrap();
    let first = reader.read_values(&names[0]).unwrap();
    assert!(names.iter().all(|name| reader.read_values(name).unwrap() == first));
}

#[test]
fn rotations_are_told() {
    let (folder, input, output) = places();
    write(&input, &[("w", Dtype::F32, &[2, 32], f32_bytes(&numbers(64, 1)))]);
    convert(&input, &output, &options("rht16>nvfp4"));
    let header = Reader::open(&output).unwrap().header().clone();
    assert_eq!(header.metadata()["exmy.format"], "rht16>nvfp4");
    assert_eq!(header.records().unwrap()["w"].quantizer.to_string(), "rht16>nvfp4");
    let mut go_on = |_: &Progress<'_>| ControlFlow::Continue(());
    let back = folder.path().join("back");
    let report = dequantize(&output, &back, None, &mut go_on).unwrap().unwrap();
    let TensorOutcome::Decoded { quantizer, .. } = report.rows[0].outcome else { panic!("kept") };
    assert_eq!(quantizer.to_string(), "rht16>nvfp4");
}

/// A name with the signs of a pattern is printed so that the hint works.
#[test]
fn hints_are_patterns_that_match() {
    let (_folder, input, output) = places();
    let even = ("even", Dtype::F32, &[1, 32][..], f32_bytes(&numbers(32, 1)));
    write(&input, &[("w[0]", Dtype::F32, &[3, 3], f32_bytes(&numbers(9, 1))), even]);
    let mut go_on = |_: &Progress<'_>| ControlFlow::Continue(());
    let error = quantize(&input, &output, &options("mxfp4"), &mut go_on).unwrap_err().to_string();
    assert!(error.contains("--exclude \"w[[]0]\""), "{error}");
    let exclude = vec!["w[[]0]".parse().unwrap()];
    convert(&input, &output, &QuantizeOptions { exclude, ..options("mxfp4") });
}
