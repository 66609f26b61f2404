//! The `tokenizer.json` of a published model: any bytes are an error, or a tokenizer that makes tokens of a
//! text and a text of tokens, the same ones each time, or says why not.
//!
//! `cargo +nightly fuzz run tokenizers` in the repository's root.

#![no_main]

use exmy_lab::tokenizer::Tokenizer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(tokenizer) = Tokenizer::from_json(data.to_vec()) else { return };
    let text = "low lower  <s> \u{e9}\n";
    let Ok(tokens) = tokenizer.encode(text) else { return };
    assert_eq!(tokenizer.encode(text).expect("it was encoded"), tokens);
    let _ = tokenizer.decode(&tokens);
});
