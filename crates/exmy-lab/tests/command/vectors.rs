//! `exmy vectors`: what it prints, `exmy verify` passes.

use crate::{cut_off, exmy, succeed, with_input};

fn vectors(arguments: &[&str]) -> Vec<u8> {
    succeed(&mut exmy(&[&["vectors"], arguments].concat())).stdout
}

#[test]
fn vectors_pass_the_verdict_under_the_same_options() {
    let cases: &[(&[&str], &[&str])] = &[
        (&["f16_mulAdd"], &["--count", "20000"]),
        (&["e4m3fn_mul", "--round", "odd", "--tininess", "before"], &[]),
        (&["f32_to_e2m1", "--profile", "ocp-sat", "--round", "rup"], &["--level", "2"]),
        (&["f64_to_i32", "--exact", "--int-invalid", "arm", "--round", "rdn"], &["--seed", "9"]),
        (&["e5m2_exp", "--overflow", "sat-finite"], &["--exhaustive"]),
        (&["bf16_add", "--round", "sr3c"], &["--count", "5000"]),
    ];
    for (common, own) in cases {
        let lines = vectors(&[*common, own].concat());
        let count = lines.iter().filter(|byte| **byte == b'\n').count();
        assert!(count >= 256, "{common:?}");
        let (code, out, err) = with_input(&[&["verify"], *common].concat(), &lines);
        assert_eq!((code, err.as_str()), (0, ""), "{common:?}: {out}");
        assert_eq!(out, format!("{count} passed, 0 failed\n"), "{common:?}");
        assert!(lines == vectors(&[*common, own].concat()), "{common:?}: other bytes");
    }
    let [one, two] = ["1", "2"].map(|seed| vectors(&["f16_add", "--seed", seed]));
    assert!(one != two && one == vectors(&["f16_add"]));
}

/// What the head of a file says makes the file, byte for byte, whatever was left out or spelled
/// otherwise.
#[test]
fn the_head_is_enough_to_make_the_file_again() {
    let cases: &[&[&str]] = &[
        &["e2m1_mul"],
        &["f16_fma", "--level", "2", "--seed", "9", "--count", "70"],
        &["f64_to_i32_rx_min", "--int-invalid", "arm", "--count", "40"],
        &["f16_roundToInt_x", "--count", "40", "--tininess", "before"],
        &["float8_e4m3fn,e5m2_add_to_f16", "--round", "sr5b", "--seed", "3", "--count", "300"],
        &["f32_to_e5m2", "--profile", "onnx-nosat", "--overflow", "to-nan", "--count", "40"],
        &["bf16_add", "--exhaustive", "--count", "20", "--profile", "x86"],
        &["e4m3fn_mul", "--flush", "flush-output", "--subnormals", "zero", "--count", "300"],
    ];
    for arguments in cases {
        for (style, mark) in [("readmemh", "// "), ("sv", "// "), ("c", "   "), ("json", "{")] {
            let text = vectors(&[arguments, &["--style", style][..]].concat());
            let text = String::from_utf8(text).unwrap();
            let head = text.lines().find(|line| line.contains(" --seed ")).unwrap();
            assert!(head.starts_with(mark) && head.contains(env!("CARGO_PKG_VERSION")), "{head}");
            let command = &head[head.find("exmy vectors ").unwrap()..];
            let end = command.find(&['"', '*'][..]).unwrap_or(command.len());
            let words: Vec<&str> = command[..end].split_whitespace().collect();
            assert_eq!(words[..2], ["exmy", "vectors"]);
            assert!(String::from_utf8(vectors(&words[2..])).unwrap() == text, "{words:?}");
        }
    }
}

/// One list, in the help of three commands, in the documentation and in the answer to a wrong name.
#[test]
fn the_operations_are_listed() {
    let help = |command| {
        let help = succeed(&mut exmy(&[command, "--help"])).stdout;
        let help = String::from_utf8(help).unwrap();
        let at = help.find("Operations behind a format").unwrap_or_else(|| panic!("{help}"));
        help[at..].trim_end().to_owned()
    };
    let list = help("vectors");
    assert_eq!([help("verify"), help("compute")], [list.as_str(); 2]);
    assert!(list.lines().all(|line| line.len() <= 80), "{list}");
    let page = include_str!("../../../../docs/verification.md");
    assert!(page.contains(&format!("```text\n{list}\n```")), "docs/verification.md lacks\n{list}");
    let (_, _, err) = with_input(&["verify", "f16_frobnicate"], b"");
    let (_, names) = err.split_once("after a format: ").unwrap();
    for name in names.lines().next().unwrap().split(", ") {
        let count = list.split_whitespace().filter(|word| *word == name).count();
        assert!(count >= 1, "no {name} in\n{list}");
    }
    // Its other name is said where the names are, and used nowhere else on the page.
    assert!(list.contains("fma                  mulAdd"), "{list}");
    let words = page.split(|c: char| !c.is_ascii_alphanumeric());
    assert_eq!(words.filter(|word| *word == "fma").count(), 1);
}

