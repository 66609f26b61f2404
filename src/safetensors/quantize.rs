//! A whole file quantized, tensor by tensor.
//!
//! Everything is planned from the header: what is written, its names, types and places. Then each
//! tensor is read, quantized and written before the next one is looked at. Tensors that are kept,
//! and those of plain formats, pass in pieces; blocks need their tensor at once, with room for its
//! `f32` numbers and its codes and scales. Where there is not as much memory, that is an error which
//! names the tensor and the bytes. All bits written depend on the input and the options alone.
//!
//! A quantizer that casts or rotates first ([`Quantizer`](crate::quantizer::Quantizer)) does so here,
//! and what is counted is what rounding did to the numbers after that. Rotated tensors stay rotated.
//!
//! Elements of `F64` are not rounded twice. Plain formats are rounded from `f64`. Blocks find their
//! scales in `f32`, so elements are first rounded to `f32` to odd.

use std::path::Path;

use super::plan::Plan;
use super::report::{FileReport, Watch};
use super::run::convert;
use super::{Dtype, QuantizeOptions};
use crate::error::Result;

/// Quantizes the floating-point tensors of a file into a new one. `None` if `watch` ended it.
///
/// One tensor is in memory at a time; those that are kept, and those of formats without blocks, pass
/// in pieces. All bits written depend on the input and the options alone. Elements of `F64` are
/// not rounded twice. A quantizer that casts or rotates first does so, what is counted is what
/// rounding did after that, and rotated tensors stay rotated.
///
/// ```
/// use exmy::safetensors::{
///     CopyReason, Dtype, Outline, Progress, QuantizeOptions, Reader, TensorOutcome, Writer, quantize,
/// };
/// use std::ops::ControlFlow;
///
/// let folder = tempfile::tempdir().unwrap();
/// let (from, to) = (folder.path().join("a"), folder.path().join("b"));
/// let tensors = [Outline::new("w", Dtype::F32, [2, 2]), Outline::new("bias", Dtype::F32, [1])];
/// let mut writer = Writer::create(&from, &tensors, Default::default())?;
/// writer.write("w", &[1.0_f32, -0.3, 1000.0, 1e-9].map(f32::to_le_bytes).concat())?;
/// writer.write("bias", &0.1_f32.to_le_bytes())?;
/// writer.finish()?;
///
/// let mut options = QuantizeOptions::new("e4m3".parse().unwrap());
/// let go_on = &mut |_: &Progress<'_>| ControlFlow::Continue(());
/// let report = quantize(&from, &to, &options, go_on)?.expect("nobody stopped it");
/// assert_eq!(report.rows[0].outcome, TensorOutcome::Copied(CopyReason::FewAxes)); // `bias`
/// let (total, bits) = report.total();
/// assert_eq!((total.count, total.saturated, total.flushed, bits), (4, 1, 1, 32));
/// assert_eq!(Reader::open(&to)?.read_f32("w")?, [1.0, -0.3125, 448.0, 0.0]);
///
/// options.exclude.push("*.head".parse().unwrap()); // a pattern that matches nothing
/// let error = quantize(&from, &to, &options, go_on).unwrap_err().to_string();
/// assert!(error.contains("--exclude \"*.head\" matches none"), "{error}");
/// let error = quantize(&from, &from, &options, go_on).unwrap_err().to_string();
/// assert!(error.contains("is the input"), "{error}");
/// # Ok::<(), exmy::error::Error>(())
/// ```
///
/// # Errors
/// If the input is no whole file, tensors cannot be quantized or stored so (all of them are named), or a name
/// would occur twice. If there is no memory for a tensor, or reading or writing fails. Then there is no
/// output, or the one that was there before.
pub fn quantize(
    input: impl AsRef<Path>,
    output: impl AsRef<Path>,
    options: &QuantizeOptions,
    watch: &mut Watch<'_>,
) -> Result<Option<FileReport>> {
    convert(input.as_ref(), output.as_ref(), watch, |reader| Plan::new(reader.header(), options))
}

/// Writes a file with the values of all quantized tensors in place of their codes, of type `dtype` or
/// of the type they had before. `None` if `watch` ended it.
///
/// ```
/// use exmy::safetensors::{
///     Dtype, Outline, QuantizeOptions, Reader, TensorOutcome, Writer, dequantize, quantize,
/// };
/// use exmy::safetensors::Progress;
/// use std::ops::ControlFlow;
///
/// let folder = tempfile::tempdir().unwrap();
/// let [from, codes, to] = ["a", "b", "c"].map(|name| folder.path().join(name));
/// let mut writer =
///     Writer::create(&from, &[Outline::new("w", Dtype::F32, [1, 2])], Default::default())?;
/// writer.write("w", &[70_000.0_f32, -0.1].map(f32::to_le_bytes).concat())?;
/// writer.finish()?;
/// let go_on = &mut |_: &Progress<'_>| ControlFlow::Continue(());
/// quantize(&from, &codes, &QuantizeOptions::new("mxfp8-e4m3".parse().unwrap()), go_on)?;
/// dequantize(&codes, &to, None, go_on)?;
/// assert_eq!(Reader::open(&to)?.read_f32("w")?, [73_728.0, -0.0]); // 288 x 2^8
/// let report = dequantize(&codes, &to, Some(Dtype::F16), go_on)?.expect("nobody stopped it");
/// assert_eq!(Reader::open(&to)?.read_f32("w")?[0], f32::INFINITY); // beyond binary16
/// assert!(matches!(report.rows[0].outcome, TensorOutcome::Decoded { overflowed: 1, .. }));
/// # Ok::<(), exmy::error::Error>(())
/// ```
///
/// # Errors
/// As [`quantize`]; if no tensor is quantized.
pub fn dequantize(
    input: impl AsRef<Path>,
    output: impl AsRef<Path>,
    dtype: Option<Dtype>,
    watch: &mut Watch<'_>,
) -> Result<Option<FileReport>> {
    convert(input.as_ref(), output.as_ref(), watch, |reader| Plan::back(reader.header(), dtype))
}
