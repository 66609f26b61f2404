//! How a tensor of any rank is quantized along one of its axes: as a matrix.
//!
//! The axes before and after the chosen one are joined, so that a tensor is `outer x along x
//! inner`. Along the last axis that is a matrix of `outer` rows whose blocks lie in the rows; along
//! the first one a matrix of `inner` columns whose blocks lie in the columns. Between the two,
//! axis and inner are exchanged first: the matrix has `outer x inner` rows of `along` elements.
//! Under stochastic rounding, element (i, j) of the matrix uses word `i * columns + j`.

use crate::block::Axis;

/// A tensor's extents before, along and behind an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fold {
    outer: usize,
    along: usize,
    inner: usize,
}

impl Fold {
    /// Of a shape along its axis `axis`; a single number has one axis of length 1.
    pub(super) fn new(shape: &[usize], axis: usize) -> Self {
        let product = |extents: &[usize]| extents.iter().product();
        match shape {
            [] => Self { outer: 1, along: 1, inner: 1 },
            _ => Self {
                outer: product(&shape[..axis]),
                along: shape[axis],
                inner: product(&shape[axis + 1..]),
            },
        }
    }

    /// Rows, columns, and which way the blocks lie.
    pub(super) fn matrix(self) -> (usize, usize, Axis) {
        let Self { outer, along, inner } = self;
        match (outer, inner) {
            (_, 1) => (outer, along, Axis::Cols),
            (1, _) => (along, inner, Axis::Rows),
            _ => (outer * inner, along, Axis::Cols),
        }
    }

    /// Whether the elements of the matrix stand in another order than those of the tensor.
    pub(super) fn exchanges(self) -> bool {
        self.outer != 1 && self.inner != 1
    }

    /// From the tensor's order to the matrix's, items of `size` parts, `along` of them along the
    /// axis.
    pub(super) fn to_matrix<T: Copy>(self, x: &[T], along: usize, size: usize) -> Vec<T> {
        self.exchange(x, along, self.inner, size)
    }

    /// The way back.
    pub(super) fn to_tensor<T: Copy>(self, x: &[T], along: usize, size: usize) -> Vec<T> {
        self.exchange(x, self.inner, along, size)
    }

    /// `outer` matrices of `rows x cols`, each transposed.
    fn exchange<T: Copy>(self, x: &[T], rows: usize, cols: usize, size: usize) -> Vec<T> {
        let mut out = Vec::with_capacity(x.len());
        for slab in x.chunks_exact((rows * cols * size).max(1)).take(self.outer) {
            for j in 0..cols {
                for i in 0..rows {
                    let at = (i * cols + j) * size;
                    out.extend_from_slice(&slab[at..at + size]);
                }
            }
        }
        out
    }

    /// The shape in which the scales of blocks are stored: the tensor's, with the number of blocks in
    /// place of the axis, where each block lies along the axis alone; else rows and columns of
    /// blocks. `block` are the rows and columns of one, `blocks` how many there are.
    pub(super) fn scales(
        self,
        shape: &[usize],
        axis: usize,
        block: (usize, usize),
        blocks: (usize, usize),
    ) -> Vec<usize> {
        let (across, count) = match self.matrix().2 {
            Axis::Cols => (block.0, blocks.1),
            Axis::Rows => (block.1, blocks.0),
        };
        match shape {
            _ if across != 1 => vec![blocks.0, blocks.1],
            [] => vec![],
            _ => {
                let mut shape = shape.to_vec();
                shape[axis] = count;
                shape
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_by_hand() {
        let shape = [2, 3, 4];
        assert_eq!(Fold::new(&shape, 2).matrix(), (6, 4, Axis::Cols));
        assert_eq!(Fold::new(&shape, 0).matrix(), (2, 12, Axis::Rows));
        assert_eq!(Fold::new(&shape, 1).matrix(), (8, 3, Axis::Cols));
        assert_eq!(Fold::new(&[5, 7, 1], 1).matrix(), (5, 7, Axis::Cols));
        assert_eq!(Fold::new(&[], 0).matrix(), (1, 1, Axis::Cols));
        assert_eq!(Fold::new(&[0, 4], 0).matrix(), (0, 4, Axis::Rows));
        let fold = Fold::new(&shape, 1);
        let x: Vec<u32> = (0..24).collect();
        let y = fold.to_matrix(&x, 3, 1);
        assert_eq!(y[..6], [0, 4, 8, 1, 5, 9]);
        assert_eq!(y[12..15], [12, 16, 20]);
        assert_eq!(fold.to_tensor(&y, 3, 1), x);
        // Two scales a row, two bytes each.
        let scales: Vec<u8> = (0..32).collect();
        let there = fold.to_tensor(&scales, 2, 2);
        assert_eq!(there[..8], [0, 1, 4, 5, 8, 9, 12, 13]);
        assert_eq!(fold.to_matrix(&there, 2, 2), scales);
        assert_eq!(fold.scales(&shape, 1, (1, 2), (8, 2)), [2, 2, 4]);
        assert_eq!(fold.scales(&shape, 1, (2, 2), (4, 2)), [4, 2]);
    }
}
