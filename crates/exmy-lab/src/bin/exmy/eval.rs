//! `exmy eval`: what number formats cost a trained model.

mod bar;
mod calibrate;
mod layers;
mod measure;
mod picture;
mod rows;
mod sensitivity;

use crate::model;
use crate::phase::Phase;
use crate::recipes;
use crate::report;
use crate::settings::Work;
use crate::show;
use crate::tokens::{known, read_tokens};
use calibrate::Calibration;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_lab::amounts::thousands;
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::evaluate::{Needs, Window, Windows, kept, shape};
use exmy_train::nn::decoder::Config;
use exmy_train::nn::site::Operand;
use exmy_train::published::Published;
use exmy_train::recipe::plan::check_named;
use exmy_train::recipe::rule::{Layers, Selector, Subject};
use exmy_train::recipe::{Recipe, TensorFormat};
use exmy_train::train::memory;
use measure::Job;
use rows::Row;
use sensitivity::{Each, Part};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Say what number formats cost a trained model: perplexity, divergence and agreement on a text
///
/// MODEL is a folder of Hugging Face (config.json, safetensors, tokenizer.json) or a GGUF file: Llama,
/// Mistral, SmolLM2, Qwen2, Qwen3, OLMo 2, GPT-2, Flash Linear Attention's GLA. Or it is a run of `exmy
/// train`. Recipes are those of training; the forward products of all linear layers, the head's too, round
/// their inputs and weights by them. Differences are those to the first recipe.
#[derive(Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Arguments {
    /// Folder with config.json, a GGUF file, or a run
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Text
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Recipes, divided by commas; the others are compared with the first
    /// [default: f32,bf16,mxfp8-e4m3,mxfp4,nvfp4]
    #[arg(long, value_name = "LIST")]
    recipe: Option<String>,
    /// Round weights and leave inputs as they are, in all recipes but the first
    #[arg(long)]
    weights_only: bool,
    /// Round keys and values of the attention to these numbers, as a cache of them would be, in all recipes
    /// but the first
    #[arg(long, value_name = "FORMAT")]
    kv: Option<String>,
    /// Sum products in this order, in all recipes but the first: fma:bf16, hopper:e4m3, ...
    #[arg(long, value_name = "SUM")]
    sums: Option<String>,
    /// Give one part of the model at a time these numbers, and rank the parts by what that costs
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["kv", "sums"])]
    sensitivity: Option<String>,
    /// The parts of --sensitivity: layer (each block), operator (each in all blocks), site (each operator of
    /// each block)
    #[arg(
        long,
        value_name = "WHAT",
        value_delimiter = ',',
        default_value = "layer,operator",
        requires = "sensitivity"
    )]
    each: Vec<Each>,
    /// Look at each linear operator in the first window, too
    #[arg(long)]
    layers: bool,
    /// Write a picture: of the recipes; with --layers of blocks, with --sensitivity of ranks
    #[arg(long, value_name = "FILE.svg")]
    out: Option<PathBuf>,
    /// Tokens that the model sees at once [default: 1024, or as many as it can]
    #[arg(long, value_name = "N")]
    window: Option<usize>,
    /// Tokens from the beginning of a window to that of the next [default: half a window]
    #[arg(long, value_name = "N")]
    stride: Option<usize>,
    /// Take the first so many tokens of the text
    #[arg(long, value_name = "N")]
    tokens: Option<usize>,
    /// Have one layer of the weights in memory at a time, to the same bits [default: if there is no room for
    /// all of them]
    #[arg(long, conflicts_with_all = ["smooth", "gptq", "mse", "rotate", "rotate_down"])]
    by_layer: bool,
    /// A tokenizer.json in place of the model's
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    calibration: Calibration,
    #[command(flatten)]
    work: Work,
}

const HELP: &str = "\
Examples:
  exmy eval SmolLM2-135M-Instruct.Q4_1.gguf --data book.txt
  exmy eval Qwen3-0.6B --data book.txt --recipe f32,mxfp8-e4m3,nvfp4 \\
      --tokens 20000 --window 2048 --stride 1024
  exmy eval model.gguf --data book.txt --recipe f32,mxfp4 --weights-only --json
  exmy eval model.gguf --data book.txt --recipe f32,f32 --kv mxfp8-e4m3
  exmy eval model.gguf --data book.txt --recipe f32,mxfp4,mxfp4+last2=bf16
  exmy eval model.gguf --data book.txt --recipe f32,nvfp4 --layers --out layers.svg
  exmy eval model.gguf --data book.txt --device cuda
  exmy eval model.gguf --data book.txt --sensitivity mxfp4 --tokens 2048 --out ranks.svg

