//! Files written here are read by the reference implementation, and the other way round; and one
//! file byte by byte.

use crate::{f32_bytes, numbers, places, power, write};
use exmy::safetensors::{Dtype, Outline, Reader, Survey, Writer};
use safetensors::tensor::{Dtype as Theirs, SafeTensors, TensorView};
use std::collections::{BTreeMap, HashMap};
use std::io::Cursor;

/// All types, each with eight elements: whole bytes for every width.
fn every_type() -> Vec<(&'static str, Dtype, Theirs, Vec<u8>)> {
    let theirs = [
        Theirs::BOOL,
        Theirs::F4,
        Theirs::F6_E2M3,
        Theirs::F6_E3M2,
        Theirs::U8,
        Theirs::I8,
        Theirs::F8_E5M2,
        Theirs::F8_E4M3,
        Theirs::F8_E8M0,
        Theirs::F8_E4M3FNUZ,
        Theirs::F8_E5M2FNUZ,
        Theirs::I16,
        Theirs::U16,
        Theirs::F16,
        Theirs::BF16,
        Theirs::I32,
        Theirs::U32,
        Theirs::F32,
        Theirs::C64,
        Theirs::F64,
        Theirs::I64,
        Theirs::U64,
    ];
    let pairs = Dtype::ALL.into_iter().zip(theirs);
    pairs
        .map(|(ours, theirs)| {
            assert_eq!(ours.to_string(), theirs.to_string());
            assert_eq!(ours.bits() as usize, theirs.bitsize());
            let bytes = (0..ours.bits() as u8).map(|i| i.wrapping_mul(37) ^ ours.bits() as u8);
            (ours.name(), ours, theirs, bytes.collect())
        })
        .collect()
}

#[test]
fn the_reference_reads_what_is_written() {
    let (_folder, path, _) = places();
    let tensors = every_type();
    let outlines: Vec<Outline> =
        tensors.iter().map(|(name, dtype, ..)| Outline::new(*name, *dtype, [2, 4])).collect();
    let metadata = [("format", "pt"), ("\"q\"\n", "\u{e9}\\")].map(|(k, v)| (k.into(), v.into()));
    let metadata = BTreeMap::from(metadata);
    let mut writer = Writer::create(&path, &outlines, metadata.clone()).unwrap();
    // In another order than that of the file.
    for (name, _, _, bytes) in tensors.iter().rev() {
        writer.write(name, bytes).unwrap();
    }
    writer.finish().unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let read = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(read.len(), tensors.len());
    for (name, _, dtype, data) in &tensors {
        let tensor = read.tensor(name).unwrap();
        assert_eq!(
            (tensor.dtype(), tensor.shape(), tensor.data()),
            (*dtype, &[2, 4][..], &data[..])
        );
        // Aligned for the type, as those who map the file expect.
        let at = tensor.data().as_ptr() as usize - bytes.as_ptr() as usize;
        assert!(at.is_multiple_of((dtype.bitsize() / 8).max(1)), "{name} at {at}");
    }
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let theirs: BTreeMap<String, String> = header.metadata().clone().unwrap().into_iter().collect();
    assert_eq!(theirs, metadata);
}

#[test]
fn what_the_reference_writes_is_read() {
    let tensors = every_type();
    let views = tensors
        .iter()
        .map(|(name, _, dtype, bytes)| (*name, TensorView::new(*dtype, vec![8], bytes).unwrap()));
    let metadata = HashMap::from([("a".to_owned(), "b".to_owned())]);
    let bytes = safetensors::serialize(views, Some(metadata)).unwrap();
    let mut reader = Reader::new(Cursor::new(&bytes), "reference").unwrap();
    assert_eq!(reader.header().metadata()["a"], "b");
    for (name, dtype, _, data) in &tensors {
        let entry = reader.header().get(name).unwrap();
        assert_eq!((entry.dtype, &entry.shape[..]), (*dtype, &[8][..]));
        let mut read = vec![0xFF; 3];
        reader.read_into(name, &mut read).unwrap();
        assert_eq!(read, *data, "{name}");
    }
    let error = reader.header().get("F8_E4M2").unwrap_err().to_string();
    assert!(error.contains("did you mean") && error.contains("F8_E4M3"), "{error}");
}

/// The layouts are the same bytes, so files do not differ without a reason.
#[test]
fn the_order_of_tensors_is_that_of_the_reference() {
    let (_folder, path, _) = places();
    let tensors = every_type();
    let ours: Vec<_> = tensors
        .iter()
        .map(|(name, dtype, _, bytes)| (*name, *dtype, &[8][..], bytes.clone()))
        .collect();
    write(&path, &ours);
    let views = tensors
        .iter()
        .map(|(name, _, dtype, bytes)| (*name, TensorView::new(*dtype, vec![8], bytes).unwrap()));
    assert_eq!(std::fs::read(&path).unwrap(), safetensors::serialize(views, None).unwrap());
}

