//! Text to tokens and back, as a `tokenizer.json` says.
//!
//! The file and the work are those of Hugging Face's library, which Python's `tokenizers` and `transformers`
//! call too, so the tokens are theirs. A vocabulary trained here is byte-level BPE as GPT-2 has it
//! (<https://github.com/openai/gpt-2>, `src/encoder.py`): words by GPT-2's regular expression, all 256 bytes,
//! merges of the most frequent pair, and `<|endoftext|>` as token 0. The same text gives the same
//! `tokenizer.json`, whatever the threads.

use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::shown::printable_path;
use serde::Deserialize;
use serde_json::{Value, json};
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::Once;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::{ModelWrapper, TrainerWrapper};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Tokenizer as Inner};

/// The token behind a document, and what divides documents in a text.
pub const END_OF_TEXT: &str = "<|endoftext|>";

/// The smallest vocabulary that can be trained: all bytes and [`END_OF_TEXT`].
pub const SMALLEST: usize = 257;

/// The largest one: as many rows as a model of token files may have.
pub const LARGEST: usize = 1 << 24;

/// A pair of tokens that occurs less often is not merged.
const LEAST: u64 = 2;

/// A vocabulary and how text is divided by it.
pub struct Tokenizer {
    inner: Inner,
    json: Vec<u8>,
    vocabulary: usize,
    dropout: Option<f32>,
}

impl fmt::Debug for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokenizer of {} tokens", self.vocabulary)
    }
}

/// What may make a text longer.
#[derive(Deserialize)]
struct Steps {
    #[serde(default)]
    normalizer: Value,
    #[serde(default)]
    decoder: Value,
}

/// How many times longer a step makes a text at most, where it says so itself: steps that put a text in the
/// place of another follow each other, and some of them would fill any memory.
fn growth(step: &Value) -> f64 {
    let bytes = |value: &Value| value.as_str().map_or(0.0, |text| text.len() as f64);
    match step["type"].as_str() {
        Some("Sequence") => ["normalizers", "decoders"]
            .iter()
            .filter_map(|steps| step[steps].as_array())
            .flat_map(|steps| steps.iter().map(growth))
            .product(),
        Some("Replace") => match step["pattern"]["String"].as_str() {
            Some(from) if !from.is_empty() => {
                (bytes(&step["content"]) / from.len() as f64).max(1.0)
            }
            // It may be found between any two characters.
            _ => 1.0 + bytes(&step["content"]),
        },
        Some("Prepend") => 1.0 + bytes(&step["prepend"]),
        _ => 1.0,
    }
}

thread_local! {
    /// Whether a panic of this thread becomes an error, and so is not to be printed.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Calls the library. Some mistakes of a `tokenizer.json` are panics there; here they are errors.
fn guarded<T>(work: impl FnOnce() -> tokenizers::Result<T>) -> Result<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let print = take_hook();
        set_hook(Box::new(move |panic| {
            if !CAUGHT.get() {
                print(panic);
            }
        }));
    });
    let was = CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    CAUGHT.set(was);
    let failed = |panic: Box<dyn std::any::Any + Send>| {
        let text = panic.downcast_ref::<String>().cloned();
        Error::new(text.unwrap_or_else(|| "the library tokenizers gives up".to_owned()))
    };
    result.map_err(failed)?.map_err(Error::from_cause)
}

impl Tokenizer {
    /// The one of a `tokenizer.json`.
    ///
    /// # Errors
    /// If it cannot be read, or is no tokenizer.
    pub fn open(path: &Path) -> Result<Self> {
        let works = "give a tokenizer.json as Hugging Face's models have it";
        let json = given::read(path, given::RESULTS)
            .map_err(|error| Error::io("read", path, error).hint(works))?;
        Self::from_json(json).map_err(|error| {
            Error::new(format!("{} is no tokenizer", printable_path(path)))
                .because(error)
                .hint(works)
        })
    }

