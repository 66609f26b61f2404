//! Memory of a device, and the parts of it that operations read and write.
//!
//! A [`Buffer`] owns memory, a [`Slice`] or [`SliceMut`] is a range of it, and a [`Matrix`] or
//! [`MatrixMut`] is a range seen as rows. They are the same plain structs for every device: a reference
//! to the memory, where the part begins, and its sizes. Only a device looks inside. On the
//! [`Cpu`] memory is a slice of numbers, so `&[f32]`, `&Vec<f32>` and arrays become a [`Slice`] by
//! `into`, and a [`Buffer`] derefs to its numbers.

use core::borrow::{Borrow, BorrowMut};
use core::fmt;
use core::ops::{Deref, DerefMut, Range};

use super::{Cpu, Storage};
use crate::nn::real::Real;
use exmy::slice::{View, ViewMut};

/// Memory that is owned: parameters, gradients, moments, activations.
pub struct Buffer<D: Storage> {
    memory: D::Owned,
    len: usize,
}

impl<D: Storage> Buffer<D> {
    /// Memory of `len` elements: for devices, which make it.
    pub const fn of(memory: D::Owned, len: usize) -> Self {
        Self { memory, len }
    }

    /// The memory, taken out: for devices, which may put larger one in its place.
    pub fn into_memory(self) -> D::Owned {
        self.memory
    }

    /// Elements.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of it.
    pub fn all(&self) -> Slice<'_, D> {
        self.first(self.len)
    }

    /// All of it, to be written.
    pub fn all_mut(&mut self) -> SliceMut<'_, D> {
        self.first_mut(self.len)
    }

    /// The first `len` elements.
    ///
    /// # Panics
    /// If there are fewer.
    #[track_caller]
    pub fn first(&self, len: usize) -> Slice<'_, D> {
        self.part(0..len)
    }

    /// The first `len` elements, to be written.
    ///
    /// # Panics
    /// If there are fewer.
    #[track_caller]
    pub fn first_mut(&mut self, len: usize) -> SliceMut<'_, D> {
        self.part_mut(0..len)
    }

    /// A range.
    ///
    /// # Panics
    /// If it ends behind the last element.
    #[track_caller]
    pub fn part(&self, range: Range<usize>) -> Slice<'_, D> {
        within(&range, self.len);
        Slice { memory: self.memory.borrow(), start: range.start, len: range.len() }
    }

    /// A range, to be written.
    ///
    /// # Panics
    /// If it ends behind the last element.
    #[track_caller]
    pub fn part_mut(&mut self, range: Range<usize>) -> SliceMut<'_, D> {
        within(&range, self.len);
        SliceMut { memory: self.memory.borrow_mut(), start: range.start, len: range.len() }
    }
}

#[track_caller]
fn within(range: &Range<usize>, len: usize) {
    assert!(range.start <= range.end && range.end <= len, "{range:?} of {len} elements");
}

impl<D: Storage> Default for Buffer<D> {
    fn default() -> Self {
        Self { memory: D::Owned::default(), len: 0 }
    }
}

impl<D: Storage> fmt::Debug for Buffer<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer of {}", self.len)
    }
}

/// A range of memory.
pub struct Slice<'a, D: Storage> {
    memory: &'a D::Memory,
    start: usize,
    len: usize,
}

impl<D: Storage> Clone for Slice<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Storage> Copy for Slice<'_, D> {}

impl<D: Storage> fmt::Debug for Slice<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slice of {}", self.len)
    }
}

impl<'a, D: Storage> Slice<'a, D> {
    /// The memory that it is a range of.
    pub const fn memory(self) -> &'a D::Memory {
        self.memory
    }

    /// Where in the memory it begins.
    pub const fn start(self) -> usize {
        self.start
    }

    /// Elements.
    pub const fn len(self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }

    /// A range of it.
    ///
    /// # Panics
    /// If it ends behind the last element.
    #[track_caller]
    #[must_use]
    pub fn part(self, range: Range<usize>) -> Self {
        within(&range, self.len);
        Self { start: self.start + range.start, len: range.len(), ..self }
    }
}

/// A range of memory that is written.
pub struct SliceMut<'a, D: Storage> {
    memory: &'a mut D::Memory,
    start: usize,
    len: usize,
}

impl<D: Storage> fmt::Debug for SliceMut<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SliceMut of {}", self.len)
    }
}

impl<'a, D: Storage> SliceMut<'a, D> {
    /// The memory that it is a range of.
    pub fn into_memory(self) -> &'a mut D::Memory {
        self.memory
    }

    /// Where in the memory it begins.
    pub const fn start(&self) -> usize {
        self.start
    }

    /// Elements.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The same, to be read.
    pub const fn read(&self) -> Slice<'_, D> {
        Slice { memory: self.memory, start: self.start, len: self.len }
    }

    /// The same for a shorter time.
    pub const fn again(&mut self) -> SliceMut<'_, D> {
        SliceMut { memory: self.memory, start: self.start, len: self.len }
    }

    /// A range of it.
    ///
    /// # Panics
    /// If it ends behind the last element.
    #[track_caller]
    pub fn part(&mut self, range: Range<usize>) -> SliceMut<'_, D> {
        within(&range, self.len);
        SliceMut { memory: self.memory, start: self.start + range.start, len: range.len() }
    }
}

