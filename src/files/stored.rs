//! Quantized tensors to the bytes of a file, and back.

use std::io::{Read, Seek};

use super::header::quoted;
use super::layout::{Parts, blocks};
use super::record::Record;
use super::values::damaged;
use super::{FileLayout, Reader, Writer};
use crate::block::BlockTensor;
use crate::bulk::decode_into;
use crate::error::{Error, Result};
use crate::format::Format;
use crate::pack::{self, Layout, PackError, ggml};
use crate::quantizer::Target;

/// The bytes of the tensor of codes, from codes in the tensor's order. `row` is the extent of the
/// last axis.
fn codes_to_bytes(
    record: &Record,
    element: Format,
    codes: &[u16],
    scales: &[u8],
) -> Result<Vec<u8>, PackError> {
    let row = record.shape.last().copied().unwrap_or(1).max(1);
    let width = element.bits();
    match (record.layout, width) {
        (FileLayout::Ggml, _) => ggml::pack(codes, scales),
        (FileLayout::Rows(layout), _) => {
            let mut bytes = Vec::new();
            for row in codes.chunks(row) {
                bytes.extend(layout.pack(row, width)?);
            }
            Ok(bytes)
        }
        // A code that is narrower than its type, such as one of the 7 bits of E4M3 without sign,
        // and FP6 for PyTorch.
        (FileLayout::Torch, 6) | (_, 7) => Layout::Byte.pack(codes, width),
        _ => pack::pack(codes, width),
    }
}

/// The way back: the codes, and the scales where they stand among them.
fn codes_of_bytes(
    record: &Record,
    element: Format,
    bytes: &[u8],
) -> Result<(Vec<u16>, Option<Vec<u8>>), PackError> {
    let row = record.shape.last().copied().unwrap_or(1).max(1);
    let (count, width) = (record.count(), element.bits());
    let codes = match (record.layout, width) {
        (FileLayout::Ggml, _) => {
            let (mut codes, mut scales) = (vec![0; count], vec![0; count / ggml::BLOCK]);
            ggml::unpack_into(bytes, &mut codes, &mut scales)?;
            return Ok((codes, Some(scales)));
        }
        (FileLayout::Rows(layout), _) => {
            let mut codes = vec![0; count];
            let length = layout.len(row, width)?.max(1);
            for (codes, bytes) in codes.chunks_mut(row).zip(bytes.chunks(length)) {
                layout.unpack_into(bytes, width, codes)?;
            }
            codes
        }
        (FileLayout::Torch, 6) | (_, 7) => Layout::Byte.unpack(bytes, width, count)?,
        _ => pack::unpack(bytes, width, count)?,
    };
    Ok((codes, None))
}

/// Whether a layout stores codes as the dense stream over the tensor.
pub(super) fn is_stream(record: &Record, element: Format) -> bool {
    match record.layout {
        FileLayout::Ggml | FileLayout::Rows(_) => false,
        FileLayout::Torch => !matches!(element.bits(), 6 | 7),
        _ => element.bits() != 7,
    }
}

impl Writer {
    /// Writes codes without scales, in the tensor's order.
    pub(super) fn write_codes(
        &mut self,
        parts: &Parts,
        record: &Record,
        element: Format,
        codes: &[u16],
    ) -> Result<()> {
        let bytes = codes_to_bytes(record, element, codes, &[]);
        let name = &parts.codes.name;
        self.write(name, &bytes.map_err(|error| Error::new(quoted(name)).because(error))?)
    }

    /// Writes all parts of a quantized tensor.
    pub(super) fn write_blocks(
        &mut self,
        parts: &Parts,
        record: &Record,
        tensor: BlockTensor,
    ) -> Result<()> {
        let (format, fold) = (tensor.format(), record.fold());
        let (element, (down, right)) = (format.element, tensor.blocks());
        let size = format.scale.storage_bits() as usize / 8;
        let exchanged = fold.exchanges();
        // The scales of blocks that lie along the axis alone stand where their elements do.
        let along = tensor.block().0 == 1;
        let (codes, mut scales, tensor_scale) = tensor.into_parts();
        if exchanged && along {
            scales = fold.to_tensor(&scales, right, size);
        }
        let name = &parts.codes.name;
        let fault = |error: PackError| Error::new(quoted(name)).because(error);
        if !exchanged && is_stream(record, element) {
            self.write(name, &codes)?;
        } else {
            let mut codes: Vec<u16> =
                pack::unpack(&codes, element.bits(), record.count()).map_err(fault)?;
            if exchanged {
                codes = fold.to_tensor(&codes, record.shape[record.axis], 1);
            }
            let bytes = codes_to_bytes(record, element, &codes, &scales).map_err(fault)?;
            self.write(name, &bytes)?;
        }
        if let Some(part) = &parts.scales {
            let bytes = match size {
                1 => record.layout.scales().pack(&scales, down, right).map_err(fault)?,
                _ => scales,
            };
            self.write(&part.name, &bytes)?;
        }
        if let (Some(part), Some(scale)) = (&parts.tensor_scale, tensor_scale) {
            self.write(&part.name, &scale.to_le_bytes())?;
        }
        Ok(())
    }
}

