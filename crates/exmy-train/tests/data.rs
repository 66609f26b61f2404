//! Every kind of data file, every way to get it wrong, and which windows a step sees.

use std::fs;
use std::path::{Path, PathBuf};

use exmy_train::train::data::manifest::{Inputs, MANIFEST, Manifest, TokenFile, UNFINISHED};
use exmy_train::train::data::{
    Batches, DataError, DataOptions, Dataset, Source, Split, Tokens, windows,
};
use proptest::prelude::*;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn write(folder: &TempDir, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

fn load(path: impl AsRef<Path>) -> Result<Dataset, DataError> {
    Dataset::load(&Source::Path(path.as_ref().to_owned()), &DataOptions::default())
}

/// The message of what must fail, checked to name the path and to be one line.
fn refusal(path: impl AsRef<Path>) -> String {
    let message = load(path.as_ref()).unwrap_err().to_string();
    let named = path.as_ref().file_name().unwrap().to_str().unwrap();
    assert!(message.contains(named) && !message.contains('\n'), "{message}");
    message
}

/// An llm.c file: 256 words of header, then whatever follows.
fn llm_c(magic: u32, version: u32, count: u32, rest: &[u8]) -> Vec<u8> {
    let mut header = [0_u32; 256];
    header[..3].copy_from_slice(&[magic, version, count]);
    let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.extend_from_slice(rest);
    bytes
}

#[test]
fn a_text_file_is_its_bytes() {
    let folder = folder();
    // Not UTF-8 inside: contents are bytes, whatever they are.
    let text: Vec<u8> = (0..=255).chain(0..=255).collect();
    let data = load(write(&folder, "a.txt", &text)).unwrap();
    assert_eq!(data.train, Tokens::Bytes(text[..460].to_vec()));
    assert_eq!(data.validation, Tokens::Bytes(text[460..].to_vec()));
    assert_eq!((data.vocab, data.bytes, data.reference), (256, true, None));
    assert!(data.description.contains("460 for training and 52 for validation (split at 0.9)"));
    assert_eq!(data.train.get(254..258), [254, 255, 0, 1]);
    assert_eq!((data.train.max(), data.train.width()), (Some(255), 1));
}

/// The length of Tiny Shakespeare, on which the common split is 1 003 854 + 111 540.
#[test]
fn the_common_split() {
    let folder = folder();
    let path = write(&folder, "long.txt", vec![b'x'; 1_115_394]);
    let data = load(&path).unwrap();
    assert_eq!((data.train.len(), data.validation.len()), (1_003_854, 111_540));
    assert_eq!(windows(&data.validation, 64).len(), 1742);

    let split = |validation_fraction| {
        let options = DataOptions { validation_fraction, ..DataOptions::default() };
        Dataset::load(&Source::Path(path.clone()), &options)
    };
    assert_eq!(split(0.25).unwrap().train.len(), 836_545);
    for fraction in [0.0, 1.0, -0.1, 7.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(split(fraction), Err(DataError::Fraction { .. })), "{fraction}");
    }
}

#[test]
fn a_folder_is_its_files_in_path_order() {
    let folder = folder();
    for (name, text) in [
        ("b.txt", "4"),
        ("a/z.txt", "2"),
        ("a/b/c.txt", "1"),
        ("a.txt", "3"),
        (".hidden", "x"),
        (".git/config", "x"),
        ("c/.cache/d", "x"),
        ("c/empty", ""),
        // Written in an order that is sorted neither forwards nor backwards.
        ("g.md", "7"),
        ("e.md", "5"),
        ("i.md", "90"),
        ("f.md", "6"),
        ("h.md", "8"),
    ] {
        write(&folder, name, text);
    }
    let data = load(folder.path()).unwrap();
    // By component: everything below `a` comes before `a.txt`.
    assert_eq!(data.train, Tokens::Bytes(b"123456789".to_vec()));
    assert_eq!(data.validation, Tokens::Bytes(b"0".to_vec()));
    assert!(data.description.contains("10 files"), "{}", data.description);
}

