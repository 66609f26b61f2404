//! Tensor cores for tests: the kernels of `product_hopper.cu` by the library's model of what they compute, so
//! that everything around them runs without a GPU. What silicon computes only a GPU shows.

#![allow(unsafe_code)]

use exmy::format::Format;
use exmy::gemm::{Operand, Spec, gemm_into};
use exmy::minifloat::Bf16;
use exmy::{View, ViewMut};

use super::Boxes;
use crate::{Error, Result};

/// A matrix as its description holds it here.
pub(super) fn tensor_map(of: Boxes) -> [u64; 16] {
    let mut map = [0; 16];
    map[0] = of.address;
    for (word, size) in map[1..5].iter_mut().zip([of.size, of.rows, of.cols, of.pitch]) {
        *word = size as u64;
    }
    map
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    std::array::from_fn(|i| bytes[at + i])
}

/// The codes of a described matrix, rows one after the other.
///
/// # Safety
/// The description is of memory that is there.
unsafe fn codes(map: &[u8]) -> (Vec<u16>, usize, usize) {
    let field = |i: usize| u64::from_ne_bytes(word(map, 8 * i)) as usize;
    let (address, size, rows, cols, pitch) = (field(0), field(1), field(2), field(3), field(4));
    let code = |i: usize, j: usize| {
        let at = (address + i * pitch + j * size) as *const u8;
        // SAFETY: the caller's promise.
        unsafe {
            match size {
                1 => u16::from(at.read()),
                _ => at.cast::<u16>().read_unaligned(),
            }
        }
    };
    let all = (0..rows).flat_map(|i| (0..cols).map(move |j| code(i, j)));
    (all.collect(), rows, cols)
}

/// Starts a kernel: left and right description, C, both scales, sizes.
///
/// # Safety
/// As [`launch`](crate::backend::Backend::launch).
pub(super) unsafe fn launch(name: &'static str, args: &[&[u8]]) -> Result<()> {
    let format = if name.contains("e4m3") { Format::E4M3FN } else { Format::BF16 };
    let unfit = |error: String| Error::unfit(name, error);
    let &[left, right, c, left_scale, right_scale, gemm] = args else {
        return Err(unfit(format!("{} parameters", args.len())));
    };
    let address = |arg: &[u8]| u64::from_ne_bytes(word(arg, 0));
    let number = |at: usize| u32::from_ne_bytes(word(gemm, at)) as usize;
    let real = |at: usize| f32::from_ne_bytes(word(gemm, at));
    let (m, n, k) = (number(0), number(4), number(8));
    let stride = u64::from_ne_bytes(word(gemm, 32)) as usize;
    let mut spec = Spec::parse("hopper").map_err(|error| unfit(error.to_string()))?;
    (spec.alpha, spec.beta) = (real(40), real(44));
    // SAFETY: the caller's promise: descriptions and scales are of memory that is there, and C has `m` rows
    // of `n` numbers, `stride` apart.
    unsafe {
        for scale in [left_scale, right_scale].map(address).into_iter().filter(|at| *at != 0) {
            spec.alpha *= (scale as *const f32).read();
        }
        let ((a, rows, depth), (b, cols, inner)) = (codes(left), codes(right));
        if (rows, cols, depth, inner) != (m, n, k, k) {
            return Err(unfit(format!("{rows} x {depth} by {cols} x {inner}, not {m} {n} {k}")));
        }
        let operand = |codes, rows| {
            Operand::codes16(format, View::new(codes, rows, k))
                .map_err(|error| unfit(error.to_string()))
        };
        let (a, b) = (operand(&a, m)?, operand(&b, n)?.t());
        let c = std::slice::from_raw_parts_mut(address(c) as *mut f32, (m - 1) * stride + n);
        let out =
            ViewMut::with_row_stride(c, m, n, stride).map_err(|error| unfit(error.to_string()))?;
        gemm_into(a, b, &spec, out).map(drop).map_err(|error| unfit(error.to_string()))?;
        if number(48) != 0 {
            let rows = c.chunks_mut(stride).flat_map(|row| row.iter_mut().take(n));
            rows.for_each(|x| *x = Bf16::from_f32(*x).to_f32());
        }
    }
    Ok(())
}
