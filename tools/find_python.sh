#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a Python 3.11 or 3.12, or of the version given (3.13), that can make virtual environments and build modules.
set -euo pipefail
version=${1:-}
if [[ -n $version ]]; then
  names=("python$version" python3 /usr/bin/python3 "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version"*/bin/python3)
else
  names=("${PYTHON:-python3}" python3.12 python3.11 /usr/bin/python3)
fi
for name in "${names[@]}"; do
  if path=$("$name" - "$version" 2>/dev/null <<'PROBE'
import ensurepip, os, sys, sysconfig, venv
found = ".".join(map(str, sys.version_info[:2]))
assert found in ([sys.argv[1]] if sys.argv[1] else ["3.11", "3.12"])
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print(sys.executable)
PROBE
  ); then
    echo "$path"
    exit 0
  fi
done
echo "No Python ${version:-3.11 or 3.12} with its headers was found; PYTHON=/path/to/python names one for the environment." >&2
exit 1
