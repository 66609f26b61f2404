//! Strides of matrices in block formats, and the scale of a tensor that stays out of its images.

use exmy::block::{Axis, BlockFormat};
use exmy::quantizer::{Quantizer, Target};
use exmy::random::{Philox, Stream};
use exmy::{View as HostView, ViewMut as HostViewMut};
use exmy_cuda::{BlockTensor, View, ViewMut, factored_image_into, image_into, quantize};

use super::device;

fn numbers(count: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 % 1009) as f32 - 504.0) / (1 + i % 37) as f32).collect()
}

#[test]
fn views_have_strides() {
    let Some(device) = device() else { return };
    let x = numbers(40 * 64);
    let quantizer = "mxfp8-e4m3".parse::<Quantizer>().unwrap();
    let input = device.upload(&x).unwrap();
    // Rows 1.. and columns 32..64, into the middle of something larger.
    for (first, stride) in [(96, 64), (97, 64), (96, 50)] {
        let view = View::with_stride(&input, first, 20, 32, stride).unwrap();
        let mut out = device.zeros::<f32>(2000).unwrap();
        let place = ViewMut::with_stride(&mut out, 5, 20, 32, 72).unwrap();
        image_into(&quantizer, view, Axis::Cols, None, place).unwrap();
        let out = out.to_vec().unwrap();
        let mut expected = vec![0.0; 2000];
        let host = HostView::with_strides(&x[first..], (20, 32), (stride, 1)).unwrap();
        let mut dense = vec![0.0; 640];
        quantizer.image_into(host, Axis::Cols, None, HostViewMut::new(&mut dense, 20, 32));
        for i in 0..20 {
            expected[5 + i * 72..][..32].copy_from_slice(&dense[i * 32..][..32]);
        }
        assert_eq!(out, expected, "{first} {stride}");
    }
    assert!(View::with_stride(&input, 2500, 2, 64, 64).is_err());
    assert!(View::with_stride(&input, 0, 2, 64, 63).is_err());
}

#[test]
fn the_tensor_scale_may_stay_out() {
    let Some(device) = device() else { return };
    let x = numbers(16 * 64);
    let quantizer = Quantizer::new(BlockFormat::NVFP4.into());
    let input = device.upload(&x).unwrap();
    let mut out = device.zeros::<f32>(x.len()).unwrap();
    let view = View::new(&input, 16, 64).unwrap();
    let place = ViewMut::new(&mut out, 16, 64).unwrap();
    let factors = factored_image_into(&quantizer, view, Axis::Cols, None, place).unwrap().unwrap();
    let tensor = quantizer.quantize(HostView::new(&x, 16, 64), Axis::Cols, None).unwrap();
    assert_eq!(factors.to_vec().unwrap()[1], tensor.tensor_scale().unwrap());
    let operand = exmy::gemm::Operand::from(&tensor);
    assert_eq!(out.to_vec().unwrap(), exmy::gemm::fast::images_plain(&operand).0);
}

#[test]
fn blocks_are_read_as_on_the_host() {
    let Some(device) = device() else { return };
    // With a scale of the tensor whose products are rounded.
    let x: Vec<f32> = numbers(37 * 40).into_iter().map(|x| x * 1.1).collect();
    let input = device.upload(&x).unwrap();
    let view = View::new(&input, 37, 40).unwrap();
    let wide = |codes: Vec<u8>| codes.into_iter().map(u16::from).collect::<Vec<_>>();
    let random = Philox::new(4, Stream::new("blocks"));
    let blocks = "nvfp4 mxfp4 e3m2/7:f32 e8m3/3x5:e8m0 nvfp4@torchao-0.18 int8/row:bf16";
    let formats = "e4m3 bf16@sr8>e2m1@rtz e8m3@sr8 e5m2@sat-finite bf16";
    for text in blocks.split(' ').chain(formats.split(' ')) {
        let quantizer = text.parse::<Quantizer>().unwrap();
        for axis in [Axis::Cols, Axis::Rows] {
            let host = quantizer.quantize(HostView::new(&x, 37, 40), axis, random).unwrap();
            let made = quantize(&quantizer, view, axis, random).unwrap();
            assert_eq!(made.format(), host.format(), "{text}");
            assert_eq!(made.packed_scales().to_vec().unwrap(), host.packed_scales(), "{text}");
            let parts =
                [host.packed_codes(), host.packed_scales()].map(|x| device.upload(x).unwrap());
            let [codes, scales] = parts;
            let scale = host.tensor_scale();
            let parts =
                BlockTensor::from_parts(host.format(), axis, (37, 40), codes, scales, scale);
            for tensor in [made, parts.unwrap()] {
                assert_eq!(
                    (tensor.block(), tensor.blocks()),
                    (host.block(), host.blocks()),
                    "{text}"
                );
                let codes = match host.format().element.bits() {
                    0..=8 => wide(tensor.codes::<u8>().unwrap().to_vec().unwrap()),
                    _ => tensor.codes::<u16>().unwrap().to_vec().unwrap(),
                };
                assert_eq!(codes, host.codes(), "{text} {axis:?}");
                let mut out = device.zeros::<f32>(x.len()).unwrap();
                tensor.dequantize_into(&mut out).unwrap();
                assert_eq!(out.to_vec().unwrap(), host.dequantize(), "{text} {axis:?}");
                let operand = exmy::gemm::Operand::from(&host);
                tensor.images_into(&mut out).unwrap();
                let images = exmy::gemm::fast::images_plain(&operand).0;
                assert_eq!(out.to_vec().unwrap(), images, "{text} {axis:?}");
                for other in [Axis::Cols, Axis::Rows] {
                    assert_eq!(tensor.sums_along(other), operand.sums_along(other), "{text}");
                }
            }
        }
    }
}

