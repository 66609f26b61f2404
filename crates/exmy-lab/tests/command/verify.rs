//! `exmy verify`: TestFloat's lines in, a verdict out.

use crate::{cut_off, with_input};

const CASES: &str = include_str!("../../../../tests/data/testfloat/cases.txt");

/// TestFloat's own cases through the program, with the options that its settings have here.
#[test]
fn testfloats_cases_pass() {
    // The library judges all of them (tests/vectors); here every 9th section is enough.
    for section in CASES.split("# ").skip(1).step_by(9) {
        let (arguments, lines) = section.split_once('\n').unwrap();
        let mut words = vec!["verify"];
        words.extend(arguments.split(' '));
        let (code, out, err) = with_input(&words, lines.as_bytes());
        let count = lines.lines().count();
        assert_eq!(out, format!("{count} passed, 0 failed\n"), "{arguments}");
        assert_eq!((code, err.as_str()), (0, ""), "{arguments}");
    }
}

#[test]
fn failures_are_shown_counted_and_told_by_the_exit_code() {
    let right = "3C00 3C00 4000 00\n";
    let wrong = "3C00 3C00 4001 01\n";
    let lines = [right, wrong].concat().repeat(50);
    let (code, out, err) = with_input(&["verify", "f16_add"], lines.as_bytes());
    assert_eq!((code, err.as_str()), (1, ""));
    assert!(out.ends_with("\n50 passed, 50 failed\n"), "{out}");
    assert_eq!(out.matches("line ").count(), 20);
    assert!(out.starts_with(
        "line 2: f16_add 3c00 3c00\n  \
         operands  1 (0x1p+0), 1 (0x1p+0)\n  \
         exact     0x1p+1\n  \
         given     4001 = 2.001953125 (0x1.004p+1), flags 01 (inexact)\n  \
         computed  4000 = 2 (0x1p+1), flags 00 (none)\n"
    ));
    let few = ["verify", "f16_add", "--max-errors", "3"];
    let (code, out, _) = with_input(&few, lines.as_bytes());
    assert_eq!((code, out.matches("line ").count()), (1, 3));
    let none = ["verify", "f16_add", "--max-errors", "0"];
    assert_eq!(with_input(&none, lines.as_bytes()).1, "50 passed, 50 failed\n");
}

/// sin 1 = 0.84147098480789650665..., to the digits that sixty-four bits settle.
#[test]
fn the_exact_value_of_an_elementary_function_is_shown() {
    let (code, out, _) = with_input(&["verify", "f16_sin"], b"3c00 3555 00\n");
    assert_eq!(code, 1);
    assert!(out.contains("\n  exact     0.841470984807896506"), "{out}");
    assert!(out.contains("... (0x1.aed548f090cee04...p-1)\n"), "{out}");
    let (_, out, _) = with_input(&["verify", "f32_atan2"], b"0 bf800000 0 00\n");
    assert!(out.contains("\n  exact     3.141592653589793238"), "{out}");
}

#[test]
fn options_decide_what_is_right() {
    let passes = |arguments: &[&str], line: &str| {
        let words = [&["verify"], arguments].concat();
        let (code, out, _) = with_input(&words, line.as_bytes());
        assert_eq!(out.ends_with("1 passed, 0 failed\n"), code == 0);
        code == 0
    };
    // (1 + 2^-10) 2^-14 x (1 - 2^-10) is 2^-34 below the smallest normal number and rounds to it,
    // so it is tiny only before rounding.
    let tiny = "0401 3BFE 0400 03";
    assert!(passes(&["f16_mul", "--tininess", "before"], tiny));
    assert!(!passes(&["f16_mul", "--tininess", "after"], tiny) && !passes(&["f16_mul"], tiny));
    let half = "3800 0000 01";
    assert!(passes(&["f16_roundToInt", "--exact"], half));
    assert!(!passes(&["f16_roundToInt"], half) && passes(&["f16_roundToInt_x"], half));
    for (cpu, word) in [("x86", "80000000"), ("riscv", "7fffffff"), ("arm", "00000000")] {
        let line = format!("7E00 {word} 10");
        assert!(passes(&["f16_to_i32", "--int-invalid", cpu], &line), "{cpu}");
        assert_eq!(passes(&["f16_to_i32"], &line), cpu == "x86");
    }
    // Any NaN is any NaN, unless asked to look: the 8086 passes the first one on, quieted.
    let nan = "7C01 7E02 7E00 10";
    assert!(passes(&["f16_add"], nan) && !passes(&["f16_add", "--check-nans"], nan));
    assert!(passes(&["f16_add", "--check-nans"], "7C01 7E02 7E01 10"));
    assert!(passes(&["f16_sub", "--check-nans"], "7C00 7C00 FE00 10"));
    assert!(passes(&["f16_sub", "--check-nans", "--profile", "riscv"], "7C00 7C00 7E00 10"));
    // Other formats and rules.
    assert!(passes(&["e4m3fn_mul"], "7e 40 7f 15"));
    assert!(passes(&["e4m3fn_mul", "--profile", "ocp-sat"], "7e 40 7e 05"));
    assert!(passes(&["e4m3fn_mul", "--overflow", "sat-finite"], "7E 40 7E 05"));
    assert!(passes(&["e4m3fn_to_e2m1", "--round", "rup"], "31 2 03"));
    assert!(passes(&["f32_to_e4m3fn", "--round", "sr4"], "3f880000 8 39 01"));
}