    /// The one of a `tokenizer.json`'s bytes. Its limits of length and its padding do not hold; nor does
    /// [`dropout`](Self::dropout), which would make other tokens of the same text each time.
    ///
    /// # Errors
    /// If it is none.
    pub fn from_json(json: Vec<u8>) -> Result<Self> {
        /// The most that a step makes of a byte. Published ones make three of a blank, and one in front.
        const MOST: f64 = 4096.0;
        let steps: serde_json::Result<Steps> = serde_json::from_slice(&json);
        let steps = steps.map_err(Error::from_cause)?;
        for (name, step) in [("normalizer", &steps.normalizer), ("decoder", &steps.decoder)] {
            let times = growth(step);
            if times > MOST {
                let what = format!("its {name} makes a text up to {times:.0} times longer");
                return Err(Error::new(what).hint(format!("up to {MOST} times are read")));
            }
        }
        let (inner, dropout) = guarded(|| {
            let mut inner = Inner::from_bytes(&json)?;
            inner.with_truncation(None)?.with_padding(None);
            let (mut dropout, mut without) = (None, None);
            if let ModelWrapper::BPE(bpe) = inner.get_model()
                && bpe.dropout.is_some_and(|share| share > 0.0)
            {
                let mut bpe = bpe.clone();
                dropout = bpe.dropout.take();
                without = Some(bpe);
            }
            if let Some(bpe) = without {
                inner.with_model(bpe);
            }
            Ok((inner, dropout))
        })?;
        let tokens = inner.get_vocab(true);
        let mut tokens: Vec<_> = tokens.iter().map(|(token, &number)| (number, token)).collect();
        tokens.sort_unstable();
        let Some(&(largest, _)) = tokens.last() else {
            return Err(Error::new("its vocabulary is empty"));
        };
        let twice = |pair: &&[(u32, &String)]| pair[0].0 == pair[1].0;
        if let Some([(number, first), (_, other)]) = tokens.windows(2).find(twice) {
            let what = format!("{first:?} and {other:?} are both token {number}");
            return Err(Error::new(what));
        }
        let vocabulary = largest as usize + 1;
        Ok(Self { inner, json, vocabulary, dropout })
    }

    /// The one whose tokens are the bytes of the text.
    ///
    /// # Errors
    /// None is known.
    pub fn bytes() -> Result<Self> {
        // GPT-2 writes a byte as the character of its number where that can be printed, and the others in
        // their order from U+0100 on.
        let printable = |byte: &u32| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
        let others = (0..256).filter(|byte| !printable(byte));
        let moved = others.zip(0x100..).map(|(byte, character)| (character, byte));
        let all = (0..256).filter(printable).map(|byte| (byte, byte)).chain(moved);
        let vocabulary: serde_json::Map<_, _> = all
            .filter_map(|(character, byte)| Some((char::from_u32(character)?.into(), byte.into())))
            .collect();
        let level = |add: bool| {
            json!({ "type": "ByteLevel", "add_prefix_space": add,
            "trim_offsets": true, "use_regex": false })
        };
        let tokenizer = json!({
            "version": "1.0",
            "added_tokens": [],
            "pre_tokenizer": level(false),
            "decoder": level(true),
            "model": { "type": "BPE", "vocab": vocabulary, "merges": [] },
        });
        Self::from_json(tokenizer.to_string().into_bytes())
    }

    /// Learns a byte-level vocabulary of at most so many tokens; fewer if no further pair occurs twice.
    ///
    /// # Errors
    /// If the size is below [`SMALLEST`] or above [`LARGEST`].
    pub fn train<T: AsRef<str> + Send>(
        texts: impl Iterator<Item = T> + Send,
        vocabulary: usize,
    ) -> Result<Self> {
        if !(SMALLEST..=LARGEST).contains(&vocabulary) {
            return Err(Error::new(format!("a vocabulary of {vocabulary} tokens is impossible"))
                .hint(format!("{SMALLEST} (all bytes and {END_OF_TEXT}) to {LARGEST}")));
        }
        let mut inner = Inner::new(BPE::default());
        inner.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
        inner.with_decoder(Some(ByteLevel::default()));
        let trainer = BpeTrainer::builder()
            .show_progress(false)
            .vocab_size(vocabulary)
            .min_frequency(LEAST)
            .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
            .special_tokens(vec![AddedToken::from(END_OF_TEXT, true)])
            .build();
        let json = guarded(|| {
            inner.train(&mut TrainerWrapper::from(trainer), texts)?;
            inner.to_string(true)
        });
        let json =
            json.map_err(|error| Error::new("the vocabulary cannot be trained").because(error))?;
        // What is used is what others will read.
        Self::from_json(json.into_bytes())
    }

    /// The bytes of its `tokenizer.json`.
    pub fn json(&self) -> &[u8] {
        &self.json
    }

    /// All tokens are below this.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The share of merges that its file leaves out at random (BPE-dropout, arXiv 1910.13267), if it does:
    /// here none is left out.
    pub fn dropout(&self) -> Option<f32> {
        self.dropout
    }

    /// Whether the other has the same tokens under the same numbers.
    pub fn has_tokens_of(&self, other: &Self) -> bool {
        self.inner.get_vocab(true) == other.inner.get_vocab(true)
    }

    /// The number of a token by its text.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.token_to_id(token)
    }

    /// The tokens of a text alone: none is added at its beginning or end.
    ///
    /// # Errors
    /// If the tokenizer fails on it, as one without a token for some of the text may.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = guarded(|| self.inner.encode_fast(text, false));
        let failed = |error| Error::new("the tokenizer cannot divide the text").because(error);
        Ok(encoding.map_err(failed)?.get_ids().to_vec())
    }

    /// The text of tokens, special ones included. Bytes that are no text become U+FFFD.
    ///
    /// # Errors
    /// If the tokenizer fails on them.
    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        let text = guarded(|| self.inner.decode(tokens, false));
        text.map_err(|error| Error::new("the tokens cannot be put together").because(error))
    }
}
