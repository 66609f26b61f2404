//! `exmy quantize`: a safetensors file in, the same tensors in few bits out.

#[cfg(feature = "tokenizers")]
mod model;

use crate::rows::{Bar, Line, number, percent, shape, shown, table, watched, width};
use crate::settings::{Work, no_stream, quiet_pipe};
#[cfg(feature = "tokenizers")]
use crate::show;
use crate::stop::Stop;
use clap::{Args, ValueEnum};
use exmy::block::scale::ScaleRule;
use exmy::block::{BlockProfile, Statistics};
use exmy::error::{Error, Result};
use exmy::quantizer::{Quantizer, Target};
use exmy::round::{Overflow, Rounding};
use exmy::safetensors::{
    self, Dtype, FileLayout, FileReport, Glob, Output, QuantizeOptions, TensorOutcome,
};
use exmy::shown::printable_path;
use exmy_lab::runner::find_run;
use indicatif::HumanBytes;
use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Quantize the tensors of a safetensors file to any format or block format
///
/// Reads IN tensor by tensor and writes OUT: of each quantized tensor NAME its codes as NAME, its
/// block scales as NAME_scale and, where the format has one, the scale of the tensor as
/// NAME_scale_2, an f32 by which decoded values are multiplied last. The metadata says what is
/// needed to decode them: exmy.format and exmy.tensors. OUT appears whole or not at all.
///
/// Taken are tensors of F16, BF16, F32 and F64 with two axes or more; with --include those that a
/// pattern matches, of any number of axes. All others are copied byte for byte.
///
/// Blocks lie along the axis, the last one if none is named. An axis of a tensor is that of a matrix
/// product: in PyTorch's linear layers the last axis of the weight is the one that is summed.
///
/// The table shows for each tensor the ratio of signal to quantization noise (10 log10 of the sum of
/// x^2 over the sum of (x - y)^2), the largest |x - y|, and the bits an element takes, scales included.
/// Three columns are shares of the numbers: saturated, those beyond the largest magnitude that their
/// block can express; flushed, those that were not zero and became zero; lost, those that were finite
/// and became infinite or NaN. All other columns are of what is not lost, and of what is lost only
/// because the type of --dequantize cannot hold it.
///
/// IN may be a model, a folder of Hugging Face, a GGUF file or a run, as `exmy eval` reads it. Then OUT is a
/// folder: the weights of all linear operators in blocks are quantized, by the methods below or to nearest,
/// with --head those of the head, too, and all else is written in F32. A run must have the shape of Llama,
/// Qwen2, Qwen3 or OLMo 2.
///
/// With --dequantize the rounded values are written in place of codes, in any format whatever its
/// width. Without --to, --dequantize writes the values of the quantized tensors that IN holds.
#[derive(Args)]
#[command(after_long_help = LONG_HELP)]
pub(crate) struct Arguments {
    /// The file to read, or a model
    #[arg(value_name = "IN.safetensors")]
    input: PathBuf,
    /// The file to write; one that is there is replaced when the new one is whole
    #[arg(value_name = "OUT.safetensors")]
    output: PathBuf,
    /// What stands where no third argument does.
    #[arg(hide = true)]
    third: Option<String>,
    /// Format, block format or quantizer: e4m3, mxfp8-e4m3, mxfp4, nvfp4, e2m1/16:e8m0, mxfp4@sr8
    #[arg(long, value_name = "FORMAT", required_unless_present = "dequantize")]
    to: Option<Quantizer>,
    /// Axis along which blocks lie, from 0, or from -1 for the last [default: -1]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = axis)]
    axis: Option<i64>,
    /// Quantize the tensors of these names: * is any text, ? any character, [0-9] one of several;
    /// may be repeated
    #[arg(long, value_name = "GLOB")]
    include: Vec<Glob>,
    /// Leave the tensors of these names as they are; may be repeated
    #[arg(long, value_name = "GLOB")]
    exclude: Vec<Glob>,
    /// How codes and scales are stored: safetensors torch cublas gpt-oss ggml stream byte
    /// fp6-padded4 fp6-padded32 tma16 [default: safetensors]
    #[arg(long, value_name = "L")]
    layout: Option<FileLayout>,
    /// Rounding of the elements: rne rna rnz rtz rup rdn raz odd, or srN, srNb, srNc with N random
    /// bits [default: rne; that of the profile]
    #[arg(long, value_name = "R")]
    round: Option<Rounding>,
    /// How a block's scale follows from its largest magnitude: floor ceil even rceil nearest max-abs
    /// 4over6 ... [default: that of the format and profile]
    #[arg(long, value_name = "RULE")]
    scale_rule: Option<ScaleRule>,
    /// Whose block scales, in every detail: ocp microxcaling microxcaling-torch torchao torchao-0.18
    /// te te-2.13 ... [default: ocp]
    #[arg(long, value_name = "P")]
    profile: Option<BlockProfile>,
    /// What becomes of elements out of range: sat-none sat-finite sat-propagate to-nan to-inf onnx
    /// [default: sat-finite; sat-none in formats with infinities and in integers, as int8b-6]
    #[arg(long, value_name = "O")]
    overflow: Option<Overflow>,
    /// Seed of stochastic rounding [default: 1]
    #[arg(long, value_name = "S", allow_hyphen_values = true, value_parser = seed)]
    seed: Option<u64>,
    /// Write the rounded values instead of codes, as f32, bf16 or f16 (--dequantize=bf16) or, if none
    /// is named, in the type that the tensor has
    #[arg(long, value_name = "TYPE", num_args = 0..=1, require_equals = true)]
    dequantize: Option<Option<Type>>,
    #[cfg(feature = "tokenizers")]
    #[command(flatten)]
    model: model::Options,
    #[command(flatten)]
    work: Work,
}

