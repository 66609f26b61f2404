//! How far the sums of matrix units and of accumulators are from the exact ones, over the length of
//! the sum: a picture.
//!
//! `cargo run --release -p exmy-lab --example accumulation_error` writes `accumulation_error.svg`; a path of
//! your own may follow, and the longest sum, a power of two (8192 by default). The numbers are
//! normally distributed with mean 1/4, in formats and block formats. An error is the root of the mean square
//! of `sum - exact`, divided by that of `exact`, both in binary64.

use exmy::block::{Axis as Along, BlockFormat, BlockTensor};
use exmy::format::Format;
use exmy::gemm::{Operand, Spec, gemm, gemm_codes};
use exmy::quantizer::Cast;
use exmy::random::{Philox, Stream};
use exmy::round::{Overflow, Rounding};
use exmy::slice::{Converter, View};
use exmy_lab::plot::{Axis, Figure, Panel, Series};

/// Rows and columns whose sums are averaged.
const SIDE: usize = 12;

/// Operand formats, and what sums their products: matrix units by their presets, and accumulators.
const PANELS: [(&str, &[&str]); 6] = [
    (
        "e4m3",
        &[
            "ada",
            "hopper",
            "hopper,promote=128",
            "hopper-mma",
            "blackwell",
            "fast",
            "fma:bf16",
            "promote128(fma:e8m13@rtz)",
        ],
    ),
    ("e4m3fnuz", &["cdna3", "fast"]),
    ("mxfp4", &["blackwell", "fast", "fma:e8m13@rtz", "fma:f16", "fma:bf16"]),
    ("nvfp4", &["blackwell", "te-nvfp4", "fma:e8m13@rtz", "fma:bf16"]),
    (
        "f16",
        &[
            "volta",
            "turing",
            "ampere",
            "ada",
            "hopper",
            "blackwell",
            "cdna1",
            "cdna1-tree",
            "cdna2",
            "cdna3",
            "fast",
            "hopper+f16",
        ],
    ),
    (
        "bf16",
        &[
            "ampere",
            "hopper",
            "cdna1",
            "cdna2",
            "cdna2-bf16",
            "cdna3",
            "amx",
            "fma",
            "pairwise",
            "blocked256",
        ],
    ),
];

/// Normally distributed numbers (by the sum of twelve uniform ones), their mean 1/4.
fn numbers(len: usize, stream: &str) -> Vec<f32> {
    let random = Philox::new(1, Stream::new(stream));
    let normal = |i: u64| (0..12).map(|j| random.uniform(12 * i + j)).sum::<f64>() - 5.75;
    (0..len as u64).map(|i| normal(i) as f32).collect()
}

/// Rows of numbers in a format, or in a block format whose blocks run along them.
enum Rows {
    Plain(Format, Vec<u16>),
    Blocks(BlockTensor),
}

impl Rows {
    /// The first `k` of each of the rows.
    fn new(name: &str, x: &[f32], k: usize) -> Result<Self, Box<dyn std::error::Error>> {
        let x: Vec<f32> = x.chunks(x.len() / SIDE).flat_map(|row| &row[..k]).copied().collect();
        if let Ok(format) = name.parse() {
            return Ok(Self::Plain(format, Converter::from(Cast::new(format)).encode(&x)));
        }
        let (format, overflow): (BlockFormat, _) = (name.parse()?, Overflow::Finite);
        let unused = Philox::new(0, Stream::new("unused"));
        let x = View::new(&x, SIDE, k);
        let tensor =
            BlockTensor::quantize(x, Along::Cols, format, (Rounding::TiesToEven, overflow, unused));
        Ok(Self::Blocks(tensor))
    }

    fn operand(&self) -> Result<Operand<'_>, Box<dyn std::error::Error>> {
        Ok(match self {
            Self::Plain(format, codes) => {
                Operand::codes16(*format, View::new(codes, SIDE, codes.len() / SIDE))?
            }
            Self::Blocks(tensor) => tensor.into(),
        })
    }
}

fn mean_square(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.map(|x| x * x).sum::<f64>()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "accumulation_error.svg".into());
    let longest: usize = arguments.next().map_or(Ok(8192), |text| text.parse())?;
    if longest < 32 {
        return Err(format!("{longest}: the shortest sum in the picture has 32 products").into());
    }
    let mut figure = Figure::new("What a sum of products loses, by who adds it")
        .subtitle("normal numbers, mean 1/4; relative root mean square error of 144 sums")
        .x(Axis::log("products of a sum"));
    for (name, accumulations) in PANELS {
        let (a, b) = (numbers(SIDE * longest, "a"), numbers(SIDE * longest, "b"));
        let mut lines = vec![Vec::new(); accumulations.len()];
        let lengths =
            std::iter::successors(Some(32), |k| Some(k * 2)).take_while(|k| *k <= longest);
        for k in lengths {
            let (a, b) = (Rows::new(name, &a, k)?, Rows::new(name, &b, k)?);
            let (a, b) = (a.operand()?, b.operand()?.t());
            let exact = Spec::parse("exact")?.with_output(Format::F64);
            let exact: Vec<u64> = gemm_codes(a, b, &exact)?;
            let exact: Vec<f64> = exact.into_iter().map(f64::from_bits).collect();
            for (accumulation, line) in accumulations.iter().zip(&mut lines) {
                let sums = gemm(a, b, &Spec::parse(accumulation)?)?;
                let errors = sums.iter().zip(&exact).map(|(sum, exact)| f64::from(*sum) - exact);
                let error = mean_square(errors) / mean_square(exact.iter().copied());
                line.push((k as f64, error.sqrt()));
            }
        }
        // No error at all has no place on a logarithmic axis.
        lines.iter_mut().for_each(|line| line.retain(|(_, error)| *error > 0.0));
        let all = || accumulations.iter().zip(&lines);
        let exact: Vec<&str> = all()
            .filter(|(_, line)| line.is_empty())
            .map(|(accumulation, _)| *accumulation)
            .collect();
        let mut title = format!("relative error, {name} operands");
        if !exact.is_empty() {
            title = format!("{title}; none by {}", exact.join(", "));
        }
        let mut panel = Panel::new(Axis::log(title));
        for (accumulation, line) in all().filter(|(_, line)| !line.is_empty()) {
            panel = panel.line(Series::new(*accumulation, line.iter().copied()));
        }
        figure = figure.panel(panel);
    }
    std::fs::write(&path, figure.to_svg())?;
    println!("{path}");
    Ok(())
}
