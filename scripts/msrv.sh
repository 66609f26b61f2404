#!/usr/bin/env bash
# Checks that the workspace compiles with the oldest Rust that Cargo.toml promises (`rust-version`).
source "$(dirname "$0")/needs.sh"

version=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
needs "cargo +$version --version" "Install it: rustup toolchain install $version --profile minimal"

cargo "+$version" check --workspace
cargo "+$version" check -p exmy --lib --no-default-features
