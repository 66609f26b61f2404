//! Files that are broken: each is answered with what is wrong, none with a panic or with memory by
//! the gigabyte.

use exmy::safetensors::{Dtype, Header, Outline, Reader, Writer};
use proptest::prelude::*;
use std::io::Cursor;

fn file(header: &str, data: usize) -> Vec<u8> {
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.bytes());
    bytes.resize(bytes.len() + data, 7);
    bytes
}

fn fault(bytes: &[u8]) -> String {
    let error = Reader::new(Cursor::new(bytes), "b.safetensors").unwrap_err().to_string();
    assert!(error.contains("b.safetensors"), "{error}");
    error
}

#[test]
fn each_mistake_is_named() {
    let whole = r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}"#;
    assert!(Reader::new(Cursor::new(file(whole, 8)), "b").is_ok());
    assert!(Reader::new(Cursor::new(file("{}", 0)), "b").is_ok());
    let cases: &[(&str, usize, &[&str])] = &[
        (whole, 7, &["tensor \"a\"", "byte 8", "7 bytes", "cut off"]),
        (whole, 9, &["describes 8 bytes", "9"]),
        ("", 0, &["does not begin"]),
        ("[]", 0, &["does not begin"]),
        (" {}", 0, &["does not begin"]),
        ("{} x", 0, &["no list of tensors"]),
        ("{\"a\":1}", 0, &["tensor \"a\"", "an object with dtype, shape and data_offsets"]),
        (r#"{"a":{"dtype":"F32","shape":[2]}}"#, 0, &["tensor \"a\"", "data_offsets"]),
        (r#"{"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}"#, 8, &["\"a\"", "-2"]),
        (r#"{"a":{"dtype":"F32","shape":[2.5],"data_offsets":[0,8]}}"#, 8, &["\"a\"", "2.5"]),
        (r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}}"#, 8, &["\"a\"", "length 2"]),
        (r#"{"a":{"dtype":"F33","shape":[2],"data_offsets":[0,8]}}"#, 8, &["\"a\"", "F33", "F32"]),
        (r#"{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#, 8, &["\"a\"", "12", "8"]),
        (r#"{"a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}}"#, 2, &["\"a\"", "12 bits"]),
        (r#"{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}"#, 8, &["\"a\"", "before"]),
        (r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}"#, 8, &["a gap", "byte 4"]),
        (
            r#"{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}"#,
            8,
            &["\"a\"", "more elements"],
        ),
        (
            r#"{"a":{"dtype":"F32","shape":[0,4294967296,4294967296],"data_offsets":[0,0]}}"#,
            0,
            &["\"a\"", "more elements"],
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[0,18446744073709551616],"data_offsets":[0,0]}}"#,
            0,
            &["\"a\""],
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
                "b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}"#,
            3,
            &["an overlap", "\"b\"", "byte 2"],
        ),
        (
            r#"{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}"#,
            2,
            &["\"a\"", "twice"],
        ),
        (r#"{"__metadata__":{"k":1}}"#, 0, &["no list of tensors"]),
        (r#"{"__metadata__":{"k":"1","k":"2"}}"#, 0, &["\"k\"", "twice"]),
        (r#"{"__metadata__":{},"__metadata__":{}}"#, 0, &["__metadata__", "twice"]),
    ];
    for (header, data, parts) in cases {
        let error = fault(&file(header, *data));
        for part in *parts {
            assert!(error.contains(part), "no {part:?} in {error}");
        }
    }
}

#[test]
fn lengths_that_lie() {
    for length in [0, 1, 7] {
        assert!(fault(&vec![0; length]).contains("shortest"));
    }
    assert!(fault(&[0; 8]).contains("does not begin"));
    let mut bytes = file("{}", 0);
    for length in [3, 1 << 20, u64::MAX, u64::MAX - 7, 1 << 63] {
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        assert!(fault(&bytes).contains(&format!("{length} bytes")), "{length}");
    }
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    assert!(fault(&file(&deep, 0)).contains("\"a\""));
    let long = format!("{{\"{}\":0}}", "n".repeat(1 << 20));
    assert!(fault(&file(&long, 0)).len() < 1000);
    let axes = "1,".repeat(200_000);
    let axes = format!(r#"{{"a":{{"dtype":"F32","shape":[{axes}1],"data_offsets":[0,8]}}}}"#);
    let error = fault(&file(&axes, 8));
    assert!(error.len() < 1000 && error.contains("1, ...] (200001 axes)"), "{error:.1000}");
    assert!(!fault(&file("{\"\\u001b[2J\":0}", 0)).contains('\u{1b}'));
}

/// More than the format allows, in a file without blocks on the disk.
#[test]
fn a_header_beyond_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long");
    let mut bytes = 100_000_001_u64.to_le_bytes().to_vec();
    bytes.push(b'{');
    std::fs::write(&path, bytes).unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_len(100_000_100).unwrap();
    let error = Reader::open(&path).unwrap_err().to_string();
    assert!(error.contains("allows 100000000"), "{error}");
    let error = Reader::open(folder.path()).unwrap_err().to_string();
    assert!(error.contains("is a folder"), "{error}");
    let error = Reader::open(folder.path().join("absent")).unwrap_err().to_string();
    assert!(error.contains("cannot read") && error.contains("absent"), "{error}");
}

#[test]
fn outlines_that_cannot_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let refused = |tensors: &[Outline], part: &str| {
        let error = Writer::create(&path, tensors, Default::default()).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("out"), "{error}");
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    };
    let outline = |name: &str| Outline::new(name, Dtype::U8, [1]);
    refused(&[outline("a"), outline("b"), outline("a")], "two tensors would be called \"a\"");
    refused(&[outline("__metadata__")], "cannot be called");
    refused(&[Outline::new("a", Dtype::F6E2M3, [3, 1])], "18 bits");
    refused(&[Outline::new("a", Dtype::F6E2M3, [usize::MAX, 3])], "more elements");
    let mut writer = Writer::create(&path, &[outline("a")], Default::default()).unwrap();
    assert!(writer.write("b", &[]).unwrap_err().to_string().contains("no tensor \"b\""));
    assert!(writer.write("a", &[1, 2]).unwrap_err().to_string().contains("has 1 bytes"));
    assert!(writer.finish().unwrap_err().to_string().contains("0 of the 1 bytes"));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

/// Metadata that claims quantized tensors which are not there, or not so.
#[test]
fn descriptions_that_do_not_fit() {
    let tensors = r#""w":{"dtype":"F4","shape":[2,32],"data_offsets":[0,32]},
        "w_scale":{"dtype":"F8_E8M0","shape":[2,1],"data_offsets":[32,34]}"#;
    let with = |records: &str| {
        let text = serde_json::Value::from(records).to_string();
        file(&format!("{{\"__metadata__\":{{\"exmy.tensors\":{text}}},{tensors}}}"), 34)
    };
    let read = |records: &str| {
        let mut reader = Reader::new(Cursor::new(with(records)), "b").unwrap();
        reader.read_values("w").map_err(|error| error.to_string())
    };
    let record =
        r#"{"w":{"format":"mxfp4","axis":1,"shape":[2,32],"dtype":"F32","layout":"safetensors"}}"#;
    assert_eq!(read(record).unwrap().len(), 64);
    let cases = [
        ("", "", "cannot read exmy.tensors", true),
        ("mxfp4", "mxfp5", "mxfp5", false),
        ("mxfp4", "nvfp4", "w_scale", false),
        ("mxfp4", "e4m3fn", "must be F8_E4M3", false),
        // Of a tensor that is not there.
        ("\"w\"", "\"v\"", "\"v\" must be F4 of shape [2, 32], found none", false),
        // Of a tensor that is a part of another.
        (
            "}}",
            r#"},"w_scale":{"format":"e8m0","axis":1,"shape":[2,1],"dtype":"F32","layout":"safetensors"}}"#,
            "\"w_scale\" belongs to \"w\"",
            false,
        ),
        ("\"axis\":1", "\"axis\":2", "2 of 2 axes", false),
        ("\"axis\":1", "\"axis\":0", "w_scale", false),
        ("[2,32]", "[2,64]", "must be F4 of shape [2, 64]", false),
        ("[2,32]", "[0,32]", "must be F4", false),
        ("[2,32]", "[2]", "of 1 axes", false),
        ("[2,32]", "[4294967296,4294967296]", "too many", false),
        ("[2,32]", "[0,18446744073709551615]", "too many", false),
        ("F32", "F31", "F31", false),
        // Nothing but floating-point numbers of 16 bits or more is quantized.
        ("F32", "I64", "only F16, BF16, F32 and F64", false),
        ("F32", "F8_E4M3", "only F16, BF16, F32 and F64", false),
        ("mxfp4", "f32", "at most 16 bits", false),
        ("mxfp4", "e5m6/32:e8m0", "12 bits wide", false),
        ("mxfp4", "none", "format", false),
        (
            "\"format\":\"mxfp4\"",
            "\"format\":\"nvfp4\",\"quantizer\":\"mxfp4\"",
            "not that of",
            false,
        ),
        ("[2,32]", "[2,33]", "must be F4 of shape [2, 33]", false),
        ("[2,32]", "[1,33]", "132 bits", false),
        ("safetensors", "safetensor", "did you mean safetensors", false),
        ("safetensors", "gpt-oss", "w_blocks", false),
        ("safetensors", "ggml", "must be U8", false),
    ];
    for (from, to, part, all) in cases {
        let text = if all { "{".to_owned() } else { record.replace(from, to) };
        let error = read(&text).unwrap_err();
        assert!(error.contains(part), "{to}: {error}");
        // What would work is nothing that an option says.
        assert!(error.contains("make the file again from the one that was quantized"), "{error}");
        assert!(!error.contains("--"), "{to}: {error}");
    }
    // Without the description a tensor is as it is stored.
    let plain = file(&format!("{{{tensors}}}"), 34);
    let mut reader = Reader::new(Cursor::new(plain), "b").unwrap();
    assert_eq!(reader.read_values("w").unwrap().len(), 64);
}

/// A valid file with everything: several types, metadata, quantized tensors.
fn valid() -> Vec<u8> {
    let record =
        r#"{"w":{"format":"mxfp4","axis":1,"shape":[2,32],"dtype":"F32","layout":"safetensors"}}"#;
    let text = serde_json::Value::from(record).to_string();
    let header = format!(
        r#"{{"__metadata__":{{"exmy.tensors":{text}}},
            "w":{{"dtype":"F4","shape":[2,32],"data_offsets":[0,32]}},
            "w_scale":{{"dtype":"F8_E8M0","shape":[2,1],"data_offsets":[32,34]}},
            "b":{{"dtype":"BF16","shape":[3],"data_offsets":[34,40]}}}}"#
    );
    file(&header, 40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    /// Whatever bytes change, what opens can be read to the end, and nothing panics.
    #[test]
    fn mutations_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        digits in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..10), 0..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
        more in 0_usize..3,
    ) {
        let mut bytes = valid();
        let places: Vec<usize> =
            (8..bytes.len()).filter(|&i| bytes[i].is_ascii_digit()).collect();
        for (at, digit) in digits {
            bytes[places[at.index(places.len())]] = b'0' + digit;
        }
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.resize(bytes.len() + more, 0);
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(mut reader) = Reader::new(Cursor::new(bytes), "b") {
            let names: Vec<String> =
                reader.header().entries().iter().map(|entry| entry.name.clone()).collect();
            for name in names.iter().map(String::as_str).chain(["w", "absent"]) {
                let _ = reader.read_values(name);
                let _ = reader.read_blocks(name);
                let _ = reader.survey(name);
                let mut bytes = Vec::new();
                let _ = reader.read_into(name, &mut bytes);
            }
        }
    }
}

/// The text `e4m3` of a file is an earlier version's, and means the IEEE-like format; OCP's is written
/// `e4m3fn`.
#[test]
fn formats_of_earlier_versions_keep_their_meaning() {
    let record = |format: &str, layout: &str| {
        let sizes = r#"\"axis\":0,\"shape\":[2],\"dtype\":\"F32\""#;
        format!(r#"{{\"format\":\"{format}\",{sizes},\"layout\":\"{layout}\"}}"#)
    };
    let [a, b] = [record("e4m3", "byte"), record("e4m3fn", "safetensors")];
    let text = format!(
        r#"{{"__metadata__":{{"exmy.format":"e4m3, e4m3fn","exmy.tensors":"{{\"a\":{a},\"b\":{b}}}"}},
            "a":{{"dtype":"U8","shape":[2],"data_offsets":[0,2]}},
            "b":{{"dtype":"F8_E4M3","shape":[2],"data_offsets":[2,4]}}}}"#
    );
    let records = Header::parse(text.as_bytes(), 4).unwrap().records().unwrap();
    let names = ["a", "b"].map(|name| records[name].target().to_string());
    assert_eq!(names, ["e4m3-ieee", "e4m3"]);
}