/// A range of memory as rows: element (i, j) is `i * stride + j` behind the first.
#[derive(Debug)]
pub struct Matrix<'a, D: Storage> {
    data: Slice<'a, D>,
    shape: Shape,
}

/// A [`Matrix`] that is written.
#[derive(Debug)]
pub struct MatrixMut<'a, D: Storage> {
    data: SliceMut<'a, D>,
    shape: Shape,
}

#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: usize,
    cols: usize,
    stride: usize,
}

impl Shape {
    #[track_caller]
    fn check(self, len: usize) -> Self {
        let Self { rows, cols, stride } = self;
        let span = if cols == 0 { 0 } else { rows.saturating_sub(1) * stride + cols };
        assert!(
            rows == 0 || (span <= len && (rows == 1 || cols <= stride)),
            "a {rows} x {cols} matrix with rows {stride} apart in {len} elements"
        );
        self
    }

    /// A part of the rows and columns, and where its memory begins and ends.
    #[track_caller]
    fn part(self, rows: Range<usize>, cols: Range<usize>) -> (Self, Range<usize>) {
        within(&rows, self.rows);
        within(&cols, self.cols);
        let part = Self { rows: rows.len(), cols: cols.len(), ..self };
        let start = rows.start * self.stride + cols.start;
        let empty = part.rows == 0 || part.cols == 0;
        let span = if empty { 0 } else { (part.rows - 1) * self.stride + part.cols };
        (part, if empty { 0..0 } else { start..start + span })
    }
}

impl<D: Storage> Clone for Matrix<'_, D> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<D: Storage> Copy for Matrix<'_, D> {}

impl<'a, D: Storage> Matrix<'a, D> {
    /// Rows without gaps.
    ///
    /// # Panics
    /// If there are fewer than `rows * cols` elements.
    #[track_caller]
    pub fn new(data: impl Into<Slice<'a, D>>, rows: usize, cols: usize) -> Self {
        Self::with_stride(data, rows, cols, cols)
    }

    /// Rows that begin `stride` elements apart.
    ///
    /// # Panics
    /// If they do not lie in `data`, or a row is longer than `stride`.
    #[track_caller]
    pub fn with_stride(
        data: impl Into<Slice<'a, D>>,
        rows: usize,
        cols: usize,
        stride: usize,
    ) -> Self {
        let data = data.into();
        Self { data, shape: Shape { rows, cols, stride }.check(data.len()) }
    }

    /// Rows.
    pub const fn rows(self) -> usize {
        self.shape.rows
    }

    /// Columns.
    pub const fn cols(self) -> usize {
        self.shape.cols
    }

    /// Elements from one row to the next.
    pub const fn stride(self) -> usize {
        self.shape.stride
    }

    /// The memory from the first element on.
    pub const fn data(self) -> Slice<'a, D> {
        self.data
    }

    /// Some of the rows.
    ///
    /// # Panics
    /// If there are fewer.
    #[track_caller]
    #[must_use]
    pub fn rows_range(self, rows: Range<usize>) -> Self {
        let (shape, range) = self.shape.part(rows, 0..self.cols());
        Self { data: self.data.part(range), shape }
    }

    /// Some of the columns.
    ///
    /// # Panics
    /// If there are fewer.
    #[track_caller]
    #[must_use]
    pub fn cols_range(self, cols: Range<usize>) -> Self {
        let (shape, range) = self.shape.part(0..self.rows(), cols);
        Self { data: self.data.part(range), shape }
    }
}

impl<'a, D: Storage> MatrixMut<'a, D> {
    /// Rows without gaps.
    ///
    /// # Panics
    /// As [`Matrix::new`].
    #[track_caller]
    pub fn new(data: impl Into<SliceMut<'a, D>>, rows: usize, cols: usize) -> Self {
        Self::with_stride(data, rows, cols, cols)
    }

    /// Rows that begin `stride` elements apart.
    ///
    /// # Panics
    /// As [`Matrix::with_stride`].
    #[track_caller]
    pub fn with_stride(
        data: impl Into<SliceMut<'a, D>>,
        rows: usize,
        cols: usize,
        stride: usize,
    ) -> Self {
        let data = data.into();
        let shape = Shape { rows, cols, stride }.check(data.len());
        Self { data, shape }
    }

    /// Rows.
    pub const fn rows(&self) -> usize {
        self.shape.rows
    }

    /// Columns.
    pub const fn cols(&self) -> usize {
        self.shape.cols
    }

    /// Elements from one row to the next.
    pub const fn stride(&self) -> usize {
        self.shape.stride
    }

