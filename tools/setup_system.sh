#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the system packages that the build needs (Debian 12, Ubuntu 24.04). Asks the network only for what is missing.
set -euo pipefail

packages=(
  build-essential ccache cmake git ninja-build pkg-config  # tools
  python3 python3-dev python3-venv
  llvm-19-dev libxml2-dev libzstd-dev zlib1g-dev           # the CPU compiler, and what its CMake package asks for
  flatbuffers-compiler libcli11-dev libcurl4-openssl-dev libeigen3-dev libflatbuffers-dev libfmt-dev libhiredis-dev
  libkainjow-mustache-dev libminizip-dev libsodium-dev libxxhash-dev nlohmann-json3-dev
  clang-format-19 libgmock-dev libgtest-dev                # tests and checks
)
for option in "$@"; do
  case $option in
    --long) packages+=(clang-19 libclang-rt-19-dev) ;;     # fuzzing
    --servers) packages+=(nginx-light openssl redis-server) ;;  # tests start them on free ports; Debian starts them as services too
    --browser) packages+=(chromium-headless-shell) ;;      # tests look at report pages with it
    *) echo "usage: $0 [--long] [--servers] [--browser]" >&2; exit 2 ;;
  esac
done

exec "$(dirname "$0")/install_packages.sh" "${packages[@]}"
