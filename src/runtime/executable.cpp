// SPDX-License-Identifier: Apache-2.0
#include "runtime/executable.h"

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "engine/group_uses.h"
#include "routines/routine_table.h"
#include "support/error.h"

namespace ingot::core {
namespace {

class Maker {
 public:
  Maker(const EngineData& data, const LoadedBackends& backends)
      : data_(data), backends_(backends), pool_(std::make_shared<DimPool>()) {}

  Executable make(const Program& program) {
    bind_data_dependent_symbols(program);
    Executable result = make_one(program);
    index_data_dependent_dims();
    if (&program == &data_.main)
      result.conditions = Conditions(data_, pool_->table.symbols(), pool_->data_dependent);
    return result;
  }

 private:
  void bind_data_dependent_symbols(const Program& program) {
    for (const Step& step : program.steps) {
      for (const SymbolBinding& binding : step.binds)
        data_dependent_.push_back(pool_->table.add_symbol(binding.symbol));
    }
    for (const Program& nested : program.nested) bind_data_dependent_symbols(nested);
  }

  Executable make_one(const Program& program) {
    Executable result{.program = &program, .dims = pool_};
    for (BufferId id = 0; id < program.buffers.size(); ++id) add_buffer(result, id);
    for (const Step& step : program.steps) add_step(result, step);
    find_places(result);
    for (const Program& nested : program.nested) {
      result.nested.push_back(make_one(nested));
    }
    return result;
  }

  void add_buffer(Executable& result, BufferId id) {
    const Buffer& buffer = result.program->buffers[id];
    ExecutableBuffer entry{.root = id};
    entry.bytes = pool_->table.add(storage_bytes(buffer.type));
    for (const Dim& dim : buffer.type.shape) entry.shape.push_back(pool_->table.add(dim));
    Dim offset = 0;
    for (const auto* alias = buffer.as<AliasStorage>(); alias != nullptr;
         alias = result.program->buffers[alias->of].as<AliasStorage>()) {
      entry.root = alias->of;
      offset = offset + alias->offset;
    }
    entry.offset = pool_->table.add(offset);
    const Buffer& root = result.program->buffers[entry.root];
    entry.capacity = pool_->table.add(capacity_of(root));
    result.buffers.push_back(std::move(entry));
  }

  Dim capacity_of(const Buffer& root) const {
    if (const auto* arena = root.as<ArenaStorage>()) return arena->bytes;
    if (const auto id = root.weight()) return static_cast<int64_t>(data_.weights[*id].bytes);
    return storage_bytes(root.type);
  }

  void add_step(Executable& result, const Step& step) {
    ExecutableStep entry{.step = &step};
    entry.first_argument = static_cast<uint32_t>(result.arguments.size());
    entry.argument_count = static_cast<uint32_t>(step.uses.size());
    for (const BufferUse& use : step.uses) result.arguments.push_back(use.buffer);
    add_values(result, step, entry);
    for (const SymbolBinding& binding : step.binds) {
      const SymbolSlot symbol = pool_->table.add_symbol(binding.symbol);
      entry.binds.push_back({symbol, binding.buffer, least_of(binding), pool_->table.add(binding.limit)});
      result.binds.push_back(symbol);
    }
    if (const auto* routine = step.as<RoutineStep>()) entry.routine = lookup(routine->routine);
    add_to_span(result, step);
    result.steps.push_back(std::move(entry));
  }

  // Sizes are not negative; an integer of the call may be.
  int64_t least_of(const SymbolBinding& binding) const {
    const auto symbol = data_.main.symbols.find(binding.symbol);
    return symbol == data_.main.symbols.end() ? 0 : std::min<int64_t>(symbol->second.range.min, 0);
  }

