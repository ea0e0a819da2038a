# SPDX-License-Identifier: Apache-2.0
# Toolchain file: from Linux on x86-64 to Linux on aarch64 by GCC. `make aarch64` uses it; tools/setup_aarch64.sh makes the
# folder of libraries, INGOT_AARCH64_LIBRARIES.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(prefix aarch64-linux-gnu)
set(CMAKE_C_COMPILER ${prefix}-gcc-12)
set(CMAKE_CXX_COMPILER ${prefix}-g++-12)

set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES INGOT_AARCH64_LIBRARIES)
set(CMAKE_FIND_ROOT_PATH ${INGOT_AARCH64_LIBRARIES} /usr/${prefix})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# The C library is all that is needed where the result runs.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static-libstdc++ -static-libgcc -s")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static-libstdc++ -static-libgcc -s")
