//! Quantized tensors to the bytes of a file, and back.

use std::collections::BTreeMap;
use std::io::{Read, Seek};

use super::container::{self, Container, Packer};
use super::fault::{quoted, some_of};
use super::layout::{Parts, blocks};
use super::reader::{probe, reserve};
use super::record::Record;
use super::values::{Floats, damaged, nearest};
use super::{Fault, Outline, Reader, Writer};
use crate::block::fast::Decoder;
use crate::block::{BlockFormat, BlockTensor};
use crate::error::{Error, Result};
use crate::pack::{self, PackError, ScaleLayout};
use crate::parallel;
use crate::quantizer::Target;
use crate::shown::printable_path;
use crate::slice::{SPAN, decode_into};

/// Codes or values that are taken at a time.
const PIECE: usize = 1 << 18;

/// Bytes that scales and buffers take besides codes and numbers, in which a tensor is quantized,
/// compared and decoded.
fn buffer_bytes(record: &Record, format: BlockFormat) -> usize {
    let (block, (down, right)) = blocks(format, record.fold());
    // Codes one a byte or two: of a chunk, which is the whole matrix where blocks are that high.
    let wide = if block.0 >= record.fold().matrix().0 { 2 * record.count() } else { 0 };
    [16 * down * right, record.count() / 256, wide, 4 << 20].iter().sum()
}

/// Makes sure that there is memory for quantizing to a block format, besides the numbers.
pub(super) fn probe_blocks(name: &str, record: &Record, format: BlockFormat) -> Result<()> {
    let codes = pack::packed_len(record.count(), format.element.bits()).unwrap_or(usize::MAX);
    probe(name, codes.saturating_add(buffer_bytes(record, format)))
}

/// Calls `each` with the values of a quantized tensor, in the order of the tensor it was, piece by
/// piece. Where that is not the order of the matrix, all of them are in `values` at once.
pub(super) fn each_value(
    name: &str,
    tensor: &BlockTensor,
    record: &Record,
    values: &mut Vec<f32>,
    mut each: impl FnMut(&[f32]) -> Result<()>,
) -> Result<()> {
    let (fold, count) = (record.fold(), record.count());
    let (down, right) = tensor.blocks();
    probe(name, 8 * down * right + (4 << 20))?;
    let decoder = Decoder::new(tensor);
    let decode = |at: usize, out: &mut [f32]| {
        parallel::for_each_chunk(out, SPAN, |i, out| decoder.values(at + i * SPAN, out));
    };
    let mut piece = vec![0.0; PIECE.min(count)];
    if !fold.exchanges() {
        for at in (0..count).step_by(PIECE) {
            let piece = &mut piece[..PIECE.min(count - at)];
            decode(at, piece);
            each(piece)?;
        }
        return Ok(());
    }
    reserve(name, values, count)?;
    values.resize(count, 0.0);
    decode(0, values);
    let mut order = fold.tensor_order(record.shape[record.axis]);
    for at in (0..count).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min(count - at)];
        for (x, i) in piece.iter_mut().zip(order.by_ref()) {
            *x = values[i];
        }
        each(piece)?;
    }
    Ok(())
}

/// Codes of a dense stream in another order, piece by piece.
fn reorder(
    stream: &[u8],
    width: u32,
    mut order: impl Iterator<Item = usize>,
    mut each: impl FnMut(&[u16]) -> Result<()>,
) -> Result<()> {
    let mut codes = Vec::with_capacity(PIECE);
    loop {
        codes.clear();
        codes.extend(order.by_ref().take(PIECE).map(|i| container::code(stream, width, i)));
        if codes.is_empty() {
            return Ok(());
        }
        each(&codes)?;
    }
}

