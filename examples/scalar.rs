//! Numbers of FP8, FP4 and of a shape of your own as Rust types: `cargo run --example scalar` prints
//!
//! ```text
//! 0.3 in E4M3: 0.3125, code 0x2a; its shortest text is 0.3
//! 0.3 in E2M1: 0.5
//! 0.3 in E8M3: 0.3
//! 0.3 + 0.34 = 0.6, 0.3 * 0.34 = 0.11
//! sqrt(0.34) = 0.56, exp(0.34) = 1.4
//! 1e6: NaN or 448
//! 0.34 toward zero: 0.3, up: 0.34
//! e4m3fn: largest 448, 8 bits
//! ```

use exmy::prelude::*;

// Any shape of 1 sign bit, E exponent bits and M mantissa bits.
type E8M3 = Minifloat<ExMy<8, 3>>;

fn main() {
    // To the nearest number, ties to even. What is stored is the code.
    let x = E4M3::from_f32(0.3);
    println!("0.3 in E4M3: {}, code {:#04x}; its shortest text is {x}", x.to_f32(), x.to_bits());
    println!("0.3 in E2M1: {}", E2M1::from_f32(0.3));
    println!("0.3 in E8M3: {}", E8M3::from_f32(0.3));

    // Every operation gives the exact result, rounded once.
    let y = E4M3::from_f32(1.0 / 3.0);
    println!("{x} + {y} = {}, {x} * {y} = {}", x + y, x * y);
    println!("sqrt({y}) = {}, exp({y}) = {}", y.sqrt(), y.exp());

    // OCP's E4M3 has no infinity: what is too large is NaN, unless it saturates.
    println!("1e6: {} or {}", E4M3::from_f32(1e6), E4M3::from_f32_saturating(1e6).to_f32());

    // Other ways to round.
    let cut = E4M3::from_f32_with(0.34, Rounding::TowardZero, Overflow::None);
    println!("0.34 toward zero: {cut}, up: {}", cut.next_up());

    // A format chosen at run time says the same of codes.
    let format: Format = "float8_e4m3fn".parse().expect("a format");
    println!("{format}: largest {}, {} bits", format.max().to_f32(), format.bits());
}
