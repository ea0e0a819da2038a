// SPDX-License-Identifier: Apache-2.0
#include "compiler/verify_kernels.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "compiler/accuracy.h"
#include "compiler/kernel_data.h"
#include "compiler/kernel_definition.h"
#include "engine/engine_data.h"
#include "loops/interpreter.h"
#include "loops/zero_padding.h"
#include "runtime/run_call.h"
#include "support/error.h"
#include "support/thread_pool.h"

namespace ingot::core {
namespace {

using loops::Access;
using loops::Kernel;

constexpr double kFullBudget = 10e6;     // nanoseconds up to which all points are interpreted
constexpr double kSampleBudget = 100e6;  // ... and that a sample may take
constexpr double kSamples = 256;
constexpr int64_t kMostBytes = int64_t{1} << 30;  // of all buffers of one kernel

using Trials = std::map<const Value*, TrialBuffer>;

class Verification {
 public:
  Verification(const NodeStep& step, const Launch& launch, const Image& image, const KernelRunner& runner,
               Definition definition, SymbolValues sizes)
      : step_(step),
        launch_(launch),
        runner_(runner),
        definition_(std::move(definition)),
        sizes_(std::move(sizes)) {
    EngineData engine;
    engine.images = {image};
    images_ = runner.executor->load(engine, nullptr);
  }

  // False if the definition itself accesses elements outside of its buffers: at sizes that the program's
  // guards exclude.
  bool run(TrialData data) {
    is_special_ = data == TrialData::kSpecial;
    const Trials start = make(data);
    Trials got = start, expected = start;
    int64_t expected_status = 0;
    try {
      expected_status = interpret(expected);
    } catch (const InternalError&) {
      return false;
    }
    const int64_t status = run_image(got);
    const bool agrees = status == expected_status || (is_sample_ && expected_status == 0);
    if (!agrees) fail(fmt::format("its status is {}, not {}", status, expected_status));
    for (const auto& [value, buffer] : got) {
      if (!buffer.guards_hold()) fail("it writes outside of a buffer");
    }
    if (status != 0) return true;  // an index is out of range: there is no result
    for (size_t i = 0; i < definition_.buffers.size(); ++i) {
      if (definition_.kernel.buffers[i].access == Access::kRead) continue;
      const Value* value = definition_.buffers[i];
      compare(value, start, expected.at(value), got.at(value));
    }
    return true;
  }

 private:
  Trials make(TrialData data) {
    Trials trials;
    for (size_t i = 0; i < definition_.buffers.size(); ++i) {
      const Value* value = definition_.buffers[i];
      const auto [entry, is_new] = trials.try_emplace(value, value->type, sizes_);
      const bool reads = definition_.kernel.buffers[i].access == Access::kRead;
      if (reads && is_new) fill(entry->second, data, i, !definition_.replaces.empty());
    }
    for (const Value* value : step_.step.arguments) {  // operands that the definition never reads
      const auto [entry, is_new] = trials.try_emplace(value, value->type, sizes_);
      if (is_new) fill(entry->second, data, trials.size(), false);
    }
    for (const auto& [result, operand] : definition_.replaces) {
      const auto from = trials.find(operand), to = trials.find(result);
      if (from != trials.end() && to != trials.end())
        std::copy_n(from->second.data(), from->second.size(), to->second.data());
    }
    return trials;
  }

  int64_t run_image(Trials& trials) {
    std::vector<HostBuffer> buffers;
    for (const Value* value : step_.step.arguments) buffers.push_back(trials.at(value).memory());
    const auto failure = run_call(*runner_.executor, *images_, launch_, buffers, sizes_, runner_.pool);
    return failure ? failure->status : 0;
  }

  int64_t interpret(Trials& trials) {
    std::vector<TensorView> views;
    for (const Value* value : definition_.buffers) views.push_back(trials.at(value).view());
    const Kernel& kernel = definition_.kernel;
    const int64_t points = evaluate(loops::parallel_extent(kernel), sizes_);
    const double cost = point_cost(kernel, sizes_);
    const bool whole = cost * static_cast<double>(points) <= kFullBudget;
    is_sample_ = !whole;
    if (whole) return static_cast<int64_t>(loops::interpret(kernel, views, sizes_));
    const auto count = static_cast<int64_t>(std::clamp(kSampleBudget / cost, 1.0, kSamples));
    std::vector<int64_t> sample;
    for (int64_t i = 0; i < std::min(count, points); ++i)
      sample.push_back(static_cast<int64_t>(static_cast<double>(points - 1) * (static_cast<double>(i) + 0.5) /
                                            static_cast<double>(std::min(count, points))));
    sample.push_back(points - 1);
    return static_cast<int64_t>(loops::interpret_points(kernel, views, sizes_, sample));
  }

