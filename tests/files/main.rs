//! Tensors in files: against the reference implementation of safetensors, against decoders written
//! from the layouts' definitions, and against files that are broken in every way.

#![cfg(feature = "safetensors")]

mod broken;
mod faults;
mod given;
mod layouts;
mod oracle;
mod quantized;
mod whole;
mod wide;

use exmy::random::{Philox, Stream};
use exmy::safetensors::{Dtype, FileReport, Outline, Progress, QuantizeOptions, Writer, quantize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Writes a file of these tensors.
fn write(path: &Path, tensors: &[(&str, Dtype, &[usize], Vec<u8>)]) {
    let outlines: Vec<Outline> =
        tensors.iter().map(|(name, dtype, shape, _)| Outline::new(*name, *dtype, *shape)).collect();
    let mut writer = Writer::create(path, &outlines, Default::default()).unwrap();
    for (name, _, _, bytes) in tensors {
        // In two halves, as nobody promises whole tensors.
        let (head, tail) = bytes.split_at(bytes.len() / 2);
        writer.write(name, head).unwrap();
        writer.write(name, tail).unwrap();
    }
    writer.finish().unwrap();
}

fn f32_bytes(x: &[f32]) -> Vec<u8> {
    x.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Numbers of many magnitudes, with zeros of both signs and outliers.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let philox = Philox::new(seed, Stream::new("numbers of files"));
    let number = |i: u64| {
        let x = (philox.uniform(2 * i) as f32 - 0.5) * 4.0;
        match philox.word(i) % 29 {
            0 => 0.0,
            1 => -0.0,
            2 => x * 100.0,
            3 => x * 1e-4,
            _ => x,
        }
    };
    (0..count as u64).map(number).collect()
}

/// A folder, the input in it, and the place of the output.
fn places() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    (folder, input, output)
}

fn convert(input: &Path, output: &Path, options: &QuantizeOptions) -> FileReport {
    let mut go_on = |_: &Progress<'_>| ControlFlow::Continue(());
    quantize(input, output, options, &mut go_on).unwrap().unwrap()
}

/// 2^e, exactly.
fn power(e: i32) -> f32 {
    (0..e.abs()).fold(1.0, |power, _| if e > 0 { power * 2.0 } else { power / 2.0 })
}
