//! Which tensors of a file are quantized, and what becomes of the others.

use std::collections::{BTreeMap, BTreeSet};

use super::fault::{did_you_mean, extents, quoted, some_of};
use super::glob::literal;
use super::layout::Parts;
use super::record::{Record, describe};
use super::{CopyReason, Dtype, Entry, Fault, FileLayout, Glob, Header, Outline};
use crate::error::{Error, Result};
use crate::quantizer::{Quantizer, Target};
use crate::text::Nearest;

/// What [`quantize`](super::quantize()) is to do. Errors name the fields as options of `exmy quantize`:
/// `--exclude` is [`exclude`](Self::exclude), `--dequantize` with `--to` is [`Output::Values`].
#[derive(Clone, Debug, PartialEq)]
pub struct QuantizeOptions {
    /// To which format or block format, and how.
    pub quantizer: Quantizer,
    /// The axis along which blocks lie; negative ones count from the last, which is -1. Plain
    /// formats do not depend on it.
    pub axis: i64,
    /// Names of the tensors to quantize: those that any pattern matches, of any number of axes.
    /// Without patterns, all with two axes or more.
    pub include: Vec<Glob>,
    /// Names of the tensors to leave as they are, whatever `include` says.
    pub exclude: Vec<Glob>,
    /// How codes and scales are stored.
    pub layout: FileLayout,
    /// The seed of random bits. Each tensor has a stream of its own, by its name.
    pub seed: u64,
    /// Codes, or rounded values.
    pub output: Output,
}

/// What is written of a quantized tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Codes and scales.
    Codes,
    /// The values that the codes mean, of the given floating-point type; `None` is the type the
    /// tensor had. What that type cannot hold is rounded once more, to nearest even.
    Values(Option<Dtype>),
}

impl QuantizeOptions {
    /// Codes of all floating-point tensors with two axes or more, blocks along the last axis, in
    /// the format's own types; seed 1.
    ///
    /// ```
    /// use exmy::safetensors::{QuantizeOptions, Output};
    ///
    /// let options = QuantizeOptions::new("nvfp4".parse().unwrap());
    /// assert_eq!((options.axis, options.seed, options.output), (-1, 1, Output::Codes));
    /// assert!(options.include.is_empty()); // not "nothing": all tensors of two axes or more
    /// ```
    pub fn new(quantizer: Quantizer) -> Self {
        Self {
            quantizer,
            axis: -1,
            include: Vec::new(),
            exclude: Vec::new(),
            layout: FileLayout::Safetensors,
            seed: 1,
            output: Output::Codes,
        }
    }
}

/// What is done with one tensor of the input.
#[derive(Debug)]
pub(super) enum Job {
    Keep(CopyReason),
    /// The codes of this tensor, which was quantized before, copied if they and their scales are such.
    Again(String, Record),
    Codes(Record, Parts),
    Values(Record, Dtype),
    /// The codes of a quantized tensor of this name, whose values are written.
    Back(String, Record, Dtype),
    /// The scales of one: read with the codes.
    Part,
}

/// All of it, checked before anything is written.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) jobs: Vec<(Entry, Job)>,
    pub(super) outlines: Vec<Outline>,
    pub(super) metadata: BTreeMap<String, String>,
}

impl Plan {
    pub(super) fn new(header: &Header, options: &QuantizeOptions) -> Result<Self> {
        if options.quantizer.target == Target::None {
            return Err(Error::new("`none` rounds nothing")
                .hint("name a format or block format: e4m3, mxfp4, nvfp4, e2m1/16:e8m0"));
        }
        if options.quantizer.rotation.is_some()
            && !matches!(options.quantizer.target, Target::Block(_))
        {
            return Err(Error::new(format!("{} rotates before a plain format", options.quantizer))
                .hint("a rotation comes before blocks, as in rht16>nvfp4"));
        }
        let mut records = header.records()?;
        let (mut before, mut codes) = (BTreeSet::new(), BTreeMap::new());
        for (name, record) in &records {
            let parts = record.parts(name)?;
            before.extend(parts.iter().map(|part| part.name.clone()));
            codes.insert(parts.codes.name, (name.clone(), record.clone()));
        }
        named_tensors(header, "--include", &options.include)?;
        named_tensors(header, "--exclude", &options.exclude)?;
        let (mut jobs, mut misfits) = (Vec::new(), Vec::new());
        for entry in header.entries() {
            let again = codes.remove(&entry.name).map(|(name, record)| Job::Again(name, record));
            let job = match kept(entry, options, &before) {
                Some(kept) => again.unwrap_or(Job::Keep(kept)),
                None => match job(entry, options) {
                    Ok(job) => job,
                    Err(error) => {
                        misfits.push((&*entry.name, error));
                        continue;
                    }
                },
            };
            jobs.push((entry.clone(), job));
        }
        if let Some(error) = all_of(misfits) {
            return Err(error);
        }
        if jobs.iter().all(|(_, job)| matches!(job, Job::Keep(_) | Job::Again(..))) {
            return Err(nothing_to_do(&jobs));
        }
        let mut metadata = header.metadata().clone();
        let outlines = outlines(&jobs, &mut records)?;
        describe(&mut metadata, &records);
        Ok(Self { jobs, outlines, metadata })
    }

