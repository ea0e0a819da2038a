#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the wheel without the compiler, for Linux, into fresh environments of each Python 3.10 to 3.13 on this machine, with numpy
# alone, and uses it there as tests/tools/try_runtime_wheel.py does, on models that the package in .venv (make build; or PYTHON) builds.
# test_runtime_wheel.sh --torch 3.10 3.12 does the same with torch 2.13 for these too.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
python=${PYTHON:-$root/.venv/bin/python}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

mkdir "$folder/models"
"$python" tests/tools/make_runtime_models.py "$folder/models"
library=$("$python" -c 'import ingot, pathlib; print(pathlib.Path(ingot.__file__).with_name("libingot_runtime.so.0"))')
PYTHON=$python tools/build_runtime_wheel.sh "$library" linux_x86_64 "$folder/wheels" >/dev/null

# try PYTHON NAME REQUIREMENT...: an environment of its own.
try() {
  local environment=$folder/$2
  "$1" -m venv "$environment"
  "$environment/bin/pip" install -q --disable-pip-version-check --only-binary :all: "${@:3}"
  "$environment/bin/pip" install -q --disable-pip-version-check --no-index --find-links "$folder/wheels" ingot
  mkdir "$environment/work"
  cd "$environment/work"
  env -i PATH="$environment/bin" HOME="$folder" "$environment/bin/python" "$root/tests/tools/try_runtime_wheel.py" "$folder/models"
  cd "$root"
  rm -rf "$environment"
}

with_torch=
[[ ${1:-} == --torch ]] && with_torch=" ${*:2} "
tried=0
for version in 3.10 3.11 3.12 3.13; do
  found=$(tools/find_python.sh "$version" 2>/dev/null) || continue
  try "$found" "$version" numpy
  tried=$((tried + 1))
  if [[ $with_torch == *" $version "* ]]; then
    try "$found" "$version-torch" numpy torch==2.13.0
    tried=$((tried + 1))
  fi
done
[[ $tried -gt 0 ]] || exit 1
echo "$tried passed, 0 failed"