  // Elements that the interpreter wrote; if it interprets a whole result, all others are compared too.
  std::vector<int64_t> written_elements(const TrialBuffer& start, const TrialBuffer& expected) const {
    const auto width = std::max<size_t>(1, static_cast<size_t>(bit_width(start.dtype())) / 8);
    std::vector<int64_t> elements;
    for (size_t i = 0; i < start.size() / width; ++i) {
      const size_t at = i * width;
      if (!std::equal(start.data() + at, start.data() + at + width, expected.data() + at))
        elements.push_back(static_cast<int64_t>(i));
    }
    return elements;
  }

  // Root mean square of the finite elements. Special values produce results so large that nothing else would
  // count.
  double magnitude(TrialBuffer& buffer, const std::vector<int64_t>& elements) const {
    double squares = 0, finite = 0;
    for (const int64_t i : elements) {
      const double number = read(buffer, i);
      if (!std::isfinite(number)) continue;
      squares += number * number;
      ++finite;
    }
    const double rms = finite > 0 ? std::sqrt(squares / finite) : 0;
    return is_special_ ? std::min(rms, 1.0) : rms;
  }

  static double read(TrialBuffer& buffer, int64_t i) {
    if (bit_width(buffer.dtype()) < 8) return static_cast<double>(buffer.data()[i]);
    return read_double(buffer.view(), {&i, 1});
  }

  // Whether all elements except `written` are unchanged.
  static bool untouched_agree(const std::vector<int64_t>& written, const TrialBuffer& start,
                              const TrialBuffer& got) {
    const auto width = std::max<size_t>(1, static_cast<size_t>(bit_width(start.dtype())) / 8);
    size_t from = 0;
    for (size_t i = 0; i <= written.size(); ++i) {
      const size_t to = i < written.size() ? static_cast<size_t>(written[i]) * width : start.size();
      if (!std::equal(start.data() + from, start.data() + to, got.data() + from)) return false;
      from = to + width;
    }
    return true;
  }

  void compare(const Value* value, const Trials& start, TrialBuffer& expected, TrialBuffer& got) {
    const std::vector<int64_t> elements = written_elements(start.at(value), expected);
    const double rms = magnitude(expected, elements);
    if (!is_sample_ && !untouched_agree(elements, start.at(value), got))
      fail(fmt::format("it writes elements of %{} outside of its result", value->name));
    std::optional<std::pair<Trials, Trials>> nudged;
    for (const int64_t i : elements) {
      const double a = read(expected, i), b = read(got, i), allowed = allowed_difference(got.dtype(), a, rms);
      if (agree(a, b, allowed)) continue;
      if (!nudged) nudged.emplace(nudged_results(start, true), nudged_results(start, false));
      const double up = read(nudged->first.at(value), i), down = read(nudged->second.at(value), i);
      const double spread = std::max(std::fabs(up - a), std::fabs(down - a));
      if (agree(a, b, allowed + (std::isfinite(spread) ? 4 * spread : 0))) continue;
      if (!agree(a, up, allowed) && agree(up, b, allowed)) continue;
      if (!agree(a, down, allowed) && agree(down, b, allowed)) continue;
      fail(fmt::format("element {} of %{} is {:.9g}, not {:.9g}", i, value->name, b, a));
    }
  }

  // The definition with operands that differ by rounding errors.
  Trials nudged_results(const Trials& start, bool up) {
    Trials trials = start;
    for (size_t i = 0; i < definition_.buffers.size(); ++i) {
      if (definition_.kernel.buffers[i].access == Access::kRead) nudge(trials.at(definition_.buffers[i]), up);
    }
    interpret(trials);
    return trials;
  }

  [[noreturn]] void fail(const std::string& what) const {
    std::string at;
    for (const auto& [name, size] : sizes_)
      at += fmt::format("{}{} = {}", at.empty() ? " at " : ", ", name, size);
    const Node& node = *step_.node;
    throw Error(ErrorKind::kInternal,
                {.code = "INGOT-I002",
                 .message = fmt::format("the result of kernel {} differs from its definition{}: {}\n{}",
                                        step_.step.name, at, what, to_string(definition_.kernel)),
                 .node = node.name,
                 .source_line = node.source.to_string(),
                 .advice = "this is a bug in Ingot or in LLVM: please report it with the kernel's text"});
  }