  void add_values(Executable& result, const Step& step, ExecutableStep& entry) {
    entry.first_value = static_cast<uint32_t>(result.values.size());
    if (const auto* kernel = step.as<KernelStep>()) {
      for (const Dim& dim : kernel->launch.symbols) result.values.push_back(pool_->table.add(dim));
      for (const Dim& dim : kernel->launch.sizes) result.values.push_back(pool_->table.add(dim));
    }
    if (step.as<CopyStep>() != nullptr) result.values.push_back(result.buffers[step.uses[0].buffer].bytes);
    entry.value_count = static_cast<uint32_t>(result.values.size()) - entry.first_value;
  }

  // The backend that receives a step's calls: for copies and collectives that of a device, or that of the
  // span that they join.
  uint32_t backend_of(const Executable& result, const Step& step) const {
    if (const auto* kernel = step.as<KernelStep>()) return backend_of_kernel(*result.program, step, *kernel);
    if (step.as<CopyStep>() == nullptr && !is_device_collective(step)) return kNoId;
    for (const BufferUse& use : step.uses) {
      const Place place = result.program->buffers[use.buffer].place;
      if (place.kind == Place::Kind::kDevice) return backends_.position(data_.devices[place.index]);
    }
    if (result.spans.empty() || result.spans.back().moves || !result.steps.back().binds.empty()) return kNoId;
    const uint32_t last = result.spans.back().backend;  // a device copies nothing within the host
    return last != kNoId && is_on_host(last) ? last : kNoId;
  }

  bool is_on_host(uint32_t backend) const { return backends_.all[backend].executor->memory() == nullptr; }

  uint32_t backend_of_kernel(const Program& program, const Step& step, const KernelStep& kernel) const {
    const uint32_t backend = backends_.position(kernel.backend);
    invariant(backend != kNoId, "the kernel binaries of a backend were not loaded");
    const Executor& executor = *backends_.all[backend].executor;
    std::vector<const TensorType*> types;
    for (const BufferUse& use : step.uses) types.push_back(&program.buffers[use.buffer].type);
    // A variant of an engine shares its loaded images, and was compiled here.
    const bool has_image = kernel.launch.image < data_.images.size();
    if (executor.is_valid(kernel.launch, step.uses.size()) &&
        (!has_image || executor.fits(kernel.launch, data_.images[kernel.launch.image], types)))
      return backend;
    throw UserError("INGOT-U206",
                    fmt::format("the engine's program is broken: '{}' has a launch that its backend '{}' "
                                "rejects",
                                step.name, kernel.backend),
                    "rebuild the engine; if this version of Ingot built it, report a bug");
  }

  static bool moves(const Executable& result, const Step& step) {
    if (step.as<CopyStep>() == nullptr) return false;
    const auto place = [&](size_t use) { return result.program->buffers[step.uses[use].buffer].place; };
    return place(0) != place(1);
  }

  void add_to_span(Executable& result, const Step& step) const {
    result.has_device_collectives = result.has_device_collectives || is_device_collective(step);
    const auto index = static_cast<uint32_t>(result.steps.size());
    const uint32_t backend = backend_of(result, step);
    const bool is_move = moves(result, step);
    const bool joins = backend != kNoId && !result.spans.empty() && result.spans.back().backend == backend &&
                       result.spans.back().moves == is_move && result.steps.back().binds.empty();
    if (joins)
      result.spans.back().last = index + 1;
    else
      result.spans.push_back({index, index + 1, backend, is_move,
                              !data_.devices.empty() && backend != kNoId && is_on_host(backend)});
  }

  static const Routine* lookup(const std::string& name) {
    const Routine* routine = find_routine(name);
    if (routine != nullptr) return routine;
    throw UserError("INGOT-U224",
                    fmt::format("the engine needs the routine '{}', which this runtime does not have", name),
                    "use the version of Ingot that built the engine, or a later one");
  }

  static void find_places(Executable& result) {
    std::set<uint8_t> places;
    for (const Buffer& buffer : result.program->buffers) {
      if (buffer.as<ArenaStorage>() != nullptr) places.insert(place_number(buffer.place));
    }
    result.places.assign(places.begin(), places.end());
  }

