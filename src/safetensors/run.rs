//! The work on one file: each job of the plan in turn, from the input to the output.

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use super::container::{Container, Packer};
use super::fault::quoted;
use super::layout::{Parts, blocks};
use super::plan::{Job, Plan};
use super::reader::reserve;
use super::record::Record;
use super::report::{FileReport, Progress, TensorOutcome, TensorReport, Watch};
use super::stored::{each_value, probe_blocks};
use super::values::{Floats, Piece, encode, encode_doubles, narrow};
use super::{CopyReason, Dtype, Fault, Outline, Reader, Writer};
use crate::block::{Axis, BlockFormat, BlockTensor, Statistics};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::quantizer::Target;
use crate::random::{Philox, Stream};
use crate::round::Rules;
use crate::slice::{Converter, View, ViewMut};

/// Reads, plans, writes.
pub(super) fn convert(
    input: &Path,
    output: &Path,
    watch: &mut Watch<'_>,
    plan: impl FnOnce(&Reader) -> Result<Plan>,
) -> Result<Option<FileReport>> {
    let reader = Reader::open(input)?;
    let same = |a: &Path, b: &Path| fs::canonicalize(a).ok().zip(fs::canonicalize(b).ok());
    if same(input, output).is_some_and(|(a, b)| a == b) {
        return Err(Error::from(Fault::OutputIsInput { path: output.to_owned() })
            .hint("give the output a name of its own: the input is read until the end"));
    }
    let plan = plan(&reader).map_err(|error| reader.fault(error))?;
    let writer = Writer::create(output, &plan.outlines, plan.metadata)?;
    let total = reader.header().data_bytes();
    let numbers = Vec::new();
    let mut run = Run { reader, writer, watch, done: 0, total, stopped: false, numbers };
    let mut rows = Vec::new();
    for (entry, job) in plan.jobs {
        let outcome = match run.job(&entry.name, entry.dtype, job) {
            Ok(outcome) => outcome,
            Err(_) if run.stopped => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some((name, shape, outcome)) = outcome {
            rows.push(TensorReport {
                name: name.unwrap_or(entry.name),
                shape: shape.unwrap_or(entry.shape),
                dtype: entry.dtype,
                outcome,
            });
        }
    }
    let bytes_after = run.writer.header().data_bytes();
    run.writer.finish()?;
    Ok(Some(FileReport { rows, bytes_before: total, bytes_after }))
}

/// The two files and how far the work is.
struct Run<'a, 'b> {
    reader: Reader,
    writer: Writer,
    watch: &'a mut Watch<'b>,
    done: u64,
    total: u64,
    stopped: bool,
    /// Those of a tensor that gets blocks: memory that is used again from tensor to tensor.
    numbers: Vec<f32>,
}

/// What a job says of itself, with another name and shape than the entry's if it was a part.
type Done = Option<(Option<String>, Option<Vec<usize>>, TensorOutcome)>;

impl Run<'_, '_> {
    fn job(&mut self, name: &str, dtype: Dtype, job: Job) -> Result<Done> {
        let outcome = match job {
            Job::Keep(kept) => {
                self.pieces(name, |run, bytes| run.writer.write(name, bytes))?;
                TensorOutcome::Copied(kept)
            }
            Job::Again(original, record) => {
                self.tick(name, 0)?;
                self.reader.each_values(&original, &record, |_| Ok(()))?;
                self.pieces(name, |run, bytes| run.writer.write(name, bytes))?;
                TensorOutcome::Copied(CopyReason::Quantized)
            }
            Job::Part => {
                self.pieces(name, |_, _| Ok(()))?;
                return Ok(None);
            }
            Job::Back(original, record, to) => {
                self.tick(name, 0)?;
                let (mut bytes, mut overflowed) = (Vec::new(), 0);
                self.reader.each_values(&original, &record, |values| {
                    overflowed += values.encoded(to, &mut bytes);
                    self.writer.write(&original, &bytes)
                })?;
                self.tick(name, self.reader.entry(name)?.bytes())?;
                let outcome = TensorOutcome::Decoded { quantizer: record.quantizer, overflowed };
                return Ok(Some((Some(original), Some(record.shape), outcome)));
            }
            Job::Codes(record, parts) => match record.target() {
                Target::Block(format) => {
                    let (tensor, statistics) = self.blocks(name, &record, format)?;
                    self.writer.write_blocks(&parts, &record, tensor)?;
                    let bits = self.written_bits(&parts);
                    TensorOutcome::Quantized { statistics, bits, overflowed: 0 }
                }
                _ => self.cast(name, dtype, &record, Some(&parts), dtype)?,
            },
            Job::Values(record, to) => match record.target() {
                Target::Block(format) => {
                    let (tensor, mut statistics) = self.blocks(name, &record, format)?;
                    let bits = stored_bits(&record, format);
                    let (mut bytes, mut overflowed) = (Vec::new(), 0);
                    each_value(name, &tensor, &record, &mut self.numbers, |values| {
                        overflowed += encode(to, values, &mut bytes);
                        self.writer.write(name, &bytes)
                    })?;
                    statistics.lost += overflowed;
                    TensorOutcome::Quantized { statistics, bits, overflowed }
                }
                _ => self.cast(name, dtype, &record, None, to)?,
            },
        };
        Ok(Some((None, None, outcome)))
    }

    /// Says how far the work is.
    fn tick(&mut self, tensor: &str, bytes: u64) -> Result<()> {
        self.done += bytes;
        let progress = Progress { tensor, done: self.done, total: self.total };
        self.stopped |= (self.watch)(&progress).is_break();
        if self.stopped { Err(Error::new("stopped")) } else { Ok(()) }
    }

    /// Calls `work` with each piece of a tensor of the input.
    fn pieces(
        &mut self,
        name: &str,
        mut work: impl FnMut(&mut Self, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let mut at = 0;
        let mut piece = Vec::new();
        while self.reader.piece(name, at, &mut piece)? {
            at += piece.len() as u64;
            work(self, &piece)?;
            self.tick(name, piece.len() as u64)?;
        }
        Ok(())
    }

    /// A tensor in a block format, and what became of its numbers.
    fn blocks(
        &mut self,
        name: &str,
        record: &Record,
        format: BlockFormat,
    ) -> Result<(BlockTensor, Statistics)> {
        let mut x = std::mem::take(&mut self.numbers);
        let (fold, count) = (record.fold(), record.count());
        reserve(name, &mut x, count).map_err(|error| self.reader.fault(error))?;
        let (mut piece, width) = (Piece::default(), record.dtype.bits());
        let own = record.dtype.format().unwrap_or(Format::F32);
        if fold.exchanges() {
            x.resize(count, 0.0);
            let (mut single, mut first) = (Vec::new(), 0);
            self.pieces(name, |_, bytes| {
                single.clear();
                piece.decode(own, width, bytes).append(&mut single, narrow);
                fold.place(first, &single, &mut x);
                first += single.len();
                Ok(())
            })?;
        } else {
            self.pieces(name, |_, bytes| {
                piece.decode(own, width, bytes).append(&mut x, narrow);
                Ok(())
            })?;
        }
        probe_blocks(name, record, format).map_err(|error| self.reader.fault(error))?;
        let (rows, cols, axis) = fold.matrix();
        let random = random(name, record);
        let quantizer = record.quantizer;
        if let Some(cast) = quantizer.before {
            Converter::from(cast).with_random(random).fake_quantize(&mut x);
        }
        if let Some(rotation) = quantizer.rotation {
            rotation
                .apply_matrix(ViewMut::new(&mut x, rows, cols), axis == Axis::Rows)
                .map_err(|error| Error::new(quoted(name)).because(error))?;
        }
        let view = View::new(&x, rows, cols);
        let (rounding, overflow) = (quantizer.rounding, quantizer.overflow);
        let tensor = BlockTensor::quantize(view, axis, format, (rounding, overflow, random));
        let statistics = tensor.statistics(view);
        self.numbers = x;
        Ok((tensor, statistics))
    }

    /// A tensor in a format without blocks: codes into `parts`, or values of type `to`.
    fn cast(
        &mut self,
        name: &str,
        from: Dtype,
        record: &Record,
        parts: Option<&Parts>,
        to: Dtype,
    ) -> Result<TensorOutcome> {
        let (quantizer, random) = (record.quantizer, random(name, record));
        let Target::Format(format) = quantizer.target else {
            return Err(Error::new("a tensor without a format to quantize it to"));
        };
        let (rounding, overflow) = (quantizer.rounding, quantizer.overflow);
        let rules = Rules::DEFAULT.with_rounding(rounding).with_overflow(overflow);
        let converter = Converter::new(format, rules).with_random(random);
        let before = quantizer.before.map(|cast| Converter::from(cast).with_random(random));
        let container = Container::of(record, format);
        let own = from.format().unwrap_or(Format::F32);
        let (mut piece, mut first) = (Piece::default(), 0_u64);
        let (mut codes, mut bytes) = (Vec::<u16>::new(), Vec::new());
        let (mut single, mut double) = (Vec::new(), Vec::new());
        let (mut statistics, mut overflowed) = (Statistics::default(), 0);
        // What was packed and not yet written.
        let packed = RefCell::new(Vec::new());
        let mut packer = parts.map(|parts| {
            let out = |bytes: &[u8]| {
                packed.borrow_mut().extend_from_slice(bytes);
                Ok(())
            };
            Packer::new(&parts.codes.name, container, format.bits(), &[], out)
        });
        self.pieces(name, |run, piece_bytes| {
            let converter = converter.starting_at(first);
            let before = before.map(|before| before.starting_at(first));
            let numbers = piece.decode(own, from.bits(), piece_bytes);
            single.clear();
            numbers.append(&mut single, narrow);
            first += single.len() as u64;
            if let Some(before) = &before {
                before.fake_quantize(&mut single);
            }
            // Without a cast before, numbers of F64 go to the format as they are.
            let doubles = match (numbers, &before) {
                (Floats::Double(x), None) => Some(x),
                _ => None,
            };
            statistics = statistics.and(&match doubles {
                Some(x) => Statistics::of_doubles(x, &converter),
                None => Statistics::of_cast(View::new(&single, 1, single.len()), &converter),
            });
            let (Some(parts), Some(packer)) = (parts, &mut packer) else {
                overflowed += match doubles {
                    Some(x) => {
                        double.clear();
                        double.extend_from_slice(x);
                        converter.fake_quantize(&mut double);
                        encode_doubles(to, &double, &mut bytes)
                    }
                    None => {
                        converter.fake_quantize(&mut single);
                        encode(to, &single, &mut bytes)
                    }
                };
                return run.writer.write(name, &bytes);
            };
            codes.resize(single.len(), 0);
            match doubles {
                Some(x) => converter.encode_into(x, &mut codes),
                None => converter.encode_into(&single, &mut codes),
            }
            packer.add(&codes)?;
            let mut packed = packed.borrow_mut();
            run.writer.write(&parts.codes.name, &packed)?;
            packed.clear();
            Ok(())
        })?;
        packer.map_or(Ok(()), Packer::finish)?;
        let bits = match parts {
            Some(parts) => {
                self.writer.write(&parts.codes.name, &packed.borrow())?;
                self.written_bits(parts)
            }
            None => record.count() as u64 * u64::from(format.bits()),
        };
        statistics.lost += overflowed;
        Ok(TensorOutcome::Quantized { statistics, bits, overflowed })
    }

    /// Bits that the parts of a tensor take in the output.
    fn written_bits(&self, parts: &Parts) -> u64 {
        let bits =
            |part: &Outline| self.writer.header().find(&part.name).map_or(0, |e| e.bytes() * 8);
        parts.iter().map(bits).sum()
    }
}

/// The random bits of a tensor: a stream by its name, so that they do not depend on what else is in
/// the file.
fn random(name: &str, record: &Record) -> Philox {
    let stream = Stream::new("quantize").with(Stream::new(name).id());
    Philox::new(record.seed.unwrap_or(0), stream)
}

/// Bits that a tensor takes in a block format: packed codes, scales in whole bytes, and the
/// tensor's scale.
fn stored_bits(record: &Record, format: BlockFormat) -> u64 {
    let (_, (down, right)) = blocks(format, record.fold());
    let scales = (down * right) as u64 * u64::from(format.scale.storage_bits());
    let codes = record.count() as u64 * u64::from(format.element.bits());
    codes + scales + if format.tensor_scale { 32 } else { 0 }
}
