//! What a program finds behind an error of files: the fault with its fields, whatever the words.

use crate::quantized::options;
use crate::{convert, f32_bytes, numbers, places, write};
use exmy::error::Error;
use exmy::safetensors::{
    CopyReason, Dtype, Fault, Progress, QuantizeOptions, Reader, Writer, dequantize, quantize,
};
use std::ops::ControlFlow;

fn fault<T>(result: Result<T, Error>) -> Fault {
    let error = result.err().expect("an error");
    Fault::of(&error).cloned().unwrap_or_else(|| panic!("no fault behind {error:?}"))
}

#[test]
fn of_reading() {
    let (folder, input, output) = places();
    let x = f32_bytes(&numbers(96, 1));
    write(&input, &[("w", Dtype::F32, &[3, 32], x.clone())]);
    let mut reader = Reader::open(&input).unwrap();
    let none = Fault::NoTensor { name: "v".into() };
    assert_eq!(fault(reader.read_f32("v")), none);
    assert_eq!(fault(reader.header().get("v")), none);
    assert_eq!(fault(reader.record("w")), Fault::NotQuantized { name: "w".into() });
    let path = folder.path().to_owned();
    assert_eq!(fault(Reader::open(&path)), Fault::Folder { path: path.clone() });
    assert!(matches!(
        fault(Writer::create(&path, &[], Default::default())),
        Fault::NotPlain { .. }
    ));
    let index = path.join("model.safetensors.index.json");
    std::fs::write(&index, "{}").unwrap();
    assert_eq!(fault(Reader::open(&index)), Fault::Index { path: index });
    // A file that is cut off, one whose header is none, and one that claims what it has not.
    let bytes = std::fs::read(&input).unwrap();
    for damaged in [&bytes[..4], &bytes[..bytes.len() - 1], b"\x02\0\0\0\0\0\0\0[]".as_slice()] {
        std::fs::write(&output, damaged).unwrap();
        assert!(matches!(fault(Reader::open(&output)), Fault::Damaged { .. }));
    }
    let claims = r#"{"__metadata__":{"exmy.tensors":"{\"w\":{}}"}}"#;
    let length = (claims.len() as u64).to_le_bytes();
    std::fs::write(&output, [&length, claims.as_bytes()].concat()).unwrap();
    let reader = Reader::open(&output).unwrap();
    assert!(matches!(fault(reader.record("w")), Fault::Damaged { .. }));
    write(&input, &[("n", Dtype::I32, &[1], vec![0; 4]), ("w", Dtype::F32, &[3, 32], x.clone())]);
    let whole = Fault::NotFloat { name: "n".into(), dtype: Dtype::I32 };
    let mut reader = Reader::open(&input).unwrap();
    assert_eq!(fault(reader.read_f32("n")), whole);
    assert_eq!(fault(reader.survey("n")), whole);
    convert(&input, &output, &options("e5m2"));
    let plain = Fault::NoBlocks { name: "w".into(), format: exmy::Format::E5M2.into() };
    assert_eq!(fault(Reader::open(&output).unwrap().read_blocks("w")), plain);
    // What the file system says is no fault.
    let error = Reader::open(path.join("none")).unwrap_err();
    assert_eq!((Fault::of(&error), error.io_kind()), (None, Some(std::io::ErrorKind::NotFound)));
}

#[test]
fn of_quantizing() {
    let (_folder, input, output) = places();
    let x = f32_bytes(&numbers(96, 1));
    let tensors = [("w", Dtype::F32, &[3, 32][..], x.clone()), ("w_scale", Dtype::F32, &[96], x)];
    write(&input, &tensors);
    let go_on = &mut |_: &Progress<'_>| ControlFlow::Continue(());
    let glob = |glob: &str| vec![glob.parse().unwrap()];
    let clash =
        Fault::NameClash { tensor: "w".into(), part: "w_scale".into(), owner: "w_scale".into() };
    assert_eq!(fault(quantize(&input, &output, &options("mxfp4"), go_on)), clash);
    let same = fault(quantize(&input, &input, &options("e4m3"), go_on));
    assert_eq!(same, Fault::OutputIsInput { path: input.clone() });
    let without = QuantizeOptions { exclude: glob("v"), ..options("e4m3") };
    let unmatched = Fault::NoMatch { option: "--exclude", pattern: "v".into() };
    assert_eq!(fault(quantize(&input, &output, &without, go_on)), unmatched);
    let without = QuantizeOptions { exclude: glob("w"), ..options("e4m3") };
    let kept = vec![(CopyReason::FewAxes, 1), (CopyReason::Excluded, 1)];
    assert_eq!(
        fault(quantize(&input, &output, &without, go_on)),
        Fault::NothingToQuantize { kept }
    );
    assert_eq!(fault(dequantize(&input, &output, None, go_on)), Fault::NothingQuantized);
    // Those that do not fit, so that they can be left out.
    let mut misfits = |axis, include| {
        let include = glob(include);
        let options = QuantizeOptions { axis, include, ..options("e4m3") };
        match fault(quantize(&input, &output, &options, go_on)) {
            Fault::Misfit { tensors, .. } => tensors,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(misfits(1, "w*"), ["w_scale"]);
    assert_eq!(misfits(2, "w*"), ["w", "w_scale"]);
    let narrow = QuantizeOptions { exclude: glob("w_scale"), ..options("e3m0") };
    let wide = fault(quantize(&input, &output, &narrow, go_on));
    assert!(matches!(wide, Fault::Misfit { tensors, .. } if tensors == ["w"]));
    write(&input, &tensors[..1]);
    convert(&input, &output, &options("mxfp4"));
    let all = fault(quantize(&output, &input, &options("e4m3"), go_on));
    assert_eq!(all, Fault::NothingToQuantize { kept: vec![(CopyReason::Quantized, 2)] });
}
