// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace ingot::core {

// As rename(2) has it: what has the new name is replaced, also while it is open or mapped. Both are full
// paths. Returns 0, or -1 with `errno`.
int rename_replacing(const wchar_t* from, const wchar_t* to);

}  // namespace ingot::core
