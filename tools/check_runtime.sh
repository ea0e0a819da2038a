#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks that the runtime library of a build tree is small, needs nothing but the C and C++ libraries, and uses wide vectors
# where it has code for them.
set -euo pipefail
build=${1:?usage: check_runtime.sh BUILD_FOLDER}
limit=$((4 * 1024 * 1024))
library=$build/lib/libingot_runtime.so
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
strip -o "$stripped" "$library"
size=$(stat -c %s "$stripped")
needed=$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort | tr '\n' ' ')
echo "runtime: $size bytes stripped (limit $limit), needs $needed"

status=0
if ((size > limit)); then
  echo "$library is larger than $limit bytes" >&2
  status=1
fi
for name in $needed; do
  case $name in
    libc.so.6 | libm.so.6 | libstdc++.so.6 | libgcc_s.so.1 | libdl.so.2 | libpthread.so.0 | ld-linux-*) ;;
    *)
      echo "$library must not need $name" >&2
      status=1
      ;;
  esac
done
if nm -C --defined-only "$library" | grep -q 'llvm::'; then
  echo "$library holds parts of LLVM" >&2
  status=1
fi
# A compiler that does not inline into the functions for a level of x86-64 leaves them calls of code for the oldest.
narrow=$(objdump -d --no-show-raw-insn -C "$library" | awk '
  /^[0-9a-f]+ <.*_v[34][]<(].*>:$/ { name = $0; register = name ~ /_v3[]<(]/ ? "ymm" : "zmm"; found = 0 }
  name != "" && index($0, register) { found = 1 }
  /^$/ && name != "" { if (!found) print name; name = "" }')
if [[ -n $narrow ]]; then
  echo "$library does not use the vectors of the processor in: $narrow" >&2
  status=1
fi
exit $status
