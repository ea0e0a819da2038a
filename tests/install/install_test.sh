#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build tree into a prefix, moves the prefix, builds both examples against it and runs them; what the
# documents show of C++ compiles against it too.
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

# Each block of C++ by itself; statements without a function around them become the body of main.
awk -v folder="$work" '
  /^```cpp$/ { inside = 1; count++; includes = body = ""; next }
  /^```$/ && inside {
    inside = 0
    if (body !~ /int main\(/) body = "int main() {\n" body "}\n"
    printf "%s%s", includes, body > (folder "/document" count ".cpp")
  }
  inside { if (/^#include/) includes = includes $0 "\n"; else body = body $0 "\n" }
' "$source/README.md" "$source/docs/cpp.md"
read -ra flags <<<"$(pkg-config --cflags ingot)"
count=0
for document in "$work"/document*.cpp; do
  "${CXX:-c++}" -std=c++20 -fsyntax-only -Wall -Wextra -Werror -Wno-unused-variable "${flags[@]}" "$document" || { cat "$document"; exit 1; }
  count=$((count + 1))
done
[[ $count -eq 3 ]] || { echo "the documents have $count blocks of C++"; exit 1; }

"$work/moved/bin/ingot" verify "$work/image.ingot"
