#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs a build tree by components into prefixes, moves them, and builds and runs the examples that they hold against
# them, by CMake and by pkg-config; what the documents show of C++ compiles against them too.
set -euo pipefail
build=${1:?usage: install_test.sh BUILD_FOLDER [CMAKE]}
cmake=${2:-cmake}
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "$*" >&2; exit 1; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "failed: $*"; }; }
refused() { # refused TEXT COMMAND...: the command fails and says the text
  local text=$1
  shift
  if "$@" >"$work/log" 2>&1; then fail "succeeded: $*"; fi
  tr '\n' ' ' <"$work/log" | tr -s ' ' | grep -qF "$text" || { cat "$work/log"; fail "did not say \"$text\": $*"; }
}
install_component() { quietly "$cmake" --install "$build" --component "$1" --prefix "$2"; }

install_component runtime "$work/first"
mv "$work/first" "$work/runtime"
install_component runtime "$work/second"
install_component compiler "$work/second"
mv "$work/second" "$work/both"

for prefix in runtime both; do
  for file in LICENSE docs/cpp.md docs/errors.md examples/c/main.c examples/cpp/CMakeLists.txt; do
    [[ -f $work/$prefix/share/doc/ingot/$file ]] || fail "$prefix lacks $file"
  done
done
while read -r page; do
  while read -r link; do
    [[ -e $(dirname "$page")/$link ]] || fail "$page links to $link, which is not installed"
  done < <(grep -oE '\]\([^)#: ]+\.md' "$page" | cut -c3-)
done < <(find "$work/runtime/share/doc/ingot" -name '*.md')
[[ -z $(find "$work/runtime" -name 'libingot.so*' -o -name compile.h -o -name ingot.pc -o -path '*/bin/*') ]] ||
  fail "the component runtime holds parts of the compiler"

# CMake: components that are there, that are not, and that do not exist.
cat >"$work/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.20)
project(finds LANGUAGES CXX)
find_package(ingot REQUIRED COMPONENTS ${WANTED})
message(STATUS "ingot_runtime_FOUND=${ingot_runtime_FOUND} ingot_compiler_FOUND=${ingot_compiler_FOUND}")
EOF
find_in() { "$cmake" -S "$work" -B "$work/find" --fresh -D CMAKE_PREFIX_PATH="$work/$1" -D WANTED="$2"; }
quietly find_in runtime runtime
grep -q "ingot_runtime_FOUND=TRUE ingot_compiler_FOUND=FALSE" "$work/log" || fail "other components were found"
quietly find_in both "runtime;compiler"
quietly find_in both ""
refused 'the compiler of ingot is not installed in' find_in runtime compiler
refused 'there is no component "cuda" of ingot; its components are runtime and compiler' find_in both cuda

# The examples as they were installed: with the runtime alone only one is built.
for prefix in runtime both; do
  quietly "$cmake" -S "$work/$prefix/share/doc/ingot/examples/cpp" -B "$work/$prefix-build" -D CMAKE_PREFIX_PATH="$work/$prefix"
  quietly "$cmake" --build "$work/$prefix-build"
done
[[ ! -e $work/runtime-build/build ]] || fail "the compiler's example was built without the compiler"
quietly "$work/both-build/build" "$source/tests/data/pt2/weights.pt2" "$work/image.ingot" version=7
"$work/both-build/run" "$work/image.ingot" | tee "$work/from_both"
grep -q '^version = 7$' "$work/from_both" || fail "the metadata is lost"
grep -q '^y: \[ 6 4 \] 0.47399' "$work/from_both" || fail "the output has another name or value"
"$work/runtime-build/run" "$work/image.ingot" | diff "$work/from_both" -

# pkg-config.
lib=$(dirname "$(find "$work/runtime" -name 'libingot_runtime.so')")
read -ra flags <<<"$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs ingot-runtime)"
"${CC:-cc}" -std=c11 -Wall -Wextra -Werror "$source/examples/c/main.c" "${flags[@]}" -Wl,-rpath,"$lib" -o "$work/c_example"
"$work/c_example" "$work/image.ingot" | sort | diff <(sort "$work/from_both") -  # C prints outputs in the engine's order
lib=${lib/runtime/both}
read -ra flags <<<"$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags --libs ingot)"
"${CXX:-c++}" -std=c++20 -Wall -Wextra -Werror "$source/examples/cpp/build.cpp" "${flags[@]}" -Wl,-rpath,"$lib" -o "$work/cpp_example"
quietly "$work/cpp_example" "$source/tests/data/pt2/weights.pt2" "$work/other.ingot"

# Each block of C++ by itself, but for those that need LibTorch; statements without a function around them become the body of
# main.
awk -v folder="$work" '
  /^```cpp$/ { inside = 1; count++; includes = body = ""; next }
  /^```$/ && inside {
    inside = 0
    if (body !~ /int main\(/) body = "int main() {\n" body "}\n"
    if (includes !~ /<torch\//) printf "%s%s", includes, body > (folder "/document" count ".cpp")
  }
  inside { if (/^#include/) includes = includes $0 "\n"; else body = body $0 "\n" }
' "$source/README.md" "$source/docs/cpp.md"
count=0
for document in "$work"/document*.cpp; do
  "${CXX:-c++}" -std=c++20 -fsyntax-only -Wall -Wextra -Werror -Wno-unused-variable "${flags[@]}" "$document" || { cat "$document"; exit 1; }
  count=$((count + 1))
done
[[ $count -ge 6 ]] || fail "the documents have $count blocks of C++"

# An older C++ gets one message.
echo '#include <ingot/compile.h>
#include <ingot/context.h>' >"$work/old.cpp"
refused "require C++20: compile with -std=c++20" "${CXX:-c++}" -std=c++17 -fsyntax-only "${flags[@]}" "$work/old.cpp"
[[ $(grep -c 'error:' "$work/log") -eq 1 ]] || { cat "$work/log"; fail "C++17 gets more than one error"; }

quietly "$work/both/bin/ingot" verify "$work/image.ingot"
"$work/both/bin/ingot" inspect "$work/image.ingot" | grep -q 'version: 7' || fail "inspect does not show the metadata"
