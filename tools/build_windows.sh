#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the runtime for Windows and packs it, as dist/ingot-VERSION-windows-x86-64.zip for programs, and as
# dist/ingot-VERSION-py3-none-win_amd64.whl for Python.
set -euo pipefail
cd "$(dirname "$0")/.."
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # objects of another checkout are found
tools/setup_windows.sh build/windows-libraries
cmake --preset windows >build/windows.log
cmake --build --preset windows --parallel "${JOBS:-$(nproc)}" >>build/windows.log || { tail -n 40 build/windows.log; exit 1; }
version=$(sed -n 's/^project(ingot VERSION \([0-9.]*\) .*/\1/p' CMakeLists.txt)
name=ingot-$version-windows-x86-64
rm -rf "build/$name" "dist/$name.zip"
cmake --install build/windows --prefix "build/$name" >>build/windows.log
# The DLL and the program need Windows alone.
for file in "build/$name"/bin/*; do
  needed=$(x86_64-w64-mingw32-objdump -p "$file" | sed -n 's/.*DLL Name: //p' | tr '[:upper:]' '[:lower:]')
  for library in $needed; do
    case $library in
      kernel32.dll | msvcrt.dll | advapi32.dll | shell32.dll | api-ms-win-core-synch-*.dll | ingot_runtime.dll) ;;
      *) echo "$file must not need $library" >&2; exit 1 ;;
    esac
  done
done
mkdir -p dist
(cd build && cmake -E tar cf "../dist/$name.zip" --format=zip "$name")
tools/build_runtime_wheel.sh "build/$name/bin/ingot_runtime.dll" win_amd64 dist build/windows-libraries/licences >>build/windows.log
echo "dist/ingot-$version-py3-none-win_amd64.whl: $(stat -c %s "dist/ingot-$version-py3-none-win_amd64.whl") bytes"
echo "dist/$name.zip: $(stat -c %s "dist/$name.zip") bytes"
