// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/dim_table.h"
#include "engine/flat_values.h"
#include "engine/program_numbers.h"
#include "engine/sections.h"

namespace ingot::core {
namespace {

constexpr size_t kMaxOperations = 256;  // of one condition

class ProgramReader : FlatReader {
 public:
  ProgramReader() : FlatReader(SectionType::kPrograms) {}

  void read(Bytes section, EngineData& engine) {
    const auto& programs = root<file::Programs>(section);
    read_dims(programs);
    engine.init = program(present(programs.init()), 0);
    engine.main = program(present(programs.main()), 0);
    each(programs.checks(), [&](const file::Check& value) { engine.checks.push_back(check(value)); });
  }

 private:
  void read_dims(const file::Programs& programs) {
    const std::vector<std::string> symbols = texts(programs.symbols());
    for (const std::string& symbol : symbols) require_symbol_name(symbol);
    const std::vector<uint32_t> ends = numbers(programs.dim_ends());
    const std::vector<uint8_t> operations = numbers(programs.operations());
    const std::vector<int64_t> values = numbers(programs.numbers());
    size_t begin = 0, value = 0;
    for (const uint32_t end : ends) {
      require(end >= begin && end <= operations.size(), "the code of a size is out of range");
      std::vector<PostfixItem> code;
      for (; begin < end; ++begin) {
        PostfixItem item{enumerator(operations[begin], PostfixOp::kMinimum)};
        if (item.op == PostfixOp::kConstant || item.op == PostfixOp::kSymbol) {
          require(value < values.size(), "the code of a size lacks a value");
          item.value = values[value++];
        }
        code.push_back(item);
      }
      dims_.push_back(read_postfix(code, symbols));
    }
    require(begin == operations.size() && value == values.size(), "the code of sizes has unused items");
  }

  void require_symbol_name(const std::string& name) const {
    const auto is_letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    const auto may_follow = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '.'; };
    const bool proper = !name.empty() && name.size() <= 256 && is_letter(name[0]);
    require(proper && std::ranges::all_of(name, may_follow), "a symbol has an invalid name");
  }

  std::string symbol_name(const flatbuffers::String* value) const {
    std::string name = text(value);
    require_symbol_name(name);
    return name;
  }

  const Dim& dim(uint32_t slot) const {
    require(slot < dims_.size(), "a size index is out of range");
    return dims_[slot];
  }

  std::vector<Dim> dims(const flatbuffers::Vector<uint32_t>* slots) const {
    std::vector<Dim> result;
    for (const uint32_t slot : numbers(slots)) result.push_back(dim(slot));
    return result;
  }

  TensorType type(const file::Type* value) const {
    const file::Type& source = present(value);
    TensorType result{dtype(source.dtype()), dims(source.shape()), layout(source.layout())};
    for (const LayoutAxis& axis : result.layout.axes) {
      require(static_cast<size_t>(axis.dim) < result.rank(), "a layout does not fit its shape");
    }
    return result;
  }

  std::vector<Port> ports(const flatbuffers::Vector<flatbuffers::Offset<file::Port>>* values) const {
    std::vector<Port> result;
    each(values, [&](const file::Port& port) {
      result.push_back({text(port.name()), type(port.type()), port.buffer(), port.is_complex()});
    });
    return result;
  }

  void add_symbol(const file::Symbol& source, SymbolTable& table) const {
    SymbolInfo info{.range = {source.min(), source.max()}};
    if (source.typical() >= 0) info.typical = source.typical();
    if (source.upper_bound() != kNoId) info.upper_bound = dim(source.upper_bound());
    if (source.rank_groups() != nullptr) info.by_rank = rank_sizes(source);
    require(table.emplace(symbol_name(source.name()), info).second, "a symbol appears twice");
  }

  RankSizes rank_sizes(const file::Symbol& source) const {
    const std::vector<std::string> groups = texts(source.rank_groups());
    const std::vector<int64_t> counts = numbers(source.rank_counts());
    RankSizes table{.axes = {}, .sizes = numbers(source.rank_sizes())};
    require(!groups.empty() && groups.size() == counts.size(), "a symbol has a group without its ranks");
    uint64_t entries = 1;
    for (size_t i = 0; i < groups.size(); ++i) {
      const bool fits = counts[i] > 0 && static_cast<uint64_t>(counts[i]) <= table.sizes.size() / entries;
      require(fits, "a symbol has a table of other sizes than its groups");
      entries *= static_cast<uint64_t>(counts[i]);
      table.axes.push_back({groups[i], counts[i]});
    }
    require(entries == table.sizes.size(), "a symbol has a table of other sizes than its groups");
    return table;
  }

  Storage storage(const file::Buffer& source) const {
    switch (enumerator(source.storage(), StorageNumber::kDynamic)) {
      case StorageNumber::kInput:
        return InputStorage{source.index()};
      case StorageNumber::kOutput:
        return OutputStorage{source.index()};
      case StorageNumber::kWeight:
        return WeightStorage{source.index()};
      case StorageNumber::kConstant:
        return ConstantStorage{source.index()};
      case StorageNumber::kState:
        return StateStorage{source.index()};
      case StorageNumber::kArena:
        return ArenaStorage{dim(source.bytes()), numbers(source.above())};
      case StorageNumber::kAlias:
        return AliasStorage{source.alias_of(), dim(source.alias_offset())};
      case StorageNumber::kDynamic:
        break;
    }
    return DynamicStorage{};
  }

  Buffer buffer(const file::Buffer& source) const {
    Buffer result{.name = text(source.name()), .type = type(source.type()), .storage = storage(source)};
    if (source.device() > 0) result.place = {Place::Kind::kDevice, static_cast<uint8_t>(source.device() - 1)};
    return result;
  }