#[test]
fn a_stream_with_malformed_lines_is_not_clean() {
    let lines = b"38 38 38 00\n38 38 38\n\n38 38 38 0\n\x80\n";
    let (code, out, err) = with_input(&["verify", "e4m3fn_mul"], lines);
    assert_eq!((code, out.as_str()), (1, "2 passed, 0 failed, 2 malformed\n"));
    assert!(err.contains("line 2: 3 words instead of 4"), "{err}");
    assert!(err.contains("expected: e4m3, e4m3, e4m3 (result), flags (00 to 1f)"), "{err}");
    assert!(err.contains("line 5: \"\\x80\": byte 0x80"), "{err}");
    let (code, out, _) = with_input(&["verify", "e4m3fn_mul", "--strict"], lines);
    assert_eq!((code, out.as_str()), (2, "1 passed, 0 failed, 1 malformed\n"));
    // Every malformed line is reported; --max-errors is about cases.
    let many = b"38 38 38\n38 38 38 0\n".repeat(300);
    let arguments = ["verify", "e4m3fn_mul", "--max-errors", "1"];
    let (_, out, err) = with_input(&arguments, &many);
    assert_eq!(out, "300 passed, 0 failed, 300 malformed\n");
    for line in (1..=600).step_by(2) {
        let reported = format!("line {line}: 3 words");
        assert_eq!(err.lines().filter(|text| text.starts_with(&reported)).count(), 1, "{line}");
    }
    let (code, out, err) = with_input(&["verify", "e4m3fn_mul"], b"");
    assert_eq!((code, out.as_str()), (0, "0 passed, 0 failed\n"));
    assert!(err.contains("no case"), "{err}");
}

#[test]
fn misuse_is_answered() {
    for (arguments, part) in [
        (&["verify"][..], "<FUNCTION>"),
        (&["verify", "f128_add"], "f16, bf16, f32 and f64 work"),
        (&["verify", "f16_ad"], "did you mean add"),
        (&["verify", "f61_add"], "f61"),
        (&["verify", "f16_add", "--rund", "rne"], "--round"),
        (&["verify", "f16_add", "--flush=input"], "flush-input"),
        (&["verify", "f16_add", "--tininess", "never"], "after, before"),
        (&["verify", "f16_add", "--int-invalid", "mips"], "riscv"),
        (&["verify", "f16_add", "--max-errors", "-1"], "-1"),
        (&["verify", "f16_roundToInt", "--exact", "--notexact"], "cannot be used with"),
        (&["verify", "f16_to_i129"], "integers have 1 to 128 bits"),
        (&["verify", "f16_to_i0"], "integers have 1 to 128 bits"),
        (&["verify", "ui0_to_f16"], "integers have 1 to 128 bits"),
        (&["verify", "nvfp4_add"], "nvfp4 is a block format"),
        (&["verify", "f16_to_i32_r_min", "--round", "rup"], "fixes the mode rdn"),
        (&["verify", "binary16p1ue_sin"], "binary16p1ue"),
    ] {
        let (code, out, err) = with_input(arguments, b"");
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
    let many = "3C00 3C00 4001 01\n".repeat(100_000);
    let cut = cut_off(&["verify", "f16_add", "--max-errors", "100000"], many.as_bytes());
    assert_eq!((cut.0, cut.2.as_str()), (1, ""));
}

/// Recorded columns come from a pipe as from a file.
#[test]
fn columns_are_read_from_standard_input() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/h200/conv_f8.cols");
    let bytes = std::fs::read(path).unwrap();
    let (code, from_pipe, _) = with_input(&["verify-cols", "-"], &bytes);
    let (_, from_file, _) = with_input(&["verify-cols", path], b"");
    assert!(code == 0 && from_pipe == from_file && from_pipe.contains(" 0 mismatches"));
    let (code, _, err) = with_input(&["verify-cols", "-"], b"EXMY");
    assert!(code == 2 && err.contains("cannot use -"), "{err}");
}

#[test]
fn columns_are_read_from_folders() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/h200/conv_f8.cols");
    for name in ["b.cols", "a.cols", "notes.txt"] {
        std::fs::copy(source, path(name)).unwrap();
    }
    let all = folder.path().to_str().unwrap();
    let (code, out, err) = with_input(&["verify-cols", all], b"");
    assert_eq!((code, err.as_str()), (0, ""));
    // As if the files were named, in order.
    assert_eq!(out, with_input(&["verify-cols", &path("a.cols"), &path("b.cols")], b"").1);
    assert!(out.starts_with(&path("a.cols")) && !out.contains("notes"), "{out}");
    // What cannot be used does not stop the others.
    let empty = tempfile::tempdir().unwrap();
    let empty = empty.path().to_str().unwrap();
    let (code, out, err) = with_input(&["verify-cols", empty, "nowhere.cols", all], b"");
    assert!(code == 2 && out.contains(&path("b.cols")), "{out}");
    assert!(err.contains("ends in .cols") && err.contains("cannot open nowhere.cols"), "{err}");
}
