use exmy::parallel::with_threads;
use exmy_lab::corpus::input::list;
use exmy_lab::corpus::pieces::{LONGEST, Piece, Pieces};
use exmy_lab::corpus::{BATCH, CorpusOptions, Progress, Vocabulary, make};
use exmy_lab::tokenizer::Tokenizer;
use exmy_train::train::data::manifest::Manifest;
use exmy_train::train::data::{DataOptions, Dataset, Source};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// `one\ntwo\n` and `three\n` by `xz`, two streams one after the other.
const XZ: &[u8] = include_bytes!("corpus/two_streams.xz");

fn pieces(paths: &[PathBuf], cut: u64) -> Vec<Piece> {
    let inputs = list(paths).unwrap();
    let mut pieces = Pieces::new(&inputs, cut, false);
    std::iter::from_fn(|| pieces.read().unwrap()).collect()
}

fn piece(text: &str, start: u64, ends: bool) -> Piece {
    Piece { text: text.into(), start, ends }
}

fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn documents_end_where_they_say_and_with_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let text = "<|endoftext|>\na\n\n<|endoftext|>\n\nb<|endoftext|>c\n";
    let first = write(folder.path(), "t/1.txt", text);
    write(folder.path(), "t/2.txt", "d<|endoftext|>\n");
    write(folder.path(), "t/.hidden", "x");
    write(folder.path(), "t/3.txt", "");
    write(folder.path(), "t/4/e.txt", "<|endoftext|");
    let expected = [
        piece("a\n\n", 14, true),
        piece("\nb", 31, true),
        piece("c\n", 46, true),
        piece("d", 48, true),
        piece("<|endoftext|", 63, true),
    ];
    assert_eq!(pieces(&[folder.path().join("t")], u64::MAX), expected);
    // Validation begins at place 47 at the earliest: at the next line, which here is that of the next file.
    assert_eq!(pieces(&[folder.path().join("t")], 47), expected);
    let cut = pieces(&[first], 15);
    assert_eq!(cut[..3], [piece("a\n", 14, false), piece("\n", 16, true), piece("\nb", 31, true)]);
}

#[test]
fn compressed_texts_are_read_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "a", XZ);
    assert_eq!(pieces(&[path], u64::MAX), [piece("one\ntwo\nthree\n", 0, true)]);
    for length in 6..XZ.len() {
        // A stream that was cut off is an error; behind the first one nothing may follow but zeros.
        let path = write(folder.path(), "cut", &XZ[..length]);
        let inputs = list(&[path]).unwrap();
        let mut pieces = Pieces::new(&inputs, u64::MAX, false);
        let found = std::iter::from_fn(|| pieces.read().transpose()).collect::<Result<Vec<_>, _>>();
        if let Ok(found) = found {
            assert_eq!(found, [piece("one\ntwo\n", 0, true)], "{length} bytes");
        }
    }
}

/// A long document is divided so that the pieces are the whole again, between two lines if there are any.
#[test]
fn long_documents_are_divided_at_lines() {
    let folder = tempfile::tempdir().unwrap();
    let lines: String =
        (0..LONGEST / 4).map(|i| format!("{i} ü\n{}", ["", "\n", " "][i % 3])).collect();
    let words = lines.replace('\n', " ");
    for (text, is_lined) in [(&lines, true), (&words, false)] {
        let path = write(folder.path(), "long", text);
        let found = pieces(&[path], u64::MAX);
        assert!(found.len() > 2 && found.iter().all(|piece| piece.text.len() <= LONGEST));
        assert!(found.iter().map(|piece| &*piece.text).collect::<String>() == *text);
        let (last, others) = found.split_last().unwrap();
        assert!(last.ends && others.iter().all(|piece| !piece.ends));
        for (piece, next) in found.iter().zip(&found[1..]).filter(|_| is_lined) {
            assert!(piece.text.ends_with("ü\n") && next.text.starts_with(|c: char| c.is_numeric()));
        }
    }
    // Validation begins behind the line of its place, of a text without lines at the place itself.
    let path = write(folder.path(), "long", &lines);
    let cut = lines.len() as u64 * 9 / 10;
    let starts: Vec<u64> = pieces(&[path], cut).iter().map(|piece| piece.start).collect();
    let next =
        cut + lines.as_bytes()[cut as usize - 1..].iter().position(|&b| b == b'\n').unwrap() as u64;
    assert!(starts.contains(&next), "{next} is not in {starts:?}");
    let path = write(folder.path(), "long", "x".repeat(1000));
    assert_eq!(pieces(&[path], 900).len(), 2);
}

/// As many bytes of words as wanted, in documents of some lines.
fn text(bytes: usize) -> String {
    let mut text = String::new();
    for i in 0_usize.. {
        text += &format!("w{} of the {} é{}\n", i * i % 97, i % 31, i % 7);
        if i % 11 == 10 {
            text += "<|endoftext|>\n";
        }
        if text.len() > bytes {
            break;
        }
    }
    text
}

