//! `exmy generate`: a published model continues a text.

use crate::eval::spare;
use crate::model;
use crate::phase::Phase;
use crate::recipes;
use crate::sample::{Screen, possible};
use crate::settings::Work;
use crate::show;
use crate::tokens::known;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::evaluate::{kept, shape};
use exmy_train::inference::Generate;
use exmy_train::nn::decoder::cache_bytes;
use exmy_train::recipe::Recipe;
use exmy_train::recipe::plan::check_named;
use exmy_train::train::memory;
use exmy_train::train::sample::Sampling;
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Continue a text with a published model, in any number format
///
/// MODEL is that of `exmy eval`. Keys and values of the tokens so far, or the state of gated linear
/// attention, stay in a cache. The same command gives the same text on every machine. It ends at the model's
/// own end, at a text of --stop, after --tokens, or where the model's context does.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Folder with config.json, a GGUF file, or a run
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Text to continue, as it is: a chat model's marks (<|im_start|>, ...) are a part of it
    #[arg(long)]
    prompt: String,
    /// Tokens to draw at most
    #[arg(long, value_name = "N", default_value_t = 100)]
    tokens: usize,
    /// 1 follows the model's probabilities, lower is more careful, 0 takes the likeliest token
    #[arg(long, value_name = "X", default_value_t = 0.8, allow_negative_numbers = true)]
    temperature: f64,
    /// Draw from the K likeliest tokens only; 0: all
    #[arg(long, value_name = "K", default_value_t = 0)]
    top_k: usize,
    /// Seed of the draws
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// End before this text; may be given several times
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// Go on behind the model's own end
    #[arg(long)]
    endless: bool,
    /// The numbers of weights and inputs, also of a run, whatever its own recipe (`exmy sample` takes that)
    #[arg(long, value_name = "RECIPE", default_value = "f32")]
    recipe: String,
    /// Round weights and leave inputs as they are
    #[arg(long)]
    weights_only: bool,
    /// The numbers of keys and values in the cache
    #[arg(long, value_name = "FORMAT")]
    kv: Option<String>,
    /// Sum products in this order: fma:bf16, hopper:e4m3, ...
    #[arg(long, value_name = "SUM")]
    sums: Option<String>,
    /// A tokenizer.json in place of the model's
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Print one JSON object, with the tokens
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    work: Work,
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    possible(arguments.temperature)?;
    if arguments.stop.iter().any(String::is_empty) {
        return Err(Error::new("--stop is empty").hint("give at least one character"));
    }
    let (kv, sums) = (arguments.kv.as_deref(), arguments.sums.as_deref());
    let rules = recipes::rules(arguments.weights_only, kv, sums)?;
    let recipe = recipes::one(&arguments.recipe)?.with_rules(&rules);
    arguments.work.with_threads(|| generate(arguments, &recipe))
}

/// Why a text ends.
#[derive(Clone, Copy)]
enum End {
    Token,
    Stop,
    Tokens,
    Context,
}

impl End {
    const fn name(self) -> &'static str {
        match self {
            Self::Token => "the model's end",
            Self::Stop => "stop",
            Self::Tokens => "tokens",
            Self::Context => "context",
        }
    }
}

/// The text of what was drawn, and how much of it was shown.
struct Written<'a> {
    tokenizer: &'a Tokenizer,
    stop: &'a [String],
    /// Prompt and drawn tokens.
    tokens: Vec<u32>,
    /// Bytes of the prompt as the tokenizer gives it back.
    prompt: usize,
    text: String,
    shown: usize,
}

impl Written<'_> {
    /// Takes one more token; whether a text of `stop` ends it.
    fn take(&mut self, token: u32) -> Result<bool> {
        self.tokens.push(token);
        let all = self.tokenizer.decode(&self.tokens)?;
        self.text = all.get(self.prompt..).unwrap_or_default().to_owned();
        let found = self.stop.iter().filter_map(|stop| self.text.find(stop.as_str())).min();
        if let Some(at) = found {
            self.text.truncate(at);
        }
        Ok(found.is_some())
    }

    /// What can be shown by now: not what may become another character or the beginning of a stop.
    fn more(&mut self, ended: bool) -> &str {
        let whole = self.text.trim_end_matches('\u{FFFD}').len();
        let held = self.stop.iter().map(|stop| stop.len() - 1).max().unwrap_or(0);
        let mut to = if ended { self.text.len() } else { whole.saturating_sub(held) };
        while !self.text.is_char_boundary(to) {
            to -= 1;
        }
        let from = self.shown.min(to);
        self.shown = to.max(from);
        &self.text[from..to]
    }
}

