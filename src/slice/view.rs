//! Matrices as borrowed slices with two strides.
//!
//! A view is (rows, columns, row stride, column stride) over a slice whose first element is
//! (0, 0). Transposing swaps the numbers and moves nothing. Construction checks that every element
//! lies inside the slice, so reading through a view cannot go out of bounds later.

use core::fmt;
use core::ops::Range;

/// Why a view was refused: which shape was asked for and how many elements there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShapeError {
    /// Rows asked for.
    pub rows: usize,
    /// Columns asked for.
    pub cols: usize,
    /// Elements between (i, j) and (i + 1, j).
    pub row_stride: usize,
    /// Elements between (i, j) and (i, j + 1).
    pub col_stride: usize,
    /// Elements of the slice.
    pub len: usize,
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rows, cols, row_stride, col_stride, len } = self;
        write!(
            f,
            "a {rows} x {cols} matrix with row stride {row_stride} and column stride {col_stride} \
             does not fit a slice of {len} elements"
        )
    }
}

impl core::error::Error for ShapeError {}

/// Row count, column count and the distance between neighbours along each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Strides {
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl Strides {
    const fn row_major(rows: usize, cols: usize) -> Self {
        Self { rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// One past the largest index, or `None` when it does not fit a `usize`.
    fn span(&self) -> Option<usize> {
        if self.rows == 0 || self.cols == 0 {
            return Some(0);
        }
        let down = (self.rows - 1).checked_mul(self.row_stride)?;
        let right = (self.cols - 1).checked_mul(self.col_stride)?;
        down.checked_add(right)?.checked_add(1)
    }

    fn check(self, len: usize) -> Result<Self, ShapeError> {
        match self.span() {
            Some(span) if span <= len => Ok(self),
            _ => {
                let Self { rows, cols, row_stride, col_stride } = self;
                Err(ShapeError { rows, cols, row_stride, col_stride, len })
            }
        }
    }

    const fn transposed(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
        }
    }
}

/// How many elements a matrix has, unless eight bytes for each are more than memory can hold: a view
/// whose strides are 0 may have any size.
pub(crate) fn count((rows, cols): (usize, usize)) -> Option<usize> {
    let count = rows.checked_mul(cols)?;
    let bytes = count.checked_mul(8)?;
    isize::try_from(bytes).ok().map(|_| count)
}

/// As [`count`].
///
/// # Panics
/// If there are too many.
#[track_caller]
pub(crate) fn checked_count((rows, cols): (usize, usize)) -> usize {
    match count((rows, cols)) {
        Some(count) => count,
        None => panic!("a matrix of {rows} x {cols} numbers is larger than any memory"),
    }
}

/// A read-only matrix view.
#[derive(Clone, Copy, Debug)]
pub struct View<'a, T> {
    data: &'a [T],
    layout: Strides,
}

/// A matrix view that can be written.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    data: &'a mut [T],
    layout: Strides,
}

impl<'a, T> View<'a, T> {
    /// A dense row-major matrix of shape `rows` x `cols`, of a slice whose length the program knows. Of
    /// what comes from elsewhere [`with_strides`](Self::with_strides) returns an error instead.
    ///
    /// # Panics
    /// If the slice is shorter than `rows * cols`.
    ///
    /// ```
    /// use exmy::slice::View;
    ///
    /// let data = [1, 2, 3, 4, 5, 6, 7]; // more than the matrix has is no error
    /// assert_eq!(View::new(&data, 2, 3).at(1, 0), 4);
    /// ```
    #[track_caller]
    pub fn new(data: &'a [T], rows: usize, cols: usize) -> Self {
        match Strides::row_major(rows, cols).check(data.len()) {
            Ok(layout) => Self { data, layout },
            Err(error) => panic!("{error}"),
        }
    }

    /// A matrix of so many rows and columns with any strides: from row to row, from column to column.
    ///
    /// ```
    /// use exmy::slice::View;
    ///
    /// let data = [1, 2, 3, 4, 5];
    /// let a = View::with_strides(&data, (2, 2), (3, 1))?; // without the last column of 2 x 3, one short
    /// assert_eq!((a.at(0, 1), a.at(1, 1)), (2, 5));
    /// assert_eq!(View::with_strides(&data, (4, 2), (0, 1))?.row(3), Some(&data[..2])); // one row four times
    /// let error = View::with_strides(&data, (2, 3), (3, 1)).unwrap_err();
    /// assert!(error.to_string().ends_with("does not fit a slice of 5 elements"));
    /// assert_eq!((error.rows * error.cols, error.len), (6, 5));
    /// # Ok::<(), exmy::slice::ShapeError>(())
    /// ```
    ///
    /// # Errors
    /// If an element would lie outside the slice.
    pub fn with_strides(
        data: &'a [T],
        (rows, cols): (usize, usize),
        (row_stride, col_stride): (usize, usize),
    ) -> Result<Self, ShapeError> {
        let layout = Strides { rows, cols, row_stride, col_stride }.check(data.len())?;
        Ok(Self { data, layout })
    }