fn options() -> CorpusOptions {
    CorpusOptions {
        vocabulary: Vocabulary::Train(300),
        validation: 0.2,
        end_of_text: None,
        batch: 500,
    }
}

fn made(texts: &[PathBuf], out: &Path, options: &CorpusOptions) -> Manifest {
    make(texts, out, options, &mut |_: &Progress<'_>| ControlFlow::Continue(())).unwrap().unwrap()
}

fn refused(texts: &[PathBuf], out: &Path, options: &CorpusOptions) -> String {
    let made = make(texts, out, options, &mut |_: &Progress<'_>| ControlFlow::Continue(()));
    made.unwrap_err().to_string()
}

fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    entries.map(|path| (name(&path), fs::read(&path).unwrap_or_default())).collect()
}

#[test]
fn tokens_are_those_of_the_documents() {
    let folder = tempfile::tempdir().unwrap();
    let source = write(folder.path(), "text.txt", text(5000));
    let out = folder.path().join("out");
    let manifest = made(std::slice::from_ref(&source), &out, &options());
    let names: Vec<String> = contents(&out).into_keys().collect();
    assert_eq!(names, ["tokenizer.json", "tokens.json", "train.bin", "val.bin"]);

    let tokenizer = Tokenizer::open(&out.join("tokenizer.json")).unwrap();
    let read = |name: &str| -> Vec<u32> {
        let bytes = fs::read(out.join(name)).unwrap();
        bytes.as_chunks::<2>().0.iter().map(|&b| u16::from_le_bytes(b).into()).collect()
    };
    let (train, validation) = (read("train.bin"), read("val.bin"));
    let decoded = |tokens: &[u32]| tokenizer.decode(tokens).unwrap();
    let whole = fs::read_to_string(&source).unwrap().replace("<|endoftext|>\n", "<|endoftext|>");
    assert_eq!(decoded(&train) + &decoded(&validation), whole + "<|endoftext|>");
    // A line that begins at or behind four fifths of the bytes is the first of validation.
    let text = fs::read_to_string(&source).unwrap();
    let place = text.len() * 4 / 5;
    let line = &text[place - 1..][text[place - 1..].find('\n').unwrap() + 1..];
    let line = line.strip_prefix("<|endoftext|>\n").unwrap_or(line);
    assert!(decoded(&validation).starts_with(line.lines().next().unwrap()));
    // Each document is encoded alone, as Python's `tokenizer.encode` would.
    let first = text.split_once("<|endoftext|>").unwrap().0;
    let tokens = tokenizer.encode(first).unwrap();
    assert_eq!((train[..tokens.len()] == tokens, train[tokens.len()]), (true, 0));

    let (train_part, validation_part) = (&manifest.train, &manifest.validation);
    assert_eq!(train_part.tokens, train.len() as u64);
    let ends = text.matches("<|endoftext|>\n").count();
    let bytes = train_part.text_bytes + validation_part.text_bytes;
    assert_eq!(bytes as usize, text.len() - 14 * ends);
    assert_eq!(manifest.made.texts[0].documents as usize, ends + 1);
    assert_eq!(manifest.made.texts[0].file, "text.txt");

    let data = Dataset::load(&Source::Path(out), &DataOptions::default()).unwrap();
    assert_eq!((data.train.len(), data.vocab), (train.len(), 320));
    let per_token = validation_part.text_bytes as f64 / validation.len() as f64;
    assert_eq!(data.bytes_per_token, Some(per_token));
}

/// Stopped after any call of what watches, with any part then cut off at any byte, the same bytes come out;
/// also with other threads and other batches.
#[test]
fn stopped_or_cut_anywhere_the_bytes_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let source = [write(folder.path(), "text.txt", text(2500)), write(folder.path(), "b.xz", XZ)];
    let expected = folder.path().join("expected");
    made(&source, &expected, &options());
    let expected = contents(&expected);
    let mut calls = 0;
    for stop in 1.. {
        let out = folder.path().join(format!("stopped{stop}"));
        let mut count = 0;
        let stopped = make(&source, &out, &options(), &mut |_: &Progress<'_>| {
            count += 1;
            if count == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        if stopped.unwrap().is_some() {
            break;
        }
        calls += 1;
        write(&out, ".partial-tokenizer.json-7", "left by a kill");
        assert!(!out.join("tokens.json").exists());
        let parts = fs::read_dir(out.join(".parts")).into_iter().flatten().flatten();
        for (i, part) in parts.enumerate() {
            let file = fs::File::options().write(true).open(part.path()).unwrap();
            let length = file.metadata().unwrap().len();
            file.set_len((i as u64 * 7919 + stop) % length).unwrap();
        }
        let other = CorpusOptions { batch: 500 + 100 * (stop as usize % 3), ..options() };
        with_threads(1 + stop as usize % 3, || made(&source, &out, &other)).unwrap();
        assert!(contents(&out) == expected, "stopped at call {stop}");
    }
    assert!(calls > 20, "{calls}");
}

/// One that was given; another end of documents; a second call does nothing.
#[test]
fn a_tokenizer_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let source = [write(folder.path(), "text.txt", "low lower\n<|endoftext|>slow\n".repeat(9))];
    let trained = Tokenizer::train(["low low low lower lowest"].iter(), 300).unwrap();
    let path = write(folder.path(), "given.json", trained.json());
    let given = CorpusOptions { vocabulary: Vocabulary::Read(path), ..options() };
    let (out, bare) = (folder.path().join("out"), folder.path().join("bare"));
    made(&source, &out, &given);
    let bytes = fs::read(out.join("train.bin")).unwrap();
    // low lower\n, end, slow\n, end: 10 = 0x0A is U+010A, the 199th of the characters.
    let line_end = (1 + 188 + 10) as u16;
    let tokens: Vec<u8> = [258, 260, 82, line_end, 0, 83, 258, line_end]
        .iter()
        .flat_map(|t: &u16| t.to_le_bytes())
        .collect();
    assert_eq!(bytes[..16], tokens);
    assert!(fs::read(out.join("tokenizer.json")).unwrap() == trained.json());
    let before = contents(&out);
    made(&source, &out, &given);
    assert!(contents(&out) == before);

    made(&source, &bare, &CorpusOptions { end_of_text: Some(String::new()), ..given.clone() });
    let bare = fs::read(bare.join("train.bin")).unwrap();
    assert_eq!(bare[..14], [&tokens[..8], &tokens[10..]].concat());
    // Numbers of more than 16 bits take four bytes.
    let json = String::from_utf8(trained.json().to_vec()).unwrap();
    let wide = json.replace("\"lo\": 257", "\"lo\": 70000");
    assert!(wide != json);
    let wide = Vocabulary::Read(write(folder.path(), "wide.json", wide));
    let (texts, wide_out) =
        ([write(folder.path(), "lo.txt", "lo\n".repeat(9))], folder.path().join("wide"));
    let manifest = made(&texts, &wide_out, &CorpusOptions { vocabulary: wide, ..given.clone() });
    assert_eq!(manifest.vocabulary, 70_001);
    let data = Dataset::load(&Source::Path(wide_out), &DataOptions::default()).unwrap();
    assert_eq!(data.train.get(0..3), [70_000, line_end.into(), 70_000]);
    let other = CorpusOptions { end_of_text: Some("</s>".into()), ..given };
    assert!(refused(&source, &out, &other).contains("no token \"</s>\""));
}

