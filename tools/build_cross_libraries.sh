#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Below FOLDER, the libraries that the runtime library and the program of another system hold, built from the sources of the
# distribution's packages: build_cross_libraries.sh windows|aarch64 FOLDER.
set -euo pipefail
system=${1:?usage: $0 windows|aarch64 FOLDER}
folder=${2:?usage: $0 windows|aarch64 FOLDER}
case $system in
  windows)
    host=x86_64-w64-mingw32
    compile=("$host-gcc-posix" -D_WIN32_WINNT=0x0A00 -Wa,-muse-unaligned-vector-move)
    sodium=()
    minizip=(ioapi unzip iowin32)
    ;;
  aarch64)
    host=aarch64-linux-gnu
    compile=("$host-gcc-12" -fPIC)
    sodium=(-DHAVE_PTHREAD=1 -DHAVE_GETPID=1 -DHAVE_MMAP=1 -DHAVE_MPROTECT=1 -DHAVE_SYS_MMAN_H=1 -DHAVE_POSIX_MEMALIGN=1)
    minizip=(ioapi unzip)
    ;;
  *) echo "usage: $0 windows|aarch64 FOLDER" >&2; exit 2 ;;
esac
compile+=(-O2 -DNDEBUG)

mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
done_mark=$folder/.done-1  # another number: what this script makes has changed
[[ ! -e $done_mark ]] || exit 0

# Sources of packages, from where the packages come from, whether or not the system's lists have them too.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
mkdir -p "$work"/{parts,lists/partial,source}
cat >"$work/apt.conf" <<EOF
Dir::Etc::SourceList "$work/sources.list";
Dir::Etc::SourceParts "$work/parts";
Dir::State::Lists "$work/lists";
APT::Sandbox::User "root";
EOF
sed -n 's/^deb /deb-src /p' /etc/apt/sources.list >"$work/sources.list" 2>/dev/null || true
for list in /etc/apt/sources.list.d/*.sources; do
  [[ -e $list ]] && sed 's/^Types: .*/Types: deb-src/' "$list" >"$work/parts/$(basename "$list")"
done
cd "$work/source"
export APT_CONFIG=$work/apt.conf
apt-get update -q >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
# The newest version that can be fetched: mirrors list some before they have their files.
fetch() { # fetch PACKAGE
  local version
  while read -r version; do
    apt-get source -q "$1=$version" >>"$work/log" 2>&1 && return
    echo "The sources of $1 $version cannot be fetched." >&2
  done < <(apt-cache showsrc "$1" | sed -n 's/^Version: //p' | sort -V -r -u)
  cat "$work/log" >&2
  return 1
}
for package in libsodium libzstd zlib; do fetch "$package"; done
unset APT_CONFIG

rm -rf "$folder"
mkdir -p "$folder"/{include/minizip,lib,licences}
archive() { # archive NAME SOURCES...: the library NAME of objects of C sources
  local name=$1
  shift
  mkdir -p "$work/$name"
  printf '%s\0' "$@" | (cd "$work/$name" && xargs -0 -P "$(nproc)" -n 8 "${compile[@]}" "${flags[@]}" -c)
  "$host-ar" rcs "$folder/lib/lib$name.a" "$work/$name"/*.o
}

cd "$work"/source/libsodium-*/
library=$PWD/src/libsodium
sed -e 's/@VERSION@/1.0.18/; s/@SODIUM_LIBRARY_VERSION_MAJOR@/10/; s/@SODIUM_LIBRARY_VERSION_MINOR@/3/; s/@SODIUM_LIBRARY_MINIMAL_DEF@//' \
  "$library/include/sodium/version.h.in" >"$library/include/sodium/version.h"
flags=(-w -DCONFIGURED=1 -DNATIVE_LITTLE_ENDIAN=1 -DHAVE_TI_MODE=1 -DSODIUM_STATIC=1 "${sodium[@]}" -I"$library/include/sodium" -I"$library/include")
mapfile -t sources < <(find "$library" -name '*.c')
archive sodium "${sources[@]}"
cp -r "$library/include/sodium.h" "$library/include/sodium" "$folder/include/"
cp LICENSE "$folder/licences/libsodium"

cd "$work"/source/libzstd-*/
flags=(-DZSTD_DISABLE_ASM -DXXH_NAMESPACE=ZSTD_)
archive zstd "$PWD"/lib/common/*.c "$PWD"/lib/compress/*.c "$PWD"/lib/decompress/*.c
cp lib/zstd.h lib/zstd_errors.h "$folder/include/"
cp LICENSE "$folder/licences/zstd"

cd "$work"/source/zlib-*/
flags=(-I"$PWD")
archive z "$PWD"/{adler32,compress,crc32,deflate,inffast,inflate,inftrees,trees,uncompr,zutil}.c
mapfile -t sources < <(printf "$PWD/contrib/minizip/%s.c\n" "${minizip[@]}")
archive minizip "${sources[@]}"
cp zlib.h zconf.h "$folder/include/"
cp contrib/minizip/{ioapi,iowin32,unzip}.h "$folder/include/minizip/"
cp LICENSE "$folder/licences/zlib" 2>/dev/null || sed -n '/Copyright/,/\*\//p' zlib.h >"$folder/licences/zlib"

# Libraries that are headers alone serve every system.
for name in CLI Eigen eigen3 flatbuffers fmt nlohmann xxhash.h; do
  [[ ! -e /usr/include/$name ]] || ln -sfn "/usr/include/$name" "$folder/include/$name"
done
cp /usr/include/xxh3.h "$folder/include/" 2>/dev/null || true
touch "$done_mark"
