//! A `Vec` of f32 rounded to a format in place, to codes, and to packed codes:
//! `cargo run --example slices`, which prints
//!
//! ```text
//! f32          [-1.0, -0.63, -0.26, 0.110000014, 0.48000002, 0.85, 1.22, 1.5900002]
//! E2M1         [-1.0, -0.5, -0.5, 0.0, 0.5, 1.0, 1.0, 1.5]
//! codes        [a, 9, 9, 0, 1, 2, 2, 3], packed in 4 bytes
//! mean of 1000 [-1.00, -0.62, -0.26, 0.11, 0.48, 0.85, 1.22, 1.60]
//! E4M3         [-1.0, -0.625, -0.25, 0.109375, 0.46875, 0.875, 1.25, 1.625]
//! ```

use exmy::prelude::*;
use exmy::random::{Philox, Stream};
use exmy::{pack, slice::decode_into};

fn main() {
    let x: Vec<f32> = (0..8).map(|i| 0.37 * i as f32 - 1.0).collect();
    println!("f32          {x:?}");

    // In place; the type stays f32, the values are those of the format.
    let mut rounded = x.clone();
    let e2m1 = Converter::new(Format::E2M1, Rules::SATURATING);
    e2m1.fake_quantize(&mut rounded);
    println!("E2M1         {rounded:?}");

    // The same as codes, then two codes a byte, and back.
    let codes: Vec<u8> = e2m1.encode(&x);
    let packed = pack::pack(&codes, 4).expect("codes of four bits");
    println!("codes        {codes:x?}, packed in {} bytes", packed.len());
    let mut back = vec![0.0_f32; x.len()];
    decode_into(Format::E2M1, &codes, &mut back);
    assert_eq!(back, rounded);

    // Stochastic rounding: right on average. The seed makes it repeatable.
    let rules = Rules::SATURATING.with_rounding(Rounding::stochastic(8));
    let mut mean = vec![0.0; x.len()];
    for seed in 0..1000 {
        let random = Philox::new(seed, Stream::new("example"));
        let mut one = x.clone();
        Converter::new(Format::E2M1, rules).with_random(random).fake_quantize(&mut one);
        mean.iter_mut().zip(one).for_each(|(mean, one)| *mean += one / 1000.0);
    }
    let mean: Vec<String> = mean.iter().map(|x| format!("{x:.2}")).collect();
    println!("mean of 1000 [{}]", mean.join(", "));

    // Typed slices: the same bits without a converter.
    let mut typed = vec![E4M3::default(); x.len()];
    E4M3::from_slice_saturating(&x, &mut typed);
    println!("E4M3         {:?}", typed.iter().map(|x| x.to_f32()).collect::<Vec<_>>());
}