#[test]
fn a_tensor_of_nothing_has_the_scale_of_the_host() {
    let Some(device) = device() else { return };
    let input = device.upload::<f32>(&[]).unwrap();
    for text in ["nvfp4", "nvfp4@torchao-0.18", "mxfp4", "e4m3"] {
        let quantizer = text.parse::<Quantizer>().unwrap();
        for (rows, cols) in [(0, 32), (3, 0)] {
            let view = View::new(&input, rows, cols).unwrap();
            let made = quantize(&quantizer, view, Axis::Cols, None).unwrap();
            let host = HostView::new(&[], rows, cols);
            let host = quantizer.quantize(host, Axis::Cols, None).unwrap();
            assert_eq!(made.tensor_scale().unwrap(), host.tensor_scale(), "{text}");
            assert_eq!((made.blocks(), made.packed_scales().len()), (host.blocks(), 0), "{text}");
        }
    }
}

#[test]
fn parts_that_are_no_tensor_are_refused() {
    let Some(device) = device() else { return };
    let parts = |codes: usize, scales: usize, scale: Option<f32>, text: &str| {
        let Target::Block(format) = text.parse::<Quantizer>().unwrap().target else { panic!() };
        let [codes, scales] = [codes, scales].map(|size| device.zeros(size).unwrap());
        let made = BlockTensor::from_parts(format, Axis::Cols, (2, 32), codes, scales, scale);
        made.map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(parts(32, 2, None, "mxfp4"), Ok(()));
    assert_eq!(parts(32, 4, Some(1.0), "nvfp4"), Ok(()));
    for (codes, scales, scale, text, said) in [
        (31, 2, None, "mxfp4", "32 bytes of codes and 2 of scales, not 31 and 2"),
        (32, 3, None, "mxfp4", "not 32 and 3"),
        (32, 2, Some(1.0), "mxfp4", "no scale of the tensor"),
        (32, 4, None, "nvfp4", "a finite scale of the tensor"),
        (32, 4, Some(f32::NAN), "nvfp4", "Some(NaN)"),
        (32, 4, Some(-1.0), "nvfp4", "not negative"),
    ] {
        let found = parts(codes, scales, scale, text).unwrap_err();
        assert!(found.contains(said), "{found}");
    }
}

/// Numbers of like magnitude, so that the errors of both scales are close and decide.
#[test]
fn the_better_of_two_scales_is_taken() {
    let Some(device) = device() else { return };
    let random = Philox::new(3, Stream::new("four"));
    let x: Vec<f32> =
        (0..64 * 68).map(|i| f32::from_bits(random.word(i) & 0x80FF_FFFF | 0x3F00_0000)).collect();
    let input = device.upload(&x).unwrap();
    for text in ["nvfp4@4over6", "nvfp4@4over6-mse", "nvfp4-16x16@4over6", "nvfp4-16x16@4over6-mse"]
    {
        let quantizer = text.parse::<Quantizer>().unwrap();
        for axis in [Axis::Cols, Axis::Rows] {
            // The last block of a line is whole, or has four numbers.
            for (rows, cols) in [(64, 64), (64, 68), (68, 64)] {
                let view = View::new(&input, rows, cols).unwrap();
                let mut out = device.zeros::<f32>(rows * cols).unwrap();
                let place = ViewMut::new(&mut out, rows, cols).unwrap();
                image_into(&quantizer, view, axis, None, place).unwrap();
                let mut expected = vec![0.0; rows * cols];
                let host = HostView::new(&x[..rows * cols], rows, cols);
                quantizer.image_into(host, axis, None, HostViewMut::new(&mut expected, rows, cols));
                assert!(out.to_vec().unwrap() == expected, "{text}, {rows} x {cols} {axis:?}");
            }
        }
    }
}
