//! `exmy verify-tiles` and `exmy explain-mma`.

use crate::{cut_off, exmy, with_input};
use std::fs;
use std::path::Path;

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/h200");

#[test]
fn recorded_tiles_are_judged() {
    let (code, out, err) = with_input(&["verify-tiles", DATA], b"");
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out.lines().count(), 18);
    let files =
        out.lines().filter(|line| line.contains(".tiles: ") && line.ends_with(", 0 mismatches"));
    assert_eq!(files.count(), 17);
    assert!(out.ends_with("17 files: 2720 elements, 0 mismatches\n"), "{out}");
    let file = format!("{DATA}/wgmma_m64n8k32_f32_e4m3_e4m3.tiles");
    let (code, out, _) = with_input(&["verify-tiles", &file, "--model", "hopper,f=14"], b"");
    assert_eq!(code, 1);
    for part in [
        ": 144 elements, ",
        " mismatches\nhopper,f=14:e4m3\ntile ",
        "recorded 0x",
        "align to 2^",
        "round rtz to e8m13",
    ] {
        assert!(out.contains(part), "no {part:?} in\n{out}");
    }
    // From a pipe a file has no name.
    let bytes = fs::read(&file).unwrap();
    let (code, out, _) = with_input(&["verify-tiles", "-", "--model", "hopper"], &bytes);
    assert_eq!((code, out.as_str()), (0, "-: 144 elements, 0 mismatches\n"));
    let (code, _, err) = with_input(&["verify-tiles", "-"], &bytes);
    assert!(code == 2 && err.contains("--model NAME"), "{err}");
    let cut = cut_off(&["verify-tiles", &file, "--model", "hopper,f=3"], b"");
    assert_eq!((cut.0 == 0 || cut.0 == 1, cut.2.as_str()), (true, ""));
}

/// Results of the device that were lost are filled in again by its model.
#[test]
fn results_are_filled_into_tiles() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let whole = fs::read(Path::new(DATA).join("wgmma_m64n8k32_f32_e4m3_e4m3.tiles")).unwrap();
    let mut without = whole.clone();
    let results = without.len() - 4 * 144;
    without[results..].fill(0);
    fs::write(path("hopper_empty.tiles"), without).unwrap();
    let (empty, filled) = (path("hopper_empty.tiles"), path("filled"));
    let (code, out, err) = with_input(&["fill-tiles", &empty, &filled], b"");
    assert_eq!((code, out.as_str()), (0, ""), "{err}");
    assert!(err.starts_with("144 results of hopper in "), "{err}");
    assert!(fs::read(&filled).unwrap() == whole);
    let output = exmy(&["fill-tiles", &empty, "-"]).current_dir(&folder).output().unwrap();
    assert!(output.stdout == whole && !folder.path().join("-").exists());
    // By another model, and over the file itself.
    let less = ["fill-tiles", &empty, &empty, "--model", "hopper,f=9"];
    assert_eq!(with_input(&less, b"").0, 0);
    assert!(fs::read(&empty).unwrap() != whole);
    assert_eq!(with_input(&["verify-tiles", &empty, "--model", "hopper,f=9"], b"").0, 0);
    for (arguments, part) in [
        (&["fill-tiles", &filled, "none/x"][..], "no model is known"),
        (&["fill-tiles", &empty, "none/x"], "none"),
        (&["fill-tiles", &empty, "x", "--model", "volta"], "volta does not multiply"),
        (&["fill-tiles", "nowhere.tiles", "x"], "cannot open nowhere.tiles"),
    ] {
        let (code, _, err) = with_input(arguments, b"");
        assert!(code == 2 && err.contains(part), "{arguments:?}: {err}");
    }
}

