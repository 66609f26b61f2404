//! `exmy inspect`: what a safetensors file holds, and what its numbers look like.

use crate::rows::{Bar, Line, number, percent, shape, table, width};
use crate::settings::{no_stream, quiet_pipe, with_threads};
use clap::Args;
use exmy::error::{Error, Result};
use exmy::safetensors::{Progress, Reader, Survey};
use exmy::shown::{printable, printable_path};
use exmy_lab::amounts::counted;
use exmy_lab::runner::find_run;
use indicatif::HumanBytes;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;

/// Show the tensors of a safetensors file, their ranges and their outliers
///
/// One line a tensor: type, shape, smallest, largest and largest absolute number, share of zeros,
/// share of NaN and infinities, and three measures of outliers over the n finite elements of mean
/// m and standard deviation sigma:
///
/// kurtosis: mean of (x - m)^4 over sigma^4, less 3; 0 for a normal distribution, 3 for a Laplace
/// distribution, larger the more the tails weigh.
///
/// >6sigma: the share of elements farther than 6 sigma from m; 2e-9 of a normal distribution.
///
/// channels: largest over median channel (of an even number the mean of the middle two), where a channel is
/// an index along the last axis and its size the largest |x| in it; large where a few channels carry the
/// outliers.
///
/// Tensors that `exmy quantize` wrote are shown decoded, under their own names and formats; after a
/// rotation (rht16>nvfp4) the figures are those of the rotated tensor. Others of
/// 4, 6 and 8 bits are shown as they are, without scales that tensors beside them may hold. Tensors
/// are read one at a time.
#[derive(Args)]
pub(crate) struct Arguments {
    /// The file to read
    #[arg(value_name = "FILE.safetensors")]
    file: PathBuf,
    /// Show names, types and shapes alone, without reading the tensors
    #[arg(long)]
    header: bool,
    /// Show no progress
    #[arg(long, short)]
    quiet: bool,
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    no_stream(&arguments.file)?;
    match arguments.header {
        true => inspect(arguments),
        false => with_threads(None, || inspect(arguments)),
    }
}

fn inspect(arguments: &Arguments) -> Result<u8> {
    let file = find_run(&arguments.file);
    let mut reader = Reader::open(&file)?;
    let header = reader.header().clone();
    let fault = |error: Error| Error::new(format!("{}: {error}", printable_path(&file)));
    let records = header.records().map_err(fault)?;
    let (mut codes, mut others) = (BTreeMap::new(), BTreeSet::new());
    for (name, record) in &records {
        let names = record.part_names(name).map_err(fault)?;
        codes.insert(names[0].clone(), (name, record));
        others.extend(names.into_iter().skip(1));
    }
    let mut bar = Bar::new("read", arguments.quiet || arguments.header);
    let (mut lines, mut done) = (Vec::new(), 0);
    let (mut kinds, mut elements) = (BTreeMap::<String, u64>::new(), 0);
    for entry in header.entries() {
        bar.show(&Progress { tensor: &entry.name, done, total: header.data_bytes() });
        done += entry.bytes();
        *kinds.entry(entry.dtype.to_string()).or_default() += entry.bytes();
        if others.contains(&entry.name) {
            continue;
        }
        let quantized = codes.get(&entry.name);
        let name = quantized.map_or(&entry.name, |(name, _)| name);
        let extents = quantized.map_or(&entry.shape, |(_, record)| &record.shape);
        let kind =
            quantized.map_or_else(|| entry.dtype.to_string(), |(_, r)| r.quantizer.to_string());
        elements += extents.iter().product::<usize>() as u64;
        let mut cells = vec![kind, shape(extents)];
        let survey = match quantized {
            _ if arguments.header => None,
            Some((name, _)) => Some(reader.survey_values(name)?),
            None if entry.dtype.format().is_some() => Some(reader.survey(&entry.name)?),
            None => None,
        };
        cells.extend(survey.iter().flat_map(figures));
        lines.push(Line { name: name.clone(), cells, remark: String::new() });
    }
    bar.finish();
    let mut text = String::new();
    for (key, value) in header.metadata() {
        let short: String = value.chars().take(60).collect();
        let cut = if short.len() < value.len() { "..." } else { "" };
        text += &format!("{}: {}{cut}\n", printable(key), printable(&short));
    }
    if !text.is_empty() {
        text += "\n";
    }
    let headings: &[&str] = match arguments.header {
        true => &["tensor", "type", "shape"],
        false => &[
            "tensor", "type", "shape", "min", "max", "amax", "zero", "nan/inf", "kurtosis",
            ">6sigma", "channels",
        ],
    };
    let count = lines.len() as u64;
    text += &table(headings, 2, &lines, width());
    let kinds: Vec<String> =
        kinds.iter().map(|(kind, bytes)| format!("{} {kind}", HumanBytes(*bytes))).collect();
    text += &format!(
        "\n{}, {}, {}{}\n",
        counted(count, "tensor"),
        counted(elements, "element"),
        HumanBytes(header.data_bytes()),
        if kinds.is_empty() { String::new() } else { format!(": {}", kinds.join(", ")) }
    );
    quiet_pipe(std::io::stdout().lock().write_all(text.as_bytes()))?;
    Ok(0)
}

/// Range and outliers as cells.
fn figures(found: &Survey) -> [String; 8] {
    let or_dash = |x: Option<f64>| x.filter(|x| x.is_finite()).map_or_else(|| "-".into(), number);
    [
        or_dash(found.min),
        or_dash(found.max),
        number(found.amax),
        percent(found.zeros, found.count),
        percent(found.nans + found.infinities, found.count),
        or_dash(Some(found.kurtosis)),
        percent(found.beyond, found.count),
        or_dash(found.channel_ratio),
    ]
}
