//! `exmy sample`: continues a prompt with a trained model.

use crate::phase::Phase;
use clap::Args;
use exmy::error::{Error, Result};
use exmy::shown::{printable_lines, printable_path};
use exmy_lab::runner::{OutFolder, find_run};
use exmy_train::nn::decoder;
use exmy_train::train::run::Folder;
use exmy_train::train::sample::{Sampler, Sampling};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use words::Words;

pub(crate) mod words;

#[derive(Args)]
pub(crate) struct Arguments {
    /// A run folder, or an output folder (then its first run)
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Text to continue
    #[arg(long, default_value = "\n")]
    prompt: String,
    /// Tokens to draw
    #[arg(long, value_name = "N", default_value_t = 300, allow_negative_numbers = true)]
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
    /// The tokenizer.json of a model of tokens [default: the one beside its data]
    #[cfg(feature = "tokenizers")]
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
}

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments) -> Result<u8> {
    let Arguments { prompt, tokens, temperature, top_k, seed, .. } = arguments;
    possible(*temperature)?;
    if prompt.is_empty() {
        return Err(Error::new("--prompt is empty").hint("give at least one character"));
    }
    let folder = run_folder(&arguments.folder)?;
    let mut words = Words::of(&folder, arguments)?;
    let mut text = words.tokens(prompt)?;
    let options = Sampling { temperature: *temperature, top_k: *top_k, seed: *seed };
    let reading = Phase::begin("reading the model", false);
    let mut sampler = Sampler::open(&folder, options)?;
    drop(reading);
    let mut screen = Screen::new();
    let mut wanted = screen.show(prompt.as_bytes())?;
    for _ in 0..*tokens {
        if !wanted {
            return Ok(0);
        }
        text.push(sampler.next_token(&text));
        wanted = screen.show(&words.more(&text))?;
    }
    screen.show(b"\n")?;
    Ok(0)
}

/// Refuses a temperature that is none.
pub(crate) fn possible(temperature: f64) -> Result<()> {
    if temperature.is_finite() && temperature >= 0.0 {
        return Ok(());
    }
    Err(Error::new(format!("--temperature {temperature} is impossible"))
        .hint("0 or a positive number, for example 0.8"))
}

/// The output of a text as it grows.
pub(crate) struct Screen {
    out: std::io::StdoutLock<'static>,
    is_terminal: bool,
    /// What a terminal is yet to be shown.
    pending: Vec<u8>,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let out = std::io::stdout().lock();
        Self { is_terminal: out.is_terminal(), out, pending: Vec::new() }
    }

    /// Shows some more; whether anybody reads it.
    pub(crate) fn show(&mut self, bytes: &[u8]) -> Result<bool> {
        let written = if self.is_terminal {
            self.pending.extend_from_slice(bytes);
            let text = shown(&mut self.pending);
            self.out.write_all(text.as_bytes())
        } else {
            self.out.write_all(bytes)
        };
        match written.and_then(|()| self.out.flush()) {
            Ok(()) => Ok(true),
            // A reader that has seen enough (`| head`) is no error.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
            Err(error) => Err(Error::new("cannot write the text").because(error)),
        }
    }
}

/// Takes from some bytes what a terminal may have: whole characters, with what acts on it escaped, and what
/// is no text as `\\xff`. A character that is not finished stays.
fn shown(bytes: &mut Vec<u8>) -> String {
    let mut text = String::new();
    while !bytes.is_empty() {
        let (good, bad) = match std::str::from_utf8(bytes) {
            Ok(_) => (bytes.len(), Some(0)),
            Err(error) => (error.valid_up_to(), error.error_len()),
        };
        text += &printable_lines(&String::from_utf8_lossy(&bytes[..good]));
        text += &bytes[good..good + bad.unwrap_or(0)].escape_ascii().to_string();
        bytes.drain(..good + bad.unwrap_or(0));
        if bad.is_none() {
            break;
        }
    }
    text
}

/// The shape of a run's language model.
pub(crate) fn shape(folder: &Folder) -> Result<decoder::Config> {
    folder.config()?.model.decoder().copied().ok_or_else(|| {
        Error::new(format!("{} holds no language model", printable_path(folder.path())))
            .hint("a run of a decoder has one; a proxy reads and writes no text")
    })
}

/// The run meant by a run folder or an output folder.
pub(crate) fn run_folder(path: &Path) -> Result<Folder> {
    let path = &find_run(path);
    if path.join("config.toml").is_file() {
        return Ok(Folder::new(path));
    }
    let outs = OutFolder::open(path)?;
    let [out] = outs.as_slice() else {
        let names: Vec<String> = outs.iter().map(|out| printable_path(out.path())).collect();
        return Err(Error::new(format!("{} holds several jobs", printable_path(path)))
            .hint(format!("name one: {}", names.join(", "))));
    };
    let folders = out.folders();
    let first = folders
        .first()
        .ok_or_else(|| Error::new(format!("there is no run in {}", printable_path(path))))?;
    if folders.len() > 1 {
        let names: Vec<_> = folders.iter().map(|f| printable_path(f.path())).collect();
        say!("using {}; the others are {}", names[0], names[1..].join(", "));
    }
    Ok(first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_characters_and_obeys_none() {
        let mut bytes = b"a\x1b[2J\n\xc3".to_vec();
        assert_eq!(shown(&mut bytes), "a\\u{1b}[2J\n");
        bytes.extend(b"\xbc\xff\xc3x");
        assert_eq!((shown(&mut bytes), bytes.len()), ("ü\\xff\\xc3x".into(), 0));
    }
}
