#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds dist/*.whl: one wheel for Python 3.11, one of the stable ABI for 3.12 and later. A Python that is not on this machine, or
# has no headers, is left out, with a message. The platform tag names the glibc that the binaries need: manylinux_2_36 where they
# were built on Debian 12.
set -euo pipefail
cd "$(dirname "$0")/.."
shopt -s nullglob

# What every manylinux system has; a wheel may need nothing else but its own libraries.
system_libraries='^(libz|libstdc\+\+|libm|libgcc_s|libc|libdl|libpthread|librt|ld-linux-x86-64)\.so'

# build PYTHON NAME: the wheel of that Python, in a tree of that name.
build() {
  local python=$1 tree=build/wheel$2 environment=build/wheel$2-environment
  "$python" -m venv "$environment"
  "$environment/bin/python" -m pip install -q -r requirements/build.txt
  "$environment/bin/python" -m pip wheel -q --no-build-isolation --no-deps --wheel-dir build/wheels \
    --config-settings build-dir="$tree" --config-settings cmake.define.INGOT_UNITY=ON .
}

# Puts the wheel into dist/ under the tag of the oldest glibc that has all that its binaries ask for.
tag() {
  local wheel=$1 folder glibc
  folder=$(mktemp -d)
  python3 -m zipfile -e "$wheel" "$folder"
  local binaries=("$folder"/ingot/*.so "$folder"/ingot/*.so.* "$folder"/*.data/scripts/ingot)
  if objdump -p "${binaries[@]}" | awk '$1 == "NEEDED" {print $2}' | grep -Ev "$system_libraries|^libingot"; then
    echo "$wheel: these libraries are not on every system" >&2
    exit 1
  fi
  glibc=$(objdump -T "${binaries[@]}" | grep -o "GLIBC_2\.[0-9]*" | sort -Vu | tail -n 1 | tr . _)
  rm -r "$folder"
  mkdir -p dist
  cp "$wheel" dist/
  python3 tools/tag_wheel.py "dist/$(basename "$wheel")" "manylinux_${glibc#GLIBC_}"
}

rm -rf build/wheels dist
built=0
for minor in 11 12; do
  if python=$(tools/find_python.sh "3.$minor"); then
    build "$python" "3$minor"
    built=1
  fi
done
[[ $built == 1 ]] || exit 1
for wheel in build/wheels/*.whl; do
  tag "$wheel"
done
ls -l dist
