//! `exmy quantize` of a model: a folder of Hugging Face or a GGUF file in, a folder out, whose weights were
//! rounded by methods that look at the model.

use crate::methods::Methods;
use crate::model::{is_run, open, tokenizer};
use crate::phase::Phase;
use crate::stop;
use clap::Args;
use exmy::BlockFormat;
use exmy::error::{Error, Result};
use exmy::quantizer::{Quantizer, Target};
use exmy::safetensors::{Dtype, FileLayout, Record, Stored, store, whole};
use exmy::shown::printable_path;
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::evaluate::rotate::untied;
use exmy_train::evaluate::{nearest_head, shape};
use exmy_train::nn::decoder::Config;
use exmy_train::published::family::ROTATE_DOWN;
use exmy_train::published::{Published, written};
use indicatif::HumanBytes;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Methods that are better than rounding to nearest, of a model: IN is its folder or its GGUF file.
#[derive(Args)]
pub(super) struct Options {
    /// QuaRot: rotate the stream and the values by random Hadamard matrices first, with signs of this seed
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "1",
          help_heading = "Models")]
    rotate: Option<u64>,
    /// QuaRot: rotate what down_proj reads while the model computes, and its weights before; the folder says
    /// so, and no other program reads it
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "1",
          help_heading = "Models")]
    rotate_down: Option<u64>,
    /// SmoothQuant: divide the inputs of q, k, v and of the MLP by channel, and multiply their weights
    #[arg(long, value_name = "ALPHA", num_args = 0..=1, default_missing_value = "0.5",
          requires = "calibrate", help_heading = "Models")]
    smooth: Option<f64>,
    /// GPTQ: round one input after the other, and let those that follow make up for it
    #[arg(long, requires = "calibrate", conflicts_with = "mse", help_heading = "Models")]
    gptq: bool,
    /// Take the scale of each block that has the least squared error
    #[arg(long, help_heading = "Models")]
    mse: bool,
    /// Quantize the head, too, to nearest: to --to's format, or to another (--head=mxfp8-e4m3). A head that
    /// is the embedding gets weights of its own, and the embedding stays as it is
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, help_heading = "Models")]
    head: Option<Option<Quantizer>>,
    /// A text that shows what inputs are like
    #[arg(long, value_name = "FILE", help_heading = "Models")]
    calibrate: Option<PathBuf>,
    /// Take the first so many tokens of that text
    #[arg(
        long,
        value_name = "N",
        default_value_t = 2048,
        requires = "calibrate",
        help_heading = "Models"
    )]
    calibrate_tokens: usize,
    /// Tokens of it that the model sees at once [default: 1024, or as many as it can]
    #[arg(long, value_name = "N", requires = "calibrate", help_heading = "Models")]
    window: Option<usize>,
    /// A tokenizer.json in place of the model's, to read the text by and to write
    #[arg(long, value_name = "FILE", help_heading = "Models")]
    tokenizer: Option<PathBuf>,
}

impl Options {
    /// The first option that asks for a model, if one does.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            ("--rotate", self.rotate.is_some()),
            ("--rotate-down", self.rotate_down.is_some()),
            ("--smooth", self.smooth.is_some()),
            ("--gptq", self.gptq),
            ("--mse", self.mse),
            ("--head", self.head.is_some()),
            ("--calibrate", self.calibrate.is_some()),
            ("--tokenizer", self.tokenizer.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(option, _)| option)
    }
}

/// Whether there is a model, one that others published or a run of one's own, not a file of tensors.
pub(super) fn is_model(input: &Path) -> bool {
    let is_published =
        input.join("config.json").is_file() || input.extension().is_some_and(|end| end == "gguf");
    is_published || is_run(input)
}