impl<R: Read + Seek> Reader<R> {
    /// How tensor `name` was quantized.
    ///
    /// ```
    /// use exmy::files::{Dtype, Outline, Reader, Writer};
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let path = folder.path().join("plain");
    /// let mut writer = Writer::create(&path, &[Outline::new("w", Dtype::U8, [1])], Default::default())?;
    /// writer.write("w", &[0x38])?;
    /// writer.finish()?;
    /// // A byte of a file that says nothing of formats is a byte.
    /// let error = Reader::open(&path)?.record("w").unwrap_err().to_string();
    /// assert!(error.contains("is no quantized tensor"), "{error}");
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it was not, or the file's metadata is damaged.
    pub fn record(&self, name: &str) -> Result<Record> {
        let mut records = self.header().records().map_err(|error| self.fault(error))?;
        records.remove(name).ok_or_else(|| {
            let names: Vec<&str> = records.keys().map(String::as_str).collect();
            let error = self.fault(format!("{} is no quantized tensor", quoted(name)));
            match names[..] {
                [] => error.hint("the file has none; `exmy quantize` writes them"),
                _ => error.hint(format!("those it has are {}", names.join(", "))),
            }
        })
    }

    /// The bytes of one part, which must be as the record says.
    fn part(&mut self, name: &str, part: &super::Outline) -> Result<Vec<u8>> {
        let found = self.header().find(&part.name);
        let fits = found.is_some_and(|e| e.dtype == part.dtype && e.shape == part.shape);
        if !fits {
            let found = found.map(|e| format!("{} of shape {:?}", e.dtype, e.shape));
            let error = damaged(
                name,
                format!(
                    "{} must be {} of shape {:?}, found {}",
                    quoted(&part.name),
                    part.dtype,
                    part.shape,
                    found.as_deref().unwrap_or("none")
                ),
            );
            return Err(self.fault(error));
        }
        let mut bytes = Vec::new();
        self.read_into(&part.name, &mut bytes)?;
        Ok(bytes)
    }

