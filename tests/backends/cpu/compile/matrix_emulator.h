// SPDX-License-Identifier: Apache-2.0
// Matrix registers for processors without them: their instructions are carried out one by one, when the
// processor refuses them.
#pragma once

namespace ingot::core::cpu::test {

// Whether this process can run code for `level`; from then on, at the latest, matrix registers are emulated
// where the processor has none.
bool can_run(const char* level);

}  // namespace ingot::core::cpu::test
