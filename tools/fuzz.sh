#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds every fuzz target and runs each for the given number of seconds: fuzz.sh [SECONDS [TARGET...]]. Each prints its
# coverage at the beginning and in the end; findings are left in build/fuzz/findings, inputs that cover more in
# build/fuzz/corpus.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift $(($# > 0 ? 1 : 0))
targets=("$@")
((${#targets[@]} > 0)) || mapfile -t targets < <(cd tests/fuzz && printf '%s\n' *_fuzzer.cpp | sed 's/\.cpp$//')
cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "${JOBS:-$(nproc)}" --target "${targets[@]}" make_seeds
mkdir -p build/fuzz/findings

# Right inputs to begin with, and the words of the text form.
seeds=build/fuzz/seeds
rm -rf $seeds && mkdir -p $seeds/ir_fuzzer
build/fuzz/bin/make_seeds $seeds
awk -v folder=$seeds/ir_fuzzer '/^\/\// { count++; next } { print > (folder "/" count) }' tests/passes/*.ir
words=build/fuzz/words
{
  sed -n 's/^OP(\(.*\))$/"\1("/p' src/ops/ops.def src/ops/target_forms.def
  printf '"%s"\n' graph return symbol update none in typical 'at most' constant value= fused axis= dims= \
    f32 f16 bf16 f64 i64 i32 u8 bool e4m3 i4 c64 'floordiv(' 'mod(' 'max(' 'min(' '..' '%' '--' nan inf
} >$words

# Memory that an input asks for and the system refuses is an error to report, not a finding.
export ASAN_OPTIONS=allocator_may_return_null=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
status=0
for name in "${targets[@]}"; do
  corpus=build/fuzz/corpus/$name
  mkdir -p "$corpus" "$seeds/$name"
  log=build/fuzz/$name.log
  echo "fuzz: $name"
  build/fuzz/bin/"$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=2048 -max_len=80000 \
    -dict=$words -artifact_prefix="build/fuzz/findings/$name-" "$corpus" "$seeds/$name" >"$log" 2>&1 || status=1
  grep -E 'INITED|DONE|ERROR|SUMMARY|runtime error|Test unit written' "$log" || { tail -n 20 "$log"; status=1; }
done
echo "fuzz: ${#targets[@]} targets, $seconds s each, $([[ $status -eq 0 ]] && echo no findings || echo findings in build/fuzz/findings)"
exit $status
