// SPDX-License-Identifier: Apache-2.0
// Keys of kernels hold everything that decides the code, and nothing else: each sample of each operator,
// changed in one point after the other.
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "backends/cpu/compile/backend.h"
#include "compiler/lone_node.h"
#include "ir/rename_symbols.h"
#include "ops/ops.h"
#include "support/error.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::cpu {
namespace {

using core::test::SampleGraph;

constexpr const char* kDevice = "x86-64-v3";

// What a backend's `layouts` asks for: contractions have templates for nothing else.
void adopt_layouts(SampleGraph& sample, const Target& target) {
  const LayoutRequest request = backend().layouts(*sample.node, target);
  const auto adopt = [](const std::vector<Value*>& values, const std::vector<std::optional<Layout>>& wanted) {
    for (size_t i = 0; i < std::min(values.size(), wanted.size()); ++i) {
      if (values[i] != nullptr && wanted[i]) values[i]->type.layout = *wanted[i];
    }
  };
  adopt(sample.node->operands, request.operands);
  adopt(sample.node->results, request.results);
}

std::vector<LoweredStep> lower(SampleGraph& sample, const Target& target) {
  if (sample.node->op->traits.has(Trait::kContraction)) adopt_layouts(sample, target);
  const LoneNode lone = isolate(*sample.node, sample.graph.symbols);
  return backend().lower(*lone.node, lone.graph.symbols, target);
}

std::vector<std::string> keys_of(SampleGraph& sample, const Target& target) {
  std::vector<std::string> keys;
  for (const LoweredStep& step : lower(sample, target)) keys.push_back(step.kernel()->key);
  return keys;
}

using Change = std::function<void(Sample&, DType&)>;

// A value near this one, of the same kind; the kinds that no record draws consequences from stay.
AttributeValue changed(const AttributeValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return !*flag;
  if (const auto* number = std::get_if<int64_t>(&value)) return *number + 1;
  if (const auto* number = std::get_if<double>(&value)) return *number + 0.25;
  if (const auto* numbers = std::get_if<std::vector<int64_t>>(&value); numbers && !numbers->empty()) {
    std::vector<int64_t> more = *numbers;
    ++more.back();
    return more;
  }
  return value;
}

void enlarge(Sample& sample, size_t operand, size_t dim) {
  Dim& size = sample.operands[operand].type.shape[dim];
  const Dim before = size;
  size = before + Dim(1);
}

std::vector<Change> changes_of(const Sample& sample) {
  std::vector<Change> changes = {[](Sample&, DType&) {}, [](Sample&, DType& dtype) { dtype = DType::kF64; },
                                 [](Sample&, DType& dtype) { dtype = DType::kBF16; }};
  for (size_t i = 0; i < sample.attributes.size(); ++i)
    changes.emplace_back([i](Sample& s, DType&) { s.attributes[i] = changed(s.attributes[i]); });
  for (size_t i = 0; i < sample.operands.size(); ++i) {
    const size_t rank = sample.operands[i].type.rank();
    for (size_t dim = 0; dim < rank; ++dim) {
      changes.emplace_back([=](Sample& s, DType&) { enlarge(s, i, dim); });
      changes.emplace_back([=](Sample& s, DType&) {  // of every operand that agrees with this one
        for (size_t j = 0; j < s.operands.size(); ++j) {
          if (s.operands[j].type.rank() == rank) enlarge(s, j, dim);
        }
      });
    }
  }
  return changes;
}

// The sample after a change; nothing where the record refuses it.
std::optional<SampleGraph> make(const Op& op, Sample sample, const Change& change) {
  DType dtype = DType::kF32;
  if (sample.attributes.empty()) sample.attributes = op.attributes.defaults();
  change(sample, dtype);
  try {
    return core::test::make_sample_node(op, sample, dtype);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// Compiles what has a key that was met before, and expects the code that the first of that key has.
class KnownCode {
 public:
  void expect_same(const LoweredStep& step) {
    const LoweredKernel* kernel = step.kernel();
    if (kernel == nullptr) return;
    const auto [entry, is_new] = known_.try_emplace(kernel->key, First{kernel->compile, {}});
    if (is_new) return;
    if (entry->second.code.empty()) entry->second.code = entry->second.compile().code;
    EXPECT_EQ(kernel->compile().code, entry->second.code) << kernel->key;
  }

 private:
  struct First {
    std::function<Image()> compile;
    std::vector<std::byte> code;
  };
  std::map<std::string, First> known_;
};

class KernelKeys : public ::testing::TestWithParam<const Op*> {
 protected:
  static std::vector<Sample> samples() { return GetParam()->samples(); }
  const Target target_{.device = kDevice};
};

TEST_P(KernelKeys, EqualKeysAreEqualCode) {
  KnownCode known;
  for (const Sample& sample : samples()) {
    for (const Change& change : changes_of(sample)) {
      std::optional<SampleGraph> made = make(*GetParam(), sample, change);
      if (!made) continue;
      for (const LoweredStep& step : lower(*made, target_)) known.expect_same(step);
      if (made->graph.symbols.empty()) continue;
      for (auto& [name, info] : made->graph.symbols) info.range = {1, 7};
      for (const LoweredStep& step : lower(*made, target_)) known.expect_same(step);
    }
  }
}

TEST_P(KernelKeys, DoNotSeeOptionsOrNames) {
  for (const Sample& sample : samples()) {
    std::optional<SampleGraph> made = make(*GetParam(), sample, [](Sample&, DType&) {});
    ASSERT_TRUE(made);
    const std::vector<std::string> keys = keys_of(*made, target_);
    for (const int level : {0, 3}) {
      for (const auto numerics : {Target::Numerics::kStrict, Target::Numerics::kFast})
        EXPECT_EQ(keys_of(*made, {.device = kDevice, .level = level, .numerics = numerics}), keys);
    }
    std::map<std::string, Dim> names;
    SymbolTable symbols;
    for (const auto& [name, info] : made->graph.symbols) {
      names[name] = Dim::symbol("z" + std::to_string(9 - names.size()));  // in another order
      symbols[names[name].symbol_name()] = info;
    }
    rename_symbols(made->graph, names);
    made->graph.symbols = symbols;
    EXPECT_EQ(keys_of(*made, target_), keys);
  }
}

INSTANTIATE_TEST_SUITE_P(All, KernelKeys, ::testing::ValuesIn(core::test::lowered_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ingot::core::cpu
