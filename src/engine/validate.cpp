// SPDX-License-Identifier: Apache-2.0
// The rules of every program, whoever made it. The executor relies on them, and checks at run time only what
// depends on sizes.
#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "engine/group_uses.h"
#include "engine/lifetimes.h"
#include "engine/program.h"
#include "engine/validate_step.h"
#include "support/error.h"
#include "types/linear_dim.h"

namespace ingot::core {
namespace {

constexpr size_t kMaxBuffers = 1 << 16;
constexpr int64_t kMaxRankSizes = 1 << 16;

// Data shared by all programs of an engine.
struct Shared {
  size_t images, weights;
  std::span<const std::string> devices;  // the backend of each
  const std::vector<Port>& states;       // of the outermost program
  bool makes_weights;                    // it is init
};

void check_type(const TensorType& type, const SymbolNames& symbols, std::string_view what) {
  require(bit_width(type.dtype) > 0, what, "has an unknown dtype");
  require(type.rank() <= 64, what, "has too many dims");
  for (const Dim& dim : type.shape) symbols.require_known(dim, what);
  check_layout(type, what);
}

// The size of a port's memory comes from the port: only the port's own buffer may refer to it. A nested
// program has no ports for its parent's states, but buffers of the same types.
struct StorageRules {
  const Program& program;
  BufferId id;
  const SymbolNames &all, &of_inputs;
  const Shared& shared;
  const Buffer& buffer = program.buffers[id];

  void operator()(const InputStorage& input) const { check_port(program.inputs, input.index); }
  void operator()(const OutputStorage& output) const { check_port(program.outputs, output.index); }
  void operator()(const StateStorage& state) const {
    if (&shared.states == &program.states) return check_port(program.states, state.index);
    const Port& port = port_of(shared.states, state.index);
    require(port.type == buffer.type, buffer.name, "is not the buffer of its port");
  }
  void operator()(const WeightStorage& weight) const { check_weight(weight.id); }
  void operator()(const ConstantStorage& constant) const { check_weight(constant.id); }
  void operator()(const ArenaStorage& arena) const {
    of_inputs.require_known(arena.bytes, buffer.name);
    for (const BufferId lower : arena.above) {
      const bool sane = lower < id && program.buffers[lower].as<ArenaStorage>() != nullptr &&
                        program.buffers[lower].place == buffer.place;
      require(sane, buffer.name, "is not above an earlier buffer of its arena");
    }
  }
  void operator()(const AliasStorage& alias) const {
    require(alias.of < id, buffer.name, "is an alias of no earlier buffer");
    require(program.buffers[alias.of].place == buffer.place, buffer.name,
            "is an alias of a buffer of another place");
    all.require_known(alias.offset, buffer.name);
  }
  void operator()(DynamicStorage) const {}

