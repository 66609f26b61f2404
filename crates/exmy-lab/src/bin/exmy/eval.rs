//! `exmy eval`: what number formats cost a trained model.

use crate::bar::bar;
use crate::phase::Phase;
use crate::settings::Work;
use crate::show;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::shown::printable_path;
use exmy_lab::amounts::{duration, thousands};
use exmy_lab::device::Place;
use exmy_lab::table::aligned;
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::evaluate::{Evaluation, Mean, Measures, Needs, Windows, shape};
use exmy_train::nn::Cpu;
use exmy_train::published::Published;
use exmy_train::recipe::Recipe;
use exmy_train::train::memory;
use indicatif::ProgressBar;
use serde_json::json;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Say what number formats cost a trained model: perplexity, divergence and agreement on a text
///
/// MODEL is a folder of Hugging Face (config.json, safetensors, tokenizer.json) or a GGUF file: Llama,
/// Mistral, SmolLM2, Qwen2, Qwen3, OLMo 2, GPT-2. Recipes are those of `exmy train`; the forward products of
/// all linear layers, the head's too, round their inputs and weights by them. Differences are those to the
/// first recipe.
#[derive(Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Arguments {
    /// Folder with config.json, or a GGUF file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Text
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Recipes, divided by commas; the others are compared with the first
    #[arg(long, value_name = "LIST", default_value = "f32,bf16,mxfp8-e4m3,mxfp4,nvfp4")]
    recipe: String,
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
    /// Tokens that the model sees at once [default: 1024, or as many as it can]
    #[arg(long, value_name = "N")]
    window: Option<usize>,
    /// Tokens from the beginning of a window to that of the next [default: half a window]
    #[arg(long, value_name = "N")]
    stride: Option<usize>,
    /// Take the first so many tokens of the text
    #[arg(long, value_name = "N")]
    tokens: Option<usize>,
    /// A tokenizer.json in place of the model's
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
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

Every token but the first of the text is scored once, with at least
window - stride tokens before it where there are as many. Numbers behind +- are
standard errors, by windows; those of differences are of paired differences.
Exit codes: 0 done, 2 misuse or a file that cannot be used.";

/// Bytes of the longest text.
const TEXT: u64 = 4 << 30;

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let recipes = recipes(arguments)?;
    arguments.work.with_threads(|| evaluate(arguments, &recipes))
}

/// The recipes, with the options that are rules of theirs. The first, with which others are compared, stays
/// as it is written.
fn recipes(arguments: &Arguments) -> Result<Vec<Recipe>> {
    let Arguments { recipe: names, weights_only, kv, sums, .. } = arguments;
    let wrong = |error: &dyn std::fmt::Display| Error::new(error.to_string());
    let mut rules = String::new();
    if *weights_only {
        rules += "+input=f32";
    }
    if let Some(numbers) = kv {
        rules += &format!("+k:tensor={numbers}+v:tensor={numbers}");
    }
    if let Some(sum) = sums {
        rules += &format!("+sums={sum}");
    }
    let mut recipes = Vec::new();
    for name in names.split(',') {
        if name.trim().is_empty() {
            return Err(Error::new(format!("--recipe {names:?} has an empty name")));
        }
        let recipe: Recipe = name.trim().parse().map_err(|error| wrong(&error))?;
        recipes.push(match rules.is_empty() || recipes.is_empty() {
            true => recipe,
            false => recipe.with(&rules).map_err(|error| wrong(&error))?,
        });
    }
    Ok(recipes)
}

