// SPDX-License-Identifier: Apache-2.0
#include "engine/program.h"

#include <algorithm>

#include "engine/engine_data.h"
#include "support/error.h"

namespace ingot::core {
namespace {

void name_dims(const std::vector<Port>& ports, SpelledSymbols& names) {
  for (const Port& port : ports) {
    for (size_t i = 0; i < port.type.rank(); ++i) {
      const Dim& dim = port.type.shape[i];
      if (dim.is_symbol()) names.emplace(dim.symbol_name(), port.name + ".shape[" + std::to_string(i) + "]");
    }
  }
}

}  // namespace

SpelledSymbols spelled_symbols(const Program& program) {
  SpelledSymbols names;
  name_dims(program.inputs, names);
  name_dims(program.states, names);
  return names;
}

BufferId root_buffer(const Program& program, BufferId id) {
  while (program.buffers[id].storage == Storage::kAlias) id = program.buffers[id].alias_of;
  return id;
}

int64_t place_arena(const Program& program, Place place, std::span<const int64_t> sizes,
                    std::span<int64_t> offsets) {
  int64_t total = 0;
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    const Buffer& buffer = program.buffers[id];
    if (buffer.storage != Storage::kArena || buffer.place != place) continue;
    int64_t offset = 0;
    for (const BufferId lower : buffer.above) offset = std::max(offset, offsets[lower] + sizes[lower]);
    offsets[id] = offset;
    int64_t end = 0;
    if (sizes[id] < 0 || __builtin_add_overflow(offset, sizes[id], &end)) {
      throw UserError("INGOT-U101", "the sizes of a memory plan overflow 64 bits", "use smaller shapes");
    }
    total = std::max(total, end);
  }
  return total;
}

}  // namespace ingot::core