const LONG_HELP: &str = "\
Layouts:
  safetensors   the format's own types (F4, F6_E2M3, F6_E3M2, F8_*), scales row
                by row
  torch         types that PyTorch has: two FP4 codes in a U8, low nibble first,
                one FP6 code in a U8
  cublas        block scales in tiles of 128 x 4, as cuBLAS and CUTLASS read them
  gpt-oss       NAME_blocks and NAME_scales (mxfp4 along the last axis)
  ggml          block_mxfp4 of GGUF files (mxfp4 along the last axis)
  stream, byte, fp6-padded4, fp6-padded32, tma16
                U8, each row of codes in a container of its own; stream and byte
                take any width

Examples:
  exmy quantize model.safetensors small.safetensors --to nvfp4 \\
      --exclude '*embed*' --exclude 'lm_head.*'
  exmy quantize model.safetensors small.safetensors --to mxfp8-e4m3 \\
      --scale-rule rceil
  exmy quantize model.safetensors rounded.safetensors --to e3m2/32:e8m0@sr8 \\
      --dequantize=bf16
  exmy quantize small.safetensors values.safetensors --dequantize

A model, to nearest or by methods that look at it:
  exmy quantize runs/0001/f32-s1 small --to mxfp4
  exmy quantize SmolLM2-135M.gguf small --to mxfp4 --rotate \\
      --gptq --calibrate book.txt
  exmy quantize SmolLM2-135M.gguf small --to mxfp4 --head=mxfp8-e4m3
  exmy eval small --data other.txt --recipe f32

A model in several files is done file by file:
  mkdir -p small
  for f in model-*.safetensors; do
      exmy quantize \"$f\" \"small/$f\" --to nvfp4
  done

Codes of 4 and 6 bits are a little-endian stream of bits over the tensor; the
format of the file does not say so itself. Rotated values (rht16>nvfp4) stay
rotated, also with --dequantize. Exit codes: 0 done, 2 misuse or a file that
cannot be used; 130, 143 or 129 ended by SIGINT, SIGTERM or SIGHUP.
";

/// Types in which values are written.
#[derive(Clone, Copy, ValueEnum)]
enum Type {
    F32,
    Bf16,
    F16,
}

impl Type {
    fn dtype(self) -> Dtype {
        match self {
            Self::F32 => Dtype::F32,
            Self::Bf16 => Dtype::BF16,
            Self::F16 => Dtype::F16,
        }
    }
}

