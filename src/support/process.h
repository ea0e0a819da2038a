// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace ingot::core {

int process_id();
bool is_process_gone(int id);  // false where that cannot be known
uint32_t current_user();       // as in FileFacts::owner
// Calls `call` in every child that this process forks from now on, before fork() returns there. On Windows,
// where nothing forks, it is never called.
void call_in_children(void (*call)());

}  // namespace ingot::core
