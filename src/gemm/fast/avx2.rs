//! Sums on vectors of 8 numbers (AVX2 and FMA).

#![allow(unsafe_code)]

use core::arch::x86_64::*;

use super::panel::{BLOCK, LANES, Square};
use super::vector::{look_ahead, vector_sums};

vector_sums! {
    "avx2,fma", 2 x 2 of 8,
    _mm256_setzero_ps, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_add_ps
}
