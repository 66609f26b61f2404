//! `exmy verify-cols`, and `exmy convert` against what the files of columns record.

use crate::exmy;
use exmy::vectors::columns::{Columns, Conversion, Table, digest};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data").join(name)
}

const FILES: [&str; 6] = [
    "h200/conv_f32.cols",
    "h200/conv_f16.cols",
    "h200/conv_f8.cols",
    "libraries/conv_f32.cols",
    "libraries/conv_f16.cols",
    "libraries/conv_f8.cols",
];

/// A file with the columns given: name, element size, elements.
fn file(version: u32, table: u32, rows: u32, columns: &[(&str, u32, &[u64])]) -> Vec<u8> {
    let mut bytes = b"EXMYCONV".to_vec();
    for word in [version, table, rows, columns.len() as u32, 0, 0] {
        bytes.extend(word.to_le_bytes());
    }
    for (name, size, _) in columns {
        let mut descriptor = name.as_bytes().to_vec();
        descriptor.resize(28, 0);
        descriptor.extend(size.to_le_bytes());
        bytes.extend(descriptor);
    }
    for (_, size, elements) in columns {
        for element in *elements {
            bytes.extend(&element.to_le_bytes()[..*size as usize]);
        }
    }
    bytes
}

const X: (&str, u32, &[u64]) = ("x", 4, &[0x3F80_0000, 0x43F0_0000, 0xFFC0_0000]);
const E4M3: (&str, u32, &[u64]) = ("e4m3_rn_satfinite", 1, &[0x38, 0x7E, 0x7F]);

/// Exit code, stdout and stderr of `exmy verify-cols`.
fn verify(files: &[&Path]) -> (i32, String, String) {
    let output = exmy(&["verify-cols"]).args(files).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

/// What a column records, a user gets from `exmy convert` with the options that stand for it.
#[test]
fn convert_reproduces_every_column() {
    for name in FILES {
        let columns = Columns::parse(fs::read(data(name)).unwrap()).unwrap();
        let inputs: String = columns.inputs().unwrap().map(|x| format!("{x:x}\n")).collect();
        for column in columns.results() {
            let conversion = Conversion::find(columns.table(), column.name()).unwrap();
            let mut command = exmy(&[]);
            command.arg("convert").args(conversion.to_string().split(' '));
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let writer = {
                let inputs = inputs.clone();
                std::thread::spawn(move || stdin.write_all(inputs.as_bytes()).unwrap())
            };
            let output = child.wait_with_output().unwrap();
            writer.join().unwrap();
            assert!(output.status.success(), "{conversion}");
            let out = String::from_utf8(output.stdout).unwrap();
            let digits = conversion.to.bits().div_ceil(4) as usize;
            let mut lines = out.lines();
            for (x, word) in columns.inputs().unwrap().zip(columns.elements(column)) {
                let code = format!("{:0digits$x}", conversion.code(word));
                let line = lines.next();
                assert_eq!(line, Some(code.as_str()), "{name} {} of {x:x}", column.name());
            }
            assert_eq!(lines.next(), None);
        }
    }
}

#[test]
fn verify_cols_says_what_matches() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let (code, out, err) = verify(&[&data("h200/conv_f32.cols")]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert_eq!(out.lines().count(), 29);
    assert!(out.lines().all(|line| line.ends_with(": 4226 rows, 0 mismatches")), "{out}");

    let other = ("somebody_else", 1, &[1, 2, 3][..]);
    let wrong = ("e5m2_rn_satfinite", 1, &[0x3C, 0x5F, 0][..]);
    let mixed = path("mixed.cols", &file(1, 1, 3, &[X, other, wrong, E4M3]));
    let (code, out, _) = verify(&[&mixed]);
    assert_eq!(code, 1);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines[0], "somebody_else: skipped, no conversion is known by this name");
    assert_eq!(lines[1], "e5m2_rn_satfinite: 3 rows, 2 mismatches");
    assert!(lines[2].contains("row 1: x 0x43f00000 = 480.0"), "{out}");
    assert_eq!(lines.last(), Some(&"e4m3_rn_satfinite: 3 rows, 0 mismatches"));

    let digests = digest(&Conversion::find(Table::F32, E4M3.0).unwrap(), 0);
    let digests = path("digest.cols", &file(1, 4, 1, &[(E4M3.0, 8, &[digests])]));
    let (code, out, err) = verify(&[&digests]);
    let line = "e4m3_rn_satfinite: 1 rows, 0 mismatches\n";
    assert_eq!((code, out.as_str(), err.as_str()), (0, line, ""));
    let nothing = path("nothing.cols", &file(1, 1, 3, &[X, other]));
    let (code, out, _) = verify(&[&nothing]);
    assert_eq!(code, 0);
    assert!(out.ends_with("nothing verified: no column is known by its name\n"), "{out}");

    // Files that cannot be used do not hide the verdict on the others.
    let empty = path("empty.cols", b"");
    let absent = folder.path().join("absent.cols");
    let (code, out, err) = verify(&[&absent, &empty, &mixed, folder.path()]);
    assert_eq!(code, 2);
    assert!(out.contains("e4m3_rn_satfinite: 3 rows, 0 mismatches"), "{out}");
    assert!(err.contains("absent.cols") && err.contains("empty.cols: 0 bytes"), "{err}");
    assert!(!err.contains("panicked"), "{err}");
}
