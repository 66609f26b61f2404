//! From a name to tokens: what a model is trained on, and how it is split.
//!
//! A [`Source`] is the one text the user writes (`--data`): `synthetic` for the
//! [embedded language](crate::train::language), `recall` for a [memory task](recall), else a path.
//! [`Dataset::load`] reads it whole and says in one line what it found. Accepted are
//!
//! * any regular file: its bytes are the tokens, the vocabulary is 256;
//! * a folder: the bytes of all regular files below it, in sorted path order, one after the other;
//!   names that begin with a dot are skipped, linked folders are not followed. A folder that
//!   directly holds `train.bin` and `val.bin` is read as these two;
//! * `*.bin` as [nanoGPT](https://github.com/karpathy/nanoGPT) (`data/*/prepare.py`) and
//!   [llm.c](https://github.com/karpathy/llm.c) (`dev/data/data_common.py`) write it, see [`Tokens`].
//!   `train.bin` and `val.bin`, or `NAME_train.bin` and `NAME_val.bin`, give both splits. Files of
//!   `exmy data` are checked against the [`manifest`] beside them.
//!
//! Everything else is split once: of `n` tokens the first `floor((1 - fraction) n)` are for
//! training and the rest for validation. What was read is a function of the file contents alone,
//! and [`Dataset::fingerprint`] is the number to compare when a run is resumed.

mod batches;
mod error;
mod files;
pub mod manifest;
pub mod recall;
mod source;
mod tokens;

pub use batches::{Batches, TokenWindows, windows};
pub use error::{DataError, Split};
#[doc(hidden)]
pub use files::files_below;
pub use source::Source;
pub use tokens::Tokens;

use crate::train::fingerprint::Fingerprint;
use crate::train::language::Language;
use exmy::random::Stream;
use exmy::shown::printable_path;

/// How a source becomes a dataset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataOptions {
    /// The part of one undivided file or folder that is held out, above 0 and below 1.
    pub validation_fraction: f64,
    /// At least this many bytes of synthetic training text (whole sentences).
    pub synthetic_train_bytes: usize,
    /// At least this many bytes of synthetic validation text (whole sentences).
    pub synthetic_validation_bytes: usize,
}

impl Default for DataOptions {
    /// A tenth held out; 1 MiB of synthetic training text and 64 KiB of validation text.
    fn default() -> Self {
        Self {
            validation_fraction: 0.1,
            synthetic_train_bytes: 1 << 20,
            synthetic_validation_bytes: 1 << 16,
        }
    }
}

/// What is known about a text by whoever made it: the floor of any model's loss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// Entropy of the source in nats per byte: what the loss of a perfect model tends to on ever
    /// longer texts.
    pub entropy_rate: f64,
    /// The source's own `-log p` of the validation text, in nats per byte: what a perfect model
    /// with unlimited context scores on this very text.
    pub validation: f64,
}

/// Tokens for training and validation, and what is known about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// The tokens that batches are drawn from.
    pub train: Tokens,
    /// The tokens that the validation loss is measured on.
    pub validation: Tokens,
    /// Every token is below this number. 256 for bytes; for token files that of the manifest, or the largest
    /// token plus one, rounded up to a multiple of 64 (GPT-2's 50257 becomes 50304, as nanoGPT does).
    pub vocab: usize,
    /// One line for people: what was read, how many tokens, how they are split.
    pub description: String,
    /// 64-bit FNV-1a over token width, vocabulary, lengths and contents, to notice at resume that
    /// the data changed.
    pub fingerprint: u64,
    /// The floor of the loss, where the text was made here.
    pub reference: Option<Reference>,
    /// Whether a token is a byte of text.
    pub bytes: bool,
    /// Bytes of text that a token of the validation split stands for, on average, where a manifest says so.
    pub bytes_per_token: Option<f64>,
}

impl Dataset {
    /// No text: for models that draw what they learn from.
    pub fn drawn() -> Self {
        Self {
            train: Tokens::Bytes(Vec::new()),
            validation: Tokens::Bytes(Vec::new()),
            vocab: 0,
            description: "rows and targets drawn by the model, none used twice".into(),
            fingerprint: 0,
            reference: None,
            bytes: true,
            bytes_per_token: None,
        }
    }

    /// Reads or generates everything that `source` names.
    ///
    /// # Errors
    /// If `source` cannot be read as one of the kinds in the [module's list](self), or holds
    /// nothing. Whether there is enough for a given context is [`check_context`](Self::check_context).
    pub fn load(source: &Source, options: &DataOptions) -> Result<Self, DataError> {
        let fraction = options.validation_fraction;
        if !(fraction > 0.0 && fraction < 1.0) {
            return Err(DataError::Fraction { found: fraction });
        }
        match source {
            Source::Synthetic { seed } => Ok(Self::synthetic(*seed, options)),
            Source::Recall { seed } => Ok(Self::recall(*seed, options)),
            Source::Path(path) => {
                let found = files::read(path)?;
                let name = printable_path(path);
                let (splits, what, how, known) = match found {
                    files::Tokenized::One { tokens, what, known } => {
                        let at = split_point(tokens.len(), fraction);
                        (tokens.split_at(at), what, format!("split at {}", 1.0 - fraction), known)
                    }
                    files::Tokenized::Two { train, validation, what, known } => {
                        ((train, validation), what, "as the two files say".to_owned(), known)
                    }
                };
                Self::new(splits, &format!("{name}: {what}"), &how, path, known)
            }
        }
    }

