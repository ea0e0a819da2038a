#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prepares builds for aarch64 Linux (Debian 12, Ubuntu 24.04): the cross compiler, and below FOLDER the libraries that the runtime
# library and the program hold. `--qemu` installs what runs the result.
set -euo pipefail
usage() { echo "usage: $0 [--qemu] FOLDER" >&2; exit 2; }
packages=(g++-12-aarch64-linux-gnu dpkg-dev)
folder=
for argument in "$@"; do
  case $argument in
    --qemu) packages+=(qemu-user) ;;
    -*) usage ;;
    *) folder=$argument ;;
  esac
done
[[ -n $folder ]] || usage
tools=$(cd "$(dirname "$0")" && pwd)
"$tools/install_packages.sh" "${packages[@]}"

exec "$tools/build_cross_libraries.sh" aarch64 "$folder"