  void index_data_dependent_dims() {
    const DimTable& table = pool_->table;
    pool_->data_dependent.assign(table.symbols().size(), false);
    pool_->users.resize(table.symbols().size());
    pool_->data_dependent_symbols.resize(table.size());
    for (const SymbolSlot symbol : data_dependent_) pool_->data_dependent[symbol] = true;
    for (DimSlot slot = 0; slot < table.size(); ++slot) {
      for (const PostfixItem& item : table.code(slot)) {
        const auto symbol = static_cast<SymbolSlot>(item.value);
        if (item.op != PostfixOp::kSymbol || !pool_->data_dependent[symbol]) continue;
        if (std::ranges::find(pool_->data_dependent_symbols[slot], symbol) !=
            pool_->data_dependent_symbols[slot].end())
          continue;
        pool_->data_dependent_symbols[slot].push_back(symbol);
        pool_->users[symbol].push_back(slot);
      }
    }
  }

  const EngineData& data_;
  const LoadedBackends& backends_;
  std::shared_ptr<DimPool> pool_;
  std::vector<SymbolSlot> data_dependent_;
};

bool has_data_dependent_shape(const Executable& executable, BufferId id) {
  return std::ranges::any_of(executable.buffers[id].shape,
                             [&](DimSlot slot) { return executable.dims->is_data_dependent(slot); });
}

// Marks everything that must be re-evaluated during a run.
void mark_data_dependent(Executable& executable) {
  for (BufferId id = 0; id < executable.buffers.size(); ++id) {
    const Buffer& buffer = executable.program->buffers[id];
    const bool data_dependent = has_data_dependent_shape(executable, id) ||
                                executable.dims->is_data_dependent(executable.buffers[id].offset);
    const bool is_output_of_unknown_size =
        buffer.as<OutputStorage>() != nullptr && has_data_dependent_shape(executable, id);
    executable.data_dependent = executable.data_dependent || data_dependent;
    if (buffer.as<DynamicStorage>() != nullptr || is_output_of_unknown_size)
      executable.data_dependent_buffers.push_back(id);
  }
  for (ExecutableStep& step : executable.steps) {
    for (uint32_t i = step.first_value; i < step.first_value + step.value_count; ++i)
      step.data_dependent = step.data_dependent || executable.dims->is_data_dependent(executable.values[i]);
    for (const BufferUse& use : step.step->uses) {
      step.data_dependent =
          step.data_dependent || (use.buffer != kNoId && has_data_dependent_shape(executable, use.buffer));
    }
  }
  for (Executable& nested : executable.nested) mark_data_dependent(nested);
}

bool moves_always(const Buffer& root) {
  return root.as<InputStorage>() != nullptr || root.as<OutputStorage>() != nullptr ||
         root.as<DynamicStorage>() != nullptr;
}

// A part of a root at an offset that a step computes moves during the run, wherever the root is; its root is
// listed before it, so that the part is found from it.
void find_moving(Executable& executable) {
  const auto& buffers = executable.program->buffers;
  std::vector<bool> moves(buffers.size());
  for (BufferId id = 0; id < buffers.size(); ++id) {
    const ExecutableBuffer& buffer = executable.buffers[id];
    const bool has_late_offset = executable.dims->is_data_dependent(buffer.offset);
    moves[id] = has_late_offset || moves_always(buffers[buffer.root]);
    if (has_late_offset) moves[buffer.root] = true;
  }
  for (BufferId id = 0; id < buffers.size(); ++id)
    if (moves[id]) executable.moving.push_back(id);
  for (uint32_t i = 0; i < executable.arguments.size(); ++i) {
    const BufferId id = executable.arguments[i];
    if (id != kNoId && moves[id]) executable.moving_arguments.push_back(i);
  }
  for (Executable& nested : executable.nested) find_moving(nested);
}

}  // namespace

Executable make_executable(const Program& program, const EngineData& data, const LoadedBackends& backends) {
  Executable result = Maker(data, backends).make(program);
  mark_data_dependent(result);
  find_moving(result);
  return result;
}

}  // namespace ingot::core
