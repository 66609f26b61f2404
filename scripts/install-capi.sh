#!/usr/bin/env bash
# Installs exmy for C: header, libraries and exmy.pc below PREFIX.
# The libraries are built, or taken from a folder that has them.
set -euo pipefail
prefix=${1:?"scripts/install-capi.sh PREFIX [FOLDER]"}
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig"
prefix=$(cd "$prefix" && pwd)
cd "$(dirname "$0")/.."
built=${2:-}
if [ -z "$built" ]; then
    cargo build --release -p exmy-capi
    built=${CARGO_TARGET_DIR:-target}/release
fi
version=$(sed -n 's/^version = "\(.*\)"/\1/p' crates/exmy-capi/Cargo.toml)
cp crates/exmy-capi/include/exmy.h "$prefix/include"
for library in libexmy_capi.a libexmy_capi.so libexmy_capi.dylib; do
    if [ -e "$built/$library" ]; then cp "$built/$library" "$prefix/lib"; fi
done
sed -e "s|@prefix@|$prefix|" -e "s|@version@|$version|" crates/exmy-capi/exmy.pc.in \
    > "$prefix/lib/pkgconfig/exmy.pc"
echo "installed in $prefix"
