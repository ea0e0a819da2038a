// SPDX-License-Identifier: Apache-2.0
// One message instead of hundreds if the C++ headers are compiled as an older C++.
#pragma once

#if defined(_MSVC_LANG) ? _MSVC_LANG >= 202002L : __cplusplus >= 202002L
#define INGOT_HAS_CPP20 1
#else
#define INGOT_HAS_CPP20 0
#error "The C++ headers of Ingot require C++20: compile with -std=c++20, or use the C API of ingot/ingot.h"
#endif
