//! One product of E4M3 matrices summed in three ways, against the exact result:
//! `cargo run --example gemm`, which prints
//!
//! ```text
//! exact, the first row: [-13.252975, -50.90331, 115.7146, 15.114761]
//! fma       largest error 0.000008     binary32, one term after the other
//! hopper    largest error 0.298355     the tensor core of an H100
//! fma:bf16  largest error 16.734116    bfloat16, one term after the other
//! ```

use exmy::gemm::{Operand, Spec};
use exmy::prelude::*;
use exmy::{gemm, random::Philox, random::Stream};

/// Codes of random numbers between -2 and 2.
fn codes(name: &str, count: usize) -> Vec<u8> {
    let random = Philox::new(1, Stream::new(name));
    let number = |i| random.word(i) as f32 / (1 << 30) as f32 - 2.0;
    let x: Vec<f32> = (0..count as u64).map(number).collect();
    Converter::new(Format::E4M3FN, Rules::SATURATING).encode(&x)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (m, n, k) = (4, 4, 4096);
    let (a, b) = (codes("a", m * k), codes("b", n * k));
    let a = Operand::codes8(Format::E4M3FN, View::new(&a, m, k))?;
    let b = Operand::codes8(Format::E4M3FN, View::new(&b, n, k))?;

    // B is stored row by row of its transpose, as weights are.
    let exact = gemm(a, b.t(), &Spec::parse("exact")?)?;
    println!("exact, the first row: {:?}", &exact[..n]);
    let sums = [
        ("fma", "binary32, one term after the other"),
        ("hopper", "the tensor core of an H100"),
        ("fma:bf16", "bfloat16, one term after the other"),
    ];
    for (name, what) in sums {
        let c = gemm(a, b.t(), &Spec::parse(name)?)?;
        let error = c.iter().zip(&exact).map(|(c, exact)| (c - exact).abs());
        let largest = error.fold(0.0, f32::max);
        println!("{name:<9} largest error {largest:<12.6} {what}");
    }
    Ok(())
}
