#!/usr/bin/env bash
# Fetches axe-core, which finds what keeps people from reading a page, from npm into target/axe, and prints
# the path of its script. With it, and with Chromium, the tests of pages check every page they make:
#
#     EXMY_AXE=$(scripts/axe.sh) cargo test -p exmy-lab --test command pages
set -euo pipefail
cd "$(dirname "$0")/.."
command -v npm > /dev/null || { echo "axe.sh needs npm, which comes with Node.js" >&2; exit 1; }
folder=$PWD/target/axe
script=$folder/node_modules/axe-core/axe.min.js
if [ ! -e "$script" ]; then
    npm install --silent --no-save --no-audit --no-fund --ignore-scripts --prefix "$folder" 'axe-core@4' >&2
fi
echo "$script"
