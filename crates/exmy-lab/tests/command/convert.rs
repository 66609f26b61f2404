//! `exmy convert`: a filter that keeps lines in step.

use crate::{cut_off, exmy, succeed, with_input};
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
    // Garbage of any kind is lines too, and every line without a code is reported once.
    let garbage: Vec<u8> =
        (0..200_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let (code, out, err) = convert(&[], &garbage);
    assert_eq!(code, 1);
    assert!(out.bytes().all(|byte| byte == b'\n'));
    assert!(err.is_ascii(), "{err}");
    let reported =
        |text: &str| text.strip_prefix("line ")?.split(':').next()?.parse::<usize>().ok();
    let reported: Vec<usize> = err.lines().filter_map(reported).collect();
    let wrong = garbage.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| {
        let mut words = line.split(|b| b" \t\r".contains(b)).filter(|word| !word.is_empty());
        match (words.next(), words.next()) {
            (None, _) => false,
            (Some(word), None) => !(word.len() <= 8 && word.iter().all(u8::is_ascii_hexdigit)),
            _ => true,
        }
    });
    let wrong: Vec<usize> = wrong.map(|(i, _)| i + 1).collect();
    assert!(reported == wrong && wrong.len() > 400, "{} of {}", reported.len(), wrong.len());
    let (code, _, err) = convert(&[], &[b'0'; 3 << 20]);
    assert!(code == 1 && err.contains("longer than"), "{err}");
}

/// CUDA, OCP, PyTorch and ONNX have E4M3FN, not the IEEE-like formats of 8 bits.
#[test]
fn a_profile_of_those_who_lack_the_format_is_remarked_on() {
    let to = |format, profile| {
        let words = ["convert", "--from", "f32", "--to", format, "--profile", profile];
        with_input(&words, b"3f800000\n")
    };
    for profile in ["cuda-satfinite", "ocp-sat", "ocp-nonsat", "torch", "onnx", "cuda-nosat"] {
        for (format, code) in [("E4M3-ieee", "38\n"), ("e3m4", "30\n")] {
            let (exit, out, err) = to(format, profile);
            assert_eq!((exit, out.as_str(), err.lines().count()), (0, code, 1), "{profile}");
            assert!(err.starts_with("note: ") && err.contains(profile), "{err}");
            assert!(err.contains(&format.to_lowercase()), "{err}");
        }
        assert_eq!(to("e4m3fn", profile).2, "");
    }
    for format in ["e4m3-ieee", "e3m4"] {
        assert_eq!(to(format, "ml-dtypes").2, "");
        assert_eq!(to(format, "ieee").2, "");
    }
    let words = ["convert", "--from", "e4m3-ieee", "--to", "f32", "--profile", "torch"];
    assert_eq!(with_input(&words, b"38\n").2.lines().count(), 1);
}

/// What `e4m3` means is said once where it was typed, as its meaning changed.
#[test]
fn the_change_of_e4m3_is_noted_where_it_is_typed() {
    let note = "note: e4m3 is OCP's (largest 448); the IEEE-like format is e4m3-ieee\n";
    let convert = |from, to| with_input(&["convert", "--from", from, "--to", to], b"7e\n");
    // 448, which the IEEE-like format does not have: its code 7e is NaN.
    assert_eq!(convert("E4M3", "e4m3"), (0, "7e\n".to_owned(), note.to_owned()));
    assert_eq!(convert("e4m3", "f32").1, "43e00000\n");
    assert_eq!(convert("e4m3-ieee", "f32").1, "7fe00000\n");
    for quiet in ["e4m3fn", "e4m3-ieee", "e4m3fnuz", "float8_e4m3", "F8_E4M3", "ue4m3"] {
        assert_eq!(with_input(&["formats", quiet], b"").2, "", "{quiet}");
    }
    for function in ["f32_to_e4m3", "e4m3_sqrt"] {
        assert_eq!(with_input(&["vectors", function, "--count", "1"], b"").2, note);
    }
    assert_eq!(with_input(&["formats", "e4m3b8"], b"").2, note);
    // A path is none.
    assert!(!with_input(&["report", "none", "--out", "e4m3"], b"").2.contains("note"));
    // Blocks and bundles have names of their own.
    assert_eq!(with_input(&["formats", "mxfp8-e4m3"], b"").2.matches("note").count(), 0);
}

/// The table of docs/verification.md, with f32 codes of 31/32, 5/8 and 1/2 of 2^-6.
#[test]
fn flushing_is_as_documented() {
    let page = include_str!("../../../../docs/verification.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with("| `flush-"))
        .map(|line| line.split('|').map(|cell| cell.trim().trim_matches('`')).collect())
        .collect();
    let names: Vec<&str> = rows.iter().map(|row| row[1]).collect();
    assert_eq!(names, ["flush-none", "flush-input", "flush-candidates", "flush-output"]);
    for row in rows {
        let (_, out, _) = convert(&["--flush", row[1]], b"3c780000\n3c200000\n3c000000\n");
        assert_eq!(out.lines().collect::<Vec<_>>(), row[3..6], "{}", row[1]);
        // Operands are read as they are: the least number of e4m3fn is subnormal.
        let back = ["convert", "--from", "e4m3fn", "--to", "f32", "--flush", row[1]];
        assert_eq!(with_input(&back, b"01\n").1, "3b000000\n", "{}", row[1]);
    }
    let zeros = ["convert", "--from", "e4m3fn", "--to", "f32", "--subnormals", "zero"];
    assert_eq!(with_input(&zeros, b"01\n87\n08\n").1, "00000000\n80000000\n3c800000\n");
    let help = String::from_utf8(succeed(&mut exmy(&["convert", "--help"])).stdout).unwrap();
    assert!(names.iter().all(|name| help.contains(&format!("{name}:"))), "{help}");
}

/// A code has 19 bits; the upper ones of the binary32 word that tensor cores read.
#[test]
fn tf32_codes_are_the_upper_bits_of_the_word() {
    let words = ["convert", "--from", "f32", "--to", "tf32", "--round", "rtz"];
    let (_, out, _) = with_input(&words, b"3f8fffff\nc0490fdb\n");
    assert_eq!(out, "1fc7f\n60248\n");
    for (word, code) in [(0x3F8F_FFFF_u32, 0x1FC7F), (0xC049_0FDB, 0x60248)] {
        assert_eq!(word & !0x1FFF, code << 13);
    }
}

#[test]
fn one_of_a_thing_is_singular() {
    let words = ["convert", "--from", "int2", "--to", "f16"];
    let (_, _, err) = with_input(&words, b"z\n1\n");
    assert!(err.contains("(2 bits, 1 digit)"), "{err}");
    assert!(err.ends_with("\n1 malformed line, 1 code converted\n"), "{err}");
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
        (&["convert", "--from", "f32", "--to", "e4m3nf"], &["e4m3nf", "did you mean e4m3"]),
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
