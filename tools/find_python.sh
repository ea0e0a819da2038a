#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a Python 3.11 or 3.12 that can make virtual environments and build modules.
set -euo pipefail
for name in "${PYTHON:-python3}" python3.12 python3.11 /usr/bin/python3; do
  if path=$("$name" - 2>/dev/null <<'PROBE'
import ensurepip, os, sys, sysconfig, venv
assert (3, 11) <= sys.version_info[:2] <= (3, 12)
assert os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h"))
print(sys.executable)
PROBE
  ); then
    echo "$path"
    exit 0
  fi
done
echo "No Python 3.11 or 3.12 with its headers was found; PYTHON=/path/to/python names one." >&2
exit 1
