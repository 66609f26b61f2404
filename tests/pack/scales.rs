//! Scales in tiles of 128 x 4, against the way torchao makes them: pad, split the axes, swap them.

use exmy::pack::{PackError, ScaleLayout, scales};
use proptest::prelude::*;

/// `to_blocked` of torchao as a walk over its axes: the padded matrix is (tile row, 4, 32, tile
/// column, 4); written are tile row, tile column, 32, 4 (which quarter of the tile), 4 columns.
fn tiled(scales: &[u8], rows: usize, cols: usize) -> Vec<u8> {
    let (down, across) = (rows.div_ceil(128), cols.div_ceil(4));
    let at = |r: usize, c: usize| if r < rows && c < cols { scales[r * cols + c] } else { 0 };
    let mut out = Vec::new();
    for tile_row in 0..down {
        for tile_col in 0..across {
            for within in 0..32 {
                for quarter in 0..4 {
                    for c in 0..4 {
                        out.push(at(tile_row * 128 + quarter * 32 + within, tile_col * 4 + c));
                    }
                }
            }
        }
    }
    out
}

fn some(rows: usize, cols: usize) -> Vec<u8> {
    (0..rows * cols).map(|i| (i * 37 % 251 + 1) as u8).collect()
}

#[test]
fn every_small_shape_and_those_around_tiles() {
    let rows = (0..=3).chain([31, 32, 33, 127, 128, 129, 257]);
    for rows in rows {
        for cols in 0..=9 {
            let scales = some(rows, cols);
            let expected = tiled(&scales, rows, cols);
            assert_eq!(ScaleLayout::Tiled.len(rows, cols), Some(expected.len()));
            assert_eq!(ScaleLayout::Tiled.pack(&scales, rows, cols).unwrap(), expected);
            assert_eq!(ScaleLayout::Tiled.unpack(&expected, rows, cols).unwrap(), scales);
            assert_eq!(ScaleLayout::Linear.pack(&scales, rows, cols).unwrap(), scales);
            assert_eq!(ScaleLayout::Linear.unpack(&scales, rows, cols).unwrap(), scales);
            for (i, scale) in scales.iter().enumerate() {
                let (r, c) = (i / cols, i % cols);
                assert_eq!(expected[scales::offset(r, c, cols)], *scale);
            }
        }
    }
}

/// Places worked out by hand from shape ((32, 4), 4), stride ((16, 4), 1).
#[test]
fn places_by_hand() {
    for (r, c, cols, place) in [
        (0, 0, 1, 0),
        (0, 3, 4, 3),
        (1, 0, 4, 16),
        (31, 0, 4, 496),
        (32, 0, 4, 4),
        (127, 3, 4, 511), // 31 * 16 + 3 * 4 + 3
        (0, 4, 8, 512),
        (128, 0, 8, 1024),
        (200, 6, 9, (3 + 1) * 512 + 8 * 16 + 2 * 4 + 2),
    ] {
        assert_eq!(scales::offset(r, c, cols), place, "({r}, {c}) of {cols} columns");
    }
}

#[test]
fn wrong_lengths() {
    let (container, needed, rows, cols) = ("128x4", 512, 3, 2);
    for found in [0, 6, 511, 513] {
        let error = PackError::Scales { container, needed, found, rows, cols };
        let mut out = vec![0xA5; found];
        assert_eq!(ScaleLayout::Tiled.pack_into(&[0; 6], 3, 2, &mut out), Err(error));
        assert!(out.iter().all(|byte| *byte == 0xA5), "nothing is written");
        assert_eq!(ScaleLayout::Tiled.unpack(&out, 3, 2), Err(error));
    }
    let (container, needed) = ("linear", 6);
    for found in [0, 5, 7] {
        let error = PackError::Scales { container, needed, found, rows, cols };
        assert_eq!(ScaleLayout::Tiled.pack(&vec![0; found], 3, 2), Err(error));
        assert_eq!(ScaleLayout::Linear.unpack(&vec![0; found], 3, 2), Err(error));
    }
    let error = ScaleLayout::Tiled.pack(&[0; 5], 3, 2).unwrap_err();
    assert_eq!(error.to_string(), "scales of 3 rows and 2 columns take 6 bytes as linear, found 5");
    // Shapes beyond memory are refused, not computed.
    for (rows, cols) in
        [(usize::MAX, 2), (usize::MAX, usize::MAX), (usize::MAX, 1), (1, usize::MAX)]
    {
        for layout in ScaleLayout::ALL {
            assert!(layout.pack(&[0; 4], rows, cols).is_err());
            assert!(layout.unpack(&[0; 512], rows, cols).is_err());
        }
    }
}

#[test]
fn names() {
    for layout in ScaleLayout::ALL {
        assert_eq!(layout.to_string().parse(), Ok(layout));
    }
    assert_eq!("128x5".parse::<ScaleLayout>().unwrap_err().nearest(), ["128x4"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_shape(rows in 0_usize..=300, cols in 0_usize..=20, seed in any::<u8>()) {
        let scales: Vec<u8> = some(rows, cols).iter().map(|byte| byte ^ seed).collect();
        let bytes = ScaleLayout::Tiled.pack(&scales, rows, cols).unwrap();
        prop_assert_eq!(&bytes, &tiled(&scales, rows, cols));
        prop_assert_eq!(ScaleLayout::Tiled.unpack(&bytes, rows, cols).unwrap(), scales);
    }
}
