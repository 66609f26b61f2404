//! The safetensors reader: any header before any bytes is an error, or a file of which everything can
//! be read.
//!
//! `cargo +nightly fuzz run files` in the repository's root.

#![no_main]

use exmy::safetensors::{Header, Reader};
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;

fuzz_target!(|data: &[u8]| {
    // As it is, and with the length of the header made right, which chance would not.
    let _ = Reader::new(Cursor::new(data), "raw");
    let [tensors, text @ ..] = data else { return };
    let mut file = (text.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(text);
    file.resize(file.len() + usize::from(*tensors), 0x5A);
    let Ok(mut reader) = Reader::new(Cursor::new(&file), "made") else { return };
    let header = reader.header().clone();
    // What is read is written so that it reads the same.
    let bytes = header.to_bytes();
    let again = Header::parse(&bytes[8..], header.data_bytes());
    assert_eq!(again.expect("a header that was written"), header);
    let names = header.entries().iter().map(|entry| entry.name.clone());
    for name in names.chain(["absent".to_owned()]) {
        let mut bytes = Vec::new();
        let there = reader.read_into(&name, &mut bytes).is_ok();
        assert_eq!(there, header.find(&name).is_some());
        let _ = reader.survey(&name);
        let _ = reader.read_blocks(&name);
        let _ = reader.read_values(&name);
    }
});
