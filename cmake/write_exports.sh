#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes a linker version script: a library exports the C API, and under a private node what others of our binaries link
# beyond it. The arguments: NM, a file that lists the library's objects, one that lists theirs, the node, the output.
set -euo pipefail
nm=$1 own=$2 others=$3 node=$4 output=$5

# The names alone; of each object nm prints a heading that ends with a colon, after an empty line if it is LLVM's.
names() { xargs -r "$nm" -P -g "$2" <"$1" | awk 'NF > 0 && !/:$/ {print $1}' | LC_ALL=C sort -u; }

private=$(LC_ALL=C comm -12 <(names "$own" --defined-only) <(names "$others" --undefined-only) | grep -v '^ingot_' || true)
{
  echo "INGOT_1 { global: ingot_*; local: *; };"
  if [[ -n $private ]]; then
    echo "$node { global:"
    sed 's/$/;/' <<<"$private"
    echo "};"
  fi
} >"$output.new"
if cmp -s "$output.new" "$output"; then rm "$output.new"; else mv "$output.new" "$output"; fi
