//! `exmy compute`: operands in, results and flags out, in step.

use crate::{exmy, with_input};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

#[test]
fn operands_in_results_out() {
    let compute =
        |arguments: &[&str], input: &[u8]| with_input(&[&["compute"], arguments].concat(), input);
    // 1.5 * 1.5 = 2.25; 448 * 2 is NaN, or saturates.
    let products = b"3c 3c\n\n0x7E 40\n";
    assert_eq!(compute(&["e4m3fn_mul"], products), (0, "41 00\n\n7f 15\n".into(), String::new()));
    let saturating = ["e4m3fn_mul", "--overflow", "sat-finite", "--no-flags"];
    assert_eq!(compute(&saturating, products).1, "41\n\n7e\n");
    // 2^-6 * 2^-1 is subnormal, and so is the first operand of the other.
    let small = b"08 30\n01 38\n";
    assert_eq!(compute(&["e4m3fn_mul"], small).1, "04 00\n01 00\n");
    assert_eq!(compute(&["e4m3fn_mul", "--flush", "flush-output"], small).1, "00 03\n00 03\n");
    assert_eq!(compute(&["e4m3fn_mul", "--subnormals", "zero"], small).1, "04 00\n00 00\n");
    // 1 + 1/16 is a tie, which one random bit decides; drawn bits do both in time.
    let tie = ["e4m3fn_add", "--round", "sr1"];
    assert_eq!(compute(&tie, b"38 18 0\n38 18 1\n").1, "38 01\n39 01\n");
    let drawn = compute(&[&tie[..], &["--seed", "1"]].concat(), &b"38 18\n".repeat(64)).1;
    assert!(drawn.contains("38 01") && drawn.contains("39 01"), "{drawn}");
    // Subnormal operands are zeros to `verify` and `vectors` as well.
    let daz = ["e4m3fn_mul", "--subnormals", "zero", "--flush", "flush-output"];
    let (_, cases, _) = with_input(&[&["vectors"], &daz[..]].concat(), b"");
    let (code, out, _) = with_input(&[&["verify"], &daz[..]].concat(), cases.as_bytes());
    assert_eq!((code, out.as_str()), (0, "65536 passed, 0 failed\n"));
    let (code, out, _) = with_input(&["verify", "e4m3fn_mul"], cases.as_bytes());
    assert!(code == 1 && out.contains(" failed"), "{out}");
}

#[test]
fn mistakes_are_told() {
    let (code, out, err) = with_input(&["compute", "f16_add"], b"3c00\n3c00 3c00\n1 2 3\n");
    assert_eq!((code, out.as_str()), (1, "\n4000 00\n\n"));
    for part in [
        "line 1: 1 word instead of 2: \"3c00\"",
        "expected: f16, f16, in hexadecimal",
        "line 3: 3 words instead of 2",
        "2 malformed lines, 1 result computed",
    ] {
        assert!(err.contains(part), "no {part:?} in\n{err}");
    }
    let (code, out, _) = with_input(&["compute", "f16_add", "--strict"], b"0 0\n3c00\n0 0\n");
    assert_eq!((code, out.as_str()), (2, "0000 00\n"));
    let (code, _, err) = with_input(&["compute", "f16_add", "--seed", "1"], b"");
    assert!(code == 2 && err.contains("rne takes no random bits"), "{err}");
    let (code, _, err) = with_input(&["compute", "f16_ad"], b"");
    assert!(code == 2 && err.contains("did you mean add"), "{err}");
}

/// A bench asks and waits for each answer.
#[test]
fn lines_are_answered_as_they_come() {
    let mut command = exmy(&["compute", "e4m3fn_add"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    for (asked, answer) in [("38 38\n", "40 00\n"), ("40 38\n", "44 00\n")] {
        stdin.write_all(asked.as_bytes()).unwrap();
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line, answer);
    }
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
