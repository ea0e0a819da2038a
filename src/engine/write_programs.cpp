// SPDX-License-Identifier: Apache-2.0
#include "engine/dim_table.h"
#include "engine/flat_values.h"
#include "engine/flat_write.h"
#include "engine/program_numbers.h"
#include "engine/sections.h"

namespace ingot::core {
namespace {

namespace fb = flatbuffers;

// The fields of a table that has those of all kinds.
struct StorageFields {
  StorageNumber kind = StorageNumber::kDynamic;
  uint32_t index = 0;
  AliasStorage alias{.of = kNoId};
  ArenaStorage arena;
};

struct StorageWriter {
  StorageFields operator()(const InputStorage& from) const { return {StorageNumber::kInput, from.index}; }
  StorageFields operator()(const OutputStorage& from) const { return {StorageNumber::kOutput, from.index}; }
  StorageFields operator()(const WeightStorage& from) const { return {StorageNumber::kWeight, from.id}; }
  StorageFields operator()(const ConstantStorage& from) const { return {StorageNumber::kConstant, from.id}; }
  StorageFields operator()(const StateStorage& from) const { return {StorageNumber::kState, from.index}; }
  StorageFields operator()(const ArenaStorage& from) const {
    return {.kind = StorageNumber::kArena, .arena = from};
  }
  StorageFields operator()(const AliasStorage& from) const {
    return {.kind = StorageNumber::kAlias, .alias = from};
  }
  StorageFields operator()(DynamicStorage) const { return {}; }
};

struct StepFields {
  StepNumber kind = StepNumber::kCopy;
  KernelStep kernel;
  RoutineStep routine;
  ControlNumber control = ControlNumber::kBranch;
};

struct StepWriter {
  StepFields operator()(const KernelStep& step) const {
    return {.kind = StepNumber::kKernel, .kernel = step};
  }
  StepFields operator()(const RoutineStep& step) const {
    return {.kind = StepNumber::kRoutine, .routine = step};
  }
  StepFields operator()(CopyStep) const { return {}; }
  StepFields operator()(BranchStep) const { return {.kind = StepNumber::kProgram}; }
  StepFields operator()(LoopStep) const {
    return {.kind = StepNumber::kProgram, .control = ControlNumber::kLoop};
  }
};

class ProgramWriter {
 public:
  std::vector<std::byte> write(const EngineData& engine) {
    const auto init = write(engine.init);
    const auto main = write(engine.main);
    const auto checks =
        write_all(builder_, engine.checks, [&](const SizeCheck& check) { return write(check); });
    std::vector<uint32_t> ends;
    std::vector<uint8_t> operations;
    std::vector<int64_t> numbers;
    for (uint32_t slot = 0; slot < dims_.size(); ++slot) {
      for (const PostfixItem& item : dims_.code(slot)) {
        operations.push_back(static_cast<uint8_t>(item.op));
        if (item.op == PostfixOp::kConstant || item.op == PostfixOp::kSymbol) numbers.push_back(item.value);
      }
      ends.push_back(static_cast<uint32_t>(operations.size()));
    }
    builder_.Finish(file::CreatePrograms(builder_, builder_.CreateVectorOfStrings(dims_.symbols()),
                                         builder_.CreateVector(ends), builder_.CreateVector(operations),
                                         builder_.CreateVector(numbers), init, main, checks));
    return finished_bytes(builder_);
  }

 private:
  fb::Offset<file::Program> write(const Program& program) {
    const auto name = builder_.CreateString(program.name);
    const auto symbols = write_all(builder_, program.symbols,
                                   [&](const auto& symbol) { return write(symbol.first, symbol.second); });
    const auto port = [&](const Port& port) { return write(port); };
    const auto inputs = write_all(builder_, program.inputs, port),
               outputs = write_all(builder_, program.outputs, port),
               states = write_all(builder_, program.states, port);
    const auto buffers =
        write_all(builder_, program.buffers, [&](const Buffer& buffer) { return write(buffer); });
    const auto steps = write_all(builder_, program.steps, [&](const Step& step) { return write(step); });
    const auto nested =
        write_all(builder_, program.nested, [&](const Program& inner) { return write(inner); });
    return file::CreateProgram(builder_, name, symbols, inputs, outputs, states, buffers, steps, nested);
  }

  void append(const Predicate& predicate, std::vector<uint8_t>& operations, std::vector<uint32_t>& dims) {
    for (const Predicate& part : predicate.parts) append(part, operations, dims);
    operations.push_back(static_cast<uint8_t>(predicate.kind));
    if (!predicate.parts.empty()) return;
    dims.push_back(dims_.add(predicate.left));
    dims.push_back(dims_.add(predicate.right));
  }

