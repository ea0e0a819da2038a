#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Random graphs for hours: random_graphs.sh [COUNT] [SEED] [BUILD]. One process per core; each keeps how far it came in
# BUILD/random/SEED, so that the same call goes on after an interruption, and a process that dies is started again.
set -euo pipefail
cd "$(dirname "$0")/.."
count=${1:-100000}
seed=${2:-1}
build=${3:-build/release}
program=${PROGRAM:-$build/bin/ingot_random_graphs}
shards=${JOBS:-$(nproc)}
folder=$build/random/$seed-$shards
mkdir -p "$folder"

run_shard() {
  local status=3 tries
  for ((tries = 0; status > 2 && tries < 1000; ++tries)); do
    status=0
    "$program" --seed "$seed" --count "$count" --shard "$1/$shards" --resume "$folder/shard$1" --out "$folder" || status=$?
  done
  return "$status"
}

pids=()
for ((i = 0; i < shards; ++i)); do
  run_shard "$i" &
  pids+=($!)
done
status=0
for pid in "${pids[@]}"; do wait "$pid" || status=1; done
echo "$(find "$folder" -name '*.ir' | wc -l) failing graphs are in $folder"
exit "$status"
