#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds every fuzz target and runs each for the given number of seconds, from what the tests hold of right inputs;
# findings are left in build/fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "${JOBS:-$(nproc)}"
mkdir -p build/fuzz/findings

# Right inputs to begin with: the archives of the tests, and each graph of the tests of passes by itself. The engine
# target makes its own.
seeds=build/fuzz/seeds
rm -rf $seeds && mkdir -p $seeds/{engine,ir,pt2}_fuzzer
cp tests/data/pt2/*.pt2 $seeds/pt2_fuzzer
awk -v folder=$seeds/ir_fuzzer '/^\/\// { count++; next } { print > (folder "/" count) }' tests/passes/*.ir

status=0
count=0
for program in build/fuzz/bin/*_fuzzer; do
  [[ -x $program ]] || continue
  name=$(basename "$program")
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus" "$seeds/$name"
  count=$((count + 1))
  "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -max_len=32768 -artifact_prefix="build/fuzz/findings/$name-" "$corpus" "$seeds/$name" || status=1
done
echo "fuzz: $count targets, $seconds s each, $([[ $status -eq 0 ]] && echo no findings || echo findings in build/fuzz/findings)"
exit $status