impl Arguments {
    /// What the options say; `None` if only values are to be written.
    fn options(&self) -> Result<Option<QuantizeOptions>> {
        let Some(to) = self.to else {
            return self.alone().map_or(Ok(None), Err);
        };
        if to.target == Target::None {
            return Err(Error::new(format!("--to {to} rounds nothing"))
                .hint("name a format or block format: e4m3, mxfp4, nvfp4, e2m1/16:e8m0"));
        }
        let quantizer = self.quantizer(to)?;
        self.unused(&quantizer).map_or(Ok(()), Err)?;
        let output = match &self.dequantize {
            None => Output::Codes,
            Some(dtype) => Output::Values(dtype.map(Type::dtype)),
        };
        Ok(Some(QuantizeOptions {
            axis: self.axis.unwrap_or(-1),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            layout: self.layout.unwrap_or_default(),
            seed: self.seed.unwrap_or(1),
            output,
            ..QuantizeOptions::new(quantizer)
        }))
    }

    /// What --to and the options about it say together. An option says nothing twice: what --to has not
    /// left at its default stays.
    fn quantizer(&self, to: Quantizer) -> Result<Quantizer> {
        let default = Quantizer::new(to.target);
        let said = |is: bool, option: &str, value: &dyn fmt::Display, what: &str| match is {
            true => Err(Error::new(format!(
                "--to {to} and {option} {value} are two {what}: one is possible"
            ))),
            false => Ok(()),
        };
        let blocks = |option: &str, value: &dyn fmt::Display| {
            match to.target {
            Target::Block(format) => Ok(format),
            target => Err(Error::new(format!(
                "{option} {value} is about the scales of blocks, but only block formats have scales, \
                 and {target} is none"
            ))
            .hint("leave it out, or name a block format: mxfp8-e4m3, nvfp4, e4m3/32:e8m0")),
        }
        };
        let mut quantizer = to;
        if let Some(profile) = self.profile {
            let is = blocks("--profile", &profile)?.profile != BlockProfile::Ocp;
            said(is, "--profile", &profile, "block profiles")?;
            quantizer = quantizer.with_profile(profile);
        }
        if let Some(rule) = self.scale_rule {
            let format = blocks("--scale-rule", &rule)?;
            let is = format.rule != format.profile.default_rule(format.scale);
            said(is, "--scale-rule", &rule, "scale rules")?;
            quantizer = quantizer.with_scale_rule(rule);
        }
        if let Some(rounding) = self.round {
            said(to.rounding != default.rounding, "--round", &rounding, "rounding modes")?;
            quantizer = quantizer.with_rounding(rounding);
        }
        if let Some(overflow) = self.overflow {
            said(to.overflow != default.overflow, "--overflow", &overflow, "overflow policies")?;
            quantizer = quantizer.with_overflow(overflow);
        }
        if let Target::Block(format) = quantizer.target {
            format.check().map_err(|error| Error::new(format!("--to {to}: {error}")))?;
        }
        let random = to.before.is_some_and(|cast| cast.rounding.is_stochastic());
        if random && quantizer.rounding.is_stochastic() {
            return Err(Error::new(format!("--to {quantizer} rounds stochastically twice"))
                .hint("one of the two needs a deterministic mode"));
        }
        Ok(quantizer)
    }

    /// What is wrong with an option that says how to quantize where nothing is quantized.
    fn alone(&self) -> Option<Error> {
        let given = [
            ("--axis", self.axis.is_some()),
            ("--include", !self.include.is_empty()),
            ("--exclude", !self.exclude.is_empty()),
            ("--layout", self.layout.is_some()),
            ("--round", self.round.is_some()),
            ("--scale-rule", self.scale_rule.is_some()),
            ("--profile", self.profile.is_some()),
            ("--overflow", self.overflow.is_some()),
            ("--seed", self.seed.is_some()),
        ];
        let (option, _) = given.iter().find(|(_, given)| *given)?;
        let what = format!("{option} is about quantizing, and without --to nothing is quantized");
        Some(Error::new(what).hint(
            "--dequantize alone writes the values of all quantized tensors of IN; --to FORMAT \
             quantizes, and with --dequantize writes the rounded values",
        ))
    }