Every token but the first of the text is scored once, with at least
window - stride tokens before it where there are as many. Where the stride is
the window, no window scores its first token. Numbers behind +- are standard
errors, by windows; those of differences are of paired differences.
Exit codes: 0 done, 2 misuse or a file that cannot be used.";

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let numbers = numbers(arguments)?;
    let recipes = recipes(arguments)?;
    let out = arguments.out.as_ref();
    let out = out.map(|out| report::target(Some(out), &[], "eval.svg")).transpose()?;
    arguments.work.with_threads(|| evaluate(arguments, recipes, numbers, out.as_deref()))
}

/// The recipes, with the options that are rules of theirs. The first, with which others are compared, stays
/// as it is written.
fn recipes(arguments: &Arguments) -> Result<Vec<Recipe>> {
    let default = match arguments.sensitivity {
        Some(_) => "f32",
        None => "f32,bf16,mxfp8-e4m3,mxfp4,nvfp4",
    };
    let names = arguments.recipe.as_deref().unwrap_or(default);
    let (kv, sums) = (arguments.kv.as_deref(), arguments.sums.as_deref());
    let mut rules = recipes::rules(arguments.weights_only, kv, sums)?;
    let methods = arguments.calibration.methods()?;
    if methods.rounds() {
        let on = Selector { layers: vec![Layers::Blocks], ..Selector::operand(Operand::Weight) };
        rules.push(on.to(TensorFormat::NONE));
    }
    if let (Some(option), false, None) =
        (changing(arguments, methods.given()), names.contains(','), &arguments.sensitivity)
    {
        return Err(Error::new(format!(
            "{option} changes all recipes but the first, and --recipe {names} has no other"
        ))
        .hint(format!("compare with one that it leaves as it is: --recipe f32,{names}")));
    }
    let mut recipes = recipes::list(names)?.into_iter();
    let first = recipes.next().into_iter();
    let others = recipes.map(|recipe| recipe.with_rules(&rules));
    let recipes: Vec<Recipe> = first.chain(others).collect();
    if arguments.out.is_some()
        && let ([only], None, false) = (&recipes[..], &arguments.sensitivity, arguments.layers)
    {
        let what = format!(
            "--out draws what other recipes cost compared with --recipe {only}, and there is none"
        );
        return Err(Error::new(what)
            .hint(format!("--recipe {only},mxfp8-e4m3; or --layers draws what is inside of one")));
    }
    if arguments.sensitivity.is_some() && recipes.len() > 1 {
        return Err(Error::new(format!("--sensitivity with {} recipes", recipes.len()))
            .hint("name the one from which parts of the model are to differ, or none: f32"));
    }
    Ok(recipes)
}