#[test]
fn unusable_files_do_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let source = Path::new(DATA).join("mma_m16n8k4_f32_tf32_tf32.tiles");
    fs::copy(&source, path("ampere_k4.tiles")).unwrap();
    let mut bytes = fs::read(&source).unwrap();
    fs::write(path("unknown_k4.tiles"), &bytes).unwrap();
    bytes.pop();
    fs::write(path("hopper_cut.tiles"), &bytes).unwrap();
    fs::write(path("notes.txt"), b"no tiles").unwrap();
    let folder = folder.path().to_str().unwrap();
    let (code, out, err) = with_input(&["verify-tiles", folder], b"");
    assert_eq!(code, 2);
    // Ampere keeps a bit less than Hopper, so its model does not give these bits.
    assert!(
        out.contains("ampere_k4.tiles: 144 elements, ") && !out.contains(" 0 mismatches"),
        "{out}"
    );
    for part in [
        "hopper_cut.tiles: the header asks for 2576 bytes, but the file ends after 2575",
        "unknown_k4.tiles",
        "ampere_m16n8k16.tiles",
    ] {
        assert!(err.contains(part), "no {part:?} in\n{err}");
    }
    for (arguments, parts) in [
        (&["verify-tiles"][..], &["FILE"][..]),
        (&["verify-tiles", "nowhere.tiles"], &["cannot open nowhere.tiles"]),
        (&["verify-tiles", folder, "--model", "hoper"], &["did you mean hopper"]),
        (&["verify-tiles", folder, "--model", "hopper,q=1"], &["no parameter", "promote"]),
        (
            &["verify-tiles", folder, "--model", "custom,l=8:e4m3fn"],
            &["names operands, whose formats come from the file", "without operands: custom,l=8"],
        ),
        (
            &["verify-tiles", &path_of(folder, "ampere_k4.tiles"), "--model", "volta"],
            &["volta does not multiply tf32 by tf32", "12 tiles of 4 x 3 x 4"],
        ),
    ] {
        let (code, _, err) = with_input(arguments, b"");
        assert_eq!(code, 2, "{arguments:?}");
        for part in parts {
            assert!(err.contains(part), "{arguments:?}: no {part:?} in\n{err}");
        }
    }
    let empty = tempfile::tempdir().unwrap();
    let (code, _, err) = with_input(&["verify-tiles", empty.path().to_str().unwrap()], b"");
    assert!(code == 2 && err.contains("ends in .tiles"), "{err}");
}

fn path_of(folder: &str, name: &str) -> String {
    Path::new(folder).join(name).to_str().unwrap().to_owned()
}

fn explain(arguments: &[&str]) -> (i32, String, String) {
    with_input(&[&["explain-mma"], arguments].concat(), b"")
}

