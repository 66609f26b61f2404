//! `exmy inspect`: figures worked out by hand, for plain and for quantized files.

use crate::{exmy, printed, row, succeed};
use exmy::safetensors::{Dtype, Outline, Writer};
use std::fs;
use std::path::Path;

fn file(path: &Path) {
    let outlines = [
        Outline::new("m", Dtype::F32, [2, 4]),
        Outline::new("n", Dtype::I64, [1]),
        Outline::new("none", Dtype::BF16, [0, 4]),
    ];
    let metadata = [("note".to_owned(), "a\nb".to_owned())].into();
    let mut writer = Writer::create(path, &outlines, metadata).unwrap();
    let m = [1.0_f32, -1.0, 4.0, 0.0, 1.0, -1.0, -4.0, f32::NAN];
    writer.write("m", &m.map(f32::to_le_bytes).concat()).unwrap();
    writer.write("n", &[0; 8]).unwrap();
    writer.finish().unwrap();
}

fn inspect(folder: &Path, arguments: &[&str]) -> String {
    printed(folder, "inspect", arguments)
}

#[test]
fn ranges_and_outliers_by_hand() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    file(&folder.join("in"));
    let text = inspect(folder, &["in"]);
    // Seven finite numbers, mean 0, squares 4 x 1 + 2 x 16 = 36, fourth powers 4 + 512 = 516:
    // 516 / 7 / (36 / 7)^2 - 3 = -0.2130. Channels 1, 1, 4, 0: largest 4, the middle two 1.
    let expected =
        ["m", "F32", "[2,4]", "-4", "4", "4", "12.50", "%", "12.50", "%", "-0.213", "0", "4"];
    assert_eq!(row(&text, "m"), expected);
    assert_eq!(row(&text, "n"), ["n", "I64", "[1]"]);
    assert_eq!(row(&text, "none")[1..6], ["BF16", "[0,4]", "-", "-", "0"]);
    assert_eq!(row(&text, "note:"), ["note:", "a\\nb"]);
    assert!(text.contains("3 tensors, 9 elements, 40 B: 0 B BF16, 32 B F32, 8 B I64"), "{text}");
    let text = inspect(folder, &["in", "--header"]);
    assert_eq!(row(&text, "m"), ["m", "F32", "[2,4]"]);
    assert_eq!(row(&text, "tensor"), ["tensor", "type", "shape"]);
}

#[test]
fn quantized_tensors_are_shown_decoded() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    file(&folder.join("in"));
    for layout in ["safetensors", "byte"] {
        let arguments = ["quantize", "in", "out", "--to", "e2m1/2:ue4m3", "--layout", layout];
        succeed(exmy(&arguments).current_dir(folder));
        let text = inspect(folder, &["out", "--quiet"]);
        // The block of -4 and NaN is NaN; 1 and -1 are 6 x 0.171875, E4M3's nearest to 1/6:
        // 1.03125, a tie that four digits show as even.
        let cells = row(&text, "m");
        assert_eq!(cells[..6], ["m", "e2m1/2:ue4m3", "[2,4]", "-1.0312", "4.125", "4.125"]);
        assert_eq!(cells[8..10], ["25.00", "%"]);
        assert!(!text.contains("m_scale"), "{text}");
        assert_eq!(row(&text, "exmy.format:"), ["exmy.format:", "e2m1/2:ue4m3"]);
    }
}

/// Of an even number of channels the median is the mean of the middle two.
#[test]
fn the_median_channel() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let x = [1.0_f32, 2.0, 4.0, 24.0, -1.0, 0.0, 0.0, 0.0];
    // Channels 1, 2, 4, 24; 4, 24; and 0, 0, 0, 1, 1, 2, 4, 24.
    for (shape, ratio) in [([2, 4], "8"), ([4, 2], "1.7143"), ([1, 8], "24")] {
        let outlines = [Outline::new("m", Dtype::F32, shape)];
        let mut writer = Writer::create(folder.join("in"), &outlines, Default::default()).unwrap();
        writer.write("m", &x.map(f32::to_le_bytes).concat()).unwrap();
        writer.finish().unwrap();
        assert_eq!(row(&inspect(folder, &["in"]), "m").last(), Some(&ratio), "{shape:?}");
    }
}

/// A damaged description is reported with the file and the tensor.
#[test]
fn a_damaged_description_names_the_file_and_the_tensor() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    file(&folder.join("in"));
    succeed(exmy(&["quantize", "in", "out", "--to", "mxfp8-e4m3"]).current_dir(folder));
    let whole = fs::read(folder.join("out")).unwrap();
    for (from, to) in [
        ("\\\"dtype\\\":\\\"F32\\\"", "\\\"dtype\\\":\\\"I32\\\""),
        ("\\\"format\\\":\\\"mxfp8-e4m3\\\"", "\\\"format\\\":\\\"mxfp8-e4m4\\\""),
        ("\\\"axis\\\":1", "\\\"axis\\\":7"),
        ("\\\"shape\\\":[2,4]", "\\\"shape\\\":[2,5]"),
    ] {
        // The same length, so that the rest of the file stays where it is.
        let at = whole.windows(from.len()).position(|part| part == from.as_bytes());
        let at = at.unwrap_or_else(|| panic!("no {from}"));
        let mut broken = whole.clone();
        broken[at..at + to.len()].copy_from_slice(to.as_bytes());
        fs::write(folder.join("broken"), broken).unwrap();
        let output = exmy(&["inspect", "broken"]).current_dir(folder).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{to}: {message}");
        assert!(message.contains("broken: ") && message.contains("\"m\""), "{to}: {message}");
    }
}

#[test]
fn what_is_no_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("short"), "abc").unwrap();
    for (name, part) in [
        ("absent", "cannot read absent"),
        ("short", "3 bytes"),
        (".", "folder"),
        ("-", "is no file"),
        ("a\u{1b}[2J", "a\\u{1b}[2J"),
    ] {
        let output = exmy(&["inspect", name]).current_dir(&folder).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(message.contains(part) && !message.contains("panicked"), "{message}");
    }
}

/// The formatter panics at such widths; the output was there by then.
#[test]
fn names_of_any_length() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let name = "n".repeat(70_000);
    let outlines = [Outline::new(&*name, Dtype::F32, [2, 32])];
    let mut writer = Writer::create(folder.join("in"), &outlines, Default::default()).unwrap();
    writer.write(&name, &1_f32.to_le_bytes().repeat(64)).unwrap();
    writer.finish().unwrap();
    let text = printed(folder, "quantize", &["in", "out", "--to", "mxfp4"]);
    assert!(text.contains("nnn...nnn") && text.lines().all(|line| line.len() < 400), "{text}");
    let text = printed(folder, "inspect", &["out"]);
    assert!(text.contains("nnn...nnn"), "{text}");
}
