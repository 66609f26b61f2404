//! Cases that Berkeley TestFloat 3e printed, of every function and setting it has for binary16,
//! bfloat16, binary32, binary64 and integers.

use crate::{evaluator, judge};
use exmy::round::Profile;
use exmy::vectors::evaluate::{Evaluator, Settings};
use exmy::vectors::testfloat::Strictness;
use std::collections::BTreeSet;

const CASES: &str = include_str!("../data/testfloat/cases.txt");

/// The sections: arguments and lines.
fn sections() -> Vec<(&'static str, String)> {
    CASES
        .split("# ")
        .skip(1)
        .map(|section| {
            let (arguments, lines) = section.split_once('\n').unwrap();
            (arguments, lines.to_owned())
        })
        .collect()
}

/// The arguments of the command `exmy verify`, read independently of it.
fn settle(arguments: &str, profile: Profile) -> Evaluator {
    let mut words = arguments.split(' ');
    let function = words.next().unwrap();
    let mut settings = Settings { profile, ..Settings::default() };
    while let Some(option) = words.next() {
        match option {
            "--round" => settings.rounding = Some(words.next().unwrap().parse().unwrap()),
            "--tininess" => settings.tininess = Some(words.next().unwrap().parse().unwrap()),
            "--exact" => settings.exact = true,
            _ => panic!("{arguments}"),
        }
    }
    evaluator(function, &settings)
}

#[test]
fn every_case_is_right() {
    let sections = sections();
    assert_eq!(sections.len(), 267);
    let mut cases = 0;
    for (arguments, lines) in &sections {
        let evaluator = settle(arguments, Profile::Ieee);
        let (verdict, reports) = judge(&evaluator, Strictness::default(), lines.as_bytes());
        assert!(reports.is_empty(), "{arguments}\n{}", reports.join("\n"));
        assert!(verdict.passed >= 34, "{arguments}: {verdict:?}");
        cases += verdict.passed;
    }
    assert_eq!(cases, 10_906);
    // All functions, modes, and both notions of tininess are there.
    let words: BTreeSet<_> = sections.iter().flat_map(|s| s.0.split(' ')).collect();
    for word in ["rne", "rna", "rtz", "rup", "rdn", "odd", "before", "--exact"] {
        assert!(words.contains(word), "{word}");
    }
    for format in ["f16", "f32", "f64"] {
        for operation in ["add", "sub", "mul", "div", "mulAdd", "rem", "sqrt", "roundToInt"] {
            assert!(words.contains(&*format!("{format}_{operation}")), "{format}_{operation}");
        }
    }
}

#[test]
fn nan_codes_are_those_of_x86() {
    let strictness = Strictness { nan_codes: true, ..Strictness::default() };
    let (mut nans, mut others) = (0, 0);
    for (arguments, lines) in sections() {
        let evaluator = settle(arguments, Profile::X86);
        let (verdict, reports) = judge(&evaluator, strictness, lines.as_bytes());
        let result = evaluator.function().result();
        let columns = lines.lines().map(|line| line.rsplit(' ').nth(1).unwrap());
        let is_nan = |word: &&str| result.is_nan(u128::from_str_radix(word, 16).unwrap());
        nans += columns.filter(is_nan).count();
        // SoftFloat 3e shifts this payload one place less than the fields ask for.
        if arguments.starts_with("f32_to_bf16") {
            others += verdict.failed;
            assert!(reports.iter().all(|r| r.contains("NaN")), "{reports:?}");
        } else {
            assert!(reports.is_empty(), "{arguments}\n{}", reports.join("\n"));
        }
    }
    assert!(nans > 500 && (1..nans as u64 / 10).contains(&others), "{nans} {others}");
}