    /// The memory from the first element on.
    pub fn into_data(self) -> SliceMut<'a, D> {
        self.data
    }

    /// The same, to be read.
    pub const fn read(&self) -> Matrix<'_, D> {
        Matrix { data: self.data.read(), shape: self.shape }
    }

    /// The same for a shorter time.
    pub const fn again(&mut self) -> MatrixMut<'_, D> {
        MatrixMut { data: self.data.again(), shape: self.shape }
    }

    /// Some of the rows.
    ///
    /// # Panics
    /// If there are fewer.
    #[track_caller]
    pub fn rows_range(&mut self, rows: Range<usize>) -> MatrixMut<'_, D> {
        let (shape, range) = self.shape.part(rows, 0..self.shape.cols);
        MatrixMut { data: self.data.part(range), shape }
    }

    /// Some of the columns.
    ///
    /// # Panics
    /// If there are fewer.
    #[track_caller]
    pub fn cols_range(&mut self, cols: Range<usize>) -> MatrixMut<'_, D> {
        let (shape, range) = self.shape.part(0..self.shape.rows, cols);
        MatrixMut { data: self.data.part(range), shape }
    }
}

impl<'a, D: Storage> From<&'a Buffer<D>> for Slice<'a, D> {
    fn from(buffer: &'a Buffer<D>) -> Self {
        buffer.all()
    }
}

impl<'a, D: Storage> From<&'a mut Buffer<D>> for SliceMut<'a, D> {
    fn from(buffer: &'a mut Buffer<D>) -> Self {
        buffer.all_mut()
    }
}

impl<T: Real> From<Vec<T>> for Buffer<Cpu<T>> {
    fn from(numbers: Vec<T>) -> Self {
        Self { len: numbers.len(), memory: numbers }
    }
}

impl<T: Real> Deref for Buffer<Cpu<T>> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.memory
    }
}

impl<T: Real> DerefMut for Buffer<Cpu<T>> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.memory
    }
}

impl<'a, T: Real> From<&'a [T]> for Slice<'a, Cpu<T>> {
    fn from(numbers: &'a [T]) -> Self {
        Self { memory: numbers, start: 0, len: numbers.len() }
    }
}

impl<'a, T: Real> From<&'a Vec<T>> for Slice<'a, Cpu<T>> {
    fn from(numbers: &'a Vec<T>) -> Self {
        numbers.as_slice().into()
    }
}

impl<'a, T: Real, const N: usize> From<&'a [T; N]> for Slice<'a, Cpu<T>> {
    fn from(numbers: &'a [T; N]) -> Self {
        numbers.as_slice().into()
    }
}

impl<'a, T: Real> From<&'a mut [T]> for SliceMut<'a, Cpu<T>> {
    fn from(numbers: &'a mut [T]) -> Self {
        Self { start: 0, len: numbers.len(), memory: numbers }
    }
}

impl<'a, T: Real> From<&'a mut Vec<T>> for SliceMut<'a, Cpu<T>> {
    fn from(numbers: &'a mut Vec<T>) -> Self {
        numbers.as_mut_slice().into()
    }
}

impl<'a, T: Real, const N: usize> From<&'a mut [T; N]> for SliceMut<'a, Cpu<T>> {
    fn from(numbers: &'a mut [T; N]) -> Self {
        numbers.as_mut_slice().into()
    }
}

impl<'a, T: Real> Slice<'a, Cpu<T>> {
    /// The numbers.
    pub fn numbers(self) -> &'a [T] {
        &self.memory[self.start..][..self.len]
    }
}

impl<'a, T: Real> SliceMut<'a, Cpu<T>> {
    /// The numbers.
    pub fn numbers(self) -> &'a mut [T] {
        &mut self.memory[self.start..][..self.len]
    }
}

impl<'a, T: Real> Matrix<'a, Cpu<T>> {
    /// The numbers.
    ///
    /// # Panics
    /// Never: a matrix lies within its memory.
    pub fn view(self) -> View<'a, T> {
        let Shape { rows, cols, stride } = self.shape;
        View::with_strides(self.data.numbers(), (rows, cols), (stride, 1)).expect("checked before")
    }
}

impl<'a, T: Real> MatrixMut<'a, Cpu<T>> {
    /// The numbers.
    ///
    /// # Panics
    /// Never: a matrix lies within its memory.
    pub fn view(self) -> ViewMut<'a, T> {
        let Shape { rows, cols, stride } = self.shape;
        let numbers = self.data.numbers();
        ViewMut::with_row_stride(numbers, rows, cols, stride).expect("checked before")
    }
}

impl<'a, T: Real> From<View<'a, T>> for Matrix<'a, Cpu<T>> {
    /// # Panics
    /// If columns are not adjacent.
    fn from(view: View<'a, T>) -> Self {
        assert!(
            view.cols() < 2 || view.col_stride() == 1,
            "a matrix as it is stored, not transposed"
        );
        Self::with_stride(view.data(), view.rows(), view.cols(), view.row_stride())
    }
}

impl<'a, T: Real> From<ViewMut<'a, T>> for MatrixMut<'a, Cpu<T>> {
    fn from(view: ViewMut<'a, T>) -> Self {
        let (rows, cols, stride) = (view.rows(), view.cols(), view.row_stride());
        Self::with_stride(view.into_data(), rows, cols, stride)
    }
}
