//! Matrices in buffers: where they begin, their shape, and how far apart their rows are. Columns are
//! adjacent.

use crate::{Buffer, Element, Error, Result};

/// A row-major matrix in a buffer, to be read.
#[derive(Debug)]
pub struct View<'a, T: Element> {
    pub(crate) buffer: &'a Buffer<T>,
    pub(crate) first: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) stride: usize,
}

impl<T: Element> Clone for View<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Element> Copy for View<'_, T> {}

/// A row-major matrix in a buffer, to be written.
#[derive(Debug)]
pub struct ViewMut<'a, T: Element> {
    pub(crate) buffer: &'a mut Buffer<T>,
    pub(crate) first: usize,
    pub(crate) rows: usize,
    pub(crate) cols: usize,
    pub(crate) stride: usize,
}

/// Whether the buffer has room for a matrix. Indices of rows and columns fit 32 bits.
fn check(len: usize, first: usize, rows: usize, cols: usize, stride: usize) -> Result<()> {
    let end = match (rows, cols) {
        (0, _) | (_, 0) => Some(first),
        _ => (rows - 1).checked_mul(stride).and_then(|x| x.checked_add(cols)?.checked_add(first)),
    };
    let fits = end.is_some_and(|end| end <= len) && (rows <= 1 || stride >= cols);
    let most = u32::MAX as usize - 128;
    if fits && rows <= most && cols <= most {
        return Ok(());
    }
    let why = format!(
        "{rows} rows of {cols} columns, {stride} apart from element {first} on, in a buffer of {len}"
    );
    Err(Error::unfit("view", why))
}

impl<'a, T: Element> View<'a, T> {
    /// The first `rows * cols` elements of a buffer.
    ///
    /// # Errors
    /// If the buffer has fewer.
    pub fn new(buffer: &'a Buffer<T>, rows: usize, cols: usize) -> Result<Self> {
        Self::with_stride(buffer, 0, rows, cols, cols)
    }

    /// A matrix that begins at element `first`, its rows `stride` elements apart.
    ///
    /// # Errors
    /// If it does not lie in the buffer, or rows overlap.
    pub fn with_stride(
        buffer: &'a Buffer<T>,
        first: usize,
        rows: usize,
        cols: usize,
        stride: usize,
    ) -> Result<Self> {
        check(buffer.len(), first, rows, cols, stride)?;
        Ok(Self { buffer, first, rows, cols, stride })
    }

    /// Rows and columns.
    pub const fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.rows == 0 || self.cols == 0
    }

    /// Whether rows follow each other without a gap.
    pub(crate) const fn is_dense(&self) -> bool {
        self.stride == self.cols || self.rows <= 1
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// As [`View::new`].
    ///
    /// # Errors
    /// As there.
    pub fn new(buffer: &'a mut Buffer<T>, rows: usize, cols: usize) -> Result<Self> {
        Self::with_stride(buffer, 0, rows, cols, cols)
    }

    /// As [`View::with_stride`].
    ///
    /// # Errors
    /// As there.
    pub fn with_stride(
        buffer: &'a mut Buffer<T>,
        first: usize,
        rows: usize,
        cols: usize,
        stride: usize,
    ) -> Result<Self> {
        check(buffer.len(), first, rows, cols, stride)?;
        Ok(Self { buffer, first, rows, cols, stride })
    }

    /// Rows and columns.
    pub const fn shape(&self) -> (usize, usize) {
        (self.rows, self.cols)
    }
}