    /// The same elements with rows and columns exchanged.
    ///
    /// ```
    /// use exmy::slice::View;
    ///
    /// let a = View::new(&[1, 2, 3, 4, 5, 6], 2, 3);
    /// assert_eq!((a.t().rows(), a.t().at(2, 0)), (3, 3));
    /// assert_eq!(a.t().row(0), None); // 1 and 4 are no slice
    /// ```
    #[must_use]
    pub fn t(self) -> Self {
        Self { data: self.data, layout: self.layout.transposed() }
    }

    /// A range of rows.
    ///
    /// ```
    /// use exmy::slice::View;
    ///
    /// let a = View::new(&[1, 2, 3, 4, 5, 6], 3, 2);
    /// assert_eq!(a.rows_range(1..3).row(1), Some(&[5, 6][..]));
    /// assert_eq!(a.rows_range(3..3).rows(), 0); // behind the last row, and empty
    /// ```
    ///
    /// # Panics
    /// If the range does not lie within the matrix.
    #[track_caller]
    #[must_use]
    pub fn rows_range(self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.layout.rows,
            "rows {range:?} of a matrix of {} rows",
            self.layout.rows
        );
        let layout = Strides { rows: range.len(), ..self.layout };
        if range.is_empty() || layout.cols == 0 {
            return Self { data: &[], layout };
        }
        Self { data: &self.data[range.start * self.layout.row_stride..], layout }
    }

    /// A range of columns.
    ///
    /// ```
    /// use exmy::slice::View;
    ///
    /// let a = View::new(&[1, 2, 3, 4, 5, 6], 2, 3).cols_range(1..3);
    /// assert_eq!((a.cols(), a.row_stride()), (2, 3)); // the rows are as far apart as before
    /// assert_eq!(a.row(1), Some(&[5, 6][..]));
    /// ```
    ///
    /// # Panics
    /// If the range does not lie within the matrix.
    #[track_caller]
    #[must_use]
    pub fn cols_range(self, range: Range<usize>) -> Self {
        self.t().rows_range(range).t()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// Distance in elements between (i, j) and (i + 1, j).
    pub fn row_stride(&self) -> usize {
        self.layout.row_stride
    }

    /// Distance in elements between (i, j) and (i, j + 1).
    pub fn col_stride(&self) -> usize {
        self.layout.col_stride
    }

    /// The slice that starts at element (0, 0).
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// Row `i` as a slice, where the columns of a row are adjacent in memory.
    ///
    /// ```
    /// use exmy::slice::View;
    ///
    /// let a = View::new(&[1, 2, 3, 4], 2, 2);
    /// assert_eq!(a.row(1), Some(&[3, 4][..]));
    /// assert_eq!(a.t().row(1), None); // 2 and 4 are not adjacent
    /// assert_eq!(a.t().cols_range(1..2).row(1), Some(&[4][..])); // a single one is
    /// ```
    ///
    /// # Panics
    /// If there is no such row.
    #[track_caller]
    pub fn row(&self, i: usize) -> Option<&'a [T]> {
        assert!(i < self.layout.rows, "row {i} of a matrix of {} rows", self.layout.rows);
        if self.layout.cols == 0 {
            // The slice of a matrix without elements may be shorter than its strides say.
            return Some(&[]);
        }
        let start = i * self.layout.row_stride;
        (self.layout.col_stride == 1 || self.layout.cols == 1)
            .then(|| &self.data[start..start + self.layout.cols])
    }
}

impl<T: Copy> View<'_, T> {
    /// Element (i, j).
    ///
    /// ```
    /// use exmy::slice::View;
    ///
    /// let a = View::new(&[1, 2, 3, 4, 5, 6], 2, 3);
    /// assert_eq!((a.at(0, 2), a.t().at(2, 0)), (3, 3));
    /// ```
    ///
    /// # Panics
    /// If it does not exist.
    #[inline]
    #[track_caller]
    pub fn at(&self, i: usize, j: usize) -> T {
        debug_assert!(i < self.layout.rows && j < self.layout.cols);
        self.data[i * self.layout.row_stride + j * self.layout.col_stride]
    }
}