#[test]
fn every_wrong_result_and_flag_is_found() {
    for (arguments, lines) in sections() {
        let evaluator = settle(arguments, Profile::Ieee);
        let result = evaluator.function().result();
        let mut wrong = String::new();
        let mut count = 0;
        for (i, line) in lines.lines().enumerate() {
            let mut words: Vec<_> =
                line.split(' ').map(|w| u128::from_str_radix(w, 16).unwrap()).collect();
            let n = words.len();
            if i % 2 == 0 && !result.is_nan(words[n - 2]) {
                words[n - 2] ^= 1;
            } else {
                words[n - 1] ^= 1 << (i / 2 % 5);
            }
            let words: Vec<_> = words.iter().map(|word| format!("{word:x}")).collect();
            wrong += &words.join(" ");
            wrong += "\r\n";
            count += 1;
        }
        let (verdict, _) = judge(&evaluator, Strictness::default(), wrong.as_bytes());
        assert_eq!(
            (verdict.passed, verdict.failed, verdict.malformed),
            (0, count, 0),
            "{arguments}"
        );
    }
}

#[test]
fn a_mismatch_is_told_with_values() {
    let add = evaluator("f16_add", &Settings::default());
    let (verdict, reports) = judge(&add, Strictness::default(), b"3C01 3C01 4001 01\n\nzz 1 2 3\n");
    assert_eq!((verdict.passed, verdict.failed, verdict.malformed), (0, 1, 1));
    assert_eq!(
        reports[0],
        "line 1: f16_add 3c01 3c01\n  \
         operands  1.0009765625 (0x1.004p+0), 1.0009765625 (0x1.004p+0)\n  \
         exact     0x1.004p+1\n  \
         given     4001 = 2.001953125 (0x1.004p+1), flags 01 (inexact)\n  \
         computed  4001 = 2.001953125 (0x1.004p+1), flags 00 (none)"
    );
    assert!(reports[1].starts_with("line 3: \"zz\": 'z' is no"), "{}", reports[1]);
    let report = |name: &str, line: &str| {
        let (verdict, mut reports) =
            judge(&evaluator(name, &Settings::default()), Strictness::default(), line.as_bytes());
        assert_eq!(verdict.failed, 1, "{name} {line}: {reports:?}");
        reports.pop().unwrap()
    };
    // 1e300 * 1e300 - 1: too far apart for one integer.
    let far = report("f64_mulAdd", "7E37E43C8800759C 7E37E43C8800759C BFF0000000000000 0 00");
    assert!(far.contains("p+1993 - 0x1p+0\n"), "{far}");
    let third = report("e4m3_div", "38 44 2b 00");
    assert!(third.contains("exact     0x1.5555555555555...p-2\n"), "{third}");
    let back = report("i8_to_e4m3fn", "80 00 00");
    assert!(back.contains("operands  -128\n  exact     -128\n"), "{back}");
    let lt = report("e5m2_lt", "7d 00 1 00");
    assert!(
        lt.contains("signaling NaN, 0") && lt.contains("0 = false, flags 10 (invalid)"),
        "{lt}"
    );
}

#[test]
fn lines_that_are_no_cases_are_counted_and_can_end_the_stream() {
    let mul = evaluator("e4m3_mul", &Settings::default());
    let lines = b"38 38 38 00\n38 38 38\n38 38 38 00 00\n138 38 38 00\n38 38 38 20\n\xff\xfe\n\
        0x38 0X38 38 0\n  \n38\t38 38 00  ";
    let (verdict, reports) = judge(&mul, Strictness::default(), lines);
    assert_eq!((verdict.passed, verdict.failed, verdict.malformed), (3, 0, 5), "{reports:?}");
    assert!(reports[0].contains("line 2: 3 words instead of 4"), "{reports:?}");
    assert!(reports[1].contains("line 3: 5 words instead of 4"), "{reports:?}");
    assert!(reports[2].contains("line 4: \"138\" has bits beyond"), "{reports:?}");
    assert!(reports[3].contains("line 5: \"20\" has bits beyond"), "{reports:?}");
    let strict = Strictness { lines: true, ..Strictness::default() };
    let (verdict, reports) = judge(&mul, strict, lines);
    assert_eq!((verdict.passed, verdict.malformed, reports.len()), (1, 1, 1));
}
