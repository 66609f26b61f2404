//! `tokens.json`: what stands beside token files, and what they are checked against.
//!
//! `exmy data` writes it last into the folder of `train.bin`, `val.bin` and `tokenizer.json`, so a folder
//! that has it is whole. It says how wide a token is, how large the vocabulary, how many bytes of text the
//! tokens stand for, and what all of it was made of, with SHA-256 sums. No path, clock or host stands in it,
//! so the same text gives the same bytes.

use super::DataError;
use crate::train::digest::Sha256;
use exmy::safetensors::given;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The name of the manifest.
pub const MANIFEST: &str = "tokens.json";

/// The name of what stands in its place until the folder is whole.
pub const UNFINISHED: &str = "unfinished.json";

/// Version of the keys.
const VERSION: u32 = 1;

/// How a token is stored: a little-endian unsigned integer, by numpy's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Width {
    /// Two bytes: vocabularies of up to 65,536 tokens.
    UInt16,
    /// Four bytes.
    UInt32,
}

impl Width {
    /// The narrower one that holds all tokens below `vocabulary`.
    pub fn of(vocabulary: usize) -> Self {
        if vocabulary <= 1 << 16 { Self::UInt16 } else { Self::UInt32 }
    }

    /// Bytes a token.
    pub fn bytes(self) -> usize {
        match self {
            Self::UInt16 => 2,
            Self::UInt32 => 4,
        }
    }
}

/// One of the token files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenFile {
    /// Its name in the folder.
    pub file: String,
    /// Tokens in it.
    pub tokens: u64,
    /// Bytes of text that they stand for, ends of documents not counted.
    pub text_bytes: u64,
    /// Of the file, in hexadecimal.
    pub sha256: String,
}

/// One file of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// Its name, below the folder that was named if one was.
    pub file: String,
    /// Of the file as it is, compressed or not, in hexadecimal.
    pub sha256: String,
    /// Bytes of its text, ends of documents not counted.
    pub text_bytes: u64,
    /// Documents in it.
    pub documents: u64,
}

/// What determines the token files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inputs {
    /// The size of the vocabulary that was asked for, where one was trained.
    pub vocabulary: Option<usize>,
    /// The SHA-256 of the `tokenizer.json` that was given, where one was.
    pub tokenizer: Option<String>,
    /// The token behind each document.
    pub end_of_text: Option<String>,
    /// The share of the text, at its end, that is for validation.
    pub validation: f64,
    /// The text, in order.
    pub texts: Vec<Text>,
}

/// The contents of `tokens.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    version: u32,
    /// How tokens are stored.
    pub dtype: Width,
    /// Every token is below this.
    pub vocabulary: usize,
    /// The SHA-256 of `tokenizer.json`.
    pub tokenizer_sha256: String,
    /// The training split.
    pub train: TokenFile,
    /// The validation split.
    pub validation: TokenFile,
    /// What both were made of.
    pub made: Inputs,
}

impl Manifest {
    /// Of two files, `train.bin` and `val.bin`.
    pub fn new(
        vocabulary: usize,
        tokenizer_sha256: String,
        [train, validation]: [TokenFile; 2],
        made: Inputs,
    ) -> Self {
        let dtype = Width::of(vocabulary);
        Self { version: VERSION, dtype, vocabulary, tokenizer_sha256, train, validation, made }
    }

    /// The manifest of a folder; `None` if it has none.
    ///
    /// # Errors
    /// If what stands there cannot be read, or is no manifest of this version.
    pub fn of(folder: &Path) -> Result<Option<Self>, DataError> {
        let path = folder.join(MANIFEST);
        if !path.exists() {
            return Ok(None);
        }
        let text = given::text(&path, given::SETTINGS)
            .map_err(|source| DataError::Unreadable { path: path.clone(), source })?;
        let bad = |problem: String| {
            DataError::TokenFile {
            path: path.clone(),
            problem,
            hint:
                "remove the folder and repeat `exmy data`; without this file `.bin` files are read as \
                   those of nanoGPT or llm.c"
                    .to_owned(),
        }
        };
        let manifest: Self = serde_json::from_str(&text)
            .map_err(|error| bad(format!("says of no token files what they are: {error}")))?;
        if manifest.version != VERSION {
            let found = manifest.version;
            return Err(bad(format!("has version {found}, this program reads version {VERSION}")));
        }
        Ok(Some(manifest))
    }

    /// What is known of a file of the folder, by its name.
    pub fn part(&self, name: &str) -> Option<&TokenFile> {
        [&self.train, &self.validation].into_iter().find(|part| part.file == name)
    }

    /// Compares a file with what is known of it.
    ///
    /// # Errors
    /// Says in what they differ: length, SHA-256.
    pub fn check(&self, part: &TokenFile, path: &Path, bytes: &[u8]) -> Result<(), DataError> {
        let bad = |problem: String, hint: &str| {
            Err(DataError::TokenFile { path: path.to_owned(), problem, hint: hint.to_owned() })
        };
        let width = self.dtype.bytes();
        let (found, expected) = (bytes.len() as u128, u128::from(part.tokens) * width as u128);
        if found != expected {
            return bad(
                format!(
                    "holds {found} bytes, but {MANIFEST} says {} tokens of {width} bytes",
                    part.tokens
                ),
                if found < expected {
                    "was it cut off? copy it again, or remove the folder and repeat `exmy data`"
                } else {
                    "does it belong to another folder? copy it again"
                },
            );
        }
        let found = Sha256::of(bytes);
        if found != part.sha256 {
            return bad(
                format!("has the SHA-256 {found}, but {MANIFEST} says {}", part.sha256),
                "it was changed, or is that of another folder; copy it again, or remove the folder \
                 and repeat `exmy data`",
            );
        }
        Ok(())
    }
}

impl TokenFile {
    /// Bytes of text a token, on average.
    pub fn bytes_per_token(&self) -> f64 {
        self.text_bytes as f64 / self.tokens as f64
    }
}