/// The block format that an option names.
fn blocks(option: &str, quantizer: Quantizer) -> Result<BlockFormat> {
    let Target::Block(format) = quantizer.target else {
        return Err(Error::new(format!("{option}{quantizer} has no blocks"))
            .hint("models are written in block formats: mxfp8-e4m3, mxfp4, nvfp4, ..."));
    };
    if quantizer != Quantizer::new(quantizer.target) {
        return Err(Error::new(format!("{option}{quantizer} is more than a block format"))
            .hint("weights of a model are rounded to nearest; --rotate rotates the model"));
    }
    format.check().map_err(|error| Error::new(format!("{option}{quantizer}: {error}")))?;
    Ok(format)
}

/// Writes the folder; what is said of it.
pub(super) fn quantize(
    (input, output): (&Path, &Path),
    quantizer: Quantizer,
    layout: FileLayout,
    options: &Options,
    quiet: bool,
) -> Result<String> {
    let format = blocks("--to ", quantizer)?;
    let head = options.head.map(|own| own.map_or(Ok(format), |own| blocks("--head=", own)));
    let head = head.transpose()?;
    if output.exists() {
        return Err(Error::new(format!("{} is there already", printable_path(output)))
            .hint("name a folder that is not there"));
    }
    let methods = Methods {
        rotate: options.rotate,
        rotate_down: options.rotate_down,
        smooth: options.smooth,
        gptq: options.gptq.then_some(format),
        mse: options.mse.then_some(format),
        nearest: (!options.gptq && !options.mse).then_some(format),
        calibrate: options.calibrate.clone().map(|path| (path, options.calibrate_tokens)),
    };
    methods.check()?;
    let reading = Phase::begin("reading the model", quiet);
    let mut model = open(input)?;
    let (longest, why) = model.longest();
    let window = options.window.unwrap_or(longest.min(1024));
    if !(2..=longest).contains(&window) {
        let what = format!("--window {window} is impossible");
        return Err(Error::new(what).hint(format!("from 2 to {longest}, the model's {why}")));
    }
    let (mut config, mut params) = (*model.config(), model.weights(|_| {})?);
    if methods.rotate.is_some() || head.is_some() {
        (config, params) = untied(&config, params);
    }
    drop(reading);
    fits_layout(&config, format, head, layout)?;
    let wanted = options.tokenizer.as_deref();
    let settings = settings(&model, &config, methods.rotate_down, wanted)?;
    let calibrating = match &methods.calibrate {
        Some(_) => methods.calibrating(&tokenizer(&model, wanted)?, config.vocab)?,
        None => Vec::new(),
    };
    let mut seen = shape(&config, window);
    let mut rounded = methods.apply(&mut seen, &mut params, &calibrating, quiet)?;
    if let Some(format) = head {
        rounded.extend(nearest_head(&config.layout(), &mut params, format));
    }
    config.rotate_down = seen.rotate_down;
    let (parent, name) = whole::split(output);
    let partial = whole::create_partial_folder(parent, &name)
        .map_err(|error| Error::io("create", output, error))?;
    stop::unfinished(Some(&partial));
    let written =
        write(&partial, &model, settings, (&config, &params, &rounded), layout).and_then(|bytes| {
            whole::rename(&partial, output)
                .map(|()| bytes)
                .map_err(|error| Error::io("create", output, error))
        });
    let bytes = written.inspect_err(|_| {
        // A part that stays is in the way of nothing.
        let _ = fs::remove_dir_all(&partial);
    })?;
    stop::unfinished(None);
    whole::remove_partial_folders(parent, &name);
    Ok(format!(
        "{}: {} weights in {format}{}, {} tensors in F32; {} of tensors, from {}\n",
        printable_path(output),
        rounded.len() - usize::from(head.is_some()),
        head.map_or_else(String::new, |head| format!(", the head's in {head}")),
        config.layout().iter().len() - rounded.len(),
        HumanBytes(bytes),
        HumanBytes(model.bytes())
    ))
}

