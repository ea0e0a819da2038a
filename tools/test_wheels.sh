#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the wheels of dist/ into fresh environments of each Python 3.11 to 3.13 on this machine, with numpy alone, and uses them
# there as tests/tools/try_wheel.py does; with --torch also with torch 2.13. No compiler is found on the way.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

tried=0
for version in 3.11 3.12 3.13; do
  python=$(tools/find_python.sh "$version") || continue
  for extra in "" ${1:+torch==2.13.0}; do
    environment=$folder/$version$extra
    "$python" -m venv "$environment"
    # shellcheck disable=SC2086  # nothing, or one requirement
    "$environment/bin/pip" install -q --only-binary :all: numpy $extra
    CC=/nonexistent CXX=/nonexistent "$environment/bin/pip" install -q --only-binary :all: --no-index --find-links dist ingot
    (cd "$folder" && env -i PATH="$environment/bin" HOME="$folder" "$environment/bin/python" "$OLDPWD/tests/tools/try_wheel.py" \
      "$OLDPWD/tests/data/pt2/pair.pt2")
    tried=$((tried + 1))
  done
done
echo "$tried environments, 0 failures"
[[ $tried -gt 0 ]]