    /// What is wrong with an option that would change nothing.
    fn unused(&self, quantizer: &Quantizer) -> Option<Error> {
        if let (Some(layout), Some(_)) = (self.layout, self.dequantize) {
            let what = format!(
                "--layout {layout} is how codes are stored, and --dequantize writes values"
            );
            return Some(Error::new(what).hint("leave one of them out"));
        }
        if let (Some(axis), Target::Format(format)) = (self.axis, quantizer.target) {
            let what = format!("--axis {axis} is where blocks lie, and {format} has none");
            return Some(
                Error::new(what)
                    .hint("leave it out, or name a block format: mxfp8-e4m3, nvfp4, e4m3/32:e8m0"),
            );
        }
        if let (Some(seed), false) = (self.seed, quantizer.is_stochastic()) {
            let what =
                format!("--seed {seed} is for stochastic rounding, and {quantizer} has none");
            return Some(Error::new(what).hint("leave it out, or add --round sr8"));
        }
        None
    }
}

#[cfg(feature = "tokenizers")]
impl Arguments {
    /// Quantizes a model, if IN is one; what is said of that.
    fn of_model(&self) -> Result<Option<String>> {
        let input = &find_run(&self.input);
        let option = self.model.given();
        if !model::is_model(input) {
            let Some(option) = option else { return Ok(None) };
            return Err(Error::new(format!(
                "{option} looks at a model, and IN is a file of tensors"
            ))
            .hint("name the model's folder, with config.json, a GGUF file or a run"));
        }
        let given = [
            ("--axis", self.axis.is_some()),
            ("--include", !self.include.is_empty()),
            ("--exclude", !self.exclude.is_empty()),
            ("--seed", self.seed.is_some()),
            ("--dequantize", self.dequantize.is_some()),
        ];
        if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
            return Err(Error::new(format!(
                "{option} is about files of tensors, and IN is a model"
            ))
            .hint(
                "of a model all linear operators in blocks are quantized, and by --head the head",
            ));
        }
        let Some(to) = self.to else {
            return Err(Error::new("a model is quantized to a format: --to FORMAT is missing"));
        };
        let (quantizer, layout) = (self.quantizer(to)?, self.layout.unwrap_or_default());
        let quiet = self.work.quiet;
        let work = || {
            model::quantize((input, &self.output), quantizer, layout, &self.model, quiet).map(Some)
        };
        self.work.with_threads(work)
    }
}

fn axis(text: &str) -> Result<i64, String> {
    let what = "an axis is a whole number: 0 is the first, 1 the second, -1 the last";
    text.parse().map_err(|_| what.to_owned())
}

fn seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("a seed is a whole number from 0 to {}", u64::MAX))
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments, stop: &Stop) -> Result<u8> {
    if let Some(third) = &arguments.third {
        return Err(Error::new(format!("{third:?} is one argument too many after IN and OUT"))
            .hint("--dequantize=bf16 and --head=mxfp8-e4m3 are written with `=`"));
    }
    no_stream(&arguments.input)?;
    no_stream(&arguments.output)?;
    #[cfg(feature = "tokenizers")]
    if let Some(written) = arguments.of_model()? {
        return show::result(&written).map(|()| 0);
    }
    let options = arguments.options()?;
    // What a large tensor leaves that is not waited for has a name that says it is a part, and the next run
    // removes it.
    let stop = stop.looked_at();
    let Arguments { input, output, work: Work { quiet, .. }, .. } = arguments;
    let dtype = arguments.dequantize.flatten().map(Type::dtype);
    let input = &find_run(input);
    let work = || {
        watched(&mut Bar::new("read", *quiet), stop, |watch| match &options {
            Some(options) => safetensors::quantize(input, output, options, watch),
            None => safetensors::dequantize(input, output, dtype, watch),
        })
    };
    let report = arguments.work.with_threads(work)?;
    let Some(report) = report else {
        say!("stopped; {} was not written", printable_path(output));
        return Ok(stop.code());
    };
    let mut text = rows(&report);
    if let Some(quantizer) = options.map(|o| o.quantizer).filter(|q| q.rotation.is_some()) {
        text += &format!(
            "{quantizer}: the figures are those of rotated numbers, and what was written stays \
             rotated\n"
        );
    }
    if !quiet {
        text += &format!(
            "\n{}: {} of tensors, from {}\n",
            printable_path(output),
            HumanBytes(report.bytes_after),
            HumanBytes(report.bytes_before)
        );
    }
    let mut stdout = std::io::stdout().lock();
    let shown = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    quiet_pipe(shown).map_err(|error| {
        let what = format!("{} is whole, and the table could not be shown", printable_path(output));
        Error::new(what).because(error)
    })?;
    if let Some(text) = unreadable(output)? {
        say!("warning: {text}");
    }
    Ok(0)
}