#[test]
fn a_file_by_hand() {
    let (_folder, path, _) = places();
    let tensors = [
        ("w", Dtype::F4, &[2, 2][..], vec![0x21, 0xF3]),
        ("s", Dtype::BF16, &[][..], vec![0x80, 0x3F]),
    ];
    write(&path, &tensors);
    let header = [
        r#"{"s":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},"#,
        r#""w":{"dtype":"F4","shape":[2,2],"data_offsets":[2,4]}}"#,
    ]
    .concat();
    assert_eq!(header.len(), 108);
    let mut expected = vec![112, 0, 0, 0, 0, 0, 0, 0];
    expected.extend(header.bytes());
    expected.extend(b"    ");
    expected.extend([0x80, 0x3F, 0x21, 0xF3]);
    assert_eq!(std::fs::read(&path).unwrap(), expected);
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.read_f32("s").unwrap(), [1.0]);
    // Low nibble first: codes 1, 2, 3, 15 of E2M1.
    assert_eq!(reader.read_f32("w").unwrap(), [0.5, 1.0, 1.5, -6.0]);
}

/// Pieces begin and end between elements of every width; a survey reads them twice.
#[test]
fn tensors_longer_than_a_piece() {
    let (_folder, path, _) = places();
    let count = 600_000;
    let x = numbers(count, 3);
    let codes: Vec<u8> = (0..count / 4 * 3).map(|i| (i * 31 % 251) as u8).collect();
    let shape = [count / 8, 8];
    let tensors = [
        ("x", Dtype::F32, &shape[..], f32_bytes(&x)),
        ("six", Dtype::F6E3M2, &shape[..], codes.clone()),
        ("d", Dtype::F64, &shape[..], x.iter().flat_map(|x| f64::from(*x).to_le_bytes()).collect()),
    ];
    write(&path, &tensors);
    let mut reader = Reader::open(&path).unwrap();
    assert_eq!(reader.read_f32("x").unwrap(), x);
    assert_eq!(reader.read_f32("d").unwrap(), x);
    let six = reader.read_f32("six").unwrap();
    let code = |i: usize| {
        let bits = (0..6).map(|b| codes[(i * 6 + b) / 8] >> ((i * 6 + b) % 8) & 1);
        bits.rev().fold(0, |code, bit| code << 1 | bit)
    };
    let e3m2 = |code: u8| {
        let (exponent, fraction) = (i32::from(code >> 2 & 7), f32::from(code & 3));
        let size = match exponent {
            0 => fraction / 4.0 * 0.25,
            _ => (1.0 + fraction / 4.0) * power(exponent - 3),
        };
        if code & 32 != 0 { -size } else { size }
    };
    for i in (0..count).step_by(997).chain([131_071, 131_072, count - 1]) {
        assert_eq!(six[i], e3m2(code(i)), "{i}");
    }
    let survey = reader.survey("x").unwrap();
    assert_eq!(survey.count, count as u64);
    let plain: Vec<f64> = x.iter().map(|x| f64::from(*x)).collect();
    let mean = plain.iter().sum::<f64>() / count as f64;
    let squares = || plain.iter().map(|x| (x - mean) * (x - mean));
    let fourth = squares().map(|x| x * x).sum::<f64>() / count as f64;
    let sigma = (squares().sum::<f64>() / count as f64).sqrt();
    assert!((survey.sigma / sigma - 1.0).abs() < 1e-12);
    assert!((survey.kurtosis - (fourth / (sigma * sigma) / (sigma * sigma) - 3.0)).abs() < 1e-6);
    let beyond = plain.iter().filter(|x| (**x - mean).abs() > 6.0 * sigma).count();
    assert_eq!(survey.beyond, beyond as u64);
    let amax = |c: usize| plain.iter().skip(c).step_by(8).fold(0.0_f64, |a, x| a.max(x.abs()));
    let mut channels: Vec<f64> = (0..8).map(amax).collect();
    channels.sort_by(f64::total_cmp);
    let median = (channels[3] + channels[4]) / 2.0;
    let ratio = survey.channel_ratio.unwrap() / (channels[7] / median);
    assert!((ratio - 1.0).abs() < 1e-15, "{ratio}");
    assert_eq!(survey.amax, channels[7]);
    let d = reader.survey("d").unwrap();
    assert_eq!((d.min, d.max, d.zeros), (survey.min, survey.max, survey.zeros));
    assert_eq!(Survey::of(&x, Some(8)), survey);
}
