//! The memory of the device: where numbers lie, how they come and go, and what has gone wrong.

use std::borrow::Cow;

use exmy::error::Result;
use exmy_train::nn::device::{Buffer, Matrix, MatrixMut, Slice, Storage};

use super::memory::{Memory, Parts, Scalar, Tokens};
use super::{Cuda, locked};

impl Storage for Cuda {
    type Real = f32;
    type Memory = Memory;
    type Owned = Memory;
    type Tokens = Tokens;
    type Scalar = Scalar;

    fn name(&self) -> Option<String> {
        let properties = self.device().properties();
        Some(format!("cuda:{} {}", properties.index, properties.name))
    }

    fn grow(&self, buffer: &mut Buffer<Self>, len: usize) {
        if len > buffer.len() {
            // The old memory goes first, so that both need not fit.
            *buffer = Buffer::default();
            *buffer = Buffer::of(Memory { buffer: self.attempt(|| self.device().zeros(len)) }, len);
        }
    }

    fn buffer(&self, numbers: Vec<f32>) -> Buffer<Self> {
        Buffer::of(
            Memory { buffer: self.attempt(|| self.device().upload(&numbers)) },
            numbers.len(),
        )
    }

    fn read<'a>(&self, from: Slice<'a, Self>) -> Cow<'a, [f32]> {
        let mut numbers = vec![0.0; from.len()];
        if let Some(buffer) = &from.memory().buffer {
            self.attempt(|| buffer.read_part(from.start(), &mut numbers));
        }
        numbers.into()
    }

    fn set_tokens(&self, tokens: &[u32], to: &mut Tokens) {
        let words = to.arrange(tokens);
        self.attempt(|| to.upload(self.device(), &words));
    }

    fn value(&self, scalar: &Scalar) -> f64 {
        let mut number = [0.0];
        if let Some(scalar) = &scalar.0 {
            self.attempt(|| scalar.read(&mut number));
        }
        number[0]
    }

    fn check(&self) -> Result<()> {
        self.attempt(|| self.device().synchronize());
        match &*locked(&self.shared.failure) {
            Some(error) => Err(error.clone().into()),
            None => Ok(()),
        }
    }

    fn fits_in_memory(&self, elements: usize) -> bool {
        let (free, total) =
            (self.attempt(|| self.device().free_memory()), self.device().properties().memory);
        free.is_some_and(|free| free.saturating_sub(4 * elements) >= total / 4 * 3)
    }

    fn fill(&self, x: MatrixMut<'_, Self>, value: f32) {
        let (rows, cols, stride) = (x.rows(), x.cols(), x.stride());
        let mut data = x.into_data();
        if cols == stride || rows == 1 {
            return self.set_all(data.part(0..rows * cols), value);
        }
        self.rows("fill_rows", rows, |launch| {
            let launch = launch.slice(data.read()).value(rows as u64).value(cols as u32);
            launch.value(stride as u64).value(value)
        });
    }

    fn copy(&self, from: Matrix<'_, Self>, to: MatrixMut<'_, Self>) {
        let (rows, cols) = (from.rows(), from.cols());
        assert_eq!((rows, cols), (to.rows(), to.cols()), "copies have the shape of the original");
        if rows == 1 || cols == from.stride() && cols == to.stride() {
            let to = to.into_data();
            return self
                .each("copy", rows * cols, |launch| launch.slice(from.data()).slice(to.read()));
        }
        let stride = to.stride() as u64;
        let to = to.into_data();
        self.rows("copy_rows", rows, |launch| {
            let launch = launch.matrix(from).slice(to.read()).value(rows as u64);
            launch.value(cols as u32).value(stride)
        });
    }
}