/// OCP's E4M3 has another name here, and a file of vectors does not show it.
#[test]
fn the_other_e4m3_is_remarked_on() {
    for (name, lines) in [("E4M3_mul", 1), ("f32_to_e4m3", 1), ("e4m3fn_mul", 0), ("e3m4_mul", 0)] {
        let (code, _, err) = with_input(&["vectors", name, "--count", "3"], b"");
        assert_eq!((code, err.lines().count()), (0, lines), "{err}");
        assert!(err.is_empty() || err.starts_with("note: ") && err.contains("e4m3-ieee"), "{err}");
    }
}

#[test]
fn misuse_is_answered() {
    for (arguments, part) in [
        (&["vectors"][..], "<FUNCTION>"),
        (&["vectors", "f32_add", "--exhaustive"], "2^64"),
        (&["vectors", "f16_add", "--level", "3"], "1..=2"),
        (&["vectors", "f16_add", "--style", "jsn"], "did you mean json"),
        (&["vectors", "f16_add", "--count", "0"], "at least 1"),
        (&["vectors", "e4m3fn_mul", "--flush", "output"], "flush-output"),
        (&["vectors", "e4m3fn_mul", "--subnormals", "zeros"], "did you mean zero"),
        (&["vectors", "extF80_add"], "f16, bf16, f32 and f64 work"),
    ] {
        let (code, out, err) = with_input(arguments, b"");
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(part), "{arguments:?}: {err}");
    }
    // 2^16 x 2^16 cases.
    let (code, line, err) = cut_off(&["vectors", "f16_add", "--exhaustive"], b"");
    assert_eq!((code, line.as_str()), (0, "0000 0000 0000 00\n"));
    assert_eq!(err, "4 294 967 296 cases follow; --count N takes N of them, spread over all\n");
    let few = ["vectors", "f16_add", "--exhaustive", "--count", "3"];
    assert_eq!(with_input(&few, b"").2, "");
    let (code, line, err) = cut_off(&["vectors", "f16_mulAdd"], b"");
    assert_eq!((code, line.as_str(), err.as_str()), (0, "0000 0000 0000 0000 00\n", ""));
}

/// Tiles of a unit are what `verify-tiles` passes by it, and by no other.
#[test]
fn tiles_of_a_unit_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("unit.toml");
    std::fs::write(&own, "l = 32\nf = 25\na = \"mxfp8-e4m3\"\n").unwrap();
    let own = own.to_str().unwrap();
    for (unit, model) in [("hopper:e4m3fn", "hopper"), ("blackwell:nvfp4", "blackwell"), (own, own)]
    {
        let shape = ["--tiles", unit, "--shape", "4,4,64", "--count", "20"];
        let tiles = vectors(&shape);
        let judge = |model: &str| with_input(&["verify-tiles", "-", "--model", model], &tiles);
        let (code, out, err) = judge(model);
        assert_eq!((code, out.as_str()), (0, "-: 320 elements, 0 mismatches\n"), "{err}");
        if model != own {
            assert_eq!(judge(&format!("{model},f=12")).0, 1);
        }
        assert!(tiles == vectors(&shape));
        assert!(tiles != vectors(&[&shape[..], &["--seed", "2"]].concat()));
    }
    for (arguments, part) in [
        (&["--tiles", "hopper"][..], "names no operands"),
        (&["--tiles", "hopper:nvfp4"], "it takes f16"),
        (&["--tiles", "hopper:e4m3fn", "--shape", "4,4"], "16,8,32"),
        (&["--tiles", "hopper:e4m3fn", "--count", "5000000000"], "4294967295"),
        (
            &["--tiles", "hopper:e4m3fn", "--shape", "4294967295,4294967295,9"],
            "than a memory holds",
        ),
        (&["--tiles", "hopper:e4m3fn", "--round", "rtz"], "cannot be used with"),
        (&["--tiles", "hopper:e4m3fn", "f16_add"], "cannot be used with"),
        (&["f16_add", "--shape", "1,1,1"], "--tiles"),
        (&["--tiles", "hopper:e4m3fn", "--count", "0"], "at least 1"),
    ] {
        let (code, out, err) = with_input(&[&["vectors"], arguments].concat(), b"");
        assert!(code == 2 && out.is_empty(), "{arguments:?}: {err}");
        assert!(err.contains(part), "{arguments:?}: no {part:?} in {err}");
    }
}

