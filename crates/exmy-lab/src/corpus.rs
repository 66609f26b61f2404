//! Token files from text: what `exmy data` does.
//!
//! The folder gets `tokenizer.json`, `train.bin` and `val.bin` (little-endian integers without a header, as
//! [nanoGPT](https://github.com/karpathy/nanoGPT) has them) and, last, [`tokens.json`](manifest). Every file
//! is whole or absent. The text is read three times, in pieces: to learn what it is, to train the vocabulary,
//! to turn it into tokens. A call that is repeated goes on where the last one was ended, at any moment, to
//! the same bytes; so does one with other threads.
//!
//! Validation gets the end of the text, from the first line that begins at or behind its place on. So a text
//! in a meaningful order is to be shuffled before, document by document. The vocabulary is learned from the
//! rest alone.

#[doc(hidden)]
pub mod input;
#[doc(hidden)]
pub mod parts;
#[doc(hidden)]
pub mod pieces;

use crate::tokenizer::{END_OF_TEXT, LARGEST, SMALLEST, Tokenizer};
use exmy::error::{Error, Result};
use exmy::safetensors::{given, whole};
use exmy::shown::printable_path;
use exmy_train::train::data::manifest::{self, Inputs, MANIFEST, Manifest, UNFINISHED, Width};
use exmy_train::train::digest::Sha256;
use input::Input;
use parts::Parts;
use pieces::{Piece, Pieces};
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tokenizers::parallelism::MaybeParallelRefIterator;

/// The name of the tokenizer in the folder.
const TOKENIZER: &str = "tokenizer.json";

/// Bytes of text that are turned into tokens, and written, at once.
pub const BATCH: usize = 4 << 20;

/// What is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct CorpusOptions {
    /// Where the vocabulary comes from.
    pub vocabulary: Vocabulary,
    /// The share of the text, at its end, that is for validation; above 0 and below 1.
    pub validation: f64,
    /// The token behind each document; by default `<|endoftext|>` if the tokenizer has it, else none.
    pub end_of_text: Option<String>,
    /// Bytes of text after which tokens are written, so that they are not made again: [`BATCH`], or fewer in
    /// tests. The files do not depend on it.
    pub batch: usize,
}

/// Where a vocabulary comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Vocabulary {
    /// It is trained, and has so many tokens.
    Train(usize),
    /// It is that of a `tokenizer.json`.
    Read(PathBuf),
}

/// How far the work is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// What is done.
    pub what: &'static str,
    /// The text that is being read.
    pub text: &'a str,
    /// Bytes of the files that were read for it.
    pub done: u64,
    /// Bytes of all files.
    pub total: u64,
}

/// Called again and again; [`ControlFlow::Break`] ends the work. What was done is kept.
pub type Watch<'a> = dyn FnMut(&Progress<'_>) -> ControlFlow<()> + Send + 'a;

/// Makes the token files of some texts in a folder, or what is missing of them. `None` if it was stopped.
///
/// # Errors
/// If a text or the tokenizer cannot be read, a file cannot be written, or the folder has something else.
pub fn make(
    texts: &[PathBuf],
    out: &Path,
    options: &CorpusOptions,
    watch: &mut Watch<'_>,
) -> Result<Option<Manifest>> {
    if let Vocabulary::Train(size) = options.vocabulary
        && !(SMALLEST..=LARGEST).contains(&size)
    {
        return Err(Error::new(format!("a vocabulary of {size} tokens is impossible"))
            .hint(format!("{SMALLEST} (all bytes and {END_OF_TEXT}) to {LARGEST}")));
    }
    let share = options.validation;
    if !(share > 0.0 && share < 1.0) {
        return Err(Error::new(format!("a validation share of {share} leaves one split empty"))
            .hint("a number above 0 and below 1, for example 0.1"));
    }
    refuse_other(out)?;
    let inputs = input::list(texts)?;
    refuse_inside(&inputs, out)?;
    let given = match &options.vocabulary {
        Vocabulary::Train(_) => None,
        Vocabulary::Read(path) => Some(Tokenizer::open(path)?),
    };
    let end_of_text = end_of_text(options, given.as_ref())?;
    let mut work = Pass { inputs: &inputs, cut: u64::MAX, batch: options.batch, watch };
    let Some((texts, bytes)) = work.survey()? else { return Ok(None) };
    if texts.iter().all(|text| text.text_bytes == 0) {
        return Err(Error::new("there is no text: all files are empty"));
    }
    let made = Inputs {
        vocabulary: match options.vocabulary {
            Vocabulary::Train(size) => Some(size),
            Vocabulary::Read(_) => None,
        },
        tokenizer: given.as_ref().map(|given| Sha256::of(given.json())),
        end_of_text,
        validation: share,
        texts,
    };
    work.cut = ((1.0 - share) * bytes as f64) as u64;
    if let Some(manifest) = manifest_of(out)? {
        same(&manifest.made, &made, out)?;
        return clean(out).map(|()| Some(manifest));
    }
    let _held = begin(out, &made)?;
    let Some(tokenizer) = work.tokenizer(out, given, &made)? else { return Ok(None) };
    let end = made.end_of_text.as_ref().map(|text| {
        let found = tokenizer.id(text);
        found.ok_or_else(|| Error::new(format!("the tokenizer has no token {text:?}")))
    });
    let Some(manifest) = work.tokens(out, &tokenizer, end.transpose()?, made)? else {
        return Ok(None);
    };
    let text = serde_json::to_string_pretty(&manifest).map_err(|error| {
        Error::new(format!("cannot describe {}", printable_path(out))).because(error)
    })?;
    whole::write_whole(&out.join(MANIFEST), format!("{text}\n").as_bytes())?;
    clean(out)?;
    Ok(Some(manifest))
}