    /// Text of the embedded language: the two splits are drawn from different random streams.
    fn synthetic(seed: u64, options: &DataOptions) -> Self {
        let language = Language::new(seed);
        let train = language.training_text(options.synthetic_train_bytes);
        let validation = language.validation_text(options.synthetic_validation_bytes);
        let log_p = language.log_probability(&validation).expect("a language parses its own text");
        let reference = Reference {
            entropy_rate: language.entropy_rate(),
            validation: if validation.is_empty() { 0.0 } else { -log_p / validation.len() as f64 },
        };
        Self::made(
            &Source::Synthetic { seed },
            "a seeded language",
            [train, validation],
            Some(reference),
        )
    }

    /// Text of the memory task, of as many bytes as the embedded language has.
    fn recall(seed: u64, options: &DataOptions) -> Self {
        let text = |label, bytes| recall::text(seed, Stream::new(label), bytes);
        let texts = [
            text("recall.training", options.synthetic_train_bytes),
            text("recall.validation", options.synthetic_validation_bytes),
        ];
        Self::made(&Source::Recall { seed }, "a memory task", texts, None)
    }

    /// Text that was made here, for training and for validation.
    fn made(
        source: &Source,
        what: &str,
        [train, validation]: [Vec<u8>; 2],
        reference: Option<Reference>,
    ) -> Self {
        let description = format!(
            "{source}: {what}, {} bytes for training and {} for validation",
            train.len(),
            validation.len(),
        );
        let (train, validation) = (Tokens::Bytes(train), Tokens::Bytes(validation));
        let fingerprint = fingerprint(&train, &validation, 256);
        Self { train, validation, vocab: 256, description, fingerprint, reference, ..Self::drawn() }
    }

    fn new(
        (train, validation): (Tokens, Tokens),
        what: &str,
        how: &str,
        path: &std::path::Path,
        known: Option<files::Known>,
    ) -> Result<Self, DataError> {
        let bytes = matches!(train, Tokens::Bytes(_));
        let vocab = if bytes { 256 } else { files::vocabulary(&train, &validation, path, known)? };
        let description = format!(
            "{what}, vocabulary {vocab}, {} for training and {} for validation ({how})",
            train.len(),
            validation.len(),
        );
        let fingerprint = fingerprint(&train, &validation, vocab);
        let bytes_per_token = known.map(|known| known.bytes_per_token);
        let reference = None;
        Ok(Self {
            train,
            validation,
            vocab,
            description,
            fingerprint,
            reference,
            bytes,
            bytes_per_token,
        })
    }

    /// Whether both splits hold at least one window of `context` tokens and its targets.
    ///
    /// # Errors
    /// If `context` is 0 or a split has fewer than `context + 1` tokens; the error names the
    /// largest context that works.
    pub fn check_context(&self, context: usize) -> Result<(), DataError> {
        let largest = self.train.len().min(self.validation.len()).saturating_sub(1);
        if context == 0 {
            return Err(DataError::ZeroContext { largest });
        }
        for (split, tokens) in
            [(Split::Training, &self.train), (Split::Validation, &self.validation)]
        {
            if tokens.len() <= context {
                let (tokens, description) = (tokens.len(), self.description.clone());
                return Err(DataError::TooShort { split, tokens, context, largest, description });
            }
        }
        Ok(())
    }
}

/// `floor((1 - fraction) n)`; exact for a tenth at every length that fits in memory, since
/// `1.0 - 0.1` rounds to the double just above 0.9, the one nanoGPT's `int(n * 0.9)` uses.
pub fn split_point(n: usize, fraction: f64) -> usize {
    (((1.0 - fraction) * n as f64) as usize).min(n)
}

/// FNV-1a (Fowler, Noll, Vo; RFC 9923), 64 bits, over little-endian bytes.
pub fn fingerprint(train: &Tokens, validation: &Tokens, vocab: usize) -> u64 {
    let mut hash = Fingerprint::default();
    let mut feed = |bytes: &[u8]| hash.feed(bytes);
    feed(&(vocab as u64).to_le_bytes());
    for tokens in [train, validation] {
        feed(&(tokens.width() as u64).to_le_bytes());
        feed(&(tokens.len() as u64).to_le_bytes());
        match tokens {
            Tokens::Bytes(all) => feed(all),
            Tokens::U16(all) => all.iter().for_each(|t| feed(&t.to_le_bytes())),
            Tokens::U32(all) => all.iter().for_each(|t| feed(&t.to_le_bytes())),
        }
    }
    hash.number()
}
