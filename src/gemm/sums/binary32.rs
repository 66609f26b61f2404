//! The orders in binary32, all columns of a row at a time.
//!
//! Every column has its own chain, so the order within a sum is as written while neighbouring sums
//! share an instruction.

use alloc::vec;
use alloc::vec::Vec;

use super::transposed;
use crate::gemm::accumulation::Order;
use crate::gemm::rows::ExactRows;
use crate::simd::kernel;

/// Operands whose numbers are all binary32.
pub(in crate::gemm) struct Chains {
    order: Order,
    /// Rows of A.
    a: Vec<f32>,
    /// Rows of B, that is numbers of equal k side by side.
    b: Vec<f32>,
    k: usize,
    n: usize,
}

impl Chains {
    /// `None` if a number is not binary32.
    pub(in crate::gemm) fn new(order: Order, a: &ExactRows, b: &ExactRows) -> Option<Self> {
        let (x, y) = (a.as_f32()?, b.as_f32()?);
        Some(Self { order, a: x, b: transposed(&y, b.count, b.k), k: a.k, n: b.count })
    }

    /// The sums of row `i` of A with every column of B.
    pub(in crate::gemm) fn row_into(&self, i: usize, sums: &mut [f32]) {
        let Self { order, k, n, .. } = *self;
        let a = &self.a[i * k..(i + 1) * k];
        sums.fill(0.0);
        match order {
            Order::Fma => fused(a, &self.b, sums),
            Order::MulAdd => separate(a, &self.b, sums),
            Order::Pairwise => self.pairwise(a, sums),
            Order::Blocked(len) => {
                let mut part = vec![0.0; n];
                let len = len as usize;
                for (block, a) in a.chunks(len).enumerate() {
                    let b = &self.b[block * len * n..];
                    if block == 0 {
                        fused(a, b, sums);
                        continue;
                    }
                    part.fill(0.0);
                    fused(a, b, &mut part);
                    sums.iter_mut().zip(&part).for_each(|(sum, part)| *sum += part);
                }
            }
        }
    }

    /// Rounds of neighbours: what stands at `2 i` and `2 i + 1` becomes what stands at `i`.
    fn pairwise(&self, a: &[f32], sums: &mut [f32]) {
        let n = self.n;
        if n == 0 || a.is_empty() {
            return;
        }
        let mut terms: Vec<f32> =
            self.b.chunks(n).zip(a).flat_map(|(b, a)| b.iter().map(move |b| a * b)).collect();
        let mut count = a.len();
        while count > 1 {
            for i in 0..count / 2 {
                for j in 0..n {
                    terms[i * n + j] = terms[2 * i * n + j] + terms[(2 * i + 1) * n + j];
                }
            }
            if count % 2 == 1 {
                terms.copy_within((count - 1) * n..count * n, count / 2 * n);
            }
            count = count.div_ceil(2);
        }
        sums.copy_from_slice(&terms[..n]);
    }
}

kernel! {
    /// `sums[j] = fma(a[k], b[k][j], sums[j])`, ascending in k.
    fn fused<'a>(a: &'a [f32], b: &'a [f32], sums: &'a mut [f32]) {
        for (a, b) in a.iter().zip(b.chunks(sums.len().max(1))) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum = super::super::f32::fused(*a, *b, *sum);
            }
        }
    }
}

kernel! {
    /// `sums[j] = sums[j] + a[k] * b[k][j]`, ascending in k.
    fn separate<'a>(a: &'a [f32], b: &'a [f32], sums: &'a mut [f32]) {
        for (a, b) in a.iter().zip(b.chunks(sums.len().max(1))) {
            for (sum, b) in sums.iter_mut().zip(b) {
                *sum += a * b;
            }
        }
    }
}