fn generate(arguments: &Arguments, recipe: &Recipe) -> Result<u8> {
    let quiet = arguments.work.quiet;
    let place = arguments.work.place()?;
    place.slow(recipe).into_iter().for_each(|slow| say!("note: {slow}"));
    let reading = Phase::begin("reading the model", quiet);
    let mut model = model::open(&arguments.model)?;
    check_named(recipe, model.layout(), &[])?;
    let tokenizer = model::tokenizer(&model, arguments.tokenizer.as_deref())?;
    let prompt = tokenizer.encode(&arguments.prompt)?;
    known(&prompt, model.config().vocab)?;
    let (longest, why) = model.longest();
    if prompt.is_empty() || prompt.len() > longest {
        let what = format!("--prompt has {} tokens", prompt.len());
        return Err(Error::new(what).hint(format!("from 1 to {longest}, the model's {why}")));
    }
    let ends = if arguments.endless { Vec::new() } else { model.ends()? };
    let capacity = prompt.len().saturating_add(arguments.tokens).min(longest);
    let sink = usize::from(model.config().sink);
    let config = shape(model.config(), (capacity + sink).min(longest));
    let params = model.weights(|_| {})?;
    drop(reading);
    let cache = cache_bytes(&config, capacity);
    let spare = spare(place.available()?, 4 * params.len() as u64 + cache);
    if !quiet {
        if let Some(own) = model::recipe(&model)?.filter(|own| own != recipe) {
            say!("recipe   {recipe}; the run's own, which exmy sample takes, is {own}");
        }
        let rounded = match kept(std::slice::from_ref(recipe), &config, spare, false)? {
            0 => String::new(),
            bytes => format!(", rounded weights {} at most", memory::size(bytes)),
        };
        let (weights, cache) = (memory::size(4 * params.len() as u64), memory::size(cache));
        say!("memory   weights {weights}{rounded}, cache of {capacity} tokens {cache}");
    }
    let options = Sampling {
        temperature: arguments.temperature,
        top_k: arguments.top_k,
        seed: arguments.seed,
    };
    let preparing = Phase::begin("preparing the device", quiet);
    let device = place.ready_for(&config, std::slice::from_ref(recipe))?;
    drop(preparing);
    let text = Text { arguments, recipe, tokenizer: &tokenizer, prompt, ends };
    text.write(device.generator(config, params, recipe, options, spare)?)
}

/// What is to be written.
struct Text<'a> {
    arguments: &'a Arguments,
    recipe: &'a Recipe,
    tokenizer: &'a Tokenizer,
    prompt: Vec<u32>,
    /// Tokens that end it.
    ends: Vec<u32>,
}

impl Text<'_> {
    fn write(self, mut generator: Box<dyn Generate>) -> Result<u8> {
        let Self { arguments, recipe, tokenizer, prompt, ends } = self;
        let quiet = arguments.work.quiet;
        let mut screen = (!arguments.json).then(Screen::new);
        let mut show =
            |text: &str| screen.as_mut().map_or(Ok(true), |screen| screen.show(text.as_bytes()));
        let mut wanted = show(&arguments.prompt)?;
        let mut written = Written {
            tokenizer,
            stop: &arguments.stop,
            tokens: prompt.clone(),
            prompt: tokenizer.decode(&prompt)?.len(),
            text: String::new(),
            shown: 0,
        };
        let begun = Instant::now();
        let mut read = begun;
        let end = loop {
            let drawn = written.tokens.len() - prompt.len();
            if drawn == arguments.tokens || !wanted {
                break End::Tokens;
            }
            let new = &written.tokens[generator.tokens()..];
            if new.len() > generator.remaining() {
                break End::Context;
            }
            let token = generator.next_token(new)?;
            if drawn == 0 {
                read = Instant::now();
            }
            if ends.contains(&token) {
                break End::Token;
            }
            if written.take(token)? {
                break End::Stop;
            }
            wanted = show(written.more(false))?;
        };
        show(written.more(true))?;
        show("\n")?;
        let drawn = &written.tokens[prompt.len()..];
        if !quiet {
            // Where nothing was computed there is no speed; the first token comes with the prompt.
            let speed = |tokens: usize, time: Duration| match drawn.is_empty() && read == begun {
                true => String::new(),
                false => format!(", {:.1} a second", tokens as f64 / time.as_secs_f64().max(1e-9)),
            };
            say!(
                "prompt   {} tokens{}; {} drawn{}; ended by: {}",
                prompt.len(),
                speed(prompt.len(), read - begun),
                drawn.len(),
                speed(drawn.len().saturating_sub(1), read.elapsed()),
                end.name()
            );
        }
        if arguments.json {
            show::json(&json!({
                "model": printable_path(&arguments.model),
                "recipe": recipe.to_string(),
                "seed": arguments.seed,
                "prompt": prompt,
                "tokens": drawn,
                "text": written.text,
                "ended_by": end.name(),
            }))?;
        }
        Ok(0)
    }
}