#[test]
fn nanogpt_files() {
    let folder = folder();
    let tokens: Vec<u16> = (0..20).map(|i| 50_256 - i).collect();
    let bytes: Vec<u8> = tokens.iter().flat_map(|t| t.to_le_bytes()).collect();

    // On its own a file is split, whatever it is called.
    let data = load(write(&folder, "train.bin", &bytes)).unwrap();
    assert_eq!(data.train, Tokens::U16(tokens[..18].to_vec()));
    assert_eq!(data.validation, Tokens::U16(tokens[18..].to_vec()));
    assert_eq!((data.vocab, data.bytes), (50_304, false));
    assert!(data.description.contains("nanoGPT tokens (u16), vocabulary 50304"));

    // Little-endian: 0x0102 is the bytes 2, 1.
    let other = write(&folder, "val.bin", [2, 1, 4, 3]);
    for path in [folder.path().to_owned(), folder.path().join("train.bin")] {
        let data = load(path).unwrap();
        assert_eq!(data.train, Tokens::U16(tokens.clone()));
        assert_eq!(data.validation, Tokens::U16(vec![0x0102, 0x0304]));
        assert!(data.description.contains("20 for training and 2 for validation"));
    }
    let data = load(other).unwrap();
    assert_eq!((data.train.len(), data.validation.len(), data.vocab), (1, 1, 832));
}

#[test]
fn llm_c_files() {
    let folder = folder();
    let train = write(&folder, "x_train.bin", llm_c(20_240_520, 1, 3, &[1, 0, 2, 0, 255, 255]));
    let data = load(&train).unwrap();
    assert_eq!(data.train, Tokens::U16(vec![1, 2]));
    assert_eq!(data.validation, Tokens::U16(vec![65535]));
    assert_eq!(data.vocab, 65536);

    write(&folder, "x_val.bin", llm_c(20_240_520, 1, 1, &[7, 0]));
    let data = load(&train).unwrap();
    assert_eq!(data.train, Tokens::U16(vec![1, 2, 65535]));
    assert_eq!(data.validation, Tokens::U16(vec![7]));

    let wide = llm_c(20_240_801, 7, 2, &[0x40, 0xF4, 1, 0, 1, 2, 0, 0]);
    let data = load(write(&folder, "llama.bin", &wide)).unwrap();
    assert_eq!(data.train, Tokens::U32(vec![128_064]));
    assert_eq!(data.validation, Tokens::U32(vec![513]));
    // 128 065 rows, and up to the next multiple of 64.
    assert_eq!(data.vocab, 128_128);

    write(&folder, "x_val.bin", &wide);
    let message = load(&train).unwrap_err().to_string();
    assert!(message.contains("tokens of 2 bytes") && message.contains("x_val.bin` of 4"));
}

#[test]
fn token_files_that_are_something_else() {
    let folder = folder();
    let cases: [(&str, Vec<u8>, &str, &str); 11] = [
        ("odd.bin", vec![1; 7], "holds 7 bytes, an odd number", "rename text to .txt"),
        (
            "cut.bin",
            llm_c(20_240_520, 1, 4, &[0; 6]),
            "4 tokens of 2 bytes, but 6 bytes",
            "cut off",
        ),
        ("wide.bin", llm_c(20_240_520, 1, 4, &[0; 16]), "4 tokens of 2", "take 4 bytes"),
        ("narrow.bin", llm_c(20_240_801, 7, 4, &[0; 8]), "4 tokens of 4", "take 2 bytes"),
        ("count.bin", llm_c(20_240_520, 1, 0, &[0; 8]), "0 tokens", "interrupted"),
        ("two.bin", llm_c(20_240_520, 1, 4, &[0; 10]), "10 bytes follow", "appended"),
        ("version.bin", llm_c(20_240_520, 7, 0, &[]), "with version 7", "version 1 is known"),
        ("header.bin", llm_c(20_240_801, 7, 0, &[])[..500].to_vec(), "only 500 of 1024", "cut off"),
        ("negative.bin", llm_c(20_240_520, 1, u32::MAX, &[0; 4]), "4294967295 tokens", "cut off"),
        ("eval.bin", llm_c(20_240_522, 1, 9, &[]), "multiple-choice evaluation", "*_train.bin"),
        ("model.bin", llm_c(20_240_326, 3, 0, &[]), "model checkpoint", "*_train.bin"),
    ];
    for (name, bytes, problem, hint) in cases {
        let message = refusal(write(&folder, name, bytes));
        assert!(message.contains(problem) && message.contains(hint), "{message}");
    }
    let none = write(&folder, "none.bin", llm_c(20_240_520, 1, 0, &[]));
    assert!(matches!(load(none), Err(DataError::Empty { .. })));
    let huge = write(&folder, "huge.bin", llm_c(20_240_801, 7, 1, &[0, 0, 0, 1]));
    let message = refusal(huge);
    assert!(message.contains("the token 16777216, above the limit of 16777215"), "{message}");
}

