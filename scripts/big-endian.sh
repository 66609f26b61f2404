#!/usr/bin/env bash
# Runs the tests that are small enough for miri on a big-endian target: conversions, packing, blocks, a product.
source "$(dirname "$0")/needs.sh"

target=s390x-unknown-linux-gnu
needs "cargo +nightly miri --version" \
    "Install it: rustup toolchain install nightly && rustup component add --toolchain nightly miri rust-src"

export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-tree-borrows"
cargo +nightly miri test --target "$target" --all-features --test cast
EXMY_SIMD=scalar cargo +nightly miri test --target "$target" --all-features --test miri