#[test]
fn what_cannot_be_done_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let source = [write(folder.path(), "text.txt", text(2000))];
    let out = path("out");
    let refused = |texts: &[PathBuf], options: &CorpusOptions| refused(texts, &out, options);
    let with = |validation| CorpusOptions { validation, ..options() };
    for share in [0.0, 1.0, -0.5, f64::NAN] {
        assert!(refused(&source, &with(share)).contains("validation share"));
    }
    let small = CorpusOptions { vocabulary: Vocabulary::Train(256), ..options() };
    assert!(refused(&source, &small).contains("257"));
    let lost = CorpusOptions { vocabulary: Vocabulary::Read(path("lost.json")), ..options() };
    assert!(refused(&source, &lost).contains("lost.json"));
    assert!(refused(&["-".into()], &options()).contains("no file"));
    assert!(refused(&[path("lost.txt")], &options()).contains("lost.txt"));
    fs::create_dir(path("none")).unwrap();
    assert!(refused(&[path("none")], &options()).contains("holds no file"));
    let empty = write(folder.path(), "empty.txt", "");
    assert!(refused(&[empty], &options()).contains("no text"));
    let latin = write(folder.path(), "latin.txt", b"some caf\xE9 is open");
    let message = refused(&[latin], &options());
    assert!(
        message.contains("0xe9") && message.contains("some caf") && message.contains("iconv"),
        "{message}"
    );
    let torn = write(folder.path(), "torn.txt", b"some caf\xC3");
    assert!(refused(&[torn], &options()).contains("0xc3"));
    let damaged = write(folder.path(), "damaged.xz", [&XZ[..30], &[0xFF; 9], &XZ[39..]].concat());
    assert!(refused(&[damaged], &options()).contains("cannot read"));
    assert!(!out.exists(), "nothing is left of a mistake");

    let stranger = write(folder.path(), "strange/notes.txt", "mine");
    let strange = self::refused(&source, stranger.parent().unwrap(), &options());
    assert!(strange.contains("not empty"), "{strange}");
    made(&source, &out, &options());
    for other in [with(0.1), CorpusOptions { vocabulary: Vocabulary::Train(301), ..options() }] {
        assert!(refused(&source, &other).contains("other settings"));
    }
    fs::write(&source[0], text(2100)).unwrap();
    assert!(refused(&source, &options()).contains("texts that differ"));
    assert!(refused(&[out.join("tokens.json")], &options()).contains("lies in the folder"));
    assert_eq!(BATCH, 4 << 20);
}