  const Port& port_of(const std::vector<Port>& ports, uint32_t index) const {
    require(index < ports.size(), buffer.name, "names no such input, output or state");
    return ports[index];
  }
  void check_port(const std::vector<Port>& ports, uint32_t index) const {
    require(port_of(ports, index).buffer == id, buffer.name, "is not the buffer of its port");
  }
  void check_weight(uint32_t weight) const {
    require(weight < shared.weights, buffer.name, "names no such weight");
  }
};

void check_buffer(const Program& program, BufferId id, const SymbolNames& all, const SymbolNames& of_inputs,
                  const Shared& shared) {
  const Buffer& buffer = program.buffers[id];
  require(place_number(buffer.place) <= shared.devices.size(), buffer.name,
          "is on a device that the engine does not list");
  check_type(buffer.type, all, buffer.name);
  std::visit(StorageRules{program, id, all, of_inputs, shared}, buffer.storage);
}

bool is_pair(const TensorType& type) {
  const bool has_dtype = type.dtype == DType::kF32 || type.dtype == DType::kF64;
  return has_dtype && type.rank() > 0 && type.shape.back() == Dim(2);
}

// Callers pass and receive dense row-major memory; only outputs of init are weights, with their layouts.
template <typename PortStorage>
void check_ports(const Program& program, const std::vector<Port>& ports, bool may_have_layout = false) {
  for (size_t i = 0; i < ports.size(); ++i) {
    const Port& port = ports[i];
    require(port.buffer < program.buffers.size(), port.name, "has no buffer");
    const Buffer& buffer = program.buffers[port.buffer];
    const auto* own = buffer.as<PortStorage>();
    require(own != nullptr && own->index == i, port.name, "has a buffer of another port");
    require(buffer.type == port.type, port.name, "and its buffer differ in type");
    require(!port.is_complex || is_pair(port.type), port.name, "is complex, but not of pairs of f32 or f64");
    require(may_have_layout || port.type.layout.is_row_major(), port.name, "is a port that is not row-major");
  }
}

bool is_read_only(const Buffer& buffer) {
  return buffer.as<InputStorage>() != nullptr || buffer.weight().has_value();
}

// Its memory has content before the first step.
bool is_given(const Buffer& buffer) { return is_read_only(buffer) || buffer.as<StateStorage>() != nullptr; }

// A buffer's memory exists once all symbols of its size, and of its root's, are bound.
void require_sizes(const Program& program, BufferId id, const SymbolNames& symbols, std::string_view user) {
  for (;;) {
    for (const Dim& dim : program.buffers[id].type.shape) symbols.require_known(dim, user);
    const auto* alias = program.buffers[id].as<AliasStorage>();
    if (alias == nullptr) return;
    symbols.require_known(alias->offset, user);
    id = alias->of;
  }
}

// Kernels use buffers in their backend's place; branches and loops those of the first device, if there is
// one; collectives may use those of a device; what the host reads or runs otherwise is in host memory.
void check_places(const Program& program, const Step& step, std::span<const std::string> devices) {
  const auto works_in = [&](Place place) {
    if (step.as<CopyStep>() != nullptr) return true;
    if (!step.nested().empty()) return place == place_of_nested(devices.size());
    if (is_device_collective(step)) return place.kind == Place::Kind::kDevice;
    const auto* kernel = step.as<KernelStep>();
    if (kernel == nullptr) return place == Place{};
    const bool on_host = std::ranges::find(devices, kernel->backend) == devices.end();
    return place == Place{} ? on_host : devices[place.index] == kernel->backend;
  };
  for (const BufferUse& use : step.uses)
    require(use.buffer == kNoId || works_in(program.buffers[use.buffer].place), step.name,
            "uses a buffer of another place than its own");
  for (const SymbolBinding& binding : step.binds)
    require(program.buffers[binding.buffer].place == Place{}, step.name,
            "binds a symbol to a buffer that the host cannot read");
}

void check_order(const Program& program, SymbolNames symbols, const Shared& shared) {
  std::vector<bool> written(program.buffers.size());
  for (BufferId id = 0; id < written.size(); ++id) written[id] = is_given(program.buffers[id]);
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const Step& step = program.steps[s];
    check_step(program, step, symbols, shared.images);
    require(has_its_next(program, s), step.name, "does what no kernel behind it does with its result");
    check_places(program, step, shared.devices);
    for (const BufferUse& use : step.uses) {
      if (use.buffer == kNoId) continue;
      require_sizes(program, use.buffer, symbols, step.name);
      const BufferId root = root_buffer(program, use.buffer);
      require(!use.reads || written[root], step.name, "reads a buffer that no earlier step wrote");
      require(!use.writes || !is_read_only(program.buffers[root]), step.name,
              "writes an input, a weight or a constant");
    }
    for (const BufferUse& use : step.uses) {
      if (use.writes) written[root_buffer(program, use.buffer)] = true;
    }
    for (const SymbolBinding& binding : step.binds) {
      require(written[root_buffer(program, binding.buffer)], step.name,
              "binds a symbol to a buffer that no earlier step wrote");
      symbols.bind(binding.symbol);
    }
  }
  for (const Port& output : program.outputs) require(written[output.buffer], output.name, "is never written");
}

// Inputs bind the symbols that follow from the size of a dim.
void bind_inputs(const std::vector<Port>& ports, SymbolNames& symbols) {
  for (const Port& port : ports) {
    for (const Dim& dim : port.type.shape) {
      if (const auto linear = linear_dim(dim)) symbols.bind(linear->symbol);
    }
  }
}

// Each entry of a table is a size within the symbol's range.
void check_rank_sizes(const std::string& name, const SymbolInfo& info) {
  int64_t entries = 1;
  for (const RankAxis& axis : info.by_rank->axes) {
    require(axis.ranks > 0 && axis.ranks <= kMaxRankSizes / entries, name, "has a table of too many ranks");
    entries *= axis.ranks;
  }
  require(static_cast<size_t>(entries) == info.by_rank->sizes.size(), name,
          "has other than one size per rank");
  for (const int64_t size : info.by_rank->sizes) {
    const bool fits = size >= 0 && size >= info.range.min && size <= info.range.max;
    require(fits, name, "has a size on a rank that is outside of its range");
  }
}

void check_program(const Program& program, SymbolNames symbols, const Shared& shared, size_t depth) {
  require(depth <= kMaxNesting, program.name, "is nested too deeply");
  require(program.buffers.size() <= kMaxBuffers, program.name, "has too many buffers");
  if (depth == 0) {
    bind_inputs(program.inputs, symbols);
    bind_inputs(program.states, symbols);
    for (const auto& [name, info] : program.symbols) {
      if (!info.by_rank) continue;
      check_rank_sizes(name, info);
      symbols.bind(name);
    }
  }
  require(depth == 0 || program.states.empty(), program.name, "is nested and has states of its own");
  SymbolNames all = symbols;
  for (const Step& step : program.steps) {
    for (const SymbolBinding& binding : step.binds) all.bind(binding.symbol);
  }
  for (const auto& [name, info] : program.symbols) {
    require(depth == 0 || !info.by_rank, name, "is a symbol of the rank in a nested program");
    require(all.has(name), name, "is a symbol that is never bound");
    require(info.range.min <= info.range.max, name, "has an empty range");
  }
  for (BufferId id = 0; id < program.buffers.size(); ++id) check_buffer(program, id, all, symbols, shared);
  check_ports<InputStorage>(program, program.inputs);
  check_ports<OutputStorage>(program, program.outputs, shared.makes_weights && depth == 0);
  check_ports<StateStorage>(program, program.states);
  check_order(program, symbols, shared);
  if (const auto pair = find_unordered(program, lifetimes(program)))
    require(false, program.buffers[pair->second].name, "may overlap another live buffer in the arena");
  for (const Program& nested : program.nested) check_program(nested, all, shared, depth + 1);
}

}  // namespace

bool has_rank_sizes(const Program& program) {
  return std::ranges::any_of(program.symbols,
                             [](const auto& each) { return each.second.by_rank.has_value(); });
}

void validate(const Program& program, size_t images, size_t weights, std::span<const std::string> devices,
              ProgramRole role) {
  check_program(program, {}, {images, weights, devices, program.states, role == ProgramRole::kInit}, 0);
}

void validate(const Program& program, size_t images, size_t weights) {
  validate(program, images, weights, {}, ProgramRole::kMain);
}

}  // namespace ingot::core
