//! The work on one file: each job of the plan in turn, from the input to the output.

use std::fs;
use std::path::Path;

use super::header::quoted;
use super::layout::{Parts, blocks};
use super::plan::{Job, Plan};
use super::quantize::{Fate, Progress, Report, Row, Watch};
use super::reader::PIECE;
use super::record::Record;
use super::stored::is_stream;
use super::values::{Numbers, Piece, encode, encode_doubles, narrow};
use super::{Dtype, Outline, Reader, Writer};
use crate::block::{Axis, BlockFormat, BlockTensor, Statistics};
use crate::bulk::{Cast, Converter};
use crate::error::{Error, Result};
use crate::format::Format;
use crate::pack;
use crate::quantizer::Target;
use crate::random::{Philox, Stream};
use crate::view::{View, ViewMut};

/// Reads, plans, writes.
pub(super) fn convert(
    input: &Path,
    output: &Path,
    watch: &mut Watch<'_>,
    plan: impl FnOnce(&Reader) -> Result<Plan>,
) -> Result<Option<Report>> {
    let reader = Reader::open(input)?;
    let same = |a: &Path, b: &Path| fs::canonicalize(a).ok().zip(fs::canonicalize(b).ok());
    if same(input, output).is_some_and(|(a, b)| a == b) {
        return Err(Error::new(format!("{} is the input", output.display()))
            .hint("give the output a name of its own: the input is read until the end"));
    }
    let plan = plan(&reader).map_err(|error| reader.fault(error))?;
    let writer = Writer::create(output, &plan.outlines, plan.metadata)?;
    let total = reader.header().data_bytes();
    let mut run = Run { reader, writer, watch, done: 0, total, stopped: false };
    let mut rows = Vec::new();
    for (entry, job) in plan.jobs {
        let fate = match run.job(&entry.name, entry.dtype, job) {
            Ok(fate) => fate,
            Err(_) if run.stopped => return Ok(None),
            Err(error) => return Err(error),
        };
        if let Some((name, shape, fate)) = fate {
            rows.push(Row {
                name: name.unwrap_or(entry.name),
                shape: shape.unwrap_or(entry.shape),
                dtype: entry.dtype,
                fate,
            });
        }
    }
    let bytes_after = run.writer.header().data_bytes();
    run.writer.finish()?;
    Ok(Some(Report { rows, bytes_before: total, bytes_after }))
}

/// The two files and how far the work is.
struct Run<'a, 'b> {
    reader: Reader,
    writer: Writer,
    watch: &'a mut Watch<'b>,
    done: u64,
    total: u64,
    stopped: bool,
}

/// What a job says of itself, with another name and shape than the entry's if it was a part.
type Done = Option<(Option<String>, Option<Vec<usize>>, Fate)>;

impl Run<'_, '_> {
    fn job(&mut self, name: &str, dtype: Dtype, job: Job) -> Result<Done> {
        let fate = match job {
            Job::Keep(kept) => {
                self.pieces(name, |run, bytes| run.writer.write(name, bytes))?;
                Fate::Kept(kept)
            }
            Job::Part => {
                self.pieces(name, |_, _| Ok(()))?;
                return Ok(None);
            }
            Job::Back(original, record, to) => {
                self.tick(name, 0)?;
                let values = self.reader.read_values(&original)?;
                self.write_values(&original, to, &values)?;
                self.pieces(name, |_, _| Ok(()))?;
                let fate = Fate::Decoded(record.target());
                return Ok(Some((Some(original), Some(record.shape), fate)));
            }
            Job::Codes(record, parts) => match record.target() {
                Target::Block(format) => {
                    let (tensor, statistics) = self.blocks(name, &record, format)?;
                    self.writer.write_blocks(&parts, &record, tensor)?;
                    Fate::Quantized { statistics, bits: self.written_bits(&parts) }
                }
                _ => self.cast(name, dtype, &record, Some(&parts), dtype)?,
            },
            Job::Values(record, to) => match record.target() {
                Target::Block(format) => {
                    let (tensor, statistics) = self.blocks(name, &record, format)?;
                    let bits = stored_bits(&record, format);
                    let mut values = tensor.dequantize();
                    drop(tensor);
                    let fold = record.fold();
                    if fold.exchanges() {
                        values = fold.to_tensor(&values, record.shape[record.axis], 1);
                    }
                    self.write_values(name, to, &values)?;
                    Fate::Quantized { statistics, bits }
                }
                _ => self.cast(name, dtype, &record, None, to)?,
            },
        };
        Ok(Some((None, None, fate)))
    }

