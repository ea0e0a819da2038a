// SPDX-License-Identifier: Apache-2.0
#include "runtime/arguments.h"

#include <algorithm>
#include <cstring>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "support/error.h"
#include "types/linear_dim.h"

namespace ingot::core {
namespace {

std::string describe_range(const DimRange& range) {
  return range.max == INT64_MAX ? fmt::format("at least {}", range.min)
                                : fmt::format("{}..{}", range.min, range.max);
}

// Binds symbols from the dims that decide them, and compares all other dims with the model's.
class SizeBinder {
 public:
  SizeBinder(const EngineData& data, const DimPool& dims)
      : data_(data), dims_(dims), values_(dims.table.symbols().size()) {}

  void bind_rank(const BoundGroups& groups) {
    for (const auto& [name, info] : data_.main.symbols) {
      if (info.by_rank) known_.emplace(name, Source{size_on_rank(*info.by_rank, groups), nullptr, 0});
    }
  }

  void bind(const Port& port, const Argument& argument) {
    for (size_t i = 0; i < port.type.rank(); ++i) {
      const Dim& dim = port.type.shape[i];
      const int64_t size = argument.shape[i];
      if (size < 0) refuse("INGOT-U303", port, i, fmt::format("is {}", size));
      if (!dim.is_symbol()) continue;
      const auto [entry, is_new] = known_.try_emplace(dim.symbol_name(), Source{size, &port, i});
      if (!is_new && entry->second.size != size) contradict(port, i, size, entry->second);
      if (is_new) check_range(port, i, LinearDim{dim.symbol_name()}, size, size);
    }
  }

  // Symbols that no dim is by itself: of 2*s, `compare` then finds sizes that are odd.
  void bind_others(const Port& port, const Argument& argument) {
    for (size_t i = 0; i < port.type.rank(); ++i) {
      const auto linear = linear_dim(port.type.shape[i]);
      if (!linear || known_.contains(linear->symbol)) continue;
      const int64_t value = linear->symbol_of(argument.shape[i]);
      known_.emplace(linear->symbol, Source{value, &port, i});
      check_range(port, i, *linear, value, argument.shape[i]);
    }
  }

  void compare(const Port& port, const Argument& argument) const {
    for (size_t i = 0; i < port.type.rank(); ++i) {
      const Dim& dim = port.type.shape[i];
      if (dim.is_symbol()) continue;
      const int64_t expected = dim.is_constant() ? *dim.constant() : evaluate(dim, symbol_values());
      if (expected == argument.shape[i]) continue;
      const std::string meaning = dim.is_constant() ? "" : fmt::format(" (= {})", dim.to_string());
      refuse(
          "INGOT-U303", port, i,
          fmt::format("is {}, but the model expects {}{}", argument.shape[i], expected, meaning),
          dim.is_constant() ? "pass this size, or build the engine with a range of sizes for the dim" : "");
    }
  }

  std::vector<int64_t> values() && {
    const auto& names = dims_.table.symbols();
    for (size_t i = 0; i < names.size(); ++i) {
      const auto found = known_.find(names[i]);
      if (found != known_.end()) values_[i] = found->second.size;
    }
    return std::move(values_);
  }

 private:
  struct Source {
    int64_t size;
    const Port* port;  // null: the rank
    size_t dim;
  };

  SymbolValues symbol_values() const {
    SymbolValues values;
    for (const auto& [name, source] : known_) values.emplace(name, source.size);
    return values;
  }

  void check_range(const Port& port, size_t dim, const LinearDim& linear, int64_t value, int64_t size) const {
    const auto found = data_.main.symbols.find(linear.symbol);
    if (found == data_.main.symbols.end()) return;
    DimRange range = found->second.range;
    if (value >= range.min && value <= range.max) return;
    range.min = linear.size_of(range.min);
    if (range.max != INT64_MAX) range.max = linear.size_of(range.max);
    refuse("INGOT-U305", port, dim,
           fmt::format("is {}, outside of the range {} that the engine was built for ({})", size,
                       describe_range(range), port.type.shape[dim].to_string()),
           size == 0 ? "models are traced with tensors that have elements: leave out calls with empty ones"
                     : "build the engine for a wider range");
  }

  [[noreturn]] void contradict(const Port& port, size_t dim, int64_t size, const Source& first) const {
    if (first.port == nullptr)
      refuse("INGOT-U304", port, dim, fmt::format("is {}, but {} on this rank", size, first.size));
    refuse("INGOT-U304", port, dim,
           fmt::format("is {}, but dim {} of input '{}' is {}: both are {}", size, first.dim,
                       first.port->name, first.size, port.type.shape[dim].to_string()));
  }

