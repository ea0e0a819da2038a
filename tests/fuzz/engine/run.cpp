// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/engine/run.h"

#include <algorithm>

#include "backends/null/execute/execute.h"
#include "runtime/context.h"

namespace ingot::core::fuzz {
namespace {

constexpr int64_t kMostBytes = 1 << 20;  // of all buffers together
constexpr int64_t kSize = 3;             // of each symbol, where its range allows

Host& host() {
  static const Executor* const executors[] = {&null::executor()};
  static Host host({.threads = 1}, executors);
  return host;
}

// At most the sum of `dims`, each at least 0; more than kMostBytes if it is not known to be less.
int64_t most(std::initializer_list<Dim> dims, const SymbolTable& symbols) {
  int64_t sum = 0;
  for (const Dim& dim : dims) {
    const DimRange range = range_of(dim, symbols);
    sum += std::clamp<int64_t>(range.max, 0, kMostBytes + 1);
  }
  return sum;
}

// Integers that callers pass may be negative, down to what their range says.
int64_t least_of(const SymbolTable& declared, const std::string& symbol) {
  const auto found = declared.find(symbol);
  return found == declared.end() ? 0 : std::min<int64_t>(found->second.range.min, 0);
}

// The sizes that a step may need are known from its limits; a loop must have its number of iterations as an
// input.
bool is_modest(const Program& program, const SymbolTable& declared, SymbolTable& symbols, int64_t& bytes) {
  for (const Step& step : program.steps) {
    for (const SymbolBinding& binding : step.binds)
      symbols[binding.symbol].range = {least_of(declared, binding.symbol),
                                       range_of(binding.limit, symbols).max};
    const auto* kernel = step.as<KernelStep>();
    for (const Dim& size : kernel != nullptr ? kernel->launch.sizes : std::vector<Dim>())
      bytes += most({size}, symbols);
    if (step.as<LoopStep>() == nullptr) continue;
    const BufferId count = step.uses[0].buffer;
    if (count == kNoId || program.buffers[root_buffer(program, count)].as<InputStorage>() == nullptr)
      return false;
  }
  for (const Buffer& buffer : program.buffers) {
    const auto* arena = buffer.as<ArenaStorage>();
    const auto* alias = buffer.as<AliasStorage>();
    bytes += most({storage_bytes(buffer.type), arena != nullptr ? arena->bytes : Dim(0),
                   alias != nullptr ? alias->offset : Dim(0)},
                  symbols);
    if (bytes > kMostBytes) return false;
  }
  return std::ranges::all_of(
      program.nested, [&](const Program& nested) { return is_modest(nested, declared, symbols, bytes); });
}

SymbolTable fixed_symbols(const EngineData& data) {
  SymbolTable symbols;
  for (const auto& [name, info] : data.main.symbols) {
    const int64_t size = std::clamp(kSize, info.range.min, info.range.max);
    symbols[name].range = {size, size};
  }
  return symbols;
}

bool has_sizes(const std::vector<ArgumentSlot>& slots, const SymbolTable& symbols) {
  return std::ranges::all_of(slots, [&](const ArgumentSlot& slot) {
    return std::ranges::all_of(slot.port->type.shape,
                               [&](const Dim& dim) { return range_of(dim, symbols).max >= 0; });
  });
}

// Zeros for each argument; of i64 scalars, which count iterations or are sizes, `number`.
std::vector<Tensor> make_arguments(const std::vector<ArgumentSlot>& slots, const SymbolTable& symbols,
                                   int64_t number) {
  std::vector<Tensor> tensors;
  for (const ArgumentSlot& slot : slots) {
    std::vector<int64_t> shape;
    for (const Dim& dim : slot.port->type.shape) shape.push_back(range_of(dim, symbols).max);
    Tensor tensor = make_tensor(slot.port->type.dtype, std::move(shape));
    if (tensor.dtype == DType::kI64 && tensor.shape.empty()) write_integer(tensor.view(), {}, number);
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

struct Results {
  std::vector<Tensor> tensors;
  static void* allocate(void* context, size_t, DType dtype, std::span<const int64_t> shape, size_t) {
    auto& own = static_cast<Results*>(context)->tensors;
    own.push_back(make_tensor(dtype, {shape.begin(), shape.end()}));
    return own.back().data.get();
  }
};

}  // namespace

void run_engine(const std::shared_ptr<const EngineFile>& file) {
  const EngineData& data = file->data();
  SymbolTable symbols = fixed_symbols(data);
  int64_t bytes = 0;
  for (const Tensor& state : data.state_values)
    bytes += static_cast<int64_t>(std::min<size_t>(state.bytes(), kMostBytes));
  for (const Program* program : {&data.main, &data.init}) {
    if (!is_modest(*program, data.main.symbols, symbols, bytes)) return;
  }
  const std::shared_ptr<Engine> engine = Engine::load(file, {}, host());
  const std::vector<ArgumentSlot> slots = argument_slots(data);
  if (!has_sizes(slots, symbols)) return;  // no tensor is accepted
  Context context(engine);
  for (const int64_t number : {2, 2, -3}) {
    const std::vector<Tensor> tensors = make_arguments(slots, symbols, number);
    std::vector<Argument> arguments;
    for (const Tensor& tensor : tensors)
      arguments.push_back({tensor.data.get(), tensor.dtype, static_cast<int32_t>(tensor.shape.size()),
                           tensor.shape.data(), nullptr});
    Results results;
    context.run(arguments, {&Results::allocate, &results});
  }
}

}  // namespace ingot::core::fuzz
