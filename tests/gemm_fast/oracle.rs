//! The definition, restated: from codes and scales by the formats' decoders, and a loop.

use exmy::format::Format;
use exmy::gemm::{Operand, Store};

fn value(format: Format, code: u64) -> f32 {
    let code = code & ((1 << format.bits()) - 1);
    format.decode(code).to_f32()
}

/// Images, row-major.
pub(crate) fn images(of: &Operand<'_>) -> Vec<f32> {
    let (rows, cols) = of.shape();
    let places = (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j)));
    match of.store() {
        Store::F32(x) => places.map(|(i, j)| x.at(i, j)).collect(),
        Store::U8(format, x) => places.map(|(i, j)| value(format, x.at(i, j).into())).collect(),
        Store::U16(format, x) => places.map(|(i, j)| value(format, x.at(i, j).into())).collect(),
        Store::U32(format, x) => places.map(|(i, j)| value(format, x.at(i, j).into())).collect(),
        Store::U64(format, x) => places.map(|(i, j)| value(format, x.at(i, j))).collect(),
        Store::Blocks(tensor) => {
            let plain = tensor.to_plain();
            let (_, right) = tensor.blocks();
            let image = |(i, j): (usize, usize)| {
                let (i, j) = if of.is_transposed() { (j, i) } else { (i, j) };
                let scale = plain.scales[i / plain.block.0 * right + j / plain.block.1];
                let scale = plain.format.scale.decode(scale.into()).to_f32();
                value(plain.format.element, plain.codes[i * plain.shape.1 + j].into()) * scale
            };
            places.map(image).collect()
        }
        _ => unreachable!("no other stores"),
    }
}

/// Sums, before all factors.
pub(crate) fn sums(a: &Operand<'_>, b: &Operand<'_>) -> Vec<f32> {
    let ((m, k), n) = (a.shape(), b.cols());
    let (a, b) = (images(a), images(&b.t()));
    let mut sums = Vec::with_capacity(m * n);
    for row in a.chunks_exact(k) {
        for column in b.chunks_exact(k) {
            let mut sum = 0.0_f32;
            for (x, y) in row.chunks(32).zip(column.chunks(32)) {
                let mut chains = [0.0_f32; 2];
                for i in 0..x.len() {
                    chains[i % 2] = x[i].mul_add(y[i], chains[i % 2]);
                }
                sum += chains[0] + chains[1];
            }
            sums.push(sum);
        }
    }
    sums
}

/// The product.
pub(crate) fn expected(a: &Operand<'_>, b: &Operand<'_>) -> Vec<f32> {
    let factor = a.tensor_scale().unwrap_or(1.0) * b.tensor_scale().unwrap_or(1.0);
    let one_nan = |x: f32| if x.is_nan() { f32::from_bits(0x7FC0_0000) } else { x };
    sums(a, b).into_iter().map(|sum| one_nan(factor * sum)).collect()
}