impl Writer {
    /// Writes all parts of a quantized tensor.
    pub(super) fn write_blocks(
        &mut self,
        parts: &Parts,
        record: &Record,
        tensor: BlockTensor,
    ) -> Result<()> {
        let (format, fold) = (tensor.format(), record.fold());
        let (width, (down, right)) = (format.element.bits(), tensor.blocks());
        let size = format.scale.storage_bits() as usize / 8;
        let exchanged = fold.exchanges();
        // The scales of blocks that lie along the axis alone stand where their elements do.
        let along = tensor.block().0 == 1;
        let (codes, mut scales, tensor_scale) = tensor.into_parts();
        let name = &parts.codes.name;
        if exchanged && along {
            let mut transposed = Vec::new();
            reserve(name, &mut transposed, scales.len())?;
            for i in fold.tensor_order(right) {
                transposed.extend_from_slice(&scales[i * size..(i + 1) * size]);
            }
            scales = transposed;
        }
        let container = Container::of(record, format.element);
        if !exchanged && container.is_stream() {
            self.write(name, &codes)?;
        } else {
            let mut packer =
                Packer::new(name, container, width, &scales, |bytes| self.write(name, bytes));
            if exchanged {
                let order = fold.tensor_order(record.shape[record.axis]);
                reorder(&codes, width, order, |codes| packer.add(codes))?;
            } else {
                reorder(&codes, width, 0..record.count(), |codes| packer.add(codes))?;
            }
            packer.finish()?;
        }
        drop(codes);
        if let Some(part) = &parts.scales {
            self.write_scales(part, record, (down, right), scales)?;
        }
        if let (Some(part), Some(scale)) = (&parts.tensor_scale, tensor_scale) {
            self.write(&part.name, &scale.to_le_bytes())?;
        }
        Ok(())
    }

    /// Writes the scales of `down x right` blocks, in the layout and the type of their part.
    fn write_scales(
        &mut self,
        part: &Outline,
        record: &Record,
        (down, right): (usize, usize),
        scales: Vec<u8>,
    ) -> Result<()> {
        let fault = |error: PackError| Error::new(quoted(&part.name)).because(error);
        match (part.dtype.bits(), record.layout.scales()) {
            (width @ 1..8, _) => {
                let container = Container::of_dtype(part.dtype, width);
                let name = &part.name;
                let mut packer =
                    Packer::new(name, container, width, &[], |bytes| self.write(name, bytes));
                let mut codes = Vec::new();
                for scales in scales.chunks(PIECE) {
                    codes.clear();
                    codes.extend(scales.iter().map(|scale| u16::from(*scale)));
                    packer.add(&codes)?;
                }
                packer.finish()
            }
            (8, layout @ ScaleLayout::Tiled) => {
                let mut tiled = Vec::new();
                let length = layout.len(down, right).unwrap_or(usize::MAX);
                reserve(&part.name, &mut tiled, length)?;
                tiled.resize(length, 0);
                layout.pack_into(&scales, down, right, &mut tiled).map_err(fault)?;
                self.write(&part.name, &tiled)
            }
            _ => self.write(&part.name, &scales),
        }
    }
}

