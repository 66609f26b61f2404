//! The tokens of a text, for commands that give them to a model.

use exmy::error::{Error, Result};
use exmy::safetensors::given;
use exmy::shown::printable_path;
use exmy_lab::tokenizer::Tokenizer;
use std::path::Path;
use std::sync::Once;

/// Bytes of the longest text.
const TEXT: u64 = 4 << 30;

/// Refuses tokens that a model of so many does not know.
pub(crate) fn known(tokens: &[u32], vocab: usize) -> Result<()> {
    let Some(token) = tokens.iter().find(|&&token| token as usize >= vocab) else { return Ok(()) };
    Err(Error::new(format!("the tokenizer gives token {token}, and the model has {vocab}"))
        .hint("the tokenizer is another model's: name the right one by --tokenizer FILE"))
}

/// The first tokens of a text in a file, two at least, and as many as an option says at most.
pub(crate) fn read_tokens(
    path: &Path,
    tokenizer: &Tokenizer,
    (option, most): (&str, usize),
) -> Result<Vec<u32>> {
    let bytes = given::read(path, TEXT).map_err(|error| Error::io("read", path, error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        Error::new(format!("{} is no text in UTF-8", printable_path(path))).because(error)
    })?;
    let mut tokens = tokenizer.encode(&text)?;
    let found = tokens.len();
    tokens.truncate(most);
    if tokens.len() < 2 {
        let what = format!("{} tokens of {} score none", tokens.len(), printable_path(path));
        return Err(Error::new(what).hint(match found {
            0 | 1 => "give a text of two tokens or more".to_owned(),
            _ => format!("{option} takes two or more of its {found}"),
        }));
    }
    Ok(tokens)
}

/// Tells once that a tokenizer has dropout, which does not hold here.
pub(crate) fn tell_dropout(tokenizer: &Tokenizer) {
    static TOLD: Once = Once::new();
    if let Some(share) = tokenizer.dropout() {
        TOLD.call_once(|| {
            say!(
                "note: the tokenizer's dropout of {share} is for training others, and is left out: a text \
                 has the same tokens each time"
            );
        });
    }
}