#[test]
fn what_is_not_there_or_empty() {
    let folder = folder();
    let text = write(&folder, "a.txt", "text");
    let message = refusal(folder.path().join("b.txt"));
    assert!(message.contains("does not exist (`") && message.contains("`synthetic`"), "{message}");
    // A file is no folder.
    let message = refusal(text.join("c.txt"));
    assert!(message.contains("a.txt` does)"), "{message}");
    assert!(matches!(load("no such file"), Err(DataError::Missing { exists: None, .. })));

    assert!(refusal(write(&folder, "empty.txt", "")).contains("is empty"));
    assert!(refusal(write(&folder, "empty.bin", "")).contains("is empty"));
    write(&folder, "folder/.hidden", "x");
    write(&folder, "folder/empty", "");
    assert!(refusal(folder.path().join("folder")).contains("holds no text"));

    write(&folder, "half/val.bin", [0, 0]);
    write(&folder, "half/text.txt", "text");
    let message = load(folder.path().join("half")).unwrap_err().to_string();
    assert!(message.contains("val.bin` but not `") && message.contains("train.bin`"), "{message}");
}

#[cfg(unix)]
#[test]
fn names_and_files_of_unix() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    assert!(matches!(load("/dev/zero"), Err(DataError::NotAFile { .. })));
    assert!(refusal("/dev/zero").contains("neither a regular file nor a folder"));

    let name = OsStr::from_bytes(b"bad\xFFname.txt");
    for error in [Source::from_os(name).unwrap_err(), load(Path::new(name)).unwrap_err()] {
        let message = error.to_string();
        assert!(message.contains("bad\u{FFFD}name.txt") && message.contains("UTF-8"), "{message}");
    }
    assert_eq!(Source::from_os(OsStr::new("synthetic:3")).unwrap(), Source::Synthetic { seed: 3 });

    // Longer than any file name may be.
    let message = refusal("x".repeat(5000));
    assert!(message.contains("cannot be read: "), "{message}");

    // Linked files are read; linked folders, which may lead in circles, and broken links are not.
    let folder = folder();
    write(&folder, "other/a.txt", "0123456789");
    fs::create_dir(folder.path().join("main")).unwrap();
    symlink("../other/a.txt", folder.path().join("main/link.txt")).unwrap();
    symlink("..", folder.path().join("main/up")).unwrap();
    symlink("nowhere", folder.path().join("main/broken")).unwrap();
    let data = load(folder.path().join("main")).unwrap();
    assert_eq!(data.train, Tokens::Bytes(b"012345678".to_vec()));
}

#[test]
fn the_longest_context() {
    let folder = folder();
    let data = load(write(&folder, "a.txt", [b'a'; 100])).unwrap();
    assert_eq!((data.train.len(), data.validation.len()), (90, 10));
    data.check_context(9).unwrap();
    let error = data.check_context(10).unwrap_err();
    assert!(matches!(error, DataError::TooShort { split: Split::Validation, tokens: 10, .. }));
    let message = error.to_string();
    assert!(message.contains("needs 11 tokens") && message.contains("at most 9"), "{message}");
    assert!(message.contains("a.txt"), "{message}");
    let error = data.check_context(usize::MAX).unwrap_err();
    assert!(matches!(error, DataError::TooShort { split: Split::Training, tokens: 90, .. }));
    assert!(!error.to_string().is_empty());
    assert!(matches!(data.check_context(0), Err(DataError::ZeroContext { largest: 9 })));

    let single = load(write(&folder, "b.txt", "a")).unwrap();
    let message = single.check_context(1).unwrap_err().to_string();
    assert!(message.ends_with("give more data"), "{message}");
}

