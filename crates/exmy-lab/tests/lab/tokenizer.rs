mod damaged;

use exmy::parallel::with_threads;
use exmy_lab::tokenizer::{END_OF_TEXT, Tokenizer};
use exmy_train::train::digest::Sha256;
use proptest::prelude::*;

/// Letters, contractions, numbers, blanks of several kinds and lengths, marks, and characters of up to four
/// bytes.
const SCRIPTS: &str = "Grüße, Ωμέγα; Привет мир! שלום עולם — مرحبا بالعالم. नमस्ते दुनिया 你好，世界。\
    こんにちは世界 안녕하세요 세계 ไทย 𝔘𝔫𝔦 👩\u{200d}👩\u{200d}👧 e\u{301}\n\tdon't we'll  x1234 ½ \
    \u{3000}\u{a0} end\r\n\n\n   ";

fn trained(texts: &[&str], size: usize) -> Tokenizer {
    Tokenizer::train(texts.iter(), size).unwrap()
}

/// By hand. The words are `low`, two ` low`, ` lower`, ` lowest`. Merges: `lo` (5, and of the two pairs that
/// occur so often the one of lower numbers), `low` (5), ` low` (4), ` lowe` (2); no other pair occurs twice.
/// Token 0 is the end of text; `!` to `~` are 1 to 94, so `r` is 82 and `s` 83.
#[test]
fn a_vocabulary_by_hand() {
    let small = trained(&["low low low lower lowest"], 300);
    assert_eq!(small.vocabulary(), 261);
    assert_eq!(small.encode("low lower").unwrap(), [258, 260, 82]);
    assert_eq!(small.encode("slow").unwrap(), [83, 258]);
    // 0xC3 is the 22nd character from U+00AE on, behind 94 and 12 others; 0xA9 the ninth from U+00A1 on.
    assert_eq!(small.encode("é").unwrap(), [1 + 94 + 12 + 21, 1 + 94 + 8]);
    assert_eq!(small.id(END_OF_TEXT), Some(0));
    assert_eq!(small.encode("r<|endoftext|>r").unwrap(), [82, 0, 82]);
    assert_eq!(small.decode(&[83, 258, 0, 128, 103]).unwrap(), "slow<|endoftext|>é");
    // Fewer merges than are possible.
    assert_eq!(trained(&["low low low lower lowest"], 258).encode("low").unwrap().len(), 2);
}

/// Where nothing is merged the tokens are the bytes, by GPT-2's table: printable characters of Latin-1 in
/// order, then all others.
#[test]
fn without_merges_tokens_are_bytes() {
    let bytes = trained(&[""], 257);
    let is_printable = |byte: &u8| matches!(byte, 33..=126 | 161..=172 | 174..=255);
    let mut order: Vec<u8> = (0..=255).filter(is_printable).collect();
    order.extend((0..=255).filter(|byte| !is_printable(byte)));
    let place = |byte: u8| 1 + order.iter().position(|&other| other == byte).unwrap() as u32;
    let expected: Vec<u32> = SCRIPTS.bytes().map(place).collect();
    assert_eq!(bytes.encode(SCRIPTS).unwrap(), expected);
    assert_eq!(bytes.decode(&expected).unwrap(), SCRIPTS);
}

/// What Python's package tokenizers 0.23.3 (with Oniguruma) trains and says, of the same texts and settings.
#[test]
fn equal_to_python() {
    let small = trained(&["low low low lower lowest"], 300);
    let sum = "a370aadb9f0468df84f3f0d86fdeb18a9109dea029c300d53797819162e5198f";
    assert_eq!(Sha256::of(small.json()), sum);
    let scripts = trained(&[SCRIPTS, SCRIPTS], 420);
    let sum = "95ab5eba3da65f26e1da51cfcb35f99298ec5570d58d4f38a81bcc8efe14baae";
    assert_eq!(Sha256::of(scripts.json()), sum);
    let text = "Привет, Ωμέγα 世界! don't  e\u{301} 𝔫\u{3000} x12\n\n  שלום नमस्ते 👩\u{200d}👧 zq";
    let tokens = [
        141, 367, 379, 403, 12, 416, 110, 221, 292, 1, 221, 398, 294, 221, 283, 326, 346, 105, 278,
        223, 344, 295, 282, 221, 390, 380, 392, 402, 378, 370, 377, 347, 393, 221, 90, 81,
    ];
    assert_eq!(scripts.encode(text).unwrap(), tokens);
    assert_eq!(scripts.decode(&tokens).unwrap(), text);
}