    /// Says how far the work is.
    fn tick(&mut self, tensor: &str, bytes: usize) -> Result<()> {
        self.done += bytes as u64;
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
            self.tick(name, piece.len())?;
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
        let mut x = Vec::new();
        self.reader.reserve(name, &mut x, record.count() as u64)?;
        let (mut piece, width) = (Piece::default(), record.dtype.bits());
        let own = record.dtype.format().unwrap_or(Format::F32);
        self.pieces(name, |_, bytes| {
            piece.decode(own, width, bytes).append(&mut x, narrow);
            Ok(())
        })?;
        let fold = record.fold();
        if fold.exchanges() {
            x = fold.to_matrix(&x, record.shape[record.axis], 1);
        }
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
        let x = View::new(&x, rows, cols);
        let (rounding, overflow) = (quantizer.rounding, quantizer.overflow);
        let tensor = BlockTensor::quantize(x, axis, format, rounding, overflow, random);
        let statistics = tensor.statistics(x);
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
    ) -> Result<Fate> {
        let (quantizer, random) = (record.quantizer, random(name, record));
        let Target::Format(format) = quantizer.target else {
            return Err(Error::new("a tensor without a format to quantize it to"));
        };
        let cast = Cast { format, rounding: quantizer.rounding, overflow: quantizer.overflow };
        let converter = Converter::from(cast).with_random(random);
        let before = quantizer.before.map(|cast| Converter::from(cast).with_random(random));
        let stream = is_stream(record, format);
        let own = from.format().unwrap_or(Format::F32);
        let (mut piece, mut first) = (Piece::default(), 0_u64);
        let (mut codes, mut whole, mut bytes) = (Vec::<u16>::new(), Vec::<u16>::new(), Vec::new());
        let (mut single, mut double) = (Vec::new(), Vec::new());
        let mut statistics = Statistics::default();
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
            statistics = statistics
                .and(&Statistics::of_cast(View::new(&single, 1, single.len()), &converter));
            // Without a cast before, numbers of F64 go to the format as they are.
            let doubles = match (numbers, &before) {
                (Numbers::Double(x), None) => Some(x),
                _ => None,
            };
            let Some(parts) = parts else {
                match doubles {
                    Some(x) => {
                        double.clear();
                        double.extend_from_slice(x);
                        converter.fake_quantize(&mut double);
                        encode_doubles(to, &double, &mut bytes);
                    }
                    None => {
                        converter.fake_quantize(&mut single);
                        encode(to, &single, &mut bytes);
                    }
                }
                return run.writer.write(name, &bytes);
            };
            codes.resize(single.len(), 0);
            match doubles {
                Some(x) => converter.encode_into(x, &mut codes),
                None => converter.encode_into(&single, &mut codes),
            }
            if !stream {
                whole.extend_from_slice(&codes);
                return Ok(());
            }
            let packed = pack::pack(&codes, format.bits());
            run.writer.write(&parts.codes.name, &packed.map_err(|error| fault(name, error))?)
        })?;
        let bits = match parts {
            Some(parts) => {
                if !stream {
                    self.writer.write_codes(parts, record, format, &whole)?;
                }
                self.written_bits(parts)
            }
            None => record.count() as u64 * u64::from(format.bits()),
        };
        Ok(Fate::Quantized { statistics, bits })
    }

    /// Bits that the parts of a tensor take in the output.
    fn written_bits(&self, parts: &Parts) -> u64 {
        let bits =
            |part: &Outline| self.writer.header().find(&part.name).map_or(0, |e| e.bytes() * 8);
        parts.iter().map(bits).sum()
    }

    fn write_values(&mut self, name: &str, to: Dtype, values: &[f32]) -> Result<()> {
        let mut bytes = Vec::new();
        for values in values.chunks(PIECE / 4) {
            encode(to, values, &mut bytes);
            self.writer.write(name, &bytes)?;
        }
        Ok(())
    }
}

fn fault(name: &str, error: pack::PackError) -> Error {
    Error::new(quoted(name)).because(error)
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
