//! The tokenizers of GGUF files, against Python's.

use exmy_lab::tokenizer::Tokenizer;
use exmy_train::published::gguf::Gguf;
use exmy_train::published::{Published, vocabulary};
use serde::Deserialize;
use std::path::Path;

/// A vocabulary that the package sentencepiece 0.2.3 trained (BPE, bytes for what has no piece), with the
/// tokens that it makes of some texts: `scripts/sentencepiece-vocabulary.py`.
#[derive(Deserialize)]
struct Pieces {
    pieces: Vec<String>,
    scores: Vec<f32>,
    kinds: Vec<i32>,
    texts: Vec<(String, Vec<u32>)>,
}

/// A GGUF file of a vocabulary alone, with a key of truth.
fn gguf(of: &Pieces, (name, value): (&str, bool)) -> Vec<u8> {
    fn text(file: &mut Vec<u8>, text: &str) {
        file.extend((text.len() as u64).to_le_bytes());
        file.extend(text.as_bytes());
    }
    let key = |file: &mut Vec<u8>, name: &str, kind: u32| {
        text(file, &format!("tokenizer.ggml.{name}"));
        file.extend(kind.to_le_bytes());
    };
    let list = |file: &mut Vec<u8>, name: &str, kind: u32| {
        key(file, name, 9);
        file.extend(kind.to_le_bytes());
        file.extend((of.pieces.len() as u64).to_le_bytes());
    };
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend(0_u64.to_le_bytes());
    file.extend(5_u64.to_le_bytes());
    key(&mut file, "model", 8);
    text(&mut file, "llama");
    list(&mut file, "tokens", 8);
    of.pieces.iter().for_each(|piece| text(&mut file, piece));
    list(&mut file, "scores", 6);
    of.scores.iter().for_each(|score| file.extend(score.to_le_bytes()));
    list(&mut file, "token_type", 5);
    of.kinds.iter().for_each(|kind| file.extend(kind.to_le_bytes()));
    key(&mut file, name, 7);
    file.push(value.into());
    file
}

fn pieces() -> Pieces {
    serde_json::from_str(include_str!("sentencepiece.json")).unwrap()
}

#[test]
fn pieces_are_joined_as_sentencepiece_joins_them() {
    let of = pieces();
    let made = |key: (&str, bool)| vocabulary::json(&Gguf::parse(&gguf(&of, key)).unwrap());
    let open = |key| Tokenizer::from_json(made(key).unwrap()).unwrap();
    let tokenizer = open(("add_space_prefix", true));
    for (text, tokens) in &of.texts {
        assert_eq!(&tokenizer.encode(text).unwrap(), tokens, "{text:?}");
        // The sign of a space cannot be told from one.
        assert_eq!(tokenizer.decode(tokens).unwrap(), text.replace('▁', " "), "{text:?}");
    }
    // Without a space in front a text is the rest of one that begins with it.
    let bare = open(("add_space_prefix", false));
    assert_eq!(bare.encode(" thee").unwrap(), tokenizer.encode("thee").unwrap());
    assert_ne!(bare.encode("thee").unwrap(), tokenizer.encode("thee").unwrap());
    assert_eq!(bare.decode(&bare.encode("a b").unwrap()).unwrap(), "a b");
    let error = made(("remove_extra_whitespaces", true)).unwrap_err().to_string();
    assert!(error.contains("remove_extra_whitespaces"), "{error}");
}

/// What a damaged vocabulary says is an error or a tokenizer.
#[test]
fn damaged_pieces_do_not_panic() {
    let mut of = pieces();
    of.pieces.truncate(300);
    (of.scores, of.kinds) = (of.scores[..300].to_vec(), of.kinds[..300].to_vec());
    let file = gguf(&of, ("add_space_prefix", true));
    let philox = exmy::random::Philox::new(8, exmy::random::Stream::new("damaged"));
    let mut opened = 0;
    for trial in 0..400 {
        let mut damaged = file.clone();
        let at = philox.below(2 * trial, damaged.len() as u64) as usize;
        damaged[at] = philox.below(2 * trial + 1, 256) as u8;
        let json = Gguf::parse(&damaged).and_then(|gguf| vocabulary::json(&gguf));
        if let Ok(tokenizer) = json.and_then(Tokenizer::from_json) {
            opened += 1;
            let _ = tokenizer
                .encode("Before we proceed any further")
                .map(|tokens| tokenizer.decode(&tokens));
        }
    }
    assert!(opened > 50, "{opened}: too few to say something");
}

#[test]
#[ignore = "needs a model of 94 MiB: scripts/smollm2.py"]
fn real_model_has_the_tokens_of_python() {
    let [model, folder] = ["EXMY_MODEL", "EXMY_TRUTH"].map(|name| std::env::var(name).unwrap());
    let model = Published::open(Path::new(&model)).unwrap();
    let tokenizer = Tokenizer::from_json(model.tokenizer().unwrap()).unwrap();
    let corpus = std::fs::read(Path::new(&folder).join("corpus.json")).unwrap();
    let corpus: Vec<(String, Vec<u32>)> = serde_json::from_slice(&corpus).unwrap();
    for (text, tokens) in &corpus {
        let start: String = text.chars().take(40).collect();
        assert_eq!(&tokenizer.encode(text).unwrap(), tokens, "{start:?}");
        // Byte-level tokens are the text again.
        assert_eq!(&tokenizer.decode(tokens).unwrap(), text, "{start:?}");
    }
    println!("{} texts have the tokens of Python's tokenizers", corpus.len());
}
