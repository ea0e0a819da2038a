#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds every fuzz target and runs each for the given number of seconds; findings are left in build/fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "${JOBS:-$(nproc)}"
mkdir -p build/fuzz/findings
status=0
count=0
for program in build/fuzz/bin/*_fuzzer; do
  [[ -x $program ]] || continue
  name=$(basename "$program")
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus"
  seeds=()
  [[ -d tests/fuzz/seeds/$name ]] && seeds=("tests/fuzz/seeds/$name")
  count=$((count + 1))
  "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
    -artifact_prefix="build/fuzz/findings/$name-" "$corpus" "${seeds[@]}" || status=1
done
echo "fuzz: $count targets, $seconds s each, $([[ $status -eq 0 ]] && echo no findings || echo findings in build/fuzz/findings)"
exit $status
