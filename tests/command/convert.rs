//! `exmy convert`: a filter that keeps lines in step.

use crate::{cut_off, exmy, with_input};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

const NARROW: [&str; 5] = ["convert", "--from", "f32", "--to", "e4m3fn"];

fn convert(options: &[&str], input: &[u8]) -> (i32, String, String) {
    with_input(&[&NARROW[..], options].concat(), input)
}

#[test]
fn codes_in_codes_out() {
    // 1, -2, 500, just above 1.0625.
    let input = b"3f800000\n0xC0000000\r\n43FA0000  \n3f880001";
    assert_eq!(convert(&[], input), (0, "38\nc0\n7f\n39\n".into(), String::new()));
    let (_, out, _) = convert(&["--profile", "ocp-sat", "--round", "rtz", "--flags"], input);
    assert_eq!(out, "38 00\nc0 00\n7e 25\n38 01\n");
    let (_, out, _) = convert(&["--overflow", "sat-finite"], input);
    assert_eq!(out, "38\nc0\n7e\n39\n");
    assert_eq!(convert(&[], b""), (0, String::new(), String::new()));
    let from = ["convert", "--from", "float8_e4m3fn", "--to", "f64"];
    assert_eq!(with_input(&from, b"38\n").1, "3ff0000000000000\n");
}

#[test]
fn malformed_lines_are_told_and_do_not_end_the_stream() {
    let input = b"3f800000\n\nhello\n13f800000\n1 2\n40000000\n";
    let (code, out, err) = convert(&[], input);
    assert_eq!((code, out.as_str()), (1, "38\n\n\n\n\n40\n"));
    for part in [
        "line 3: \"hello\": 'h' is no hexadecimal digit",
        "expected: one code of f32 (32 bits, 8 digits), in hexadecimal",
        "line 4: \"13f800000\" has bits beyond the width",
        "line 5: 2 words instead of 1: \"1 2\"",
        "3 malformed lines, 2 codes converted",
    ] {
        assert!(err.contains(part), "no {part:?} in\n{err}");
    }
    let (code, out, err) = convert(&["--strict"], input);
    assert_eq!((code, out.as_str()), (2, "38\n\n"));
    assert!(err.contains("line 3") && !err.contains("line 4"), "{err}");
    // Garbage of any kind is lines too; complaints end after twenty.
    let garbage: Vec<u8> =
        (0..200_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (code, out, err) = convert(&[], &garbage);
    assert_eq!(code, 1);
    assert!(out.bytes().all(|byte| byte == b'\n'));
    assert!(err.lines().count() < 30 && err.is_ascii(), "{err}");
    let (code, _, err) = convert(&[], &[b'0'; 3 << 20]);
    assert!(code == 1 && err.contains("longer than"), "{err}");
}

#[test]
fn stochastic_modes_tell_their_bits() {
    let ties = b"3f880000\n".repeat(40);
    let (_, one, _) = convert(&["--round", "sr8"], &ties);
    let (_, again, _) = convert(&["--round", "sr8", "--seed", "1"], &ties);
    let (_, two, _) = convert(&["--round", "sr8", "--seed", "2"], &ties);
    assert!(one == again && one != two && one.contains("38") && one.contains("39"));
    let column = b"3f880000 7f\n3f880000 80\n";
    assert_eq!(convert(&["--round", "sr8", "--random-column"], column).1, "38\n39\n");
    let (code, _, err) = convert(&["--random-column"], column);
    assert!(code == 2 && err.contains("rne takes no random bits"), "{err}");
}

#[test]
fn misuse_is_answered() {
    for (arguments, parts) in [
        (&["convert", "--from", "f32"][..], &["--to"][..]),
        (&["convert", "--from", "f32", "--to", "e4m3nf"], &["e4m3nf", "did you mean e4m3fn"]),
        (&["convert", "--from", "f32", "--to", "f16", "--round", "rnee"], &["did you mean rne"]),
        (&["convert", "--from", "f32", "--to", "f16", "--profile", "cuda"], &["cuda-satfinite"]),
        (&["convert", "--from", "f32", "--to", "f16", "--flag"], &["--flags"]),
    ] {
        let (code, out, err) = with_input(arguments, b"");
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(parts.iter().all(|part| err.contains(part)), "{arguments:?}: {err}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let input = b"3f800000\n".repeat(300_000);
    assert_eq!(cut_off(&NARROW, &input), (0, "38\n".into(), String::new()));
}

/// Another program can ask line by line.
#[test]
fn every_line_is_answered_before_the_next_is_waited_for() {
    let mut command = exmy(&NARROW);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for (question, answer) in [("3f800000\n", "38\n"), ("40000000\n", "40\n"), ("bad\n", "01\n")] {
        stdin.write_all(question.as_bytes()).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        // `bad` is a code: a binary32 subnormal.
        assert_eq!(line, if question == "bad\n" { "00\n" } else { answer });
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