    /// The values of all quantized tensors.
    pub(super) fn back(header: &Header, dtype: Option<Dtype>) -> Result<Self> {
        let records = header.records()?;
        if records.is_empty() {
            return Err(Error::from(Fault::NothingQuantized).hint(
                "--to says what is quantized to; with it, --dequantize writes rounded values",
            ));
        }
        let (mut codes, mut parts) = (BTreeMap::new(), BTreeSet::new());
        for (name, record) in records {
            let own = record.parts(&name)?;
            parts.extend(own.iter().map(|part| part.name.clone()));
            codes.insert(own.codes.name, (name, record));
        }
        let mut jobs = Vec::new();
        for entry in header.entries() {
            let job = match codes.remove(&entry.name) {
                Some((name, record)) => {
                    let dtype = dtype.unwrap_or(record.dtype);
                    Job::Back(name, record, dtype)
                }
                None if parts.contains(&entry.name) => Job::Part,
                None => Job::Keep(CopyReason::Values),
            };
            jobs.push((entry.clone(), job));
        }
        let mut metadata = header.metadata().clone();
        describe(&mut metadata, &BTreeMap::new());
        let outlines = outlines(&jobs, &mut BTreeMap::new())?;
        Ok(Self { jobs, outlines, metadata })
    }
}

/// The tensors that are written. Adds the records of quantized ones.
fn outlines(jobs: &[(Entry, Job)], records: &mut BTreeMap<String, Record>) -> Result<Vec<Outline>> {
    let mut outlines: Vec<Outline> = Vec::new();
    let mut owners = BTreeMap::new();
    for (entry, job) in jobs {
        let (name, shape) = (&entry.name, &entry.shape);
        let parts: Vec<Outline> = match job {
            Job::Keep(_) | Job::Again(..) => {
                vec![Outline::new(name, entry.dtype, shape.clone())]
            }
            Job::Part => vec![],
            Job::Back(name, record, dtype) => {
                vec![Outline::new(name, *dtype, record.shape.clone())]
            }
            Job::Values(_, dtype) => vec![Outline::new(name, *dtype, shape.clone())],
            Job::Codes(record, parts) => {
                records.insert(name.clone(), record.clone());
                parts.iter().cloned().collect()
            }
        };
        for part in parts {
            if let Some(owner) = owners.insert(part.name.clone(), name) {
                return Err(clash(&part.name, owner, name));
            }
            outlines.push(part);
        }
    }
    Ok(outlines)
}

/// Complains about the first pattern that no tensor matches.
pub(super) fn named_tensors(header: &Header, option: &'static str, globs: &[Glob]) -> Result<()> {
    let names = || header.entries().iter().map(|entry| &*entry.name);
    let Some(glob) = globs.iter().find(|glob| !names().any(|name| glob.matches(name))) else {
        return Ok(());
    };
    let text = glob.to_string();
    let nearest = Nearest::new(&text, names());
    let error = Error::from(Fault::NoMatch { option, pattern: text.clone() });
    Err(match nearest.names() {
        [] => error.hint(
            "a pattern matches whole names, `*` stands for any text; `exmy inspect` lists the names",
        ),
        _ => error.hint(did_you_mean(&nearest)),
    })
}

fn kept(entry: &Entry, options: &QuantizeOptions, before: &BTreeSet<String>) -> Option<CopyReason> {
    let any = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(&entry.name));
    match () {
        () if before.contains(&entry.name) => Some(CopyReason::Quantized),
        () if any(&options.exclude) => Some(CopyReason::Excluded),
        () if !options.include.is_empty() && !any(&options.include) => {
            Some(CopyReason::NotIncluded)
        }
        () if !entry.dtype.is_wide_float() => Some(CopyReason::Type(entry.dtype)),
        () if entry.count() == 0 => Some(CopyReason::Empty),
        () if options.include.is_empty() && entry.shape.len() < 2 => Some(CopyReason::FewAxes),
        () => None,
    }
}

