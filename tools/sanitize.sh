#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the C++ tests with a sanitizer and runs them: sanitize.sh asan|tsan [TEST_FOLDER...], all folders by default.
set -euo pipefail
cd "$(dirname "$0")/.."
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1  # objects of another checkout are found
preset=${1:?usage: sanitize.sh asan|tsan [TEST_FOLDER...]}
shift
export ASAN_OPTIONS=detect_stack_use_after_return=1:check_initialization_order=1
export UBSAN_OPTIONS=print_stacktrace=1
export TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:die_after_fork=0

targets=()
pattern=.
if (($# > 0)); then
  targets=(--target "${@/#/ingot_test_}")
  pattern="^($(IFS='|' && echo "$*"))$"
fi
cmake --preset "$preset" >/dev/null
cmake --build --preset "$preset" -j "${JOBS:-$(nproc)}" "${targets[@]}"
ctest --preset "$preset" -R "$pattern" -j "${JOBS:-$(nproc)}"
