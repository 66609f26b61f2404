#!/usr/bin/env bash
# Builds the module for the Python at hand (PYTHON, else python3) and runs the package's tests with it. Needs numpy,
# ml_dtypes and pytest; tests of exmy.torch need torch, those of runs pandas.
set -euo pipefail
cd "$(dirname "$0")/../crates/exmy-python"
export CARGO_TARGET_DIR=$PWD/../../target/python
python=${PYTHON:-python3}
export PYO3_PYTHON=$python PYTHONDONTWRITEBYTECODE=1
cargo fmt --check
cargo clippy --quiet --features emulated -- -D warnings
# The kernels of GPUs are compiled for this processor where tests ask for them.
cargo build --quiet --features pyo3/extension-module,emulated
package=$CARGO_TARGET_DIR/package
mkdir -p "$package"
cp -r python/exmy "$package/"
cp "$CARGO_TARGET_DIR/debug/lib_exmy.so" "$package/exmy/_exmy.abi3.so"
if ! "$python" -c 'import torch' 2> /dev/null; then
    echo "exmy.torch: skipped: no torch" | tee -a "${EXMY_SKIPPED:-/dev/null}"
fi
PYTHONPATH=$package "$python" -m pytest -q -p no:cacheprovider tests