#[test]
fn a_dot_product_is_told_step_by_step() {
    let (code, out, err) =
        explain(&["hopper:e5m2", "-a", "1,-0x1.8p-7,0x80", "-b", "1 0x3c 2", "-c", "0"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let expected = "\
hopper:e5m2
a: 0x3c=1 0xa2=-0.01171875 0x80=-0
b: 0x3c=1 0x3c=1 0x40=2
c: 0x00000000=0
align to 2^0, 13 fraction bits, truncated; unit 2^-13
  a0*b0      1                           e 0                8192
  a1*b1      -0.01171875                 e -7                -96
  2 zeros
  sum 8096 x 2^-13 = 0.98828125
round rtz to e8m13: 0x0fdf40 = 0.98828125, exact
result 0x3f7d0000 = 0.98828125
";
    assert_eq!(out, expected);
    // Formats as an option, a rounded number, and what is cut.
    let (code, out, err) =
        explain(&["volta", "--formats", "f16", "-a", "0.1,2e-4", "-b", "1,2e-4"]);
    assert_eq!(code, 0);
    assert!(err.contains("note: --a: 0.1 is rounded to 0.0999755859375 of f16"), "{err}");
    assert!(out.contains("bits cut"), "{out}");
    let (code, out, _) = explain(&[
        "blackwell:nvfp4",
        "-a",
        "6,6",
        "-b",
        "0.5,6",
        "--scale-a",
        "448",
        "--scale-b",
        "0x38",
    ]);
    assert!(code == 0 && out.ends_with("= 17472\n"), "{out}");
    // A unit of one's own takes the same operands, in groups: 1.5 x 2 x 1 x 0.5 + 1.
    let (code, out, err) = explain(&[
        "custom,order=groups,group=16,l=64:nvfp4",
        "-a",
        "1.5",
        "-b",
        "2",
        "-c",
        "1",
        "--scale-a",
        "0x38",
        "--scale-b",
        "0x30",
    ]);
    assert!(code == 0 && out.ends_with("= 2.5\n"), "{out}{err}");
    let (code, out, _) = explain(&["amx:bf16", "-a", "1,nan", "-b", "2,2"]);
    assert!(
        code == 0 && out.contains("fma 1 2 0 = 2") && out.ends_with("0x7fc00000 = NaN\n"),
        "{out}"
    );
}

#[test]
fn misuse_is_answered() {
    for (arguments, part) in [
        (&["hopper:e4m3fn", "-a", "1,2", "-b", "1"][..], "--a has 2 elements and --b 1"),
        (&["hopper:e4m3fn", "-a", "x", "-b", "1"], "--a: \"x\" is no number"),
        (&["fast:f16", "-a", "0x1g", "-b", "1"], "--a: \"0x1g\" is no number: at position 3"),
        (&["fast:f16", "-a", "0x11111111111111111", "-b", "1"], "11\" is no code"),
        (&["hopper,out=bf16@sr:f16", "-a", "1", "-b", "1"], "or srNc with N from 1 to 32"),
        (&["amx,out=f32@sr8:bf16", "-a", "1", "-b", "1"], "srN works with the orders fused"),
        (&["hopper,out=bf16@sr8:f16", "-a", "1", "-b", "1"], "needs 1 random words for 1 elements"),
        (&["hopper,out=bf16@sr8:f16", "-a", "1", "-b", "1"], "--words 0x80000000"),
        (&["hopper,out=bf16@sr8:f16", "-a", "1", "-b", "1", "--words", "1,2"], "--words has 2"),
        (&["hopper,out=bf16@sr8:f16", "-a", "1", "-b", "1", "--words", "-1"], "--words: \"-1\""),
        (&["hopper,out=bf16@sr8:f16", "-a", "1", "-b", "1", "--words", "0x123456789"], "32 bits"),
        (&["hopper:f16", "-a", "1", "-b", "1", "--words", "1"], "does not round stochastically"),
        (&["custom:nvfp4", "-a", "1", "-b", "1"], "need order=groups"),
        (&["hopper:e4m3fn", "-a", "0x123", "-b", "1"], "bits beyond the width"),
        (&["hopper:e4m3fn", "-a", "1", "-b", "1", "-c", "1,2"], "--c has 2 elements"),
        (&["hopper:e4m3fn", "-a", ",", "-b", "1"], "--a names no element"),
        (&["hopper:e4m3fn", "-a", "1", "-b", "1", "--scale-a", "1"], "has no scales"),
        (&["blackwell:nvfp4", "-a", "1", "-b", "1"], "0 scales, where 1 are needed"),
        (&["hopper", "-a", "1", "-b", "1"], "names no operands"),
        (&["hopper:f16"], "--a"),
        (&["volta:bf16", "-a", "1", "-b", "1"], "it takes f16"),
    ] {
        let (code, out, err) = explain(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(part), "{arguments:?}: no {part:?} in\n{err}");
    }
}

/// A unit of one's own in a file: Hopper's of E4M3, written down from the table of docs/units.md, gives what
/// the device gave, and with a bit less does not.
#[test]
fn a_file_describes_a_unit() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name).to_str().unwrap().to_owned();
        fs::write(&path, text).unwrap();
        path
    };
    let hopper = "l = 32\nf = 13\nfloor = -133\nout = \"e8m13@rtz\"\n";
    let own = write("own.toml", hopper);
    let recorded = format!("{DATA}/wgmma_m64n8k32_f32_e4m3_e4m3.tiles");
    let judge = |model: &str| with_input(&["verify-tiles", &recorded, "--model", model], b"");
    let (code, out, err) = judge(&own);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    assert!(out.ends_with(": 144 elements, 0 mismatches\n"), "{out}");
    assert_eq!(judge(&write("less.toml", &hopper.replace("13\nfl", "12\nfl"))).0, 1);

    // The example of the page: 1 * 3 + 2 * 4.
    let page = include_str!("../../../../docs/units.md");
    let block = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let shown = ["-a", "1,2", "-b", "3,4", "--scale-a", "1", "--scale-b", "1"];
    assert!(page.contains(&format!("exmy explain-mma unit.toml {}", shown.join(" "))));
    let example = write("unit.toml", block);
    let (code, out, err) = with_input(&[&["explain-mma", &example], &shown[..]].concat(), b"");
    assert!(code == 0 && out.contains("result 0x41300000 = 11"), "{out}{err}");

    // Formats in the file, behind it, or as an option: 1 + 2^-14 keeps 13 bits, and 25 like Blackwell.
    let explain = |unit: &str, more: &[&str]| {
        let arguments = ["explain-mma", unit, "-a", "1,0x04", "-b", "1,0x04"];
        with_input(&[&arguments[..], more].concat(), b"")
    };
    let formats = write("formats.toml", &format!("{hopper}a = \"e4m3fn\"\n"));
    let blackwell =
        write("blackwell.toml", "like = \"blackwell\"\na = \"e4m3fn\"\nb = \"e4m3fn\"\n");
    for (unit, more, result) in [
        (formats.as_str(), &[][..], "result 0x3f800000"),
        (&format!("{own}:e4m3fn"), &[], "result 0x3f800000"),
        (&own, &["--formats", "e4m3fn,e4m3fn+f32"], "result 0x3f800000"),
        (&blackwell, &[], "result 0x3f800200"),
    ] {
        let (code, out, err) = explain(unit, more);
        assert!(code == 0 && out.contains(result), "{unit} {more:?}: {out}{err}");
    }
    for (text, parts) in [
        (
            "q = 1",
            &["this is no unit", "line 1", "no key of", "like, a, b, result, order", "promote"][..],
        ),
        ("# a\nresults = \"f32\"", &["line 2", "did you mean result?"]),
        ("# a\nl = 0", &["line 2", "l=\"0\"", "1 to 256"]),
        ("l = 1.5", &["line 1", "l is 1.5", "whole numbers"]),
        ("f = 9 13", &["\"13\" stands behind the value of f"]),
        ("# a\nl = 8\nl = 9", &["line 3", "a second time"]),
        ("l = \"8,f=3\"", &["one parameter has one value"]),
        ("a = \"e99\"", &["e99"]),
        ("like = \"hoper\"", &["line 1", "did you mean hopper"]),
        ("out = \"int32@rtz\"", &["line 1", "int32b-30@rtz"]),
        ("l = ", &["line 1", "l is nothing"]),
        ("[unit]", &["KEY = VALUE"]),
        ("b = \"e4m3fn\"", &["b or result without a"]),
        (&"# long\n".repeat(10_000), &["64 KiB"]),
    ] {
        let path = write("wrong.toml", text);
        for (code, _, err) in [judge(&path), explain(&path, &[])] {
            assert!(code == 2 && parts.iter().all(|part| err.contains(part)), "{text}: {err}");
            assert!(err.contains("wrong.toml"), "{err}");
        }
    }
    assert!(judge("nowhere.toml").2.contains("cannot open nowhere.toml"));
}

