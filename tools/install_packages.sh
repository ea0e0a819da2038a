#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs those of the given system packages that are missing (Debian, Ubuntu).
set -euo pipefail
packages=("$@")

missing=()
for package in "${packages[@]}"; do
  [[ $(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || { echo "Missing: ${missing[*]}. Run this as root, or install sudo." >&2; exit 1; }
  as_root=(sudo)
fi
echo "Installing system packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
