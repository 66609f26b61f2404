//! What a model's tokens are in text: bytes, or what the tokenizer beside its data says.

use super::Arguments;
use exmy::error::{Error, Result};
use exmy::shown::printable_path;
#[cfg(feature = "tokenizers")]
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::train::run::Folder;
#[cfg(feature = "tokenizers")]
use exmy_train::train::{data::Source, data::manifest::Manifest, digest::Sha256};

/// Text as tokens and back.
pub(super) enum Words {
    Bytes,
    /// A tokenizer, and how many tokens were shown.
    #[cfg(feature = "tokenizers")]
    Tokens(Box<Tokenizer>, usize),
}

impl Words {
    /// Those of a run's model.
    #[cfg_attr(not(feature = "tokenizers"), allow(unused_variables))]
    pub(super) fn of(folder: &Folder, arguments: &Arguments) -> Result<Self> {
        let config = folder.config()?;
        let vocab = config.model.decoder().map(|model| model.vocab);
        #[cfg(feature = "tokenizers")]
        {
            let wanted = arguments.tokenizer.as_deref().map(Tokenizer::open).transpose()?;
            let tokenizer = match wanted {
                Some(tokenizer) => Some(tokenizer),
                None => beside(&config.data.source)?,
            };
            if let (Some(vocab), Some(tokenizer)) = (vocab, tokenizer) {
                if tokenizer.vocabulary() > vocab {
                    let found = tokenizer.vocabulary();
                    return Err(Error::new(format!(
                        "the tokenizer has {found} tokens, and the model {vocab}"
                    ))
                    .hint("--tokenizer names the one that its data were made by"));
                }
                return Ok(Self::Tokens(Box::new(tokenizer), 0));
            }
        }
        if vocab != Some(256) {
            return Err(Error::new(format!(
                "{} was trained on token numbers, not on bytes",
                printable_path(folder.path())
            ))
            .hint("turning its tokens into text needs the tokenizer that made them"));
        }
        Ok(Self::Bytes)
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

/// The tokenizer beside the data that the data were made by, if there is one.
#[cfg(feature = "tokenizers")]
pub(crate) fn beside(source: &Source) -> Result<Option<Tokenizer>> {
    let Source::Path(path) = source else { return Ok(None) };
    let folder = if path.is_dir() { Some(&**path) } else { path.parent() };
    let Some(folder) = folder else { return Ok(None) };
    let manifest = Manifest::of(folder).map_err(|error| Error::new(error.to_string()))?;
    let Some(manifest) = manifest else { return Ok(None) };
    let path = folder.join("tokenizer.json");
    let tokenizer = Tokenizer::open(&path)?;
    if Sha256::of(tokenizer.json()) != manifest.tokenizer_sha256 {
        return Err(Error::new(format!("{} is not the one of tokens.json", printable_path(&path)))
            .hint("put it back, or name one with --tokenizer"));
    }
    Ok(Some(tokenizer))
}