impl<'a, T> ViewMut<'a, T> {
    /// A dense row-major matrix of shape `rows` x `cols`, of a slice whose length the program knows. Of
    /// what comes from elsewhere [`with_row_stride`](Self::with_row_stride) returns an error instead.
    ///
    /// ```
    /// use exmy::slice::ViewMut;
    ///
    /// let mut data = [0; 7]; // more than the matrix has is no error
    /// ViewMut::new(&mut data, 2, 3).data_mut()[5] = 1;
    /// assert_eq!(data, [0, 0, 0, 0, 0, 1, 0]);
    /// ```
    ///
    /// # Panics
    /// If the slice is shorter than `rows * cols`.
    #[track_caller]
    pub fn new(data: &'a mut [T], rows: usize, cols: usize) -> Self {
        match Strides::row_major(rows, cols).check(data.len()) {
            Ok(layout) => Self { data, layout },
            Err(error) => panic!("{error}"),
        }
    }

    /// A matrix whose rows are `row_stride` elements apart and whose columns are adjacent.
    ///
    /// ```
    /// use exmy::slice::ViewMut;
    ///
    /// let mut data = [0; 5];
    /// assert!(ViewMut::with_row_stride(&mut data, 2, 2, 3).is_ok()); // the last row may end early
    /// assert!(ViewMut::with_row_stride(&mut data, 2, 2, 1).is_err()); // rows would overlap
    /// assert!(ViewMut::with_row_stride(&mut data, 1, 5, 1).is_ok()); // one row overlaps nothing
    /// ```
    ///
    /// # Errors
    /// If an element would lie outside the slice, or rows would overlap.
    pub fn with_row_stride(
        data: &'a mut [T],
        rows: usize,
        cols: usize,
        row_stride: usize,
    ) -> Result<Self, ShapeError> {
        // A single row has no next one; its stride is then that of a dense matrix.
        let row_stride = if rows > 1 { row_stride } else { row_stride.max(cols) };
        let len = if row_stride < cols { 0 } else { data.len() };
        let layout = Strides { rows, cols, row_stride, col_stride: 1 }.check(len)?;
        Ok(Self { data, layout })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.layout.cols
    }

    /// Distance in elements between (i, j) and (i + 1, j); columns are adjacent.
    pub fn row_stride(&self) -> usize {
        self.layout.row_stride
    }

    /// The slice that starts at element (0, 0).
    ///
    /// ```
    /// use exmy::slice::ViewMut;
    ///
    /// let mut data = [0; 5];
    /// let mut a = ViewMut::with_row_stride(&mut data, 2, 2, 3)?;
    /// a.data_mut().fill(1); // the gap between the rows, too
    /// assert_eq!(data, [1; 5]);
    /// # Ok::<(), exmy::slice::ShapeError>(())
    /// ```
    pub fn data_mut(&mut self) -> &mut [T] {
        self.data
    }

    /// The same slice, to be read.
    pub fn data(&self) -> &[T] {
        self.data
    }

    /// The same slice, for as long as it was borrowed.
    ///
    /// ```
    /// use exmy::slice::ViewMut;
    ///
    /// fn last<'a>(a: ViewMut<'a, u8>) -> Option<&'a mut u8> {
    ///     a.into_data().last_mut() // outlives the view, which `data_mut` does not
    /// }
    /// let mut data = [1, 2];
    /// *last(ViewMut::new(&mut data, 1, 2)).unwrap() = 9;
    /// assert_eq!(data, [1, 9]);
    /// ```
    pub fn into_data(self) -> &'a mut [T] {
        self.data
    }

    /// The same matrix, borrowed for a shorter time.
    ///
    /// ```
    /// use exmy::slice::ViewMut;
    ///
    /// let mut data = [0; 4];
    /// let mut a = ViewMut::new(&mut data, 2, 2);
    /// a.reborrow().split_rows(1).1.data_mut()[0] = 1; // `split_rows` takes the view given
    /// assert_eq!(a.data(), [0, 0, 1, 0]);
    /// ```
    #[must_use]
    pub fn reborrow(&mut self) -> ViewMut<'_, T> {
        ViewMut { data: self.data, layout: self.layout }
    }

    /// Splits into the first `rows` rows and the rest.
    ///
    /// # Panics
    /// If there are fewer rows.
    ///
    /// ```
    /// use exmy::slice::ViewMut;
    ///
    /// let mut data = [0; 6];
    /// let (mut head, tail) = ViewMut::new(&mut data, 3, 2).split_rows(1);
    /// assert_eq!((head.data().len(), tail.rows()), (2, 2));
    /// ```
    #[track_caller]
    pub fn split_rows(self, rows: usize) -> (Self, Self) {
        let Strides { rows: all, row_stride, .. } = self.layout;
        assert!(rows <= all, "split at row {rows} of {all}");
        // The product may overflow only where there are no columns.
        let at = rows.saturating_mul(row_stride).min(self.data.len());
        let (head, tail) = self.data.split_at_mut(at);
        let rest = Strides { rows: all - rows, ..self.layout };
        (
            Self { data: head, layout: Strides { rows, ..self.layout } },
            Self { data: tail, layout: rest },
        )
    }
}
