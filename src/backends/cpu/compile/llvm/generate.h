// SPDX-License-Identifier: Apache-2.0
// Runs LLVM so that its fatal errors become exceptions.
#pragma once

#include <functional>

#include "engine/program.h"

namespace ingot::core::cpu {

// Calls `make` on a separate thread and returns its kernel binary, or rethrows its exception. LLVM's fatal
// errors become InternalError, lack of memory std::bad_alloc. LLVM is built without exceptions, so after such
// an error nothing can unwind: the thread sleeps until the process ends, and keeps its stack and `make`
// alive.
Image generate(std::function<Image()> make);

}  // namespace ingot::core::cpu
