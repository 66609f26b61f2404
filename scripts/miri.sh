#!/usr/bin/env bash
# Runs the tests that are small enough for miri, which watches every access to memory. Miri finds none of the
# machine's vector instructions, so the level is scalar. Takes minutes. docs/verification.md says what has
# passed.
source "$(dirname "$0")/needs.sh"

needs "cargo +nightly miri --version" \
    "Install it: rustup toolchain install nightly && rustup component add --toolchain nightly miri rust-src"

# The threads of rayon's pool live as long as the process, which miri would call a leak.
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-tree-borrows -Zmiri-ignore-leaks"
cargo +nightly miri test --all-features --test cast
cargo +nightly miri test --all-features --test pack -- by_hand padded two_codes
EXMY_SIMD=scalar cargo +nightly miri test --all-features --test miri
