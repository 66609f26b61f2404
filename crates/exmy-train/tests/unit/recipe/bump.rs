use exmy::quantizer::{Axis, Quantizer};
use exmy::random::{Philox, Stream};
use exmy::slice::{View, ViewMut};
use exmy_train::recipe::bump::image_into;

fn image(x: &[f32]) -> Vec<f32> {
    let quantizer: Quantizer = "mxfp8-e4m3@microxcaling".parse().unwrap();
    let mut out = vec![0.0; x.len()];
    let random = Philox::new(0, Stream::new("unused"));
    let view = View::new(x, 1, x.len());
    image_into(&quantizer, view, Axis::Cols, random, 0, ViewMut::new(&mut out, 1, x.len()));
    out
}

/// Two blocks. Position 0 has 0.9 and 1.0: the largest, 1.0, is not in the clamp band, so the first block's
/// 0.9, the largest of its block, still saturates to 0.875. Position 1 has 0.95 and 0.3 and is
/// bumped in both blocks: 0.95 to a multiple of 1/16, and 0.3 of the second block is as without, since it
/// stays normal.
#[test]
fn positions_are_bumped_not_blocks() {
    let mut x = [0.0; 64];
    (x[0], x[1], x[32], x[33]) = (0.9, 0.95, 1.0, 0.3);
    let image = image(&x);
    assert_eq!([image[0], image[1], image[32], image[33]], [0.875, 0.9375, 1.0, 0.3125]);
}

/// One feature of two sequences of 48 tokens, by hand. Each has a block of 32 and one of 16. The first
/// sequence's 0.95 at position 1 is alone in its band: it is bumped to 0.9375 there. The second one has 1.0
/// at position 1, so its 0.95 at token 33, the largest of the last block, saturates to 0.875. Were all 96
/// tokens one column, the 1.0 of token 48 + 17 would stand at position 1 of the third block. The first 0.95
/// would saturate, and the other one would not, with a 1.0 in its block.
#[test]
fn blocks_of_tokens_end_with_their_sequence() {
    let quantizer: Quantizer = "mxfp8-e4m3@microxcaling".parse().unwrap();
    let mut x = [0.0; 96];
    (x[1], x[48 + 1], x[48 + 17], x[48 + 33]) = (0.95, 1.0, 1.0, 0.95);
    let random = Philox::new(0, Stream::new("unused"));
    let image = |sequence| {
        let mut out = [9.0; 96];
        let (view, to) = (View::new(&x, 96, 1), ViewMut::new(&mut out, 96, 1));
        image_into(&quantizer, view, Axis::Rows, random, sequence, to);
        [out[1], out[48 + 1], out[48 + 33]]
    };
    assert_eq!(image(48), [0.9375, 1.0, 0.875]);
    assert_eq!(image(0), [0.875, 1.0, 0.9375]);
}

#[test]
fn a_row_in_one_band_is_as_blocks_bumped() {
    let x: Vec<f32> = (0..64).map(|i| 0.9 + (i as f32) / 1000.0).collect();
    let quantizer: Quantizer = "mxfp8-e4m3@rceil@microxcaling".parse().unwrap();
    let mut expected = vec![0.0; 64];
    let random = Philox::new(0, Stream::new("unused"));
    quantizer.image_into(
        View::new(&x, 1, 64),
        Axis::Cols,
        random,
        ViewMut::new(&mut expected, 1, 64),
    );
    assert_eq!(image(&x), expected);
}
