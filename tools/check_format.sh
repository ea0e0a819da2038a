#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checks the format of C++ and Python; with --fix it is corrected instead. RUFF names the ruff program.
set -euo pipefail
cd "$(dirname "$0")/.."
ruff=${RUFF:-ruff}
mapfile -t sources < <(python3 tools/source_files.py .cpp .h)

if [[ ${1:-} == --fix ]]; then
  [[ ${#sources[@]} -eq 0 ]] || clang-format-19 -i "${sources[@]}"
  "$ruff" check --quiet --fix . || true
  "$ruff" format --quiet .
  python3 tools/sort_def.py
  exit 0
fi

status=0
if [[ ${#sources[@]} -gt 0 ]]; then
  # Only the first wrong line of a file is of use: the remedy is the same.
  clang-format-19 --dry-run --Werror --ferror-limit=1 "${sources[@]}" || status=1
fi
"$ruff" check . || status=1
"$ruff" format --check --diff . || status=1
python3 tools/sort_def.py --check || status=1
[[ $status -eq 0 ]] && echo "format: ${#sources[@]} C++ files and all Python files are in order" ||
  echo "format: wrong; 'make format' corrects it" >&2
exit $status
