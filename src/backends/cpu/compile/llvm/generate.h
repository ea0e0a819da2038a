// SPDX-License-Identifier: Apache-2.0
// Running LLVM so that its fatal errors are ours.
#pragma once

#include <functional>

#include "engine/program.h"

namespace ingot::core::cpu {

// Calls `make` on a thread of its own and returns its image, or throws what it threw. LLVM's fatal errors
// become InternalError, want of memory std::bad_alloc. After one nothing can unwind, as LLVM is built without
// exceptions: the thread then sleeps until the process ends, and keeps its stack and `make` alive.
Image generate(std::function<Image()> make);

}  // namespace ingot::core::cpu