#[test]
fn windows_do_not_overlap() {
    let tokens = Tokens::Bytes((0..11).collect());
    // Ten targets: two windows of four, three of three, ten of one, none of eleven.
    for (context, count) in [(4, 2), (3, 3), (5, 2), (10, 1), (11, 0), (1, 10), (9, 1)] {
        let all = windows(&tokens, context);
        assert_eq!((all.len(), all.is_empty()), (count, count == 0), "{context}");
        assert_eq!(all.iter().len(), count);
    }
    let all: Vec<_> = windows(&tokens, 3).iter().collect();
    let expected = [
        (vec![0, 1, 2], vec![1, 2, 3]),
        (vec![3, 4, 5], vec![4, 5, 6]),
        (vec![6, 7, 8], vec![7, 8, 9]),
    ];
    assert_eq!(all, expected);
    let (mut inputs, mut targets) = ([0; 6], [0; 6]);
    windows(&tokens, 3).fill(1, 2, &mut inputs, &mut targets);
    assert_eq!((inputs, targets), ([3, 4, 5, 6, 7, 8], [4, 5, 6, 7, 8, 9]));
    assert_eq!(windows(&Tokens::U32(Vec::new()), 1).len(), 0);
}

/// Starts by an independent program: Philox4x32-10 and the stream hash written out anew in Python.
#[test]
fn golden_batches() {
    let tokens = Tokens::U16((0..1000).collect());
    let batches = Batches::new(&tokens);
    let starts = |seed, step| [0, 1, 2, 3].map(|row| batches.start(seed, step, row, 8));
    assert_eq!(starts(0, 0), STARTS[0]);
    assert_eq!(starts(0, 1), STARTS[1]);
    assert_eq!(starts(1337, 123_456), STARTS[2]);

    let (mut inputs, mut targets) = (vec![0; 32], vec![0; 32]);
    batches.fill(0, 1, 4, 8, &mut inputs, &mut targets);
    for (row, start) in STARTS[1].into_iter().enumerate() {
        let expected: Vec<u32> = (start as u32..start as u32 + 9).collect();
        assert_eq!(inputs[8 * row..8 * row + 8], expected[..8]);
        assert_eq!(targets[8 * row..8 * row + 8], expected[1..]);
    }
    // A row does not depend on how many there are.
    let (mut fewer, mut their_targets) = (vec![0; 16], vec![0; 16]);
    batches.fill(0, 1, 2, 8, &mut fewer, &mut their_targets);
    assert_eq!((&fewer[..], &their_targets[..]), (&inputs[..16], &targets[..16]));
}
const STARTS: [[usize; 4]; 3] = [[100, 157, 302, 463], [577, 19, 330, 445], [438, 613, 609, 628]];

/// Every start is drawn, the first and the last included, and none beyond.
#[test]
fn starts_cover_the_text() {
    let tokens = Tokens::Bytes(vec![0; 12]);
    let mut seen = [0; 8];
    for step in 0..2000 {
        seen[Batches::new(&tokens).start(9, step, 0, 4)] += 1;
    }
    // 250 each, with a standard deviation of 15.
    assert!(seen.iter().all(|n| (190..310).contains(n)), "{seen:?}");
}

#[test]
fn the_synthetic_default() {
    let load = |source: &str| Dataset::load(&source.parse().unwrap(), &DataOptions::default());
    let data = load("synthetic").unwrap();
    assert!((1 << 20..(1 << 20) + 1000).contains(&data.train.len()));
    assert!((1 << 16..(1 << 16) + 1000).contains(&data.validation.len()));
    assert_eq!((data.vocab, data.bytes), (256, true));
    let reference = data.reference.unwrap();
    assert!((reference.entropy_rate - 0.6264).abs() < 1e-4);
    assert!((reference.validation - reference.entropy_rate).abs() < 0.02);
    assert!(data.description.starts_with("synthetic: "), "{}", data.description);
    data.check_context(1024).unwrap();

    assert_eq!(data, load("synthetic:0").unwrap());
    let other = load("synthetic:1").unwrap();
    assert_ne!(data.fingerprint, other.fingerprint);
    assert!(other.description.starts_with("synthetic:1: "));
}

/// Training and validation text of the memory task are different texts of the same kind.
#[test]
fn the_memory_task() {
    let load = |source: &str| Dataset::load(&source.parse().unwrap(), &DataOptions::default());
    let data = load("recall").unwrap();
    assert!((1 << 20..(1 << 20) + 40).contains(&data.train.len()));
    assert!((1 << 16..(1 << 16) + 40).contains(&data.validation.len()));
    assert_eq!((data.vocab, data.bytes, data.reference), (256, true, None));
    assert_ne!(data.train.get(0..200), data.validation.get(0..200));
    assert_eq!(data.train.get(0..1), [10]);
    assert!(data.description.starts_with("recall: a memory task"), "{}", data.description);
    assert_ne!(data.fingerprint, load("recall:1").unwrap().fingerprint);
    let message = "recall:x".parse::<exmy_train::train::data::Source>().unwrap_err().to_string();
    assert!(message.contains("`recall:x`") && message.contains("`./recall:x`"), "{message}");
}

