//! Factors of products, and products that are refused.

use exmy::gemm::Operand;
use exmy::gemm::fast::{Scaling, multiply_plain};
use exmy::{View as HostView, ViewMut as HostViewMut};
use exmy_cuda::{Device, Emulation, Error, Matrix, Order, Scales, View, ViewMut, multiply};

use super::device;

fn numbers(count: usize, seed: usize) -> Vec<f32> {
    (0..count).map(|i| ((i * 7919 + seed * 31) % 1009) as f32 / 37.0 - 13.0).collect()
}

#[test]
fn factors_are_multiplied_as_written() {
    let Some(device) = device() else { return };
    let (a, b) = (numbers(64, 1), numbers(64, 2));
    let (x, y) = (device.upload(&a).unwrap(), device.upload(&b).unwrap());
    let scales = device.upload(&[0.1_f32, 7.3]).unwrap();
    let mut c = device.zeros::<f32>(16).unwrap();
    let with = Scaling { alpha: 1.1, beta: 0.0 };
    let (p, q) =
        (Matrix::from(View::new(&x, 4, 16).unwrap()), Matrix::from(View::new(&y, 16, 4).unwrap()));
    let both = Scales { left: Some((&scales, 0)), right: Some((&scales, 1)) };
    multiply(Order::Fast, p, q, ViewMut::new(&mut c, 4, 4).unwrap(), with, both).unwrap();
    let mut sums = vec![0.0; 16];
    let (left, right) = (HostView::new(&a, 4, 16), HostView::new(&b, 16, 4));
    let place = HostViewMut::new(&mut sums, 4, 4);
    multiply_plain(&Operand::from(left), &Operand::from(right), place, Scaling::OVERWRITE);
    let factor = 1.1_f32 * 0.1 * 7.3;
    let expected: Vec<f32> = sums.iter().map(|sum| factor * sum).collect();
    assert_eq!(c.to_vec().unwrap(), expected);
}

#[test]
fn what_is_not_there_is_refused() {
    let Some(device) = device() else { return };
    let x = device.zeros::<f32>(16).unwrap();
    let z = device.zeros::<u8>(16).unwrap();
    let mut c = device.zeros::<f32>(16).unwrap();
    let (x, z) =
        (Matrix::from(View::new(&x, 4, 4).unwrap()), Matrix::from(View::new(&z, 4, 4).unwrap()));
    let mut said = |order, a, b, with, rows| {
        let c = ViewMut::new(&mut c, rows, 4).unwrap();
        multiply(order, a, b, c, with, Scales::default()).unwrap_err().to_string()
    };
    let text = said(Order::Fast, x, z, Scaling::OVERWRITE, 4);
    assert_eq!(text, "multiply: Fast of f32 and e4m3 codes is not there");
    let text = said(Order::Fast, x, x, Scaling::OVERWRITE, 3);
    assert_eq!(text, "multiply: (4 x 4) times (4 x 4) into (3, 4) do not fit each other");
    let half = Scaling { alpha: 0.5, beta: 0.0 };
    assert_eq!(
        said(Order::F32, x, x, half, 4),
        "multiply: the order f32 overwrites or adds, without factors"
    );
}

#[test]
fn tensor_cores_are_asked_for_by_name() {
    let older = Emulation { capability: (8, 0), ..Emulation::default() };
    let Some(device) = Device::emulated_with(env!("CARGO_TARGET_TMPDIR"), older) else { return };
    let device = device.unwrap();
    let x = device.zeros::<exmy::minifloat::Bf16>(16).unwrap();
    let x = Matrix::from(View::new(&x, 4, 4).unwrap());
    let mut c = device.zeros::<f32>(16).unwrap();
    let place = ViewMut::new(&mut c, 4, 4).unwrap();
    let error = multiply(Order::HopperBf16, x, x, place, Scaling::OVERWRITE, Scales::default());
    let error = error.unwrap_err();
    assert!(matches!(error, Error::Architecture { .. }), "{error}");
    assert!(error.to_string().contains("the order fast runs everywhere"), "{error}");
}
