//! Whether this process may use the matrix tiles of x86-64 (AMX).
//!
//! The CPU says whether it has tiles and products of bfloat16 in them; Linux gives their 8 KiB of
//! state only to processes that ask (`arch_prctl`, since 5.16). The permission holds for all threads,
//! present and future.

#![allow(unsafe_code)]

use core::arch::asm;
use core::arch::x86_64::{__cpuid, __cpuid_count};
use std::sync::OnceLock;

/// Bits of EDX of leaf 7: AMX-BF16 and AMX-TILE.
const NEEDED: u32 = 1 << 22 | 1 << 24;

/// Asks once.
pub(super) fn is_permitted() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| has_tiles() && request())
}

#[allow(unused_unsafe, reason = "safe since Rust 1.93")]
fn has_tiles() -> bool {
    // SAFETY: every x86-64 CPU has `cpuid`; leaf 7 is read where there is one.
    unsafe { __cpuid(0).eax >= 7 && __cpuid_count(7, 0).edx & NEEDED == NEEDED }
}

/// Asks Linux for the tiles' state.
fn request() -> bool {
    const ARCH_PRCTL: isize = 158;
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    const XFEATURE_XTILEDATA: usize = 18;
    let answer: isize;
    // SAFETY: the system call takes two numbers and touches no memory of the process; the kernel
    // overwrites rax, rcx and r11 alone. Kernels that do not know it answer with an error.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => answer,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XFEATURE_XTILEDATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack)
        );
    }
    answer == 0
}
