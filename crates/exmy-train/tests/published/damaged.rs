//! Files that are damaged or lie: an error each time, never a panic or memory by a claim.

use super::data;
use exmy::random::{Philox, Stream};
use exmy_train::published::Published;
use exmy_train::published::family;
use exmy_train::published::gguf::Gguf;
use std::fs;

#[test]
fn every_beginning_of_a_file_is_an_error() {
    let file = fs::read(data("blocks.gguf")).unwrap();
    let whole = Gguf::parse(&file).unwrap();
    let end = whole.tensors().values().map(|tensor| tensor.range.end).max().unwrap();
    let data = whole.tensors().values().map(|tensor| tensor.range.start).min().unwrap();
    for length in (0..data).chain([data, (data + end) / 2, end - 1]) {
        assert!(Gguf::parse(&file[..length]).is_err(), "{length}");
    }
    assert!(Gguf::parse(&file[..end]).is_ok());
}

/// One or two bytes of what describes the tensors; what is still read is a model that can be filled.
#[test]
fn changed_bytes_never_panic() {
    let file = fs::read(data("blocks.gguf")).unwrap();
    let whole = Gguf::parse(&file).unwrap();
    let header = whole.tensors().values().map(|tensor| tensor.range.start).min().unwrap() as u64;
    let philox = Philox::new(3, Stream::new("damaged"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let (mut read, mut opened) = (0, 0);
    for trial in 0..2000 {
        let mut damaged = file.clone();
        for i in 0..1 + trial % 2 {
            let at = philox.below(8 * trial + 2 * i, header) as usize;
            damaged[at] = philox.below(8 * trial + 2 * i + 1, 256) as u8;
        }
        read += u32::from(Gguf::parse(&damaged).is_ok());
        if trial % 10 == 0 {
            fs::write(&path, &damaged).unwrap();
            if let Ok(mut model) = Published::open(&path) {
                opened += u32::from(model.weights(|_| {}).is_ok());
            }
        }
    }
    assert!(read > 150 && opened > 3, "{read} {opened}: too few to say something");
}

/// Lengths that no file has.
#[test]
fn claims_of_lengths_allocate_nothing() {
    let begin = |tensors: u64, keys: u64| {
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend(tensors.to_le_bytes());
        file.extend(keys.to_le_bytes());
        file
    };
    let key = |file: &mut Vec<u8>, kind: u32| {
        file.extend(1_u64.to_le_bytes());
        file.push(b'k');
        file.extend(kind.to_le_bytes());
    };
    assert!(Gguf::parse(&begin(0, 0)).is_ok());
    assert!(Gguf::parse(&begin(u64::MAX, 0)).is_err());
    assert!(Gguf::parse(&begin(0, u64::MAX)).is_err());
    for element in [0_u32, 4, 7, 8, 9, 12, 99] {
        let mut file = begin(0, 1);
        key(&mut file, 9);
        file.extend(element.to_le_bytes());
        file.extend(u64::MAX.to_le_bytes());
        assert!(Gguf::parse(&file).is_err(), "{element}");
    }
    let mut file = begin(0, 1);
    key(&mut file, 8);
    file.extend(u64::MAX.to_le_bytes());
    assert!(Gguf::parse(&file).unwrap_err().to_string().contains("\"k\""));
    // A tensor of 2^62 elements, and one whose extents overflow.
    for extents in [[1_u64 << 31, 1 << 31], [u64::MAX, u64::MAX], [1, u64::MAX]] {
        let mut file = begin(1, 0);
        file.extend(1_u64.to_le_bytes());
        file.push(b't');
        file.extend(2_u32.to_le_bytes());
        extents.iter().for_each(|extent| file.extend(extent.to_le_bytes()));
        file.extend(0_u32.to_le_bytes());
        file.extend(0_u64.to_le_bytes());
        assert!(Gguf::parse(&file).unwrap_err().to_string().contains("\"t\""));
    }
}

/// An index is a model's, or an error.
#[test]
fn changed_indexes_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    for file in ["config.json", "model.safetensors"] {
        fs::copy(data("llama").join(file), folder.path().join(file)).unwrap();
    }
    let text = br#"{"metadata": {"total_size": 1}, "weight_map": {"model.norm.weight": "model.safetensors",
        "a": "model.safetensors", "b": "model.safetensors"}}"#;
    const BYTES: &[u8] = b"0-./\\e\"{}[]:,nab \x00\xFF";
    let index = folder.path().join("model.safetensors.index.json");
    let philox = Philox::new(5, Stream::new("damaged"));
    let mut opened = 0;
    for trial in 0..600 {
        let mut damaged = text.to_vec();
        for i in 0..1 + trial % 3 {
            let at = philox.below(8 * trial + 2 * i, text.len() as u64) as usize;
            let byte = philox.below(8 * trial + 2 * i + 1, BYTES.len() as u64) as usize;
            damaged[at] = BYTES[byte];
        }
        fs::write(&index, &damaged).unwrap();
        opened += u32::from(Published::open(folder.path()).is_ok());
    }
    assert!((50..550).contains(&opened), "{opened}: too few or too many to say something");
}

#[test]
fn changed_configurations_never_panic() {
    let texts = ["gla", "llama3"].map(|family| fs::read(data(family).join("config.json")).unwrap());
    let philox = Philox::new(4, Stream::new("damaged"));
    for trial in 0..6000 {
        let text = &texts[trial as usize % 2];
        let mut damaged = text.clone();
        for i in 0..2 {
            let at = philox.below(8 * trial + 2 * i, text.len() as u64) as usize;
            damaged[at] = b"0123456789-.e\"{}[]:, ntf\x00\xFF"
                [philox.below(8 * trial + 2 * i + 1, 26) as usize];
        }
        let _ = family::read(&damaged);
    }
    for text in ["", "[]", "{}", "{\"model_type\": 3}", "nul"] {
        assert!(family::read(text.as_bytes()).is_err(), "{text}");
    }
}
