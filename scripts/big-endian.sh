#!/usr/bin/env bash
# Runs the tests that are small enough for miri on a big-endian target: conversions, packing, blocks, a
# product.
source "$(dirname "$0")/needs.sh"

target=s390x-unknown-linux-gnu
# A dependency of criterion is compiled by a C compiler, even where only miri runs.
needs "s390x-linux-gnu-gcc --version" "Install it (Debian): apt-get install gcc-s390x-linux-gnu"
needs "cargo +nightly miri --version" \
    "Install it: rustup toolchain install nightly && rustup component add --toolchain nightly miri rust-src"

# The threads of rayon's pool live as long as the process, which miri would call a leak.
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-tree-borrows -Zmiri-ignore-leaks"
cargo +nightly miri test --target "$target" --all-features --test cast
EXMY_SIMD=scalar cargo +nightly miri test --target "$target" --all-features --test miri
