//! `exmy data`: text in, token files out.

use crate::rows::Bar;
use crate::settings::{threads, with_threads};
use crate::show;
use crate::stop::Stop;
use crate::tokens::tell_dropout;
use clap::Args;
use exmy::error::Result;
use exmy::safetensors::Progress;
use exmy::shown::printable_path;
use exmy_lab::amounts::thousands;
use exmy_lab::corpus::{self, BATCH, CorpusOptions, Vocabulary};
use exmy_lab::table::aligned;
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::train::data::manifest::Manifest;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Make token files from text: train.bin and val.bin, the tokenizer, and a manifest
///
/// Trains a byte-level BPE vocabulary on the texts, or reads one (--tokenizer), and writes their tokens to
/// the folder DIR, which `exmy train --data DIR` takes. The same texts give the same bytes, whatever the
/// threads. A call that was ended, at any moment, goes on when it is repeated.
///
/// Texts are files in UTF-8, also compressed by xz, and folders of them. A document ends with its file and at
/// <|endoftext|>. Validation gets the end of the text: shuffle documents before if their order means
/// something.
#[derive(Args)]
#[command(after_long_help = LONG_HELP)]
pub(crate) struct Arguments {
    /// Files and folders of text, in this order
    #[arg(value_name = "TEXT", required = true)]
    texts: Vec<PathBuf>,
    /// The folder to write
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Tokens of the vocabulary that is trained, <|endoftext|> and 256 bytes among them
    #[arg(long, value_name = "N", default_value_t = 32_768, conflicts_with = "tokenizer")]
    vocab: usize,
    /// Use this tokenizer.json instead of training one
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Share of the text, at its end, that is for validation
    #[arg(long, value_name = "X", default_value_t = 0.1, allow_negative_numbers = true)]
    validation: f64,
    /// Token behind each document; '' for none [default: <|endoftext|> if the tokenizer has it]
    #[arg(long, value_name = "TOKEN")]
    end_of_text: Option<String>,
    /// Threads to use; the results are the same bits for any number [default: all cores]
    #[arg(long, value_name = "N", allow_hyphen_values = true, value_parser = threads)]
    threads: Option<u16>,
    /// Show no progress: only the final table, and warnings
    #[arg(long, short)]
    quiet: bool,
}

const LONG_HELP: &str = "\
Files:
  train.bin, val.bin  tokens as little-endian integers of 2 bytes (4 if the
                      vocabulary has more than 65536), as nanoGPT has them:
                      numpy.fromfile('DIR/train.bin', 'uint16')
  tokenizer.json      for Hugging Face's tokenizers, too
  tokens.json         tokens, bytes of text, SHA-256 of all of these and of the
                      texts, the split

Examples:
  exmy data book.txt --out tokens --vocab 4096
  exmy data corpus/ --out tokens --validation 0.01
  exmy data more.txt.xz --out more --tokenizer tokens/tokenizer.json
  exmy train --data tokens --recipe bf16,mxfp8-e4m3

Exit codes: 0 done, 2 misuse or a file that cannot be used; 130, 143 or 129
ended by SIGINT, SIGTERM or SIGHUP, and what was done is kept.
";

/// Runs the command; the result is the exit code.
pub(crate) fn run(arguments: &Arguments, stop: &Stop) -> Result<u8> {
    let stop = stop.looked_at();
    let options = CorpusOptions {
        vocabulary: match &arguments.tokenizer {
            Some(path) => Vocabulary::Read(path.clone()),
            None => Vocabulary::Train(arguments.vocab),
        },
        validation: arguments.validation,
        end_of_text: arguments.end_of_text.clone(),
        batch: BATCH,
    };
    let Arguments { texts, out, threads, quiet, .. } = arguments;
    if let Some(path) = &arguments.tokenizer {
        tell_dropout(&Tokenizer::open(path)?);
    }
    let mut bar = Bar::new("", *quiet);
    let work = || {
        corpus::make(texts, out, &options, &mut |progress: &corpus::Progress<'_>| {
            let &corpus::Progress { what, text, done, total } = progress;
            bar.begin(what);
            bar.show(&Progress { tensor: text, done, total });
            match stop.is_asked() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
    };
    let made = with_threads(*threads, work);
    bar.finish();
    let Some(manifest) = made? else {
        say!("stopped; what was done is kept. Repeat the call to continue");
        return Ok(stop.code());
    };
    show::result(&table(&manifest))?;
    if let (Some(wanted), found) = (manifest.made.vocabulary, manifest.vocabulary)
        && found < wanted
    {
        say!("note: the vocabulary has {found} tokens, not {wanted}: no other pair occurs twice");
    }
    if !quiet {
        say!("train on them: exmy train --data {}", printable_path(out));
    }
    Ok(0)
}

/// What was made, a line a split.
fn table(manifest: &Manifest) -> String {
    let heads = ["split", "tokens", "bytes of text", "bytes/token", "SHA-256"];
    let mut cells = vec![heads.map(str::to_owned).to_vec()];
    for (split, part) in [("training", &manifest.train), ("validation", &manifest.validation)] {
        cells.push(vec![
            split.to_owned(),
            thousands(part.tokens),
            thousands(part.text_bytes),
            format!("{:.3}", part.bytes_per_token()),
            part.sha256.clone(),
        ]);
    }
    let documents = manifest.made.texts.iter().map(|text| text.documents).sum();
    aligned(&cells, 1)
        + &format!(
            "vocabulary of {} tokens; {} documents in {} files\n",
            thousands(manifest.vocabulary as u64),
            thousands(documents),
            thousands(manifest.made.texts.len() as u64)
        )
}