    /// A tensor quantized to a block format: the matrix that its axis makes of it. With the axis
    /// last or first (or only axes of length 1 beyond it), that is the tensor itself, its other axes
    /// joined; else the axis comes last.
    ///
    /// ```
    /// use exmy::files::{Dtype, Options, Outline, Reader, Writer, quantize};
    /// use std::ops::ControlFlow;
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let (from, to) = (folder.path().join("a"), folder.path().join("b"));
    /// let mut writer =
    ///     Writer::create(&from, &[Outline::new("w", Dtype::F32, [1, 6])], Default::default())?;
    /// for x in [1.0_f32, 2.6, -7.0, 0.3, 0.0, 1e-9] {
    ///     writer.write("w", &x.to_le_bytes())?;
    /// }
    /// writer.finish()?;
    /// let options = Options::new("mxfp4".parse().unwrap());
    /// quantize(&from, &to, &options, &mut |_| ControlFlow::Continue(()))?;
    ///
    /// let mut reader = Reader::open(&to)?;
    /// assert_eq!(reader.header().metadata()["exmy.format"], "mxfp4");
    /// let tensor = reader.read_blocks("w")?; // a ragged block: 6 of 32 elements
    /// assert_eq!((tensor.rows(), tensor.cols()), (1, 6));
    /// assert_eq!(tensor.dequantize(), [1.0, 3.0, -6.0, 0.5, 0.0, 0.0]); // -7 saturates
    /// assert_eq!(reader.read_values("w")?, tensor.dequantize());
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// If it was not quantized so, its parts do not fit one another, or it cannot be read.
    pub fn read_blocks(&mut self, name: &str) -> Result<BlockTensor> {
        let record = self.record(name)?;
        let Target::Block(format) = record.target() else {
            let format = record.target();
            return Err(self.fault(format!("{} is in {format}, without blocks", quoted(name))));
        };
        let parts = record.parts(name).map_err(|error| self.fault(error))?;
        let path = self.path().display().to_string();
        let misfit =
            |error: &dyn std::fmt::Display| Error::new(format!("{path}: {}", damaged(name, error)));
        let fold = record.fold();
        let (rows, cols, axis) = fold.matrix();
        let (block, (down, right)) = blocks(format, fold);
        let bytes = self.part(name, &parts.codes)?;
        let exchanged = fold.exchanges();
        let (codes, mut scales) = if !exchanged && is_stream(&record, format.element) {
            (bytes, None)
        } else {
            let (mut codes, scales) =
                codes_of_bytes(&record, format.element, &bytes).map_err(|error| misfit(&error))?;
            if exchanged {
                codes = fold.to_matrix(&codes, record.shape[record.axis], 1);
            }
            let packed = pack::pack(&codes, format.element.bits());
            (packed.map_err(|error| misfit(&error))?, scales)
        };
        if let Some(part) = &parts.scales {
            let bytes = self.part(name, part)?;
            let size = format.scale.storage_bits() as usize / 8;
            let linear = match size {
                1 => record.layout.scales().unpack(&bytes, down, right),
                _ => Ok(bytes),
            };
            let mut linear = linear.map_err(|error| misfit(&error))?;
            if exchanged && block.0 == 1 {
                linear = fold.to_matrix(&linear, right, size);
            }
            scales = Some(linear);
        }
        let tensor_scale = match &parts.tensor_scale {
            Some(part) => {
                let bytes = self.part(name, part)?;
                bytes.first_chunk().map(|bytes| f32::from_le_bytes(*bytes))
            }
            None => None,
        };
        let scales = scales.unwrap_or_default();
        BlockTensor::from_parts(format, axis, (rows, cols), codes, scales, tensor_scale)
            .map_err(|error| misfit(&error))
    }

    /// The values of a tensor, in its own order: decoded if it was quantized, else its elements.
    ///
    /// ```
    /// use exmy::files::{Dtype, Options, Outline, Progress, Reader, Writer, quantize};
    /// use std::ops::ControlFlow;
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let (from, to) = (folder.path().join("a"), folder.path().join("b"));
    /// let mut writer = Writer::create(&from, &[Outline::new("w", Dtype::F32, [1, 4])], Default::default())?;
    /// writer.write("w", &[4.0_f32, 5.0, 7.0, -0.0].map(f32::to_le_bytes).concat())?;
    /// writer.finish()?;
    ///
    /// let options = Options::new("mxfp4".parse().unwrap());
    /// quantize(&from, &to, &options, &mut |_: &Progress<'_>| ControlFlow::Continue(()))?;
    /// let mut reader = Reader::open(&to)?;
    /// // A ragged block of four: 5 is a tie and goes to 4, 7 saturates under a scale of 1.
    /// assert_eq!(reader.read_values("w")?, [4.0, 4.0, 6.0, 0.0]);
    /// assert_eq!(reader.read_values("w_scale")?, [1.0]); // what was not quantized is as stored
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`read_blocks`](Self::read_blocks) and [`read_f32`](Self::read_f32).
    pub fn read_values(&mut self, name: &str) -> Result<Vec<f32>> {
        let records = self.header().records().map_err(|error| self.fault(error))?;
        let Some(record) = records.get(name) else {
            return self.read_f32(name);
        };
        if let Target::Format(format) = record.target() {
            let parts = record.parts(name).map_err(|error| self.fault(error))?;
            let bytes = self.part(name, &parts.codes)?;
            let (codes, _) = codes_of_bytes(record, format, &bytes)
                .map_err(|error| self.fault(damaged(name, error)))?;
            let mut values = vec![0.0; codes.len()];
            decode_into(format, &codes, &mut values);
            return Ok(values);
        }
        let values = self.read_blocks(name)?.dequantize();
        let fold = record.fold();
        if fold.exchanges() {
            return Ok(fold.to_tensor(&values, record.shape[record.axis], 1));
        }
        Ok(values)
    }
}