/// What a set lacks is said of it.
#[test]
fn coverage_says_what_is_exercised() {
    let table = |arguments: &[&str]| String::from_utf8(vectors(arguments)).unwrap();
    let all = table(&["e4m3fn_mul", "--coverage"]);
    for row in
        ["65536  all cases\n", "  512  a is zero\n", "  512  b is NaN\n", "  rounded a tie\n"]
    {
        assert!(all.contains(row), "no {row:?} in\n{all}");
    }
    assert!(!all.contains("never"), "{all}");
    let few = table(&["f32_mul", "--count", "4", "--coverage"]);
    assert!(
        few.starts_with("4  all cases\n") && few.contains("0  rounded a tie   <- never\n"),
        "{few}"
    );
    // What no case can have is no hole: all operands, an operation that does not round, one rounding mode, a
    // unit whose operands do not reach down to its least exponent.
    for (arguments, rows) in [
        (&["e4m3fn_abs"][..], &["  -  result is negative\n", "  -  rounded a tie\n"][..]),
        (&["f32_neg", "--count", "400"], &["-  rounded toward zero\n", "-  rounded a tie\n"]),
        (&["f16_to_f32"], &["-  rounded away from zero\n"]),
        (&["bf16_mul", "--round", "rtz"], &["-  rounded away from zero\n"]),
        (&["bf16_mul", "--round", "raz"], &["-  rounded back to the largest number\n"]),
        (&["f16_add"], &["-  rounded up to the smallest normal number\n"]),
        (&["f32_div"], &["-  rounded back to the largest number\n"]),
        (&["f32_sqrt"], &["-  result is subnormal\n", "-  rounded a tie\n"]),
    ] {
        let found = table(&[arguments, &["--coverage"]].concat());
        assert!(rows.iter().all(|row| found.contains(row)), "no {rows:?} in\n{found}");
        assert!(!found.contains("never"), "{arguments:?}:\n{found}");
    }
    let tiles = table(&["--tiles", "hopper:e5m2", "--coverage"]);
    assert!(tiles.contains("  -  step aligned to the least exponent\n"), "{tiles}");
    let tiles = table(&["--tiles", "blackwell:nvfp4", "--count", "14", "--coverage"]);
    for row in [
        "896  all dot products\n",
        "  scale of a is NaN\n",
        "  step with a term that is cut whole\n",
    ] {
        assert!(tiles.contains(row), "no {row:?} in\n{tiles}");
    }
    let (code, _, err) = with_input(&["vectors", "f16_add", "--coverage", "--style", "c"], b"");
    assert!(code == 2 && err.contains("cannot be used with"), "{err}");
}

/// A dot product a line: of one tile the words are those of the file.
#[test]
fn tiles_are_lines_for_readmemh() {
    let own = ["--tiles", "blackwell:mxfp8-e4m3,mxfp4", "--shape", "2,3,64", "--count", "3"];
    let text = String::from_utf8(vectors(&[&own[..], &["--style", "readmemh"]].concat())).unwrap();
    let (head, lines): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|line| line.starts_with("//"));
    assert_eq!(lines.len(), 18);
    for part in
        ["// 18 words of 864 bits:", "//   [863:352] a: 64 of e4m3", "//   [31:0] result: 1 of f32"]
    {
        assert!(head.contains(&part), "no {part:?} in {head:?}");
    }
    assert!(head[0].ends_with("--shape 2,3,64 --count 3 --seed 1 --style readmemh"), "{}", head[0]);
    let tiles = exmy::vectors::tiles::Tiles::parse(vectors(&own)).unwrap();
    let ([a, b, c, d], [x, y]) = (tiles.tile(1), tiles.scales(1));
    // Row 1, column 2 of tile 1.
    let hex = |codes: &[u64], digits: usize| -> String {
        codes.iter().rev().map(|code| format!("{code:0digits$x}")).collect()
    };
    let word = [
        hex(&a[64..128], 2),
        hex(&x[2..4], 2),
        hex(&b[128..192], 1),
        hex(&y[4..6], 2),
        hex(&c[5..6], 8),
        hex(&d[5..6], 8),
    ];
    assert_eq!(lines[11], word.join("_"));
    let (code, _, err) = with_input(&[&["vectors"], &own[..], &["--style", "json"]].concat(), b"");
    assert!(code == 2 && err.contains("--style readmemh"), "{err}");
}
