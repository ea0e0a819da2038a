#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build tree into a prefix, moves the prefix, builds both examples against it and runs them.
set -euo pipefail
build=${1:?usage: install_test.sh BUILD_FOLDER [CMAKE]}
cmake=${2:-cmake}
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$cmake" --install "$build" --component ingot --prefix "$work/first" >"$work/log" || { cat "$work/log"; exit 1; }
mv "$work/first" "$work/moved"
pkgconfig=$(dirname "$(find "$work/moved" -name ingot-runtime.pc)")

"$cmake" -S "$source/examples/cpp" -B "$work/cpp" -D CMAKE_PREFIX_PATH="$work/moved" >"$work/log" || { cat "$work/log"; exit 1; }
"$cmake" --build "$work/cpp" >"$work/log" || { cat "$work/log"; exit 1; }
"$work/cpp/example" "$source/tests/data/pt2/weights.pt2" "$work/image.ingot" | tee "$work/built"
"$work/cpp/example" "$work/image.ingot" >"$work/loaded"
diff "$work/built" "$work/loaded"

export PKG_CONFIG_PATH=$pkgconfig
read -ra flags <<<"$(pkg-config --cflags --libs ingot-runtime)"
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror "$source/examples/c/main.c" "${flags[@]}" -Wl,-rpath,"$(dirname "$pkgconfig")" -o "$work/c_example"
"$work/c_example" "$work/image.ingot" >"$work/from_c"
diff "$work/built" "$work/from_c"

"$work/moved/bin/ingot" verify "$work/image.ingot"