#[test]
fn a_fingerprint_is_of_contents_not_names() {
    let folder = folder();
    let load = |name, text: &str| load(write(&folder, name, text)).unwrap().fingerprint;
    let first = load("a.txt", "some text, twice");
    assert_eq!(first, load("b.txt", "some text, twice"));
    assert_ne!(first, load("a.txt", "some text, twicf"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Any bytes, also behind a plausible header, are tokens or one line of explanation.
    #[test]
    fn arbitrary_token_files_never_panic(
        magic in prop::sample::select(vec![None, Some(20_240_520), Some(20_240_801), Some(20_240_326)]),
        version in prop::sample::select(vec![1, 7, 0]),
        count in 0_u32..40,
        rest in prop::collection::vec(any::<u8>(), 0..80),
        cut in 0_usize..1200,
        context in 0_usize..50,
    ) {
        let mut bytes = match magic {
            Some(magic) => llm_c(magic, version, count, &rest),
            None => rest,
        };
        bytes.truncate(cut);
        let folder = folder();
        let path = write(&folder, "a.bin", &bytes);
        match load(path) {
            Ok(data) => {
                let read = (data.train.len() + data.validation.len()) * data.train.width();
                prop_assert!(read == bytes.len() || read + 1024 == bytes.len());
                let fits = data.check_context(context).is_ok();
                let least = data.train.len().min(data.validation.len());
                prop_assert_eq!(fits, context > 0 && context < least);
                if fits {
                    let mut rows = [vec![0; context], vec![0; context]];
                    let [inputs, targets] = &mut rows;
                    Batches::new(&data.train).fill(1, 2, 1, context, inputs, targets);
                    prop_assert!(inputs.iter().all(|&t| (t as usize) < data.vocab));
                }
            }
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }

    /// What is not a sentence is an error, never a panic; what is has a negative log-probability.
    #[test]
    fn arbitrary_text_never_panics(cut in 0_usize..400, byte in any::<u8>(), at in 0_usize..400) {
        let language = exmy_train::train::language::Language::new(1);
        let mut text = language.validation_text(400);
        text.truncate(cut);
        if let Some(changed) = text.get_mut(at) {
            *changed = byte;
        }
        if let Ok(log_p) = language.log_probability(&text) {
            prop_assert!(log_p <= 0.0);
        }
    }
}

/// Noise replaces tokens by their place in the text: about the share that is wanted, the same wherever a
/// window shows the place, and none without.
#[test]
fn noise_belongs_to_places_of_the_text() {
    let text = Tokens::Bytes((0..20_000_u32).map(|i| (i % 7) as u8).collect());
    let fill = |batches: Batches<'_>, step| {
        let (mut tokens, mut targets) = (vec![0; 1000], vec![0; 1000]);
        batches.fill(3, step, 1, 1000, &mut tokens, &mut targets);
        (batches.start(3, step, 0, 1000), tokens, targets)
    };
    let mut seen = std::collections::BTreeMap::new();
    let mut replaced = 0;
    for step in 0..30 {
        let (start, tokens, targets) = fill(Batches::new(&text).spoiled(0.2, 256), step);
        assert_eq!(tokens[1..], targets[..999], "a target is the next input");
        for (i, &token) in tokens.iter().enumerate() {
            let known = *seen.entry(start + i).or_insert(token);
            assert_eq!(known, token);
            replaced += usize::from(token != (start + i) as u32 % 7);
        }
        let clean = fill(Batches::new(&text).spoiled(0.0, 256), step);
        assert_eq!(clean, fill(Batches::new(&text), step));
    }
    // One in 256 is drawn as it was.
    let share = replaced as f64 / 30_000.0;
    assert!((share - 0.2 * 255.0 / 256.0).abs() < 0.012, "{share}");
}

/// A folder of token files with a manifest, of which tokens are below `vocabulary`. Sums by `sha256sum`.
fn with_manifest(vocabulary: usize, files: [(&[u8], u64, u64, &str); 2]) -> TempDir {
    let folder = folder();
    let parts = [("train.bin", files[0]), ("val.bin", files[1])].map(|(name, file)| {
        let (bytes, tokens, text_bytes, sha256) = file;
        write(&folder, name, bytes);
        TokenFile { file: name.into(), tokens, text_bytes, sha256: sha256.into() }
    });
    let made = Inputs {
        vocabulary: Some(vocabulary),
        tokenizer: None,
        end_of_text: None,
        validation: 0.5,
        texts: Vec::new(),
    };
    let manifest = Manifest::new(vocabulary, String::new(), parts, made);
    write(&folder, MANIFEST, serde_json::to_string(&manifest).unwrap());
    folder
}

const ABCD: &str = "88d4266fd4e6338d13b845fcf289579d209c897823b9217da3e161936f031589";
const EFGH: &str = "e5e088a0b66163a0a26a5e053d2a4496dc16ab6e0e3dd1adf2d16aa84a078c9d";
const WIDE: &str = "e1a01101f6cc5ed7727c308f1c7003a328ad1e1b0d46d24de6a3ff13186e106e";

#[test]
fn a_manifest_says_what_token_files_are() {
    let files: [(&[u8], u64, u64, &str); 2] = [(b"abcd", 2, 9, ABCD), (b"efgh", 2, 7, EFGH)];
    let folder = with_manifest(30_000, files);
    for path in [folder.path().to_owned(), folder.path().join("train.bin")] {
        let data = load(path).unwrap();
        assert_eq!(data.train, Tokens::U16(vec![0x6261, 0x6463]));
        assert_eq!(data.validation, Tokens::U16(vec![0x6665, 0x6867]));
        // The vocabulary's, and not the largest token's.
        assert_eq!((data.vocab, data.bytes, data.bytes_per_token), (30_016, false, Some(3.5)));
        assert!(data.description.contains("tokens of exmy data, vocabulary 30016"));
    }
    // One of the files alone is divided; a file that the manifest does not name is as it would be without.
    let alone = load(folder.path().join("val.bin")).unwrap();
    assert_eq!((alone.train.len(), alone.bytes_per_token), (1, Some(3.5)));
    let other = write(&folder, "other.bin", b"abcdef");
    assert_eq!(load(other).unwrap().bytes_per_token, None);

    let wide = with_manifest(1 << 17, [(b"ab\x01\0", 1, 4, WIDE), (b"ab\x01\0", 1, 4, WIDE)]);
    let data = load(wide.path()).unwrap();
    assert_eq!((data.train, data.vocab), (Tokens::U32(vec![0x0001_6261]), 1 << 17));
}

#[test]
fn token_files_that_their_manifest_does_not_know() {
    let files: [(&[u8], u64, u64, &str); 2] = [(b"abcd", 2, 9, ABCD), (b"efgh", 2, 7, EFGH)];
    let folder = with_manifest(30_000, files);
    let fails = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        let before = fs::read(&path).unwrap();
        write(&folder, name, bytes);
        let message = load(folder.path()).unwrap_err().to_string();
        write(&folder, name, before);
        assert!(message.contains(name) && !message.contains('\n'), "{message}");
        message
    };
    assert!(fails("val.bin", b"efg").contains("cut off"));
    assert!(
        fails("train.bin", b"abcdef").contains("holds 6 bytes, but tokens.json says 2 tokens of 2")
    );
    assert!(fails("train.bin", b"abcD").contains("SHA-256"));
    assert!(fails(MANIFEST, b"{}").contains("exmy data"));
    assert!(fails(MANIFEST, b"\xFF").contains("no text"));
    let text = fs::read_to_string(folder.path().join(MANIFEST)).unwrap();
    let newer = text.replace("\"version\":1", "\"version\":2");
    assert!(fails(MANIFEST, newer.as_bytes()).contains("version 2, this program reads version 1"));
    load(folder.path()).unwrap();

    let small = with_manifest(0x6867, files);
    let message = load(small.path()).unwrap_err().to_string();
    assert!(
        message.contains("the token 26727, but tokens.json says all are below 26727"),
        "{message}"
    );
    let empty = with_manifest(9, [(b"", 0, 0, SUM_OF_NOTHING), (b"", 0, 0, SUM_OF_NOTHING)]);
    assert!(matches!(load(empty.path()), Err(DataError::Empty { .. })));

    let begun = folder.path().join("begun");
    write(&folder, "begun/tokenizer.json", "{}");
    fs::write(begun.join(UNFINISHED), "{}").unwrap();
    let message = load(begun).unwrap_err().to_string();
    assert!(message.contains("not finished") && message.contains("repeat"), "{message}");
}

/// FIPS 180-4's value for the empty message.
const SUM_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