/// The files that a folder has besides tensors, by their names.
fn settings(
    model: &Published,
    config: &Config,
    rotate_down: Option<u64>,
    wanted: Option<&Path>,
) -> Result<Vec<(&'static str, String)>> {
    let mut value: Value = match fs::read(model.path().join("config.json")) {
        Ok(text) => serde_json::from_slice(&text)
            .map_err(|error| Error::new("config.json is no JSON").because(error))?,
        Err(_) => written::keys(config)?,
    };
    // Also where the file had said otherwise of a head with weights of its own.
    if !config.tied {
        value["tie_word_embeddings"] = false.into();
    }
    if let Some(seed) = rotate_down {
        value[ROTATE_DOWN] = seed.into();
    }
    let text = format!("{value:#}\n");
    let mut files = vec![("config.json", text)];
    let known = match tokenizer(model, wanted) {
        Ok(tokenizer) => {
            fits(&tokenizer, config.vocab, wanted)?;
            Ok(tokenizer.json().to_vec())
        }
        Err(error) if wanted.is_some() => return Err(error),
        Err(error) if is_run(model.path()) => Err(error),
        // Another program may read what this one does not.
        Err(error) => {
            model.tokenizer().inspect(|_| say!("note: tokenizer.json is a copy: {error}"))
        }
    };
    match known {
        Ok(json) => {
            files.push(("tokenizer.json", String::from_utf8_lossy(&json).into_owned()));
        }
        // A model without a tokenizer is one.
        Err(error) => say!("note: no tokenizer.json is written: {error}"),
    }
    let ends = model.ends()?;
    if !ends.is_empty() {
        let ends = json!({ "eos_token_id": ends });
        files.push(("generation_config.json", format!("{ends:#}\n")));
    }
    Ok(files)
}

/// Refuses a layout that cannot hold the weights before they are rounded.
fn fits_layout(
    config: &Config,
    format: BlockFormat,
    head: Option<BlockFormat>,
    layout: FileLayout,
) -> Result<()> {
    for entry in &config.layout() {
        let format = match entry.site.map(|site| site.layer) {
            Some(Some(_)) => format,
            Some(None) => match head {
                Some(head) => head,
                None => continue,
            },
            None => continue,
        };
        if entry.shape.len() != 2 {
            continue;
        }
        let quantizer = Quantizer::new(Target::Block(format));
        let shape = entry.shape.clone();
        let record = Record { quantizer, axis: 1, shape, dtype: Dtype::F32, layout, seed: None };
        record.part_names(&entry.name)?;
    }
    Ok(())
}

/// Refuses a tokenizer that is wanted and has tokens that the model has not, and tells of the model's own.
fn fits(tokenizer: &Tokenizer, vocab: usize, wanted: Option<&Path>) -> Result<()> {
    let most = tokenizer.vocabulary();
    if most <= vocab {
        return Ok(());
    }
    let what = format!("has tokens up to {}, and the model {vocab} tokens", most - 1);
    let Some(path) = wanted else {
        say!("note: the tokenizer {what}");
        return Ok(());
    };
    Err(Error::new(format!("--tokenizer {} {what}", printable_path(path)))
        .hint("it is another model's: name the right one"))
}

/// Fills a folder; the bytes of its tensors.
fn write(
    folder: &Path,
    model: &Published,
    settings: Vec<(&'static str, String)>,
    (config, params, rounded): (&Config, &[f32], &exmy_train::evaluate::Stored),
    layout: FileLayout,
) -> Result<u64> {
    for (name, text) in settings {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| Error::io("write", &path, error))?;
    }
    let rounded: BTreeMap<&str, _> =
        rounded.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let entries = config.layout();
    let tensors: Vec<_> = entries
        .iter()
        .map(|entry| {
            let tensor = match rounded.get(entry.name.as_str()) {
                Some(tensor) => Stored::Blocks(tensor),
                None => Stored::Numbers(&entry.shape, &params[entry.range.clone()]),
            };
            (entry.name.as_str(), tensor)
        })
        .collect();
    store(folder.join("model.safetensors"), &tensors, layout)?;
    let written = Published::open(folder)
        .map_err(|error| Error::new("what was written is not read back").because(error))?;
    match written.config() == &(Config { context: model.config().context, ..*config }) {
        true => Ok(written.bytes()),
        false => Err(Error::new("what was written is another model's shape")),
    }
}
