#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the wheels of dist/ into fresh environments of each Python 3.11 to 3.13 on this machine, with numpy alone, and uses them
# there as tests/tools/try_wheel.py does. test_wheels.sh --torch 3.11 3.12 does the same with torch 2.13 for these too. No compiler
# and no source distribution is used on the way.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# try PYTHON NAME REQUIREMENT...: an environment of its own.
try() {
  local environment=$folder/$2
  "$1" -m venv "$environment"
  "$environment/bin/pip" install -q --only-binary :all: "${@:3}"
  CC=/nonexistent CXX=/nonexistent "$environment/bin/pip" install -q --only-binary :all: --no-index --find-links dist ingot
  mkdir "$environment/work"
  cd "$environment/work"
  env -i PATH="$environment/bin" HOME="$folder" "$environment/bin/python" "$root/tests/tools/try_wheel.py" "$root/tests/data/pt2/pair.pt2"
  cd "$root"
}

with_torch=
[[ ${1:-} == --torch ]] && with_torch=" ${*:2} "
tried=0
for version in 3.11 3.12 3.13; do
  python=$(tools/find_python.sh "$version") || continue
  try "$python" "$version" numpy
  tried=$((tried + 1))
  if [[ $with_torch == *" $version "* ]]; then
    try "$python" "$version-torch" numpy torch==2.13.0
    tried=$((tried + 1))
  fi
done
[[ $tried -gt 0 ]] || exit 1
echo "$tried passed, 0 failed"
