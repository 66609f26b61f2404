//! Random rotations of rows in the numbers of a device, with the same bits on all of them.

use crate::nn::device::{Buffer, Device, Matrix, MatrixMut, SliceMut};
use crate::nn::hadamard::{Rotation, matrix, part};
use crate::nn::real::Real;
use crate::nn::site::Product;
use exmy::gemm::f32::Output;

/// A rotation of rows in a device's numbers. What [`Rotation`] does in f64 is here, in this order: each
/// number times its sign; of numbers h apart, h the length of a part, then twice that and so on, sum and
/// difference in place of the two; each part times a Hadamard matrix over the root of the row's length, a
/// [product](crate::nn::device::Layers::matmul) of the device. The same bits on all devices.
#[derive(Debug)]
pub struct DeviceRotation<D: Device> {
    signs: Buffer<D>,
    /// (part, part).
    matrix: Buffer<D>,
    part: usize,
}

impl<D: Device> DeviceRotation<D> {
    /// The same as a rotation, but for rounding.
    ///
    /// # Panics
    /// Never: the order of a part is known wherever that of the whole is.
    pub fn new(device: &D, rotation: &Rotation) -> Self {
        let n = rotation.width();
        let part = part(n).expect("a known order");
        let root = libm::sqrt(n as f64);
        let small = matrix(part).expect("a known order").into_iter();
        let numbers = |x: f64| D::Real::from_f64(x);
        Self {
            signs: device.buffer(rotation.signs().iter().copied().map(numbers).collect()),
            matrix: device.buffer(small.map(|x| numbers(f64::from(x) / root)).collect()),
            part,
        }
    }

    /// Rotates rows `x` into `y`; `x` does not keep its numbers.
    ///
    /// # Panics
    /// If they are no whole rows, or differ in length.
    pub fn apply(&self, device: &D, mut x: SliceMut<'_, D>, y: SliceMut<'_, D>) {
        let (parts, part) = (x.len() / self.part, self.part);
        device.butterflies(x.again(), self.signs.all(), part);
        let (x, q) =
            (Matrix::new(x.read(), parts, part), Matrix::new(self.matrix.all(), part, part));
        // The one of the three products that transposes nothing.
        device.matmul(Product::GradInput, x, q, MatrixMut::new(y, parts, part), Output::Overwrite);
    }
}
