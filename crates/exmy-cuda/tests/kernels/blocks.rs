//! Strides of matrices in block formats, and the scale of a tensor that stays out of its images.

use exmy::block::{Axis, BlockFormat};
use exmy::quantizer::Quantizer;
use exmy::random::{Philox, Stream};
use exmy::{View as HostView, ViewMut as HostViewMut};
use exmy_cuda::{View, ViewMut, factored_image_into, image_into};

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
        let host = HostView::with_strides(&x[first..], 20, 32, stride, 1).unwrap();
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
