//! Whether this process may use the matrix tiles of x86-64 (AMX).
//!
//! The CPU says whether it has tiles and products of bfloat16 in them. Linux must be able to keep their 8
//! KiB of state, and gives it only to processes that ask (`arch_prctl`, since 5.16). The permission holds
//! for all threads, present and future, and their stacks for signals must have space for that state. So
//! it is requested when the first product wants tiles, and not by other kernels.

#![allow(unsafe_code)]

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

/// Bits of EDX of leaf 7: AMX-BF16 and AMX-TILE.
const NEEDED: u32 = 1 << 22 | 1 << 24;

/// Linux' number of the tiles' state.
const XTILEDATA: usize = 18;

/// Whether CPU and system have tiles. Asks for nothing.
pub(super) fn is_there() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| has_tiles() && is_supported())
}

/// Asks Linux for the tiles' state, once; they must be there.
pub(super) fn is_permitted() -> bool {
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    static ANSWER: OnceLock<bool> = OnceLock::new();
    // SAFETY: this request takes a number and touches no memory of the process.
    *ANSWER.get_or_init(|| unsafe { arch_prctl(ARCH_REQ_XCOMP_PERM, XTILEDATA) } == 0)
}

#[allow(unused_unsafe, reason = "safe since Rust 1.93")]
fn has_tiles() -> bool {
    // SAFETY: every x86-64 CPU has `cpuid`; leaf 7 is read where there is one.
    unsafe { __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & NEEDED == NEEDED }
}

/// Whether Linux can keep the tiles' state.
fn is_supported() -> bool {
    const ARCH_GET_XCOMP_SUPP: usize = 0x1021;
    let mut features = 0_u64;
    // SAFETY: this request writes 64 bits to the address it is given.
    let answer =
        unsafe { arch_prctl(ARCH_GET_XCOMP_SUPP, (&raw mut features).expose_provenance()) };
    answer == 0 && features >> XTILEDATA & 1 == 1
}

/// The system call of that name. Kernels that do not know a request answer with an error.
///
/// # Safety
/// As the request that is made.
unsafe fn arch_prctl(request: usize, argument: usize) -> isize {
    const ARCH_PRCTL: isize = 158;
    let answer: isize;
    // SAFETY: by the function's condition; the kernel overwrites rax, rcx and r11 alone.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => answer,
            in("rdi") request,
            in("rsi") argument,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    answer
}