fn job(entry: &Entry, options: &QuantizeOptions) -> Result<Job> {
    let axes = entry.shape.len().max(1) as i64;
    let axis = if options.axis < 0 { options.axis.saturating_add(axes) } else { options.axis };
    if !(0..axes).contains(&axis) {
        let (name, shape) = (quoted(&entry.name), extents(&entry.shape));
        let why = format!("tensor {name} of shape {shape} has no axis {}", options.axis);
        return Err(Fault::misfit(&entry.name, why)
            .hint(format!("its axes are 0 to {} and -{axes} to -1", axes - 1)));
    }
    let record = Record {
        quantizer: options.quantizer,
        axis: axis as usize,
        shape: entry.shape.clone(),
        dtype: entry.dtype,
        layout: options.layout,
        seed: options.quantizer.is_stochastic().then_some(options.seed),
    };
    let (rows, cols, way) = record.fold().matrix();
    let fits = options.quantizer.check_size(rows, cols, way);
    let tensor = quoted(&entry.name);
    fits.map_err(|error| Fault::misfit(&entry.name, format!("tensor {tensor}: {error}")))?;
    match options.output {
        Output::Values(dtype) => Ok(Job::Values(record, dtype.unwrap_or(entry.dtype))),
        Output::Codes => {
            let parts = record.parts(&entry.name)?;
            Ok(Job::Codes(record, parts))
        }
    }
}

/// One error of those about several tensors, with the hint of the first.
fn all_of(mut misfits: Vec<(&str, Error)>) -> Option<Error> {
    /// Tensors that are listed in full.
    const MOST: usize = 8;
    if misfits.len() < 2 {
        return misfits.pop().map(|(_, error)| error);
    }
    let texts: Vec<String> = misfits.iter().map(|(_, error)| error.to_string()).collect();
    let first = |text: &String| text.lines().next().unwrap_or_default().to_owned();
    let mut lines: Vec<String> = texts.iter().take(MOST).map(first).collect();
    if let Some(more) = misfits.get(MOST..).filter(|more| !more.is_empty()) {
        lines.push(format!("and {}", some_of(more.iter().map(|(name, _)| *name))));
    }
    let why = format!("{} tensors cannot be done so:\n  {}", misfits.len(), lines.join("\n  "));
    let hint = texts[0].lines().nth(1).unwrap_or_default().trim();
    // What is said of one name holds for all.
    let one = format!("leave it out by --exclude {:?}", literal(misfits[0].0));
    let all: Vec<String> = misfits
        .iter()
        .take(MOST)
        .map(|(name, _)| format!("--exclude {:?}", literal(name)))
        .collect();
    let more = if misfits.len() > MOST { " ..." } else { "" };
    let hint = hint.replace(&one, &format!("leave them out by {}{more}", all.join(" ")));
    let tensors = misfits.iter().map(|(name, _)| (*name).to_owned()).collect();
    Some(Error::from(Fault::Misfit { tensors, why }).hint(hint))
}

fn clash(name: &str, owner: &str, other: &str) -> Error {
    // One of the two is called so already.
    let (maker, owner) = if owner == name { (other, owner) } else { (owner, other) };
    let [tensor, part, owner] = [maker, name, owner].map(str::to_owned);
    Error::from(Fault::NameClash { tensor, part, owner })
        .hint("leave one of them out by --exclude, or rename it")
}

fn nothing_to_do(jobs: &[(Entry, Job)]) -> Error {
    let mut reasons = BTreeMap::<CopyReason, usize>::new();
    for (_, job) in jobs {
        let kept = match job {
            Job::Keep(kept) => *kept,
            Job::Again(..) => CopyReason::Quantized,
            _ => continue,
        };
        *reasons.entry(kept).or_default() += 1;
    }
    let [quantized, excluded] =
        [CopyReason::Quantized, CopyReason::Excluded].map(|kept| reasons.contains_key(&kept));
    let error = Error::from(Fault::NothingToQuantize { kept: reasons.into_iter().collect() });
    if quantized {
        return error.hint(
            "--dequantize without --to writes the values of quantized tensors; from those, or \
             better from the file they were made of, another format can be made",
        );
    }
    if excluded {
        return error
            .hint("--exclude takes out what would be quantized: leave it away, or narrow it");
    }
    error.hint(
        "taken are tensors of F16, BF16, F32 and F64 with two axes or more, and those with any \
         number that --include names",
    )
}