  fb::Offset<file::Check> write(const SizeCheck& check) {
    std::vector<uint8_t> operations;
    std::vector<uint32_t> dims;
    append(check.condition, operations, dims);
    const auto message = builder_.CreateString(check.message), node = builder_.CreateString(check.node),
               source = builder_.CreateString(check.source);
    return file::CreateCheck(builder_, static_cast<uint8_t>(check.kind), builder_.CreateVector(operations),
                             builder_.CreateVector(dims), message, node, source);
  }

  fb::Offset<file::Symbol> write(const std::string& name, const SymbolInfo& info) {
    fb::Offset<fb::Vector<fb::Offset<fb::String>>> groups;
    fb::Offset<fb::Vector<int64_t>> counts, sizes;
    if (info.by_rank) {
      std::vector<std::string> names;
      std::vector<int64_t> ranks;
      for (const RankAxis& axis : info.by_rank->axes) {
        names.push_back(axis.group);
        ranks.push_back(axis.ranks);
      }
      groups = builder_.CreateVectorOfStrings(names);
      counts = builder_.CreateVector(ranks);
      sizes = builder_.CreateVector(info.by_rank->sizes);
    }
    return file::CreateSymbol(builder_, builder_.CreateString(name), info.range.min, info.range.max,
                              info.typical.value_or(-1),
                              info.upper_bound ? dims_.add(*info.upper_bound) : kNoId, groups, counts, sizes);
  }

  fb::Offset<file::Type> write(const TensorType& type) {
    return file::CreateType(builder_, static_cast<uint8_t>(type.dtype),
                            builder_.CreateVector(slots(type.shape)),
                            builder_.CreateVector(layout_numbers(type.layout)));
  }

  fb::Offset<file::Port> write(const Port& port) {
    return file::CreatePort(builder_, builder_.CreateString(port.name), write(port.type), port.buffer,
                            port.is_complex);
  }

  fb::Offset<file::Buffer> write(const Buffer& buffer) {
    const uint8_t device =
        buffer.place.kind == Place::Kind::kHost ? 0 : static_cast<uint8_t>(1 + buffer.place.index);
    const StorageFields fields = std::visit(StorageWriter{}, buffer.storage);
    return file::CreateBuffer(builder_, builder_.CreateString(buffer.name), write(buffer.type), device,
                              static_cast<uint8_t>(fields.kind), fields.index, fields.alias.of,
                              dims_.add(fields.alias.offset), builder_.CreateVector(fields.arena.above),
                              dims_.add(fields.arena.bytes));
  }

  fb::Offset<file::Binding> write(const SymbolBinding& binding) {
    return file::CreateBinding(builder_, builder_.CreateString(binding.symbol), binding.buffer,
                               dims_.add(binding.limit));
  }

  fb::Offset<file::Step> write(const Step& step) {
    std::vector<uint32_t> buffers;
    std::vector<uint8_t> access;
    for (const BufferUse& use : step.uses) {
      buffers.push_back(use.buffer);
      access.push_back(static_cast<uint8_t>((use.reads ? 1 : 0) | (use.writes ? 2 : 0)));
    }
    const StepFields fields = std::visit(StepWriter{}, step.action);
    const Launch& launch = fields.kernel.launch;
    const ImageId image = fields.kind == StepNumber::kRoutine ? fields.routine.image : launch.image;
    const auto name = builder_.CreateString(step.name),
               backend = builder_.CreateString(fields.kernel.backend);
    const auto routine = builder_.CreateString(fields.routine.routine);
    const auto attributes = write_attributes(builder_, fields.routine.attributes);
    const auto binds =
        write_all(builder_, step.binds, [&](const SymbolBinding& binding) { return write(binding); });
    return file::CreateStep(
        builder_, static_cast<uint8_t>(fields.kind), name, backend, builder_.CreateVector(buffers),
        builder_.CreateVector(access), image, builder_.CreateVector(slots(launch.symbols)),
        builder_.CreateVector(slots(launch.sizes)), builder_.CreateVector(launch.constants), routine,
        attributes, binds, step.host_sees_result, static_cast<uint8_t>(fields.control),
        builder_.CreateVector(step.nested()), builder_.CreateVector(step.nodes), dims_.add(step.operations),
        dims_.add(step.bytes), fields.routine.with_next);
  }

  std::vector<uint32_t> slots(const std::vector<Dim>& dims) {
    std::vector<uint32_t> result;
    for (const Dim& dim : dims) result.push_back(dims_.add(dim));
    return result;
  }

  fb::FlatBufferBuilder builder_;
  DimTable dims_;
};

}  // namespace

std::vector<std::byte> write_programs(const EngineData& engine) { return ProgramWriter().write(engine); }

}  // namespace ingot::core
