//! Reduces f32 values of your own to any ExMy format and shows what is lost.
//!
//! `cargo run --example bit_reduction` takes a built-in slice and a few formats;
//! `cargo run --example bit_reduction -- e4m3@rtz 3.14159 0.1 -70000` takes yours.

use exmy::format::Format;
use exmy::random::{Philox, Stream};
use exmy::round::{Rounding, Rules};
use exmy::slice::Converter;

fn reduce(format: Format, rounding: Rounding, values: &[f32]) {
    let mut reduced = vec![0.0; values.len()];
    // Only stochastic modes draw from it; the seed makes them repeatable.
    let random = Philox::new(1, Stream::new("bit reduction"));
    let rules = Rules::DEFAULT.with_rounding(rounding);
    Converter::new(format, rules).with_random(random).fake_quantize_into(values, &mut reduced);
    println!("{format}@{rounding}, {} bits", format.bits());
    for (&x, &y) in values.iter().zip(&reduced) {
        let relative = 100.0 * (f64::from(y) / f64::from(x) - 1.0);
        println!("  {x:>12} -> {y:<12} {relative:+.2} %");
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((name, values)) = arguments.split_first() else {
        let values = [std::f32::consts::PI, 0.1, -0.001, 448.0, 1e-9, 65_504.0];
        for name in ["e8m7", "e8m3", "e5m2", "e4m3"] {
            reduce(name.parse()?, Rounding::TiesToEven, &values);
        }
        reduce(Format::ieee(8, 3)?, Rounding::stochastic(8), &values);
        return Ok(());
    };
    let (format, rounding) = name.split_once('@').unwrap_or((name, "rne"));
    let values = values.iter().map(|text| text.parse()).collect::<Result<Vec<f32>, _>>()?;
    reduce(format.parse()?, rounding.parse()?, &values);
    Ok(())
}
