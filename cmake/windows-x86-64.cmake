# SPDX-License-Identifier: Apache-2.0
# Toolchain file: from Linux to Windows on x86-64 by mingw-w64. `make windows` uses it; tools/setup_windows.sh makes the
# folder of libraries, INGOT_WINDOWS_LIBRARIES.
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(prefix x86_64-w64-mingw32)
set(CMAKE_C_COMPILER ${prefix}-gcc-posix)
set(CMAKE_CXX_COMPILER ${prefix}-g++-posix)
set(CMAKE_RC_COMPILER ${prefix}-windres)

set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES INGOT_WINDOWS_LIBRARIES)
set(CMAKE_FIND_ROOT_PATH ${INGOT_WINDOWS_LIBRARIES})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)

# Windows 10. GCC does not align the stack beyond 16 bytes here (its bug 54412), yet spills 32-byte vectors as if it did:
# the assembler makes the moves unaligned ones.
set(flags "-D_WIN32_WINNT=0x0A00 -DWIN32_LEAN_AND_MEAN -DNOMINMAX -Wa,-mbig-obj -Wa,-muse-unaligned-vector-move")
set(CMAKE_C_FLAGS_INIT "${flags}")
set(CMAKE_CXX_FLAGS_INIT "${flags}")
# Nothing but Windows itself is needed where the result runs.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static -s")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-static -s")
