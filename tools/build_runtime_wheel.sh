#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds a wheel without the compiler and without an extension: the Python files, and the runtime library, which they call by ctypes
# (docs/design/036). It needs Python 3.10 or later and numpy where it is installed; here, a Python with requirements/build.txt:
# PYTHON=..., otherwise one in build/runtime-wheel-environment.
#   build_runtime_wheel.sh build/.../ingot_runtime.dll win_amd64 dist [FOLDER OF LICENCES]
set -euo pipefail
[[ $# == 3 || $# == 4 ]] || { echo "usage: $0 LIBRARY PLATFORM FOLDER [LICENCES]" >&2; exit 2; }
library=$(realpath "$1")
platform=$2
mkdir -p "$3"
folder=$(realpath "$3")
licences=${4:+$(realpath "$4")}
cd "$(dirname "$0")/.."
if [[ -z ${PYTHON:-} ]]; then
  environment=build/runtime-wheel-environment
  if [[ ! -x $environment/bin/python ]]; then
    "$(tools/find_python.sh)" -m venv "$environment"
  fi
  "$environment/bin/python" -m pip install -q --disable-pip-version-check -r requirements/build.txt
  PYTHON=$environment/bin/python
fi
PYTHON=$(cd "$(dirname "$PYTHON")" && pwd)/$(basename "$PYTHON")

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir "$tree/python"
cp CMakeLists.txt LICENSE README.md "$tree"
# The metadata of the other wheels, but for the Pythons.
sed 's/^requires-python = .*/requires-python = ">=3.10"/' pyproject.toml >"$tree/pyproject.toml"
if [[ -n $licences ]]; then
  cp -r "$licences" "$tree/licences"
  sed -i 's|^license-files = .*|license-files = ["LICENSE", "licences/*"]|' "$tree/pyproject.toml"
fi
cp -rL python/ingot "$tree/python/ingot"
find "$tree/python" \( -name '__pycache__' -o -name '*.so' -o -name '*.so.*' -o -name '*.dll' \) -prune -exec rm -rf {} +
cp "$library" "$tree/python/ingot/$(basename "$library")"
cd "$tree"
"$PYTHON" - "$folder" "$platform" <<'BUILD'
import sys
from scikit_build_core.build import build_wheel

folder, platform = sys.argv[1:]
settings = {"wheel.cmake": "false", "wheel.platlib": "true", "wheel.tags": f"py3-none-{platform}", "build-dir": "build"}
build_wheel(folder, settings)
BUILD
cd "$folder"
ls -l ingot-*-py3-none-"$platform".whl
