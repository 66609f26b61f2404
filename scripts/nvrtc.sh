#!/usr/bin/env bash
# Fetches NVRTC, the compiler of the kernels, from PyPI into target/nvrtc, and prints the path of its library.
# It needs no GPU. With it the tests of exmy-cuda compile every kernel:
#
#     EXMY_NVRTC=$(scripts/nvrtc.sh) cargo test -p exmy-cuda -- --ignored long::
set -euo pipefail
cd "$(dirname "$0")/.."
command -v python3 > /dev/null || { echo "nvrtc.sh needs python3 with pip" >&2; exit 1; }
folder=$PWD/target/nvrtc
library=$folder/nvidia/cu13/lib/libnvrtc.so.13
if [ ! -e "$library" ]; then
    python3 -m pip --quiet --disable-pip-version-check install --no-deps --no-compile --only-binary :all: \
        --target "$folder" 'nvidia-cuda-nvrtc==13.*' >&2
fi
echo "$library"
