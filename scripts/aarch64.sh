#!/usr/bin/env bash
# Runs tests of the kernels on aarch64, where the scalar bodies are compiled with NEON, under qemu's user
# emulation.
source "$(dirname "$0")/needs.sh"

target=aarch64-unknown-linux-gnu
needs "aarch64-linux-gnu-gcc --version" "Install it (Debian): apt-get install gcc-aarch64-linux-gnu"
needs "qemu-aarch64-static --version" "Install it (Debian): apt-get install qemu-user-static"
needs "rustup target list --installed | grep -qx $target" "Install it: rustup target add $target"

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L /usr/aarch64-linux-gnu"
cargo test --target "$target" --features half,parallel,bitvec --test blocks --test bulk \
    --test decode --test pack --test gemm --test gemm_fast