  const NodeStep& step_;
  const Launch& launch_;
  const KernelRunner& runner_;
  Definition definition_;
  SymbolValues sizes_;
  std::unique_ptr<LoadedImages> images_;
  bool is_sample_ = false;
  bool is_special_ = false;
};

std::set<std::string> symbols_of(const Definition& definition, const LoweredStep& step,
                                 const Launch& launch) {
  std::set<std::string> names;
  const auto add = [&](const Dim& dim) {
    for (const std::string& name : dim.symbols()) names.insert(name);
  };
  for (const std::string& name : loops::free_symbols(definition.kernel)) names.insert(name);
  for (const Value* value : definition.buffers) std::ranges::for_each(value->type.shape, add);
  for (const Value* value : step.arguments) std::ranges::for_each(value->type.shape, add);
  std::ranges::for_each(launch.symbols, add);
  std::ranges::for_each(launch.sizes, add);
  return names;
}

// Whether all buffers have elements, and are small enough.
bool can_run_at(const Definition& definition, const LoweredStep& step, const SymbolValues& sizes) {
  int64_t bytes = 0;
  const auto fits = [&](const Value* value) {
    for (const Dim& dim : value->type.shape) {
      if (evaluate(dim, sizes) <= 0) return false;
    }
    bytes += evaluate(storage_bytes(value->type), sizes);
    return bytes <= kMostBytes;
  };
  return std::ranges::all_of(definition.buffers, fits) && std::ranges::all_of(step.arguments, fits);
}

// The smallest sizes from `least` on that the ranges allow; nullopt if no elements are left there.
std::optional<SymbolValues> sizes_from(int64_t least, const Definition& definition, const LoweredStep& step,
                                       const Launch& launch, const SymbolTable& symbols) {
  SymbolValues sizes;
  for (const std::string& name : symbols_of(definition, step, launch)) {
    const auto known = symbols.find(name);
    const DimRange range = known == symbols.end() ? DimRange{} : known->second.range;
    sizes[name] = std::clamp(least, std::min(range.min, range.max), range.max);
  }
  if (!can_run_at(definition, step, sizes)) return std::nullopt;
  return sizes;
}

// The smallest sizes, and sizes that fill a vector and leave a remainder.
constexpr int64_t kLeastSizes[] = {1, 19};

bool verify(const NodeStep& step, const LoweredKernel& kernel, const Image& image, const SymbolTable& symbols,
            const KernelRunner& runner) {
  std::optional<Definition> definition = define(*step.node);
  if (!definition) return false;
  const Launch& launch = kernel.launch;
  const bool special = kernel.keeps_special_values && suits_special_values(*definition);
  std::set<SymbolValues> tried;
  bool verified = false;
  for (const int64_t least : kLeastSizes) {
    const auto sizes = sizes_from(least, *definition, step.step, launch, symbols);
    if (!sizes || !tried.insert(*sizes).second) continue;
    Verification verification(step, launch, image, runner, *definition, *sizes);
    const TrialData unusual = reduces(definition->kernel) ? TrialData::kRare : TrialData::kSpecial;
    if (verification.run(TrialData::kRandom) && (!special || verification.run(unusual))) verified = true;
  }
  return verified;
}

// Zero padding after the elements of a result: not part of its node's definition, and stored by the node's
// next step.
bool stores_padding_only(std::span<const NodeStep> steps, size_t number) {
  const NodeStep& step = steps[number];
  const auto& arguments = step.step.arguments;
  const bool goes_on = number + 1 < steps.size() && steps[number + 1].node == step.node;
  return goes_on && arguments.size() == 1 &&
         std::ranges::find(step.node->results, arguments[0]) != step.node->results.end() &&
         loops::zero_padding(arguments[0]->type).has_value();
}

}  // namespace

void verify_kernels(std::span<const NodeStep> steps, std::span<const Image> images,
                    const SymbolTable& symbols, const KernelRunner& runner, std::set<ImageId>& verified) {
  for (size_t i = 0; i < steps.size(); ++i) {
    const NodeStep& step = steps[i];
    if (step.step.kernel() == nullptr || stores_padding_only(steps, i)) continue;
    std::vector<const LoweredKernel*> kernels = {step.step.kernel()};
    for (const LoweredKernel& other : step.step.others) kernels.push_back(&other);
    for (const LoweredKernel* kernel : kernels) {
      const ImageId id = kernel->launch.image;
      if (backend_of(images[id]) != runner.executor->name()) continue;
      if (verified.contains(id) || !runner.executor->missing(images[id]).empty()) continue;
      if (verify(step, *kernel, images[id], symbols, runner)) verified.insert(id);
    }
  }
}

}  // namespace ingot::core
