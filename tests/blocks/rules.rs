//! The rules and profiles that need more than a maximum and one product - two scales to choose from,
//! exact quotients, floating logarithms, flushed blocks - against the definition, at every level.

use super::hard::agrees;
use super::*;

/// Four over six in all variants, `max-abs`, microxcaling's PyTorch code, and what flushes.
const TEXTS: [&str; 34] = [
    "nvfp4@4over6",
    "nvfp4@4over6-mse",
    "nvfp4@4over6-448",
    "nvfp4@4over6-mse-448",
    "nvfp4@4over6@te",
    "nvfp4@4over6@sr8",
    "nvfp4@4over6@rna",
    "nvfp4@4over6-mse@rup",
    "nvfp4-16x16@4over6",
    "nvfp4-16x16@4over6-mse@rtz",
    "e2m1/16:ue4m3@4over6",
    "e2m1/16:e8m0@4over6",
    "e2m1/7x5:ue4m3+tensor@4over6",
    "e2m1/20x48:ue4m3+tensor@4over6-mse",
    "e2m1/row:ue4m3+tensor@4over6",
    "e2m1/tensor:f32@4over6",
    "e4m3/32:bf16@max-abs",
    "e2m1/16:e4m3@max-abs@rtz",
    "e5m2/16x16:f16@max-abs@sr8",
    "e4m3-ieee/24:e8m0@max-abs@sat-none",
    "e4m3/row:e5m2@max-abs@rna",
    "int8/tensor:f32@max-abs",
    "e8m7/8:e4m3-ieee@max-abs@sr16",
    "mxfp8-e4m3@microxcaling-flush",
    "mxint8@microxcaling-flush",
    "mxfp4@rceil@microxcaling-flush@sr8",
    "mxfp8-e4m3@microxcaling-torch",
    "mxfp8-e5m2@rne@microxcaling-torch",
    "mxfp4@rtz@microxcaling-torch",
    "mxfp6-e2m3@rtz@microxcaling-torch-flush",
    "mxfp6-e3m2@rceil@microxcaling-torch-flush",
    "mxint8@microxcaling-torch",
    "mxint8@rtz@rceil@microxcaling-torch",
    "e2m1/16x16:e8m0@sr8@microxcaling-torch",
];

/// Numbers next to powers of two and halves of places, where a binary32 logarithm and a sum with 1/2
/// show, of magnitudes that make neighbouring blocks different.
fn next_to_powers(n: usize) -> Vec<f32> {
    let random = Philox::new(3, Stream::new("next to powers"));
    let number = |i: usize| {
        let word = random.word(i as u64);
        let exponent = (i / 32 * 13 % 250) as u32 + word % 4;
        let below = (word >> 8) % 50;
        let base = [0x0080_0000, 0x00C0_0000, 0x00A0_0000, 0x0080_0001][(word >> 16) as usize % 4];
        let magnitude = (exponent << 23) + (base & 0x007F_FFFF);
        f32::from_bits(magnitude.saturating_sub(below) | (word & 0x8000_0000))
    };
    (0..n).map(number).collect()
}

#[test]
fn every_rule_is_the_definition() {
    for (rows, cols) in [(33, 70), (3, 300)] {
        let mut matrices = matrices(rows * cols);
        matrices.push(("next to powers", next_to_powers(rows * cols)));
        for (_, data) in matrices {
            for text in TEXTS {
                for axis in [Axis::Cols, Axis::Rows] {
                    agrees(text, &data, (rows, cols), axis);
                }
            }
        }
    }
}

/// Tiles and chunks of more than one piece.
#[test]
fn long_rows_are_the_definition() {
    let (rows, cols) = (2, 20_011);
    let data = &matrices(rows * cols)[9].1;
    for text in ["nvfp4@4over6-mse", "nvfp4-16x16@4over6", "e2m1/row:ue4m3+tensor@4over6"] {
        agrees(text, data, (rows, cols), Axis::Cols);
        agrees(text, data, (cols, rows), Axis::Cols);
    }
    for text in ["e4m3/row:bf16@max-abs", "e2m1/tensor:f32@max-abs", "mxfp4@microxcaling-torch"] {
        agrees(text, data, (rows, cols), Axis::Cols);
        agrees(text, data, (cols, rows), Axis::Rows);
    }
}

/// `amax` and elements just below powers of two, by hand: the binary32 logarithm of `8 - 2^-21` is 3,
/// so cutting to a multiple of 4 leaves 4 where the exact exponent leaves 6.
#[test]
fn a_logarithm_that_rounds_up() {
    // 2 - 2^-22 has an exact logarithm below 1 (next to 1 no number rounds), 8 - 2^-21 has not.
    let below = |k: i32| f32::from_bits(power(k).to_bits() - 1);
    let image = |text: &str, data: &[f32]| {
        image(text.parse().unwrap(), View::new(data, 1, data.len()), Axis::Cols)
    };
    // The scale is 2^-2: the element is 8 - 2^-21.
    let data = [below(1), 0.25];
    assert_eq!(image("mxfp4@rtz@microxcaling-torch", &data), [1.0, 0.25]);
    assert_eq!(image("mxfp4@rtz@microxcaling", &data), [1.5, 0.25]);
}
