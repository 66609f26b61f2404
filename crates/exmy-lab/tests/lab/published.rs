//! The tokenizer of a GGUF file, against Python's.

use exmy_lab::tokenizer::Tokenizer;
use exmy_train::published::Published;
use std::path::Path;

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