/// A unit whose steps round stochastically, in a file: 1.125 and then 0.5 more, of which the first of two
/// words decides; shown, recorded as tiles, judged, filled in and damaged.
#[test]
fn a_unit_rounds_by_random_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let own = path("unit.toml");
    fs::write(&own, "l = 1\nout = \"e5m2@sr4\"\na = \"e5m2\"\n").unwrap();
    let dot = [&own, "-a", "1,0.5", "-b", "1,1", "-c", "0.125"];
    for (words, steps, result) in [
        ("0x80000000,0", "random word 0x80000000: 8 of 16\nround sr4 to e5m2: 0x3d = 1.25\n", 1.75),
        (
            "2147483647 0XFFFFFFFF",
            "random word 0x7fffffff: 7 of 16\nround sr4 to e5m2: 0x3c = 1\n",
            1.5,
        ),
    ] {
        let (code, out, err) = explain(&[&dot[..], &["--words", words]].concat());
        assert_eq!((code, err.as_str()), (0, ""));
        assert!(out.contains(steps), "no {steps:?} in\n{out}");
        assert!(out.ends_with(&format!(" = {result}\n")), "{out}");
    }
    let (code, _, err) = explain(&dot);
    assert!(code == 2 && err.contains("needs 2 random words for 2 elements"), "{err}");

    let shape = ["vectors", "--tiles", &own, "--shape", "2,3,6", "--count", "12"];
    let made = |arguments: &[&str], name: &str| {
        let output = crate::exmy(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        fs::write(path(name), &output.stdout).unwrap();
        output.stdout
    };
    let tiles = made(&shape, "whole.tiles");
    let judge =
        |name: &str, model: &str| with_input(&["verify-tiles", &path(name), "--model", model], b"");
    let (code, out, err) = judge("whole.tiles", &own);
    assert!(code == 0 && out.ends_with(": 72 elements, 0 mismatches\n"), "{out}{err}");
    assert_eq!(judge("whole.tiles", "custom,l=1,out=e5m2@sr3").0, 1);
    // Two steps of three in place of six of one: another number of words.
    let (code, _, err) = judge("whole.tiles", "custom,l=3,out=e5m2@sr4");
    assert!(code == 2 && err.contains("needs 2 random words for a result of 6 elements"), "{err}");
    assert!(err.contains("6 random words a result"), "{err}");

    let mut wrong = tiles.clone();
    let last = wrong.len() - 2;
    wrong[last] ^= 0x80;
    fs::write(path("wrong.tiles"), &wrong).unwrap();
    let (code, out, _) = judge("wrong.tiles", &own);
    assert!(code == 1 && out.contains(": 72 elements, 1 mismatches\n"), "{out}");
    assert!(out.contains("tile 11 ") && out.contains("row 1, column 2\n"), "{out}");
    assert!(out.contains("random word 0x"), "{out}");
    let filled = ["fill-tiles", &path("wrong.tiles"), &path("filled.tiles"), "--model", &own];
    assert_eq!(with_input(&filled, b"").0, 0);
    assert!(fs::read(path("filled.tiles")).unwrap() == tiles);

    // The operands are those of the unit without words.
    let plain = path("plain.toml");
    fs::write(&plain, "l = 1\nout = \"e5m2@rne\"\na = \"e5m2\"\n").unwrap();
    let plain = made(&["vectors", "--tiles", &plain, "--shape", "2,3,6", "--count", "5"], "plain");
    let start = 80 + 16;
    assert_eq!(plain[start..start + 5 * 12], tiles[start..start + 5 * 12]);
    assert_eq!((plain[32], tiles[32]), (0, 6));
}
