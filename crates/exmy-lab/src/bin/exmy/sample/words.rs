//! What a model's tokens are in text: bytes, or what the tokenizer beside its data says.

use super::{Arguments, shape};
#[cfg(feature = "tokenizers")]
use crate::tokens::tell_dropout;
use exmy::error::{Error, Result};
#[cfg(feature = "tokenizers")]
use exmy::safetensors::whole::split;
use exmy::shown::printable_path;
#[cfg(feature = "tokenizers")]
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::train::run::Folder;
#[cfg(feature = "tokenizers")]
use exmy_train::train::{data::Source, data::manifest::Manifest, digest::Sha256};
#[cfg(feature = "tokenizers")]
use std::path::Path;

/// The vocabulary of a model of bytes.
const BYTES: usize = 256;

/// Text as tokens and back.
pub(super) enum Words {
    Bytes,
    /// A tokenizer, and how many tokens were shown.
    #[cfg(feature = "tokenizers")]
    Tokens(Box<Tokenizer>, usize),
}

impl Words {
    /// Those of a run's model.
    #[cfg(feature = "tokenizers")]
    pub(super) fn of(folder: &Folder, arguments: &Arguments) -> Result<Self> {
        let found = tokenizer(folder, arguments.tokenizer.as_deref())?;
        found.iter().for_each(tell_dropout);
        Ok(found.map_or(Self::Bytes, |tokenizer| Self::Tokens(Box::new(tokenizer), 0)))
    }

    /// Those of a run's model.
    #[cfg(not(feature = "tokenizers"))]
    pub(super) fn of(folder: &Folder, _: &Arguments) -> Result<Self> {
        if shape(folder)?.vocab == BYTES {
            return Ok(Self::Bytes);
        }
        let path = printable_path(folder.path());
        Err(Error::new(format!("{path} was trained on token numbers, not on bytes")).hint(
            "this program was built without what turns its tokens into text: feature `tokenizers`",
        ))
    }

    /// The tokens of a prompt.
    pub(super) fn tokens(&mut self, prompt: &str) -> Result<Vec<u32>> {
        match self {
            Self::Bytes => Ok(prompt.bytes().map(u32::from).collect()),
            #[cfg(feature = "tokenizers")]
            Self::Tokens(tokenizer, shown) => {
                let tokens = tokenizer.encode(prompt)?;
                if tokens.is_empty() {
                    return Err(Error::new("--prompt has no token").hint("give another text"));
                }
                *shown = tokens.len();
                Ok(tokens)
            }
        }
    }

    /// What the tokens that were not shown are in text. A character that is not finished waits for the next.
    pub(super) fn more(&mut self, tokens: &[u32]) -> Vec<u8> {
        match self {
            Self::Bytes => tokens.last().map(|&token| token as u8).into_iter().collect(),
            #[cfg(feature = "tokenizers")]
            Self::Tokens(tokenizer, shown) => {
                /// Tokens in which every character is finished: each is a byte at least.
                const CHARACTER: usize = 4;
                let new = &tokens[*shown..];
                // Rows of the model beyond the vocabulary are no text.
                let text = tokenizer.decode(new).unwrap_or_default();
                if text.ends_with('\u{FFFD}') && new.len() < CHARACTER {
                    return Vec::new();
                }
                *shown = tokens.len();
                text.into_bytes()
            }
        }
    }
}

/// The tokenizer of a run: the one that is wanted, or the one beside its data; none where tokens are bytes.
///
/// # Errors
/// If there is none, it cannot be read, or another one made the run's data.
#[cfg(feature = "tokenizers")]
pub(crate) fn tokenizer(folder: &Folder, wanted: Option<&Path>) -> Result<Option<Tokenizer>> {
    let (run, vocab) = (printable_path(folder.path()), shape(folder)?.vocab);
    let fitting = |tokenizer: Tokenizer| match tokenizer.vocabulary() {
        count if count > vocab => {
            Err(Error::new(format!("the tokenizer has {count} tokens, and the model {vocab}"))
                .hint("--tokenizer names the one that its data were made by"))
        }
        _ => Ok(tokenizer),
    };
    let own = beside(&folder.config()?.data.source);
    let Some(path) = wanted else {
        return match own? {
            Some(tokenizer) => fitting(tokenizer).map(Some),
            None if vocab == BYTES => Ok(None),
            None => Err(Error::new(format!(
                "{run} was trained on token numbers, and no tokenizer.json is beside its data"
            ))
            .hint("name the one that made them by --tokenizer FILE")),
        };
    };
    let tokenizer = fitting(Tokenizer::open(path)?)?;
    let (own, whose) = match own {
        Ok(None) if vocab == BYTES => (Tokenizer::bytes()?, "the bytes of text"),
        Ok(Some(own)) => (own, "the tokenizer.json beside its data"),
        _ => {
            say!(
                "note: {run} has no tokenizer.json beside its data that would tell whether this one made them"
            );
            return Ok(Some(tokenizer));
        }
    };
    if !own.has_tokens_of(&tokenizer) {
        let (path, found) = (printable_path(path), tokenizer.vocabulary());
        let count = own.vocabulary();
        return Err(Error::new(format!(
            "--tokenizer {path} has other tokens, {found} of them, than {run} was trained on: the {count} of \
             {whose}"
        ))
        .hint("leave the option out"));
    }
    Ok(Some(tokenizer))
}

/// The tokenizer beside the data that the data were made by, if there is one.
#[cfg(feature = "tokenizers")]
fn beside(source: &Source) -> Result<Option<Tokenizer>> {
    let Source::Path(path) = source else { return Ok(None) };
    let (above, name) = split(path);
    let folder = if path.is_dir() { path } else { above };
    let manifest = Manifest::of(folder).map_err(Error::from_cause)?;
    // A text may lie beside tokens that were made of it.
    let made = |manifest: &Manifest| folder == path || manifest.part(&name).is_some();
    let Some(manifest) = manifest.filter(made) else { return Ok(None) };
    let path = folder.join("tokenizer.json");
    let tokenizer = Tokenizer::open(&path)?;
    if Sha256::of(tokenizer.json()) != manifest.tokenizer_sha256 {
        return Err(Error::new(format!("{} is not the one of tokens.json", printable_path(&path)))
            .hint("put it back, or name one with --tokenizer"));
    }
    Ok(Some(tokenizer))
}
