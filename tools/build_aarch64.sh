#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the runtime for Linux on aarch64 and packs it, as dist/ingot-VERSION-linux-aarch64.tar.gz for programs, and as
# dist/ingot-VERSION-py3-none-manylinux_2_36_aarch64.whl for Python.
set -euo pipefail
cd "$(dirname "$0")/.."
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # objects of another checkout are found
tools/setup_aarch64.sh build/aarch64-libraries
cmake --preset aarch64 >build/aarch64.log
cmake --build --preset aarch64 --parallel "${JOBS:-$(nproc)}" >>build/aarch64.log || { tail -n 40 build/aarch64.log; exit 1; }
version=$(sed -n 's/^project(ingot VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
name=ingot-$version-linux-aarch64
rm -rf "build/$name" "dist/$name.tar.gz"
cmake --install build/aarch64 --prefix "build/$name" --component runtime >>build/aarch64.log
cp -r build/aarch64-libraries/licences "build/$name/share/doc/ingot/"
mkdir -p dist
tar -C build -czf "dist/$name.tar.gz" "$name"
tools/build_runtime_wheel.sh "build/$name/lib/libingot_runtime.so.0" manylinux_2_36_aarch64 dist build/aarch64-libraries/licences >>build/aarch64.log
for file in "$name.tar.gz" "ingot-$version-py3-none-manylinux_2_36_aarch64.whl"; do
  echo "dist/$file: $(stat -c %s "dist/$file") bytes"
done