fn manifest_of(out: &Path) -> Result<Option<Manifest>> {
    Manifest::of(out).map_err(Error::from_cause)
}

/// The token behind documents, which a tokenizer that is given must have.
fn end_of_text(options: &CorpusOptions, given: Option<&Tokenizer>) -> Result<Option<String>> {
    let has = |text: &str| given.map_or(text == END_OF_TEXT, |given| given.id(text).is_some());
    match options.end_of_text.as_deref() {
        None => Ok(has(END_OF_TEXT).then(|| END_OF_TEXT.to_owned())),
        Some("") => Ok(None),
        Some(text) if has(text) => Ok(Some(text.to_owned())),
        Some(text) => {
            Err(Error::new(format!("the tokenizer has no token {text:?} to end documents with"))
                .hint(format!(
                    "a vocabulary that is trained has {END_OF_TEXT}; an empty text is none"
                )))
        }
    }
}

/// A folder that has anything else is not written into.
fn refuse_other(out: &Path) -> Result<()> {
    match fs::read_dir(out) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("use", out, error).hint("give the name of a new folder")),
        Ok(entries) => {
            // What a call left that was ended before it began.
            let mut entries = entries.flatten().filter(|entry| !whole::is_partial(&entry.path()));
            let is_ours = [MANIFEST, UNFINISHED].iter().any(|name| out.join(name).is_file());
            match entries.next().is_none() || is_ours {
                true => Ok(()),
                false => {
                    Err(Error::new(format!("the folder {} is not empty", printable_path(out)))
                        .hint("give the name of a new folder"))
                }
            }
        }
    }
}

/// Texts that lie in the folder would be other ones in the next call.
fn refuse_inside(inputs: &[Input], out: &Path) -> Result<()> {
    let Ok(folder) = fs::canonicalize(out) else { return Ok(()) };
    let is_inside =
        |path: &Path| fs::canonicalize(path).is_ok_and(|path| path.starts_with(&folder));
    match inputs.iter().find(|input| is_inside(&input.path)) {
        None => Ok(()),
        Some(input) => Err(Error::new(format!(
            "the text {} lies in the folder that is to be written",
            printable_path(&input.path)
        ))
        .hint("name another folder with --out")),
    }
}

/// Refuses what was made, or begun, of something else.
fn same(there: &Inputs, wanted: &Inputs, out: &Path) -> Result<()> {
    if there == wanted {
        return Ok(());
    }
    let what = match () {
        () if there.texts != wanted.texts => "texts",
        () if (there.vocabulary, &there.tokenizer) != (wanted.vocabulary, &wanted.tokenizer) => {
            "a vocabulary"
        }
        () if there.end_of_text != wanted.end_of_text => "an end of documents",
        () => "a validation share",
    };
    let out = printable_path(out);
    Err(Error::new(format!("{out} has token files of other settings: {what} that differ")).hint(
        format!("{MANIFEST} or {UNFINISHED} there says which; name another folder with --out"),
    ))
}

/// Begins a folder, or goes on with it; it is this process's as long as the result lives.
fn begin(out: &Path, made: &Inputs) -> Result<Option<fs::File>> {
    let path = out.join(UNFINISHED);
    fs::create_dir_all(out).map_err(|error| Error::io("create", out, error))?;
    if path.is_file() {
        let text = given::text(&path, given::SETTINGS);
        let text = text.map_err(|error| Error::io("read", &path, error))?;
        let there: Inputs = serde_json::from_str(&text).map_err(|error| {
            Error::new(format!("{} says nothing of token files", printable_path(&path)))
                .because(error)
                .hint("remove the folder, or name another one with --out")
        })?;
        same(&there, made, out)?;
    } else {
        let text = serde_json::to_string_pretty(made)
            .map_err(|error| Error::new("cannot describe the work").because(error))?;
        whole::write_whole(&path, text.as_bytes())?;
    }
    let held = whole::lock(&path).map_err(|error| Error::io("open", &path, error))?;
    if held.is_none() {
        return Err(Error::new(format!("another process makes {}", printable_path(out)))
            .hint("wait for it or stop it"));
    }
    whole::remove_partial(out)?;
    Ok(held)
}

/// Removes what is not needed once the manifest is there.
fn clean(out: &Path) -> Result<()> {
    Parts::remove(out)?;
    let path = out.join(UNFINISHED);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", &path, error))
        }
        _ => Ok(()),
    }
}

