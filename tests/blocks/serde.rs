//! Quantized matrices as JSON: every part back as it was, and an error for what is none.

use super::*;
use serde_json::{Value, from_value, json, to_value};

#[test]
fn formats_and_quantizers_are_their_text() {
    for name in ["mxfp4", "nvfp4-16x16", "e2m1/16:ue4m3+tensor@4over6", "e8m5/row:f32"] {
        let format: BlockFormat = name.parse().unwrap();
        assert_eq!(to_value(format).unwrap(), json!(format.to_string()));
        assert_eq!(from_value::<BlockFormat>(json!(name)).unwrap(), format);
    }
    for name in ["nvfp4@sr8", "bf16>mxfp8-e4m3@te", "none"] {
        let quantizer: Quantizer = name.parse().unwrap();
        assert_eq!(to_value(quantizer).unwrap(), json!(quantizer.to_string()));
        assert_eq!(from_value::<Quantizer>(json!(name)).unwrap(), quantizer);
    }
    let error = from_value::<BlockFormat>(json!("mxfp3")).unwrap_err().to_string();
    assert!(error.contains("mxfp"), "{error}");
    assert!(from_value::<Quantizer>(json!(4)).unwrap_err().to_string().contains("a quantizer"));
}

#[test]
fn tensors_come_back() {
    let numbers: Vec<f32> = (0..7 * 45).map(|i| (i as f32 - 100.0) / 7.0).collect();
    for name in ["mxfp4", "mxfp6-e2m3", "mxfp8-e5m2", "nvfp4", "nvfp4-16x16", "e2m1/3x5:f32"] {
        let format: BlockFormat = name.parse().unwrap();
        for (rows, cols) in [(7, 45), (45, 7), (1, 0), (0, 3)] {
            for axis in [Axis::Rows, Axis::Cols] {
                let x = View::new(&numbers[..rows * cols], rows, cols);
                let tensor = BlockTensor::quantize(x, axis, format, Rounding::TiesToEven);
                for tensor in [tensor.t(), tensor] {
                    let back: BlockTensor = from_value(to_value(&tensor).unwrap()).unwrap();
                    assert_eq!(back, tensor, "{name} {rows} x {cols} {axis:?}");
                    let plain = tensor.to_plain();
                    let back: PlainBlocks = from_value(to_value(&plain).unwrap()).unwrap();
                    assert_eq!(back, plain, "{name} {rows} x {cols} {axis:?}");
                }
            }
        }
    }
    let x = View::new(&[0.1_f32, 0.5, -3.0, 1.25], 1, 4);
    let tensor = BlockTensor::quantize(x, Axis::Cols, BlockFormat::MXFP4, Rounding::TiesToEven);
    let text = json!({"format": "mxfp4", "axis": "cols", "shape": [1, 4], "codes": [0x20, 0x4F],
        "scales": [126], "tensor_scale": null});
    assert_eq!(to_value(tensor).unwrap(), text);
}

/// Each entry replaces one of a good tensor, and the message names what is wrong.
#[test]
fn what_is_no_tensor_is_an_error() {
    let packed = json!({"format": "nvfp4", "axis": "rows", "shape": [2, 3], "codes": [1, 2, 3],
        "scales": [1, 2, 3], "tensor_scale": 1.0});
    let plain = json!({"format": "nvfp4", "shape": [2, 3], "block": [2, 1],
        "codes": [1, 2, 3, 4, 5, 6], "scales": [1, 2, 3], "tensor_scale": 1.0});
    from_value::<BlockTensor>(packed.clone()).unwrap();
    let error = from_value::<PlainBlocks>(plain.clone()).unwrap_err().to_string();
    assert!(error.contains("no blocks of 2 x 1"), "{error}");
    let plain = changed(plain, "block", json!([16, 1]));
    from_value::<PlainBlocks>(plain.clone()).unwrap();

    let huge = u64::MAX >> 1;
    let both = [
        ("format", json!("nvfp5"), "nvfp5"),
        ("format", json!("mxfp4"), "scale"),
        ("shape", json!([2, 4]), "needed"),
        ("shape", json!([huge, huge]), ""),
        ("shape", json!([-1, 3]), "-1"),
        ("codes", json!([]), ""),
        ("codes", json!([1, 2, 300_000]), "300000"),
        ("scales", json!([1, 2]), ""),
        ("scales", json!([1, 2, 200]), "0xc8"),
        ("tensor_scale", Value::Null, "none was given"),
        ("tensor_scale", json!(-1.0), "-1"),
        ("tensor_scale", json!(1e300), ""),
        ("extra", json!(0), "unknown field"),
    ];
    for (key, value, part) in both {
        for found in [
            from_value::<BlockTensor>(changed(packed.clone(), key, value.clone())).map(drop),
            from_value::<PlainBlocks>(changed(plain.clone(), key, value.clone())).map(drop),
        ] {
            let error = found.expect_err(&format!("{key}: {value}")).to_string();
            let part = if part == "needed" && error.contains("takes") { "takes" } else { part };
            assert!(error.contains(part), "{key}: {value}: {error}");
        }
    }
    for (key, value) in
        [("block", json!([0, 0])), ("block", json!([1, 16])), ("codes", json!(vec![16; 6]))]
    {
        let found = from_value::<PlainBlocks>(changed(plain.clone(), key, value.clone()));
        // Blocks along the columns are blocks of the format too, but then others.
        assert!(found.is_err(), "{key}: {value}");
    }
    assert!(from_value::<BlockTensor>(changed(packed, "axis", json!("depth"))).is_err());
}

fn changed(mut tensor: Value, key: &str, value: Value) -> Value {
    tensor[key] = value;
    tensor
}

/// What no reader would take is not written.
#[test]
fn a_tensor_scale_that_is_no_number_is_not_written() {
    let x = View::new(&[f32::NAN, 1.0], 1, 2);
    let tensor = BlockTensor::quantize(x, Axis::Cols, BlockFormat::NVFP4, Rounding::TiesToEven);
    assert!(tensor.tensor_scale().is_some_and(f32::is_nan));
    assert!(to_value(&tensor).unwrap_err().to_string().contains("finite"));
    assert!(to_value(tensor.to_plain()).unwrap_err().to_string().contains("finite"));
}
