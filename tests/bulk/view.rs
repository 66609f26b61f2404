//! Borrowed matrices: transposed, cut up, empty, and refused.

use exmy::slice::{View, ViewMut};

#[test]
fn transpose_and_ranges() {
    let data: [i32; 6] = [1, 2, 3, 4, 5, 6];
    let a = View::new(&data, 2, 3);
    assert_eq!((a.at(1, 0), a.t().at(0, 1), a.t().rows()), (4, 4, 3));
    assert_eq!(a.cols_range(1..3).at(1, 1), 6);
    assert_eq!(a.rows_range(1..2).row(0), Some(&data[3..]));
    assert_eq!(a.t().row(0), None);
}

/// No rows or no columns, at whatever strides and however they came about.
#[test]
fn matrices_without_elements() {
    let data: [i32; 6] = [1, 2, 3, 4, 5, 6];
    let a = View::new(&data, 2, 3);
    for at in 0..=3 {
        let none = a.cols_range(at..at);
        assert_eq!((none.rows(), none.cols()), (2, 0));
        for i in 0..2 {
            assert_eq!(none.row(i), Some(&[][..]), "row {i} of columns {at}..{at}");
            assert_eq!(none.rows_range(i..i + 1).row(0), Some(&[][..]));
        }
        assert_eq!((none.rows_range(1..2).rows(), none.rows_range(2..2).rows()), (1, 0));
        assert_eq!(none.t().cols_range(1..2).cols(), 1);
        assert_eq!(none.cols_range(0..0).row(1), Some(&[][..]));
    }
    let transposed = a.rows_range(1..1).t();
    assert_eq!((transposed.rows(), transposed.cols(), transposed.row(2)), (3, 0, Some(&[][..])));
    assert_eq!(transposed.rows_range(1..3).row(1), Some(&[][..]));
    let far = View::<i32>::with_strides(&[], (4, 0), (usize::MAX, usize::MAX)).unwrap();
    assert_eq!(far.row(3), Some(&[][..]));
    assert_eq!(far.rows_range(2..4).row(1), Some(&[][..]));
    // Rows that are apart and hold nothing: the first part takes what the slice has.
    let mut data = [0_u8; 4];
    let none = ViewMut::with_row_stride(&mut data, 3, 0, 3).unwrap();
    let (head, tail) = none.split_rows(2);
    assert_eq!((head.rows(), head.cols(), tail.rows(), tail.cols()), (2, 0, 1, 0));
    let none = ViewMut::with_row_stride(&mut data, 3, 0, usize::MAX).unwrap();
    let (head, tail) = none.split_rows(2);
    assert_eq!((head.rows(), tail.rows()), (2, 1));
}

#[test]
fn what_does_not_fit_is_refused() {
    let data = [0_u8; 5];
    assert!(View::with_strides(&data, (2, 3), (3, 1)).is_err());
    assert!(View::with_strides(&data, (2, 3), (2, 1)).is_ok());
    assert!(View::with_strides(&data, (usize::MAX, 2), (usize::MAX, 1)).is_err());
    let mut data = [0_u8; 6];
    assert!(ViewMut::with_row_stride(&mut data, 2, 3, 2).is_err());
    assert_eq!(ViewMut::with_row_stride(&mut data, 1, 6, 2).unwrap().row_stride(), 6);
    let (head, tail) = ViewMut::new(&mut data, 2, 3).split_rows(1);
    assert_eq!((head.rows(), tail.rows()), (1, 1));
}