impl<R: Read + Seek> Reader<R> {
    /// How tensor `name` was quantized.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, Outline, Reader, Writer};
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
        let records = self.records()?;
        records.get(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = records.keys().map(String::as_str).collect();
            let error = self.fault(Fault::NotQuantized { name: name.to_owned() });
            match names[..] {
                [] => error.hint("the file has none; `exmy quantize` writes them"),
                _ => error.hint(format!("those it has are {}", some_of(names))),
            }
        })
    }

    /// The quantized tensors, from the metadata: it is parsed once.
    pub(super) fn records(&self) -> Result<&BTreeMap<String, Record>> {
        if let Some(records) = self.records.get() {
            return Ok(records);
        }
        let records = self.header().records().map_err(|error| self.fault(error))?;
        Ok(self.records.get_or_init(|| records))
    }

    /// The bytes of one part, of which the record was checked.
    fn part(&mut self, part: &Outline) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.read_into(&part.name, &mut bytes)?;
        Ok(bytes)
    }

    /// A tensor quantized to a block format: the matrix that its axis makes of it. With the axis
    /// last or first (or only axes of length 1 beyond it), that is the tensor itself, its other axes
    /// joined; else the axis comes last.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, QuantizeOptions, Outline, Reader, Writer, quantize};
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
    /// let options = QuantizeOptions::new("mxfp4".parse().unwrap());
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
            return Err(self.fault(Fault::NoBlocks { name: name.to_owned(), format }));
        };
        let parts = record.parts(name).map_err(|error| self.fault(error))?;
        let path = printable_path(self.path()).to_string();
        let misfit =
            |error: &dyn std::fmt::Display| Error::new(path.clone()).because(damaged(name, error));
        let fold = record.fold();
        let (rows, cols, axis) = fold.matrix();
        let (block, (down, right)) = blocks(format, fold);
        let exchanged = fold.exchanges();
        let (width, mut scales) = (format.element.bits(), Vec::new());
        let container = Container::of(&record, format.element);
        let mut codes = self.part(&parts.codes)?;
        if container == Container::Ggml {
            self.reserve(name, &mut scales, record.count() / 32)?;
        }
        if !container.is_stream() {
            codes = self.repacked(name, record.count(), width, |packer| {
                let count = (width, record.count());
                container.unpack(count, &codes, &mut scales, |codes| packer.add(codes))
            })?;
        }
        if exchanged {
            codes = self.repacked(name, record.count(), width, |packer| {
                let order = fold.matrix_order(record.shape[record.axis]);
                reorder(&codes, width, order, |codes| packer.add(codes))
            })?;
        }
        if let Some(part) = &parts.scales {
            scales = self.part_scales(name, part, &record, (down, right))?;
            if exchanged && block.0 == 1 {
                let size = format.scale.storage_bits() as usize / 8;
                let mut transposed = Vec::new();
                self.reserve(name, &mut transposed, scales.len())?;
                for i in fold.matrix_order(right) {
                    transposed.extend_from_slice(&scales[i * size..(i + 1) * size]);
                }
                scales = transposed;
            }
        }
        let tensor_scale = match &parts.tensor_scale {
            Some(part) => {
                let bytes = self.part(part)?;
                bytes.first_chunk().map(|bytes| f32::from_le_bytes(*bytes))
            }
            None => None,
        };
        BlockTensor::from_parts(format, axis, (rows, cols), codes, scales, tensor_scale)
            .map_err(|error| misfit(&error))
    }

    /// The codes that `work` packs, as a dense stream.
    fn repacked(
        &self,
        name: &str,
        count: usize,
        width: u32,
        work: impl FnOnce(&mut Packer<'_, &mut dyn FnMut(&[u8]) -> Result<()>>) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let (mut stream, length) = (Vec::new(), pack::packed_len(count, width));
        self.reserve(name, &mut stream, length.unwrap_or(usize::MAX))?;
        let out: &mut dyn FnMut(&[u8]) -> Result<()> = &mut |bytes| {
            stream.extend_from_slice(bytes);
            Ok(())
        };
        let mut packer = Packer::new(name, Container::STREAM, width, &[], out);
        let done = work(&mut packer).and_then(|()| packer.finish());
        done.map_err(|error| self.fault(damaged(name, error)))?;
        Ok(stream)
    }

    /// The scales of `down x right` blocks, row by row, a whole number of bytes each.
    fn part_scales(
        &mut self,
        name: &str,
        part: &Outline,
        record: &Record,
        (down, right): (usize, usize),
    ) -> Result<Vec<u8>> {
        let stored = self.part(part)?;
        let mut scales = Vec::new();
        match (part.dtype.bits(), record.layout.scales()) {
            (width @ 1..8, _) => {
                self.reserve(name, &mut scales, down * right)?;
                let each = |codes: &[u16]| {
                    scales.extend(codes.iter().map(|code| *code as u8));
                    Ok(())
                };
                let container = Container::of_dtype(part.dtype, width);
                container
                    .unpack((width, down * right), &stored, &mut Vec::new(), each)
                    .map_err(|error| self.fault(damaged(name, error)))?;
                Ok(scales)
            }
            (8, layout @ ScaleLayout::Tiled) => {
                self.reserve(name, &mut scales, down * right)?;
                scales.resize(down * right, 0);
                layout
                    .unpack_into(&stored, down, right, &mut scales)
                    .map_err(|error| self.fault(damaged(name, error)))?;
                Ok(scales)
            }
            _ => Ok(stored),
        }
    }

    /// The values of a tensor, in its own order: decoded if it was quantized, else its elements. Those
    /// of formats wider than `f32` are rounded to it, to nearest even; those of a tensor that was rotated
    /// stay rotated.
    ///
    /// ```
    /// use exmy::safetensors::{Dtype, QuantizeOptions, Outline, Progress, Reader, Writer, quantize};
    /// use std::ops::ControlFlow;
    ///
    /// let folder = tempfile::tempdir().unwrap();
    /// let (from, to) = (folder.path().join("a"), folder.path().join("b"));
    /// let mut writer = Writer::create(&from, &[Outline::new("w", Dtype::F32, [1, 4])], Default::default())?;
    /// writer.write("w", &[4.0_f32, 5.0, 7.0, -0.0].map(f32::to_le_bytes).concat())?;
    /// writer.finish()?;
    ///
    /// let options = QuantizeOptions::new("mxfp4".parse().unwrap());
    /// quantize(&from, &to, &options, &mut |_: &Progress<'_>| ControlFlow::Continue(()))?;
    /// let mut reader = Reader::open(&to)?;
    /// // A ragged block of four: 5 is a tie and goes to 4, 7 saturates under a scale of 1.
    /// assert_eq!(reader.read_values("w")?, [4.0, 4.0, 6.0, 0.0]);
    /// assert_eq!(reader.read_values("w_scale")?, [1.0]); // what was not quantized is as stored
    /// # Ok::<(), exmy::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`read_blocks`](Self::read_blocks) and [`read_f32`](Self::read_f32); if there is no memory
    /// for them.
    pub fn read_values(&mut self, name: &str) -> Result<Vec<f32>> {
        let Some(record) = self.records()?.get(name).cloned() else {
            return self.read_f32(name);
        };
        let mut values = Vec::new();
        self.reserve(name, &mut values, record.count())?;
        self.each_values(name, &record, |piece| {
            piece.append(&mut values, nearest);
            Ok(())
        })?;
        Ok(values)
    }

    /// Calls `each` with the values of a quantized tensor, in its own order, piece by piece.
    pub(super) fn each_values(
        &mut self,
        name: &str,
        record: &Record,
        mut each: impl FnMut(Floats<'_>) -> Result<()>,
    ) -> Result<()> {
        let Target::Format(format) = record.target() else {
            let tensor = self.read_blocks(name)?;
            let mut values = Vec::new();
            return each_value(name, &tensor, record, &mut values, |x| each(Floats::Single(x)));
        };
        let parts = record.parts(name).map_err(|error| self.fault(error))?;
        let bytes = self.part(&parts.codes)?;
        let (mut single, mut double, mut failed) = (Vec::new(), Vec::new(), None);
        let narrow = format.is_exact_in_f32();
        let count = (format.bits(), record.count());
        let unpacked =
            Container::of(record, format).unpack(count, &bytes, &mut Vec::new(), |codes| {
                let values = if narrow {
                    single.resize(codes.len(), 0.0);
                    decode_into(format, codes, &mut single);
                    Floats::Single(&single)
                } else {
                    double.resize(codes.len(), 0.0);
                    decode_into(format, codes, &mut double);
                    Floats::Double(&double)
                };
                each(values).map_err(|error| {
                    failed = Some(error);
                    Error::new("stopped")
                })
            });
        match failed {
            Some(error) => Err(error),
            None => unpacked.map_err(|error| self.fault(damaged(name, error))),
        }
    }
}
