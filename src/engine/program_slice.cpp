// SPDX-License-Identifier: Apache-2.0
#include "engine/program_slice.h"

#include <algorithm>
#include <numeric>

namespace ingot::core {
namespace {

using Marks = std::vector<bool>;  // one per buffer; of a root, for all of its aliases

bool touches(const Program& program, const Step& step, bool BufferUse::* way, const Marks& roots) {
  return std::ranges::any_of(step.uses, [&](const BufferUse& use) {
    return use.buffer != kNoId && use.*way && roots[root_buffer(program, use.buffer)];
  });
}

void mark(const Program& program, const Step& step, bool BufferUse::* way, Marks& roots) {
  for (const BufferUse& use : step.uses) {
    if (use.buffer != kNoId && use.*way) roots[root_buffer(program, use.buffer)] = true;
  }
}

Marks roots_of(const Program& program, const Marks& outputs) {
  Marks roots(program.buffers.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k]) roots[root_buffer(program, program.outputs[k].buffer)] = true;
  }
  return roots;
}

std::vector<uint32_t> marked_outputs(const Program& program, const Marks& roots) {
  std::vector<uint32_t> numbers;
  for (uint32_t k = 0; k < program.outputs.size(); ++k) {
    if (roots[root_buffer(program, program.outputs[k].buffer)]) numbers.push_back(k);
  }
  return numbers;
}

// The steps that write what `outputs` need. A step that also writes another output adds it to `outputs`,
// whose other writers are then needed too.
Marks needed_steps(const Program& program, Marks& outputs) {
  for (;;) {
    Marks steps(program.steps.size()), roots = roots_of(program, outputs);
    for (size_t i = program.steps.size(); i-- > 0;) {
      const Step& step = program.steps[i];
      steps[i] = touches(program, step, &BufferUse::writes, roots);
      if (!steps[i]) continue;
      mark(program, step, &BufferUse::reads, roots);
      mark(program, step, &BufferUse::writes, roots);
    }
    bool is_complete = true;
    for (const uint32_t k : marked_outputs(program, roots)) {
      is_complete = is_complete && outputs[k];
      outputs[k] = true;
    }
    if (is_complete) return steps;
  }
}

// What kept steps and outputs use, the roots of aliases, and the buffers that the offsets of these are
// computed from.
Marks needed_buffers(const Program& program, const Marks& steps, const Marks& outputs) {
  Marks buffers(program.buffers.size());
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i]) continue;
    for (const BufferUse& use : program.steps[i].uses) {
      if (use.buffer != kNoId) buffers[use.buffer] = true;
    }
    for (const SymbolBinding& binding : program.steps[i].binds) buffers[binding.buffer] = true;
  }
  for (size_t k = 0; k < outputs.size(); ++k) {
    if (outputs[k]) buffers[program.outputs[k].buffer] = true;
  }
  for (size_t id = buffers.size(); id-- > 0;) {  // both kinds of references are to smaller ids
    if (!buffers[id]) continue;
    const Buffer& buffer = program.buffers[id];
    if (const auto* alias = buffer.as<AliasStorage>()) buffers[alias->of] = true;
    if (const auto* arena = buffer.as<ArenaStorage>()) {
      for (const BufferId lower : arena->above) buffers[lower] = true;
    }
  }
  return buffers;
}

// Copies what is kept under new ids.
class Extraction {
 public:
  Extraction(const Program& program, const Marks& steps, const Marks& outputs)
      : program_(program), ids_(program.buffers.size(), kNoId) {
    result_.program.name = program.name;
    result_.program.symbols = program.symbols;
    add_outputs(outputs);
    add_buffers(needed_buffers(program, steps, outputs));
    for (Port& port : result_.program.outputs) port.buffer = ids_[port.buffer];
    for (size_t i = 0; i < steps.size(); ++i) {
      if (steps[i]) add_step(program.steps[i]);
      const bool is_last = i + 1 == steps.size() || !steps[i + 1];
      auto* routine = steps[i] ? result_.program.steps.back().as<RoutineStep>() : nullptr;
      if (routine != nullptr && is_last) routine->with_next = kNoId;
    }
  }

  ProgramSlice take() { return std::move(result_); }

 private:
  void add_outputs(const Marks& outputs) {
    numbers_.resize(outputs.size());
    for (uint32_t k = 0; k < outputs.size(); ++k) {
      if (!outputs[k]) continue;
      numbers_[k] = static_cast<uint32_t>(result_.outputs.size());
      result_.outputs.push_back(k);
      result_.program.outputs.push_back(program_.outputs[k]);
    }
  }

  void add_buffers(const Marks& buffers) {
    for (size_t id = 0; id < buffers.size(); ++id) {
      if (!buffers[id]) continue;
      ids_[id] = static_cast<BufferId>(result_.program.buffers.size());
      Buffer& buffer = result_.program.buffers.emplace_back(program_.buffers[id]);
      if (auto* alias = buffer.as<AliasStorage>()) alias->of = ids_[alias->of];
      if (auto* output = buffer.as<OutputStorage>()) output->index = numbers_[output->index];
      if (auto* arena = buffer.as<ArenaStorage>()) {
        for (BufferId& lower : arena->above) lower = ids_[lower];
      }
    }
  }

  void add_step(const Step& step) {
    Step& kept = result_.program.steps.emplace_back(step);
    for (BufferUse& use : kept.uses) {
      if (use.buffer != kNoId) use.buffer = ids_[use.buffer];
    }
    for (SymbolBinding& binding : kept.binds) binding.buffer = ids_[binding.buffer];
  }

  const Program& program_;
  std::vector<BufferId> ids_;
  std::vector<uint32_t> numbers_;  // of kept outputs
  ProgramSlice result_;
};

}  // namespace

std::vector<uint32_t> outputs_that_read(const Program& program, const std::set<size_t>& weights) {
  if (!program.nested.empty()) return all_outputs(program);
  Marks roots(program.buffers.size());
  for (size_t id = 0; id < program.buffers.size(); ++id) {
    const auto* weight = program.buffers[id].as<WeightStorage>();
    roots[id] = weight != nullptr && weights.contains(weight->id);
  }
  for (const Step& step : program.steps) {
    if (touches(program, step, &BufferUse::reads, roots)) mark(program, step, &BufferUse::writes, roots);
  }
  return marked_outputs(program, roots);
}

ProgramSlice slice_program(const Program& program, std::span<const uint32_t> outputs) {
  if (!program.nested.empty()) return {program, all_outputs(program)};
  Marks kept(program.outputs.size());
  for (const uint32_t output : outputs) kept[output] = true;
  const Marks steps = needed_steps(program, kept);
  return Extraction(program, steps, kept).take();
}

std::vector<uint32_t> all_outputs(const Program& program) {
  std::vector<uint32_t> outputs(program.outputs.size());
  std::iota(outputs.begin(), outputs.end(), 0U);
  return outputs;
}

}  // namespace ingot::core