/// Tensors of a file that PyTorch cannot load: it has no type of 6 bits, and takes those of 4 bits in
/// pairs along the last axis.
fn unreadable(path: &Path) -> Result<Option<String>> {
    let reader = safetensors::Reader::open(path)?;
    let cannot = |entry: &&safetensors::Entry| match entry.dtype {
        Dtype::F6E2M3 | Dtype::F6E3M2 => true,
        Dtype::F4 => entry.shape.last().is_some_and(|last| !last.is_multiple_of(2)),
        _ => false,
    };
    let mut found = reader.header().entries().iter().filter(cannot);
    let Some(first) = found.next() else { return Ok(None) };
    let more = match found.count() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Ok(Some(format!(
        "PyTorch cannot load \"{}\", {} of shape {:?}{more}: it has no type of 6 bits, and those of 4 \
         bits only in pairs along the last axis; --layout torch or byte stores codes as U8",
        shown(&first.name),
        first.dtype,
        first.shape
    )))
}

/// The table of a report, and what went wrong with numbers that were none.
fn rows(report: &FileReport) -> String {
    let headings =
        ["tensor", "shape", "type", "SQNR dB", "max error", "saturated", "flushed", "lost", "bits"];
    let mut lines = Vec::new();
    let mut notes = String::new();
    for row in &report.rows {
        let mut cells = vec![shape(&row.shape), row.dtype.to_string()];
        let mut remark = String::new();
        match &row.outcome {
            TensorOutcome::Copied(kept) => remark = format!("kept: {kept}"),
            TensorOutcome::Decoded { quantizer, overflowed } => {
                (cells[1], remark) = (quantizer.to_string(), "values written".into());
                if quantizer.rotation.is_some() {
                    remark += ", still rotated";
                }
                if *overflowed > 0 {
                    remark += &format!(", {overflowed} of them infinite: beyond the type written");
                }
            }
            TensorOutcome::Quantized { statistics, bits, overflowed } => {
                cells.extend(figures(statistics, *bits));
                let name = shown(&row.name);
                if statistics.lost > 0 {
                    notes += &format!(
                        "{name}: {} of {} numbers were infinite or NaN, {} more became so\n",
                        statistics.non_finite,
                        statistics.count,
                        statistics.lost - statistics.non_finite
                    );
                }
                if *overflowed > 0 {
                    notes += &format!(
                        "{name}: {overflowed} of these are finite in the format, and infinite in \
                         the type that was written\n"
                    );
                }
            }
        }
        lines.push(Line { name: row.name.clone(), cells, remark });
    }
    let (total, bits) = report.total();
    if total.count > 0 {
        let mut cells = vec![total.count.to_string(), String::new()];
        cells.extend(figures(&total, bits));
        lines.push(Line { name: "total".into(), cells, remark: String::new() });
    }
    table(&headings, 2, &lines, width()) + &notes
}

/// SQNR, largest error, shares, bits an element.
fn figures(found: &Statistics, bits: u64) -> [String; 6] {
    // Numbers that became infinite are in no sum: the rest alone may be exact, the tensor is not.
    let lost = found.lost - found.non_finite;
    let sqnr = match found.sqnr_db() {
        // Squares of numbers of F64 may be beyond it.
        db if db.is_nan() || (db == f64::INFINITY && (lost > 0 || found.max_error > 0.0)) => {
            "-".into()
        }
        db if db == f64::INFINITY => "exact".into(),
        db => format!("{db:.2}"),
    };
    [
        sqnr,
        if lost > 0 && found.max_error == 0.0 { "-".into() } else { number(found.max_error) },
        percent(found.saturated, found.count),
        percent(found.flushed, found.count),
        percent(lost, found.count),
        number(bits as f64 / found.count.max(1) as f64),
    ]
}