/// What every pass over the texts needs.
struct Pass<'a, 'w> {
    inputs: &'a [Input],
    /// Where validation begins at the earliest.
    cut: u64,
    batch: usize,
    watch: &'a mut Watch<'w>,
}

impl<'a> Pass<'a, '_> {
    /// Shows how far a pass is; whether it may go on.
    fn goes_on(&mut self, what: &'static str, pieces: &Pieces<'_>) -> bool {
        let total = self.inputs.iter().map(|input| input.bytes).sum();
        let progress = Progress { what, text: pieces.name(), done: pieces.taken(), total };
        (self.watch)(&progress).is_continue()
    }

    /// What the texts are, and how many bytes they have, ends of documents included.
    fn survey(&mut self) -> Result<Option<(Vec<manifest::Text>, u64)>> {
        let mut pieces = Pieces::new(self.inputs, u64::MAX, true);
        while pieces.read()?.is_some() {
            if !self.goes_on("reading", &pieces) {
                return Ok(None);
            }
        }
        let bytes = pieces.position();
        Ok(Some((pieces.found(), bytes)))
    }

    /// The tokenizer of the folder, which gets it if it has none.
    fn tokenizer(
        &mut self,
        out: &Path,
        given: Option<Tokenizer>,
        made: &Inputs,
    ) -> Result<Option<Tokenizer>> {
        let path = out.join(TOKENIZER);
        let tokenizer = match (given, made.vocabulary) {
            (Some(given), _) => given,
            (None, _) if path.is_file() => return Tokenizer::open(&path).map(Some),
            (None, size) => {
                let Some(trained) = self.train(size.unwrap_or(SMALLEST))? else { return Ok(None) };
                trained
            }
        };
        whole::remove_abandoned(&path);
        whole::write_whole(&path, tokenizer.json())?;
        Ok(Some(tokenizer))
    }

    /// A vocabulary learned from what is not for validation.
    fn train(&mut self, size: usize) -> Result<Option<Tokenizer>> {
        let mut pieces = Pieces::new(self.inputs, self.cut, false);
        let cut = self.cut;
        let end = Mutex::new(Ok(true));
        let texts = std::iter::from_fn(|| {
            let next = pieces.read().map(|piece| piece.filter(|piece| piece.start < cut));
            let goes_on = self.goes_on("learning a vocabulary", &pieces);
            match next {
                Ok(Some(piece)) if goes_on => Some(piece.text),
                other => {
                    *end.lock().unwrap_or_else(PoisonError::into_inner) = other.map(|_| goes_on);
                    None
                }
            }
        });
        let trained = Tokenizer::train(texts.fuse(), size);
        match end.into_inner().unwrap_or_else(PoisonError::into_inner)? {
            false => Ok(None),
            true => trained.map(Some),
        }
    }

    /// All tokens, and what is to be known of them.
    fn tokens(
        &mut self,
        out: &Path,
        tokenizer: &Tokenizer,
        end: Option<u32>,
        made: Inputs,
    ) -> Result<Option<Manifest>> {
        let parts = Parts::open(out, Width::of(tokenizer.vocabulary()), tokenizer.json())?;
        let mut pieces = Pieces::new(self.inputs, self.cut, false);
        let mut next = pieces.read()?;
        // Of training and validation: the parts, and bytes of text without ends of documents.
        let (mut places, mut bytes) = ([Vec::new(), Vec::new()], [0, 0]);
        while let Some(first) = next.take() {
            let (start, split) = (first.start, usize::from(first.start >= self.cut));
            let (mut batch, mut size) = (Vec::new(), 0);
            next = Some(first);
            while let Some(piece) = next
                .take_if(|piece| size < self.batch && usize::from(piece.start >= self.cut) == split)
            {
                size += piece.text.len();
                batch.push(piece);
                next = pieces.read()?;
            }
            let place = start..next.as_ref().map_or(pieces.position(), |next| next.start);
            if !parts.has(&place) {
                let encode = |piece: &Piece| -> Result<Vec<u32>> {
                    let mut tokens = tokenizer.encode(&piece.text)?;
                    tokens.extend(end.filter(|_| piece.ends));
                    Ok(tokens)
                };
                let tokens: Vec<Result<Vec<u32>>> = batch.maybe_par_iter().map(encode).collect();
                let tokens = tokens.into_iter().collect::<Result<Vec<_>>>()?;
                parts.write(&place, tokens.into_iter().flatten())?;
            }
            places[split].push(place);
            bytes[split] += size as u64;
            if !self.goes_on("making tokens", &pieces) {
                return Ok(None);
            }
        }
        let train = parts.join(&out.join("train.bin"), &places[0], bytes[0])?;
        let validation = parts.join(&out.join("val.bin"), &places[1], bytes[1])?;
        for (part, split) in [(&train, "training"), (&validation, "validation")] {
            if part.tokens == 0 {
                let share = made.validation;
                return Err(Error::new(format!("nothing is left for {split}"))
                    .hint(format!("the text is too short for a validation share of {share}")));
            }
        }
        let hash = Sha256::of(tokenizer.json());
        Ok(Some(Manifest::new(tokenizer.vocabulary(), hash, [train, validation], made)))
    }
}