  Action nested_programs(const file::Step& source) const {
    const std::vector<uint32_t> programs = numbers(source.programs());
    if (enumerator(source.control(), ControlNumber::kLoop) == ControlNumber::kBranch) {
      require(programs.size() == 2, "a branch does not have two programs");
      return BranchStep{programs[0], programs[1]};
    }
    require(programs.size() == 1, "a loop does not have one body");
    return LoopStep{programs[0]};
  }

  // What belongs to another kind of step is damage: no writer stores it.
  Action action(const file::Step& source) const {
    const auto kind = enumerator(source.kind(), StepNumber::kProgram);
    Launch launch{.image = source.image(),
                  .symbols = dims(source.symbols()),
                  .sizes = dims(source.sizes()),
                  .constants = numbers(source.constants())};
    std::string backend = text(source.backend()), routine = text(source.routine());
    NamedValues attributes = read_attributes(*this, source.attributes());
    const ImageId image = kind == StepNumber::kRoutine ? std::exchange(launch.image, kNoId) : kNoId;
    const ImageId with_next = source.image_with_next();
    const bool has_launch = launch != Launch{} || !backend.empty();
    const bool has_routine = !routine.empty() || !attributes.empty();
    require(kind == StepNumber::kKernel || !has_launch, "a step has a launch but runs no kernel");
    require(kind == StepNumber::kRoutine || !has_routine, "a step names a routine but does not run it");
    require(kind == StepNumber::kRoutine || with_next == kNoId,
            "a step does the next one but is not a routine");
    require(kind == StepNumber::kProgram || numbers(source.programs()).empty(),
            "a step lists nested programs but does not run them");
    switch (kind) {
      case StepNumber::kKernel:
        return KernelStep{std::move(backend), std::move(launch)};
      case StepNumber::kRoutine:
        return RoutineStep{std::move(routine), std::move(attributes), image, with_next};
      case StepNumber::kProgram:
        return nested_programs(source);
      case StepNumber::kCopy:
        break;
    }
    return CopyStep{};
  }

  Step step(const file::Step& source) const {
    Step result{.name = text(source.name()), .action = action(source)};
    const std::vector<uint32_t> buffers = numbers(source.buffers());
    const std::vector<uint8_t> access = numbers(source.access());
    require(buffers.size() == access.size(), "a step does not declare how it uses its buffers");
    for (size_t i = 0; i < buffers.size(); ++i) {
      require(access[i] <= 3, "an unknown kind of buffer use");
      result.uses.push_back({buffers[i], (access[i] & 1) != 0, (access[i] & 2) != 0});
    }
    each(source.binds(), [&](const file::Binding& binding) {
      result.binds.push_back({symbol_name(binding.symbol()), binding.buffer(), dim(binding.limit())});
    });
    result.host_sees_result = source.host_sees_result();
    result.nodes = numbers(source.nodes());
    if (source.operations() != kNoId) result.operations = dim(source.operations());
    if (source.bytes() != kNoId) result.bytes = dim(source.bytes());
    return result;
  }

  Predicate condition(const file::Check& source) const {
    const std::vector<uint8_t> operations = numbers(source.operations());
    const std::vector<uint32_t> slots = numbers(source.dims());
    require(operations.size() <= kMaxOperations, "a condition on sizes is too long");
    std::vector<std::pair<Predicate, size_t>> stack;  // with depths
    size_t next = 0;
    for (const uint8_t number : operations) {
      Predicate result;
      result.kind = enumerator(number, Predicate::Kind::kOr);
      size_t depth = 1;
      if (result.kind < Predicate::Kind::kAnd) {
        require(next + 2 <= slots.size(), "a comparison lacks sizes");
        result.left = dim(slots[next++]);
        result.right = dim(slots[next++]);
      } else {
        require(stack.size() >= 2, "a condition on sizes lacks operands");
        for (size_t i = stack.size() - 2; i < stack.size(); ++i) {
          depth = std::max(depth, stack[i].second + 1);
          result.parts.push_back(std::move(stack[i].first));
        }
        require(depth <= kMaxPredicateDepth, "a condition on sizes is nested too deeply");
        stack.resize(stack.size() - 2);
      }
      stack.emplace_back(std::move(result), depth);
    }
    require(stack.size() == 1 && next == slots.size(), "a condition on sizes is malformed");
    return std::move(stack[0].first);
  }

  SizeCheck check(const file::Check& source) const {
    return {.kind = enumerator(source.kind(), CheckKind::kBounds),
            .condition = condition(source),
            .message = text(source.message()),
            .node = text(source.node()),
            .source = text(source.source())};
  }

  Program program(const file::Program& source, size_t depth) const {
    require(depth <= kMaxNesting, "programs are nested too deeply");
    Program result{.name = text(source.name())};
    each(source.symbols(), [&](const file::Symbol& symbol) { add_symbol(symbol, result.symbols); });
    result.inputs = ports(source.inputs());
    result.outputs = ports(source.outputs());
    result.states = ports(source.states());
    each(source.buffers(), [&](const file::Buffer& value) { result.buffers.push_back(buffer(value)); });
    each(source.steps(), [&](const file::Step& value) { result.steps.push_back(step(value)); });
    each(source.nested(),
         [&](const file::Program& inner) { result.nested.push_back(program(inner, depth + 1)); });
    return result;
  }

  std::vector<Dim> dims_;
};

}  // namespace

void read_programs(Bytes section, EngineData& engine) { ProgramReader().read(section, engine); }

}  // namespace ingot::core
