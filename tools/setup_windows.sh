#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prepares builds for Windows (Debian 12, Ubuntu 24.04): the cross compiler, and below FOLDER the libraries that the runtime
# library and the program hold. `--wine` installs what runs the result.
set -euo pipefail
usage() { echo "usage: $0 [--wine] FOLDER" >&2; exit 2; }
packages=(g++-mingw-w64-x86-64-posix binutils-mingw-w64-x86-64 dpkg-dev zip)
folder=
for argument in "$@"; do
  case $argument in
    --wine) packages+=(wine wine64) ;;
    -*) usage ;;
    *) folder=$argument ;;
  esac
done
[[ -n $folder ]] || usage
tools=$(cd "$(dirname "$0")" && pwd)
"$tools/install_packages.sh" "${packages[@]}"

exec "$tools/build_cross_libraries.sh" windows "$folder"