  [[noreturn]] static void refuse(std::string_view code, const Port& port, size_t dim,
                                  const std::string& cause, std::string advice = {}) {
    throw UserError(
        code,
        fmt::format("dim {} of input '{}' ({}) {}", dim, port.name, to_string(type_for_callers(port)), cause),
        std::move(advice));
  }

  const EngineData& data_;
  const DimPool& dims_;
  std::vector<int64_t> values_;
  std::map<std::string, Source> known_;
};

// The memory range of an argument, as [begin, end); empty if it has no elements.
struct Extent {
  uintptr_t begin, end;
  const ArgumentSlot* slot;
};

Extent extent_of(const ArgumentSlot& slot, const Argument& argument) {
  const auto element = static_cast<uintptr_t>(bit_width(argument.dtype) / 8);
  const auto data = reinterpret_cast<uintptr_t>(argument.data);
  Extent extent{data, data + element, &slot};
  uintptr_t dense = 1;  // unsigned: sizes are compared with the model's later, and may overflow here
  for (int32_t i = argument.rank; i-- > 0;) {
    if (argument.shape[i] <= 0) return {data, data, &slot};
    const auto size = static_cast<uintptr_t>(argument.shape[i]);
    const bool is_reversed = argument.strides != nullptr && argument.strides[i] < 0;
    const uintptr_t stride =
        argument.strides == nullptr ? dense : static_cast<uintptr_t>(argument.strides[i]);
    (is_reversed ? extent.begin : extent.end) += (size - 1) * stride * element;
    dense *= size;
  }
  return extent;
}

// The order of an engine's steps would decide whether a read of shared memory sees the write.
void refuse_shared_updates(std::span<const ArgumentSlot> slots, std::span<const Argument> arguments) {
  if (slots.size() < 2 || std::ranges::none_of(slots, &ArgumentSlot::is_state)) return;
  std::vector<Extent> extents;
  extents.reserve(slots.size());
  for (size_t i = 0; i < slots.size(); ++i) extents.push_back(extent_of(slots[i], arguments[i]));
  std::ranges::sort(extents, {}, &Extent::begin);
  const Extent *last = nullptr, *last_state = nullptr;  // with the largest end so far
  for (const Extent& extent : extents) {
    if (extent.begin == extent.end) continue;
    const Extent* other = extent.slot->is_state ? last : last_state;
    if (other != nullptr && other->end > extent.begin) {
      const bool is_state = extent.slot->is_state;
      throw UserError("INGOT-U314",
                      fmt::format("input '{}' is updated in place, but input '{}' overlaps it in memory",
                                  (is_state ? extent : *other).slot->port->name,
                                  (is_state ? *other : extent).slot->port->name),
                      "pass a copy of one of them");
    }
    if (last == nullptr || extent.end > last->end) last = &extent;
    if (extent.slot->is_state && (last_state == nullptr || extent.end > last_state->end))
      last_state = &extent;
  }
}

}  // namespace

std::vector<ArgumentSlot> argument_slots(const EngineData& data) {
  const Signature& signature = data.signature;
  std::vector<ArgumentSlot> slots;
  const auto bound = static_cast<size_t>(
      std::ranges::count_if(signature.mutated_inputs, [](const auto& at) { return at.has_value(); }));
  const size_t flat = signature.inputs.empty() ? data.main.inputs.size() + bound : signature.inputs.size();
  uint32_t next_input = 0;
  for (size_t i = 0; i < flat; ++i) {
    if (i < signature.inputs.size() && !is_tensor(signature.inputs[i])) continue;
    const auto state = std::ranges::find(signature.mutated_inputs, std::optional(static_cast<uint32_t>(i)));
    if (state != signature.mutated_inputs.end()) {
      const auto index = static_cast<uint32_t>(state - signature.mutated_inputs.begin());
      slots.push_back({&data.main.states[index], true, index});
    } else if (next_input < data.main.inputs.size()) {
      slots.push_back({&data.main.inputs[next_input], false, next_input});
      ++next_input;
    }
  }
  return slots;
}

void check_arguments(std::span<const ArgumentSlot> slots, std::span<const Argument> arguments) {
  if (arguments.size() != slots.size()) {
    throw UserError("INGOT-U300", fmt::format("the engine takes {} tensor{}, but got {}", slots.size(),
                                              slots.size() == 1 ? "" : "s", arguments.size()));
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    const Port& port = *slots[i].port;
    const Argument& argument = arguments[i];
    const size_t rank = port.type.rank() - (port.is_complex ? 1 : 0);
    if (static_cast<size_t>(argument.rank) != rank) [[unlikely]] {
      throw UserError("INGOT-U301",
                      fmt::format("input '{}' has {} dim{}, but the model takes {}", port.name, argument.rank,
                                  argument.rank == 1 ? "" : "s", to_string(type_for_callers(port))));
    }
    if (argument.dtype != (port.is_complex ? complex_of(port.type.dtype) : port.type.dtype)) [[unlikely]] {
      throw UserError("INGOT-U302",
                      fmt::format("input '{}' is {}, but the model takes {}", port.name, name(argument.dtype),
                                  to_string(type_for_callers(port))),
                      "convert the tensor before the call");
    }
  }
  refuse_shared_updates(slots, arguments);
}

PairedArguments::PairedArguments(std::span<const ArgumentSlot> slots) {
  if (std::ranges::none_of(slots, [](const ArgumentSlot& slot) { return slot.port->is_complex; })) return;
  for (const ArgumentSlot& slot : slots) complex_.push_back(slot.port->is_complex ? &slot : nullptr);
  arguments_.resize(slots.size());
  sizes_.resize(slots.size());
}

std::span<const Argument> PairedArguments::view(std::span<const Argument> given) {
  if (arguments_.empty()) [[likely]]
    return given;
  for (size_t i = 0; i < given.size(); ++i) {
    arguments_[i] = given[i];
    if (complex_[i] == nullptr) continue;
    Argument& pair = arguments_[i];
    const auto rank = static_cast<size_t>(given[i].rank);
    std::vector<int64_t>& sizes = sizes_[i];
    sizes.resize(2 * (rank + 1));
    std::copy_n(given[i].shape, rank, sizes.begin());
    sizes[rank] = 2;
    pair.dtype = complex_[i]->port->type.dtype;
    pair.rank = given[i].rank + 1;
    pair.shape = sizes.data();
    if (given[i].strides == nullptr) continue;
    for (size_t k = 0; k < rank; ++k)  // strides that nothing is read by may be any
      sizes[rank + 1 + k] = sizes[k] > 1 ? 2 * given[i].strides[k] : 2;
    sizes.back() = 1;
    pair.strides = sizes.data() + rank + 1;
  }
  return arguments_;
}

bool has_sizes(std::span<const Argument> arguments, std::span<const int64_t> key) {
  const int64_t* at = key.data();
  for (const Argument& argument : arguments) {
    for (int32_t i = 0; i < argument.rank; ++i) {
      if (*at++ != argument.shape[i]) return false;
    }
  }
  return true;
}

std::vector<int64_t> sizes_key(std::span<const Argument> arguments) {
  std::vector<int64_t> key;
  for (const Argument& argument : arguments)
    key.insert(key.end(), argument.shape, argument.shape + argument.rank);
  return key;
}

std::vector<int64_t> bind_sizes(const EngineData& data, const DimPool& dims, const BoundGroups& groups,
                                std::span<const ArgumentSlot> slots, std::span<const Argument> arguments) {
  SizeBinder binder(data, dims);
  binder.bind_rank(groups);
  for (size_t i = 0; i < slots.size(); ++i) binder.bind(*slots[i].port, arguments[i]);
  for (size_t i = 0; i < slots.size(); ++i) binder.bind_others(*slots[i].port, arguments[i]);
  for (size_t i = 0; i < slots.size(); ++i) binder.compare(*slots[i].port, arguments[i]);
  return std::move(binder).values();
}

bool is_dense(const Argument& argument) {
  if (argument.strides == nullptr) return true;
  uint64_t expected = 1;  // unsigned: of an expanded tensor it may overflow
  bool dense = true;
  for (int32_t i = argument.rank; i-- > 0;) {
    if (argument.shape[i] == 0) return true;
    if (argument.shape[i] != 1 && static_cast<uint64_t>(argument.strides[i]) != expected) dense = false;
    expected *= static_cast<uint64_t>(argument.shape[i]);
  }
  return dense;
}

TensorView view_of(const Argument& argument) {
  return {static_cast<std::byte*>(argument.data),
          argument.dtype,
          {argument.shape, argument.shape + argument.rank},
          {argument.strides, argument.strides + argument.rank}};
}

std::string describe_sizes(std::span<const ArgumentSlot> slots, std::span<const Argument> inputs) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::span<const int64_t> shape(inputs[i].shape, static_cast<size_t>(inputs[i].rank));
    texts.push_back(fmt::format("{}[{}]", slots[i].port->name, fmt::join(shape, ", ")));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

size_t dense_bytes(const Argument& argument) {
  return Tensor{nullptr, argument.dtype, {argument.shape, argument.shape + argument.rank}}.bytes();
}

}  // namespace ingot::core