/// The first option that changes recipes or parameters, if one does.
fn changing(arguments: &Arguments, method: Option<&'static str>) -> Option<&'static str> {
    let given = [
        ("--weights-only", arguments.weights_only),
        ("--kv", arguments.kv.is_some()),
        ("--sums", arguments.sums.is_some()),
    ];
    given.into_iter().find(|(_, given)| *given).map(|(option, _)| option).or(method)
}

/// The numbers of `--sensitivity`.
fn numbers(arguments: &Arguments) -> Result<Option<TensorFormat>> {
    let read = |text: &String| {
        text.parse().map_err(|error| Error::new(format!("--sensitivity {text:?}: {error}")))
    };
    arguments.sensitivity.as_ref().map(read).transpose()
}

/// What `--sensitivity` is about: all operands of a part, or its weights alone.
fn operands(arguments: &Arguments) -> Subject {
    let weights = arguments.weights_only.then_some(Operand::Weight);
    Subject::Operands(weights.into_iter().collect())
}

/// The text as tokens, at most as many as are wanted.
fn tokens(arguments: &Arguments, model: &Published) -> Result<(Tokenizer, Vec<u32>)> {
    let tokenizer = model::tokenizer(model, arguments.tokenizer.as_deref())?;
    let most = arguments.tokens.unwrap_or(usize::MAX);
    let tokens = read_tokens(&arguments.data, &tokenizer, ("--tokens", most))?;
    known(&tokens, model.config().vocab)?;
    Ok((tokenizer, tokens))
}

/// How the text is divided.
fn windows(arguments: &Arguments, model: &Published) -> Result<Windows> {
    let (longest, why) = model.longest();
    let window = arguments.window.unwrap_or(longest.min(1024));
    if !(2..=longest).contains(&window) {
        let what = format!("--window {window} is impossible");
        return Err(Error::new(what).hint(format!("from 2 to {longest}, the model's {why}")));
    }
    let stride = arguments.stride.unwrap_or(window.div_ceil(2));
    if !(1..=window).contains(&stride) {
        let what = format!("--stride {stride} is impossible");
        return Err(Error::new(what).hint(format!("from 1 to {window}, the window")));
    }
    Ok(Windows { window, stride })
}

fn evaluate(
    arguments: &Arguments,
    mut recipes: Vec<Recipe>,
    numbers: Option<TensorFormat>,
    out: Option<&Path>,
) -> Result<u8> {
    let quiet = arguments.work.quiet;
    let place = arguments.work.place()?;
    let methods = arguments.calibration.methods()?;
    recipes.iter().filter_map(|recipe| place.slow(recipe)).for_each(|slow| say!("note: {slow}"));
    let reading = Phase::begin("reading the model and the text", quiet);
    let mut model = model::open(&arguments.model)?;
    recipes.iter().try_for_each(|recipe| check_named(recipe, model.layout(), &[]))?;
    let windows = windows(arguments, &model)?;
    let (tokenizer, tokens) = tokens(arguments, &model)?;
    let calibrating = methods.calibrating(&tokenizer, model.config().vocab)?;
    if let Some((path, _)) = &methods.calibrate
        && (tokens.starts_with(&calibrating) || calibrating.starts_with(&tokens))
    {
        say!(
            "warning: --calibrate {} begins as --data does: the model is fitted to what is scored, and is \
             worse on other texts",
            printable_path(path)
        );
    }
    // A text that calibrates may be longer than the one that is scored.
    let together = windows.window;
    let windows = Windows { window: windows.window.min(tokens.len()), ..windows };
    let windows = Windows { stride: windows.stride.min(windows.window), ..windows };
    let config = shape(model.config(), windows.window);
    let parts = match numbers {
        None => Vec::new(),
        Some(numbers) => {
            let parts = sensitivity::parts(&config, model.layout(), &arguments.each);
            for Part { on, .. } in &parts {
                let on = Selector { subject: operands(arguments), ..on.clone() };
                recipes.push(recipes[0].clone().with_rules(&[on.to(numbers)]));
            }
            parts
        }
    };
    let rotate_down = methods.rotate_down.or(config.rotate_down);
    let seen = Config { rotate_down, ..config };
    let blocks = windows.of(tokens.len());
    // A rotated model has a head of its own.
    let table =
        if methods.rotate.is_some() && config.tied { config.vocab * config.d_model } else { 0 };
    let mut needs = Needs::of(&seen, model.layout().len() + table, recipes.len());
    let available = place.available()?.map(|bytes| addressable(bytes, needs.total()));
    let is_scarce = available.is_some_and(|bytes| bytes < needs.total());
    let by_layer = arguments.by_layer || is_scarce && !methods.changes();
    if by_layer {
        needs = Needs::by_piece(&config, recipes.len(), blocks.len());
    }
    if methods.changes() {
        needs.weights *= 2;
        let longest = Config { context: model.config().context, ..config };
        needs.before = methods.memory(&shape(&longest, together));
    }
    if arguments.layers {
        needs = needs.watched(&config);
    }
    let spare = spare(available, needs.total());
    needs.kept = kept(&recipes, &config, spare, by_layer)?;
    drop(reading);
    if !quiet {
        describe(arguments, &model, &tokens, windows, &needs);
        if let Some(available) = available.filter(|&bytes| bytes < needs.total()) {
            say!("warning: {} are available", memory::size(available));
        }
    }
    let job = Job {
        model: &mut model,
        tokens: &tokens,
        config: &config,
        recipes: &recipes,
        blocks: &blocks,
        methods: &methods,
        calibrating: &calibrating,
        together,
        by_layer,
        spare,
        watched: arguments.layers,
        quiet,
    };
    let found = job.measure(&place)?;
    let bytes = scored_bytes(&tokenizer, &tokens, &blocks)?;
    let measured = recipes.iter().zip(&found);
    let mut rows: Vec<Row<'_>> = measured
        .map(|(recipe, (own, layers))| Row::new(recipe, [own, &found[0].0], layers))
        .collect();
    if !parts.is_empty() {
        for (row, part) in rows[1..].iter_mut().zip(&parts) {
            row.part = Some(&part.name);
        }
        rows[1..].sort_by(|a, b| b.divergence.mean.total_cmp(&a.divergence.mean));
    }
    for row in rows.iter().filter(|row| row.loss.mean.is_nan()) {
        say!(
            "warning: under {} logits are NaN, or infinite: nothing can be said of it",
            row.recipe
        );
    }
    if arguments.json {
        let inside = |row: &Row<'_>| arguments.layers.then(|| layers::json(row.layers));
        let json = |row: &Row<'_>| row.json(bytes, inside(row));
        show::json(&json!({
            "model": printable_path(&arguments.model),
            "data": printable_path(&arguments.data),
            "parameters": model.layout().len(),
            "weights_only": arguments.weights_only,
            "sensitivity": arguments.sensitivity,
            "calibrate": methods.calibrate.as_ref().map(|(path, _)| printable_path(path)),
            "calibrate_tokens": methods.calibrate.as_ref().map(|_| calibrating.len()),
            "smooth": arguments.calibration.smooth,
            "gptq": arguments.calibration.gptq,
            "mse": arguments.calibration.mse,
            "rotate": arguments.calibration.rotate,
            "rotate_down": arguments.calibration.rotate_down,
            "window": windows.window,
            "stride": windows.stride,
            "blocks": blocks.len(),
            "bytes": bytes,
            "recipes": rows.iter().map(json).collect::<Vec<_>>(),
        }))?;
    } else {
        let mut text = match &arguments.sensitivity {
            Some(numbers) => sensitivity::table(&rows, numbers),
            None => rows::table(&rows, bytes),
        };
        if arguments.layers {
            text += &layers::tables(&rows);
        }
        show::result(&text)?;
    }
    // The picture is last: what was found is not lost with it.
    if let Some(out) = out {
        let name = arguments.model.file_name().map_or(&*arguments.model, Path::new);
        let tokens = thousands(rows[0].tokens as u64);
        let subtitle = format!("{}, {tokens} tokens", printable_path(name));
        let figure = match &arguments.sensitivity {
            Some(numbers) => picture::ranks(&rows, &parts, numbers, &subtitle),
            None if arguments.layers => picture::layers(&rows, &subtitle),
            None => picture::costs(&rows, &subtitle),
        };
        report::write(out, &figure.to_svg())?;
    }
    Ok(0)
}

/// Bytes of the text that is scored: that of all tokens but those that no window scores. Of a token that is a
/// part of a character they are what it adds to the tokens before it.
fn scored_bytes(tokenizer: &Tokenizer, tokens: &[u32], blocks: &[Window]) -> Result<usize> {
    /// Tokens before one that a character may have begun with.
    const BEFORE: usize = 3;
    let length = |tokens: &[u32]| Ok::<_, Error>(tokenizer.decode(tokens)?.len());
    let (mut bytes, mut done) = (length(tokens)?, 0_usize);
    let all = blocks.iter().map(|block| block.scored.clone());
    for scored in all.chain(core::iter::once(tokens.len()..tokens.len())) {
        let begin = done.saturating_sub(BEFORE);
        let skipped = length(&tokens[begin..scored.start])?;
        bytes = bytes.saturating_sub(skipped.saturating_sub(length(&tokens[begin..done])?));
        done = scored.end;
    }
    Ok(bytes.max(1))
}

/// Of bytes that the system has, those for which there are addresses, where these are limited (`ulimit -v`)
/// and what is mapped already has its part. Twice the needs are enough to know.
fn addressable(available: u64, needs: u64) -> u64 {
    /// What the allocator reserves for a thread.
    const ARENA: u64 = 64 << 20;
    if !memory::is_limited() {
        return available;
    }
    let threads = exmy::parallel::threads() as u64;
    memory::had(available.min(2 * needs + ARENA * threads)).saturating_sub(ARENA * threads)
}

/// Bytes in which rounded weights may be kept: half of what is there besides.
pub(crate) fn spare(available: Option<u64>, needs: u64) -> u64 {
    available.map_or(0, |available| available.saturating_sub(needs) / 2)
}

/// What is about to be done, and the memory that it takes.
fn describe(
    arguments: &Arguments,
    model: &Published,
    tokens: &[u32],
    windows: Windows,
    needs: &Needs,
) {
    let config = model.config();
    let count = |number: usize| thousands(number as u64);
    let size = memory::size;
    say!(
        "model    {}: {} layers, d {}, {} parameters, {} in files",
        printable_path(&arguments.model),
        config.layers,
        config.d_model,
        count(model.layout().len()),
        size(model.bytes())
    );
    say!(
        "data     {}: {} tokens in windows of {}, stride {}",
        printable_path(&arguments.data),
        count(tokens.len()),
        windows.window,
        windows.stride
    );
    // The program, the text and the vocabulary are there by now.
    let held = memory::held().unwrap_or(0);
    let parts = [
        ("the program and the text", held),
        ("files", model.bytes()),
        ("weights", needs.weights),
        ("rounded weights", needs.kept),
        ("activations", needs.activations),
        ("operands", needs.operands),
        ("logits", needs.logits),
        ("threads", needs.threads),
        ("methods, before", needs.before),
    ];
    let parts = parts.iter().filter(|(_, bytes)| *bytes > 0);
    let parts: Vec<_> = parts.map(|(of, bytes)| format!("{of} {}", size(*bytes))).collect();
    let most = held + model.bytes() + needs.total();
    say!("memory   {} at most: {}", size(most), parts.join(", "));
}