/// Every map inside the library is in another order in each process and each call; the result is not.
#[test]
fn the_same_bytes_whatever_the_threads() {
    let words = |i: u32| format!("w{} the {}{} of\n", i * i % 997, i % 13, i * i % 71);
    let texts: Vec<String> = (0..40).map(|t| (t * 50..t * 50 + 80).map(words).collect()).collect();
    let with = |threads| with_threads(threads, || Tokenizer::train(texts.iter(), 700)).unwrap();
    let one = with(1).unwrap();
    assert!(one.vocabulary() > 400, "{one:?}");
    for threads in [1, 2, 3, 8] {
        assert!(with(threads).unwrap().json() == one.json(), "{threads} threads");
    }
    let again = Tokenizer::from_json(one.json().to_vec()).unwrap();
    assert_eq!(again.encode(&texts[3]).unwrap(), one.encode(&texts[3]).unwrap());
}

/// Files of others may cut texts off, and add tokens around them: not here.
#[test]
fn limits_of_length_do_not_hold() {
    let json = String::from_utf8(trained(&["low low"], 300).json().to_vec()).unwrap();
    let limited = json.replace(
        "\"truncation\": null",
        "\"truncation\": {\"direction\": \"Right\", \"max_length\": 2, \"strategy\": \
         \"LongestFirst\", \"stride\": 0}",
    );
    let padded = limited.replace(
        "\"padding\": null",
        "\"padding\": {\"strategy\": {\"Fixed\": 8}, \"direction\": \"Right\", \"pad_to_multiple_of\": null, \
         \"pad_id\": 0, \"pad_type_id\": 0, \"pad_token\": \"!\"}",
    );
    assert!(padded != limited && limited != json);
    let tokenizer = Tokenizer::from_json(padded.into_bytes()).unwrap();
    assert_eq!(tokenizer.encode("abcd").unwrap(), [65, 66, 67, 68]);
}

#[test]
fn impossible_sizes_and_files() {
    for size in [0, 256, (1 << 24) + 1] {
        let error = Tokenizer::train(["a"].iter(), size).unwrap_err().to_string();
        assert!(error.contains(&size.to_string()) && error.contains("257"), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tokenizer.json");
    for text in ["", "{}", "[1]", "{\"model\": {\"type\": \"BPE\"}}", "no JSON", "\u{0}"] {
        std::fs::write(&path, text).unwrap();
        let error = Tokenizer::open(&path).unwrap_err().to_string();
        assert!(error.contains("tokenizer.json is no tokenizer"), "{error}");
    }
    assert!(Tokenizer::open(folder.path()).is_err());
    let good = String::from_utf8(trained(&["low low"], 300).json().to_vec()).unwrap();
    let twice = good.replace("\"b\": 66", "\"b\": 65");
    std::fs::write(&path, twice).unwrap();
    let error = Tokenizer::open(&path).unwrap_err().to_string();
    assert!(error.contains("\"a\" and \"b\" are both token 65"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A file that was changed anywhere is a tokenizer or an error.
    #[test]
    fn changed_files_do_not_panic(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let mut json = trained(&["low low low lower lowest"], 300).json().to_vec();
        let at = at.index(json.len());
        json[at] = byte;
        if cut {
            json.truncate(at);
        }
        if let Ok(tokenizer) = Tokenizer::from_json(json) {
            let _ = tokenizer.encode(SCRIPTS);
        }
    }
}
