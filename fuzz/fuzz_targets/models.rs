//! The beginnings of published models: any bytes are no GGUF file, or one whose tensors lie in them and whose
//! vocabulary is one or an error; any text is no `config.json`, or one of a model.
//!
//! `cargo +nightly fuzz run models` in the repository's root.

#![no_main]

use exmy_train::published::gguf::Gguf;
use exmy_train::published::{family, vocabulary};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let _ = family::read(data);
    // As it is, and with the magic and version that chance would not find.
    let made = [b"GGUF\x03\0\0\0", data].concat();
    for file in [data, &made] {
        let Ok(gguf) = Gguf::parse(file) else { continue };
        let _ = vocabulary::json(&gguf);
        for tensor in gguf.tensors().values() {
            let mut values = vec![0.0; tensor.shape.iter().product()];
            tensor.dtype.dequantize(&file[tensor.range.clone()], &mut values);
        }
    }
});
