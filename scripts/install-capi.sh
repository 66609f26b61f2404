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
for library in libexmy_capi.a libexmy_capi.dylib; do
    if [ -e "$built/$library" ]; then cp "$built/$library" "$prefix/lib"; fi
done
# Programs ask for the name that the library has inside (build.rs), the linker for the one without a version.
case $version in
    0.0.*) series=$version ;;
    0.*) series=${version%.*} ;;
    *) series=${version%%.*} ;;
esac
shared=libexmy_capi.so
if [ -e "$built/$shared" ]; then
    cp "$built/$shared" "$prefix/lib/$shared.$version"
    ln -sf "$shared.$version" "$prefix/lib/$shared.$series"
    ln -sf "$shared.$series" "$prefix/lib/$shared"
fi
sed -e "s|@prefix@|$prefix|" -e "s|@version@|$version|" crates/exmy-capi/exmy.pc.in \
    > "$prefix/lib/pkgconfig/exmy.pc"
echo "installed in $prefix"
