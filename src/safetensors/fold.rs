//! How a tensor of any rank is quantized along one of its axes: as a matrix.
//!
//! The axes before and after the chosen one are joined, so that a tensor is
//! `outer x along x inner`. Along the last axis that is a matrix of `outer` rows whose blocks lie
//! in the rows. Along the first one it is a matrix of `inner` columns whose blocks lie in the
//! columns. Between the two, axis and inner are exchanged first: the matrix has `outer x inner`
//! rows of `along` elements. Under stochastic rounding, element (i, j) of the matrix uses word
//! `i * columns + j`.

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

    /// The tensor's indices of the elements of the matrix, in order, where there are `along` of them
    /// along the axis.
    pub(super) fn matrix_order(self, along: usize) -> impl Iterator<Item = usize> {
        transposed(self.outer, along, self.inner)
    }

    /// The matrix's indices of the elements of the tensor, in order.
    pub(super) fn tensor_order(self, along: usize) -> impl Iterator<Item = usize> {
        transposed(self.outer, self.inner, along)
    }

    /// Puts elements of the tensor from index `first` on into their places in the matrix.
    pub(super) fn place(self, first: usize, mut x: &[f32], matrix: &mut [f32]) {
        let Self { along, inner, .. } = self;
        let mut t = first;
        while !x.is_empty() {
            let (slab, axis, i) = (t / (along * inner), t / inner % along, t % inner);
            let (now, later) = x.split_at((inner - i).min(x.len()));
            let start = (slab * inner + i) * along + axis;
            for (place, x) in matrix[start..].iter_mut().step_by(along).zip(now) {
                *place = *x;
            }
            (t, x) = (t + now.len(), later);
        }
    }

    /// The shape in which the scales of blocks are stored. Where each block lies along the axis
    /// alone, it is the tensor's, with the number of blocks in place of the axis. Else it is rows and
    /// columns of blocks. `block` are the rows and columns of one, `blocks` how many there are.
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

/// The indices of `outer` matrices of `rows x cols`, each by columns.
fn transposed(outer: usize, rows: usize, cols: usize) -> impl Iterator<Item = usize> {
    (0..outer).flat_map(move |slab| {
        (0..cols).flat_map(move |j| (0..rows).map(move |i| (slab * rows + i) * cols + j))
    })
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
        let y: Vec<usize> = fold.matrix_order(3).collect();
        assert_eq!(y[..6], [0, 4, 8, 1, 5, 9]);
        assert_eq!(y[12..15], [12, 16, 20]);
        assert!(fold.tensor_order(3).map(|i| y[i]).eq(0..24));
        let (x, mut placed): (Vec<f32>, _) = ((0..24_u8).map(f32::from).collect(), [0.0; 24]);
        fold.place(0, &x[..7], &mut placed);
        fold.place(7, &x[7..], &mut placed);
        assert!(placed.iter().zip(&y).all(|(x, i)| *x == *i as f32));
        // Two scales a row.
        let scales: Vec<usize> = fold.tensor_order(2).collect();
        assert_eq!(scales[..4], [0, 2, 4, 6]);
        assert!(fold.matrix_order(2).map(|i| scales[i]).eq(0..16));
        assert_eq!(fold.scales(&shape, 1, (1, 2), (8, 2)), [2, 2, 4]);
        assert_eq!(fold.scales(&shape, 1, (2, 2), (4, 2)), [4, 2]);
    }
}