/// The text as tokens, at most as many as are wanted.
fn tokens(arguments: &Arguments, model: &Published) -> Result<(Tokenizer, Vec<u32>)> {
    let tokenizer = match &arguments.tokenizer {
        Some(path) => Tokenizer::open(path)?,
        None => Tokenizer::from_json(model.tokenizer()?)?,
    };
    let path = &arguments.data;
    let bytes = given::read(path, TEXT).map_err(|error| Error::io("read", path, error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Error::new(format!("{} is no text in UTF-8", printable_path(path))).because(error)
    })?;
    let mut tokens = tokenizer.encode(&text)?;
    tokens.truncate(arguments.tokens.unwrap_or(usize::MAX));
    if tokens.len() < 2 {
        let what = format!("{} tokens of {} score none", tokens.len(), printable_path(path));
        return Err(Error::new(what).hint("give a text of two tokens or more"));
    }
    let vocab = model.config().vocab;
    if let Some(token) = tokens.iter().find(|&&token| token as usize >= vocab) {
        return Err(Error::new(format!(
            "the tokenizer gives token {token}, and the model has {vocab}"
        ))
        .hint("the tokenizer is another model's: name the right one by --tokenizer FILE"));
    }
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

fn evaluate(arguments: &Arguments, recipes: &[Recipe]) -> Result<u8> {
    let quiet = arguments.work.quiet;
    if !matches!(arguments.work.place()?, Place::Cpu) {
        return Err(
            Error::new("`exmy eval` works on the processor alone").hint("leave out --device")
        );
    }
    let reading = Phase::begin("reading the model and the text", quiet);
    let mut model = Published::open(&arguments.model)?;
    let windows = windows(arguments, &model)?;
    let (tokenizer, tokens) = tokens(arguments, &model)?;
    let windows = Windows { window: windows.window.min(tokens.len()), ..windows };
    let windows = Windows { stride: windows.stride.min(windows.window), ..windows };
    let config = shape(model.config(), windows.window);
    let needs = Needs::of(&config, model.layout().len(), recipes.len());
    drop(reading);
    if !quiet {
        describe(arguments, &model, &tokens, windows, &needs);
    }
    let reading = Phase::begin("reading the weights", quiet);
    let params = model.weights(|_| {})?;
    drop(reading);
    let mut evaluation = Evaluation::new(Cpu::new(), config, params, recipes)?;
    let blocks = windows.of(tokens.len());
    let mut bar = Bar::new(blocks.len(), quiet);
    for (number, window) in blocks.iter().enumerate() {
        evaluation.block(&tokens, window, number as u64)?;
        bar.done(number + 1, evaluation.measures());
    }
    bar.end();
    let bytes = scored_bytes(&tokenizer, &tokens)?;
    let measures: Vec<&Measures> = evaluation.measures().collect();
    let rows: Vec<Row<'_>> = recipes
        .iter()
        .zip(&measures)
        .map(|(recipe, own)| Row::new(recipe, own, measures[0]))
        .collect();
    if arguments.json {
        show::json(&json!({
            "model": printable_path(&arguments.model),
            "data": printable_path(&arguments.data),
            "parameters": model.layout().len(),
            "weights_only": arguments.weights_only,
            "window": windows.window,
            "stride": windows.stride,
            "blocks": blocks.len(),
            "bytes": bytes,
            "recipes": rows.iter().map(|row| row.json(bytes)).collect::<Vec<_>>(),
        }))?;
    } else {
        show::result(&table(&rows, bytes))?;
    }
    Ok(0)
}

/// Bytes of the text that is scored: that of all tokens but the first.
fn scored_bytes(tokenizer: &Tokenizer, tokens: &[u32]) -> Result<usize> {
    let length = |tokens: &[u32]| Ok::<_, Error>(tokenizer.decode(tokens)?.len());
    Ok(length(tokens)?.saturating_sub(length(&tokens[..1])?).max(1))
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
    say!(
        "memory   {} at least: weights {}, activations {}, operands {}, logits {}",
        size(needs.total()),
        size(needs.weights),
        size(needs.activations),
        size(needs.operands),
        size(needs.logits)
    );
    if let Some(available) = memory::available().filter(|&bytes| bytes < needs.total()) {
        say!("warning: {} are available", size(available));
    }
}

/// What is shown while windows are measured.
struct Bar {
    bar: ProgressBar,
    lines: bool,
    begun: Instant,
    last: Instant,
    all: usize,
}

impl Bar {
    fn new(all: usize, quiet: bool) -> Self {
        let template = "{spinner} {wide_bar:.cyan/dim} window {pos}/{len} {msg} {eta:>4}";
        let bar = bar(all as u64, template, quiet);
        let (now, lines) = (Instant::now(), !quiet && !std::io::stderr().is_terminal());
        Self { bar, lines, begun: now, last: now, all }
    }

    fn done<'a>(&mut self, done: usize, mut measures: impl Iterator<Item = &'a Measures>) {
        let first = measures.next().map_or(f64::NAN, |first| libm::exp(first.loss().mean));
        self.bar.set_position(done as u64);
        self.bar.set_message(format!("perplexity {first:.4}"));
        if self.lines && self.last.elapsed() >= Duration::from_secs(5) {
            self.last = Instant::now();
            let left = self.begun.elapsed().as_secs_f64() / done as f64 * (self.all - done) as f64;
            let (all, left) = (self.all, duration(left));
            say!("window {done}/{all}, perplexity {first:.4}, {left} left");
        }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// What one recipe was found to cost.
struct Row<'a> {
    recipe: &'a Recipe,
    tokens: usize,
    loss: Mean,
    above: Mean,
    divergence: Mean,
    agreement: Mean,
}

impl<'a> Row<'a> {
    fn new(recipe: &'a Recipe, own: &Measures, first: &Measures) -> Self {
        Self {
            recipe,
            tokens: own.count(),
            loss: own.loss(),
            above: own.loss_above(first),
            divergence: own.mean(&own.divergence),
            agreement: own.mean(&own.agreement),
        }
    }

    /// Bits a byte of the text.
    fn bits(&self, bytes: usize) -> f64 {
        self.loss.mean * self.tokens as f64 / bytes as f64 / core::f64::consts::LN_2
    }

    fn json(&self, bytes: usize) -> serde_json::Value {
        json!({
            "recipe": self.recipe.to_string(),
            "tokens": self.tokens,
            "nats_per_token": self.loss.mean,
            "nats_per_token_error": self.loss.error,
            "perplexity": libm::exp(self.loss.mean),
            "bits_per_byte": self.bits(bytes),
            "nats_above_first": self.above.mean,
            "nats_above_first_error": self.above.error,
            "kl": self.divergence.mean,
            "kl_error": self.divergence.error,
            "top1_agreement": self.agreement.mean,
            "top1_agreement_error": self.agreement.error,
        })
    }
}

/// A standard error, which one window has not.
fn error(error: f64) -> String {
    if error.is_nan() { "-".into() } else { format!("{error:.5}") }
}

fn table(rows: &[Row<'_>], bytes: usize) -> String {
    let head = [
        "recipe",
        "perplexity",
        "nats/token",
        "+-",
        "bits/byte",
        "above first",
        "+-",
        "KL",
        "+-",
        "same top",
    ];
    let mut cells = vec![head.map(String::from).to_vec()];
    for (i, row) in rows.iter().enumerate() {
        let mut line = vec![
            row.recipe.to_string(),
            format!("{:.4}", libm::exp(row.loss.mean)),
            format!("{:.5}", row.loss.mean),
            error(row.loss.error),
            format!("{:.5}", row.bits(bytes)),
        ];
        if i > 0 {
            line.extend([
                format!("{:+.5}", row.above.mean),
                error(row.above.error),
                format!("{:.5}", row.divergence.mean),
                error(row.divergence.error),
                format!("{:.2} %", 100.0 * row.agreement.mean),
            ]);
        }
        cells.push(line);
    }
    let first = rows[0].recipe;
    let scored = thousands(rows[0].tokens as u64);
    aligned(&cells, 1)
        + &format!(
            "{scored} tokens scored; above first: nats/token above {first}; KL from {first} in nats\n"
        )
}
