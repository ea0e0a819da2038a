// SPDX-License-Identifier: Apache-2.0
// Every record, with samples that something was changed in: its shape rule rejects them, or what it lets pass
// can be lowered, and run where it is small.
#include <gtest/gtest.h>

#include <random>

#include "ir/verify.h"
#include "loops/kernel.h"
#include "ops/ops.h"
#include "support/error.h"
#include "tests/ops/sample_graph.h"

namespace ingot::core::test {
namespace {

constexpr int kChanged = 150;    // samples a record
constexpr double kSmall = 2000;  // elements

class Change {
 public:
  explicit Change(std::minstd_rand& random) : random_(random) {}

  void apply(Sample& sample, const Op& op) {
    if (sample.attributes.empty()) sample.attributes = op.attributes.defaults();
    for (size_t count = 1 + below(3); count > 0; --count) {
      if (below(2) == 0 && !sample.attributes.empty()) {
        std::visit(*this, sample.attributes[below(sample.attributes.size())]);
      } else if (!sample.operands.empty()) {
        change(sample.operands, below(sample.operands.size()));
      }
    }
  }

  void operator()(bool& flag) { flag = !flag; }
  void operator()(int64_t& number) { number = integer(); }
  void operator()(double& number) { number = 0.5 * static_cast<double>(integer()); }
  void operator()(std::string& text) { text = below(2) == 0 ? "" : text + "x"; }
  void operator()(DType& dtype) { dtype = any_dtype(); }
  void operator()(Dim& dim) { dim = integer(); }
  void operator()(Layout&) {}
  void operator()(auto& list) { change_list(list); }

 private:
  size_t below(size_t count) { return random_() % count; }
  int64_t integer() {
    static constexpr int64_t kNumbers[] = {0,  1,  2,       3,        4,         5,        -1,
                                           -2, -5, 1 << 20, 1L << 40, INT64_MAX, INT64_MIN};
    return kNumbers[below(below(3) == 0 ? std::size(kNumbers) : 7)];
  }
  DType any_dtype() {
    static constexpr DType kDTypes[] = {DType::kF32, DType::kI64, DType::kBool, DType::kF64,  DType::kU8,
                                        DType::kF16, DType::kI32, DType::kC64,  DType::kE4M3, DType::kI4};
    return kDTypes[below(std::size(kDTypes))];
  }
  template <typename List>
  void change_list(List& list) {
    if (list.empty() || below(3) == 0) {
      list.insert(list.begin() + static_cast<ptrdiff_t>(below(list.size() + 1)), integer());
    } else if (below(2) == 0) {
      list.erase(list.begin() + static_cast<ptrdiff_t>(below(list.size())));
    } else {
      list[below(list.size())] = integer();
    }
  }
  void change(std::vector<SampleOperand>& operands, size_t place) {
    TensorType& type = operands[place].type;
    switch (below(6)) {
      case 0:
        type.dtype = any_dtype();
        break;
      case 1:
        operands.erase(operands.begin() + static_cast<ptrdiff_t>(place));
        break;
      case 2:
        type.shape = operands[below(operands.size())].type.shape;
        break;
      default: {
        std::vector<Dim>& shape = type.shape;
        change_list(shape);
        for (Dim& dim : shape) {
          if (dim.is_constant() && *dim.constant() < 0) dim = 1;
        }
      }
    }
  }

  std::minstd_rand& random_;
};

std::string text_of(const Sample& sample) {
  std::string text;
  for (const SampleOperand& operand : sample.operands) text += to_string(operand.type) + " ";
  for (const AttributeValue& value : sample.attributes) text += to_string(value) + " ";
  return text;
}

// Whether a kernel, which may visit each element of a result for each of an operand, ends soon. What symbols
// are is known when a program runs.
bool is_small(const SampleGraph& sample) {
  if (!sample.symbols.empty()) return false;
  double operands = 0, results = 0;
  const auto count = [](const Value* value) {
    return static_cast<double>(*element_count(value->type).constant());
  };
  for (const Value* input : sample.graph.inputs()) operands += count(input);
  for (const Value* result : sample.node->results) results += count(result);
  return operands <= kSmall && results <= kSmall;
}

class MalformedSamples : public testing::TestWithParam<const Op*> {};

void use(const Op& op, const Sample& sample) {
  SampleGraph made = make_sample_node(op, sample);
  verify(made.graph, "inferring", OutputLayouts::kAny);
  if (op.lower) loops::verify(op.lower(*made.node));
  if (is_small(made)) evaluate_sample(make_sample_graph(op, sample));
}

TEST_P(MalformedSamples, AreRefusedOrRun) {
  const Op& op = *GetParam();
  if (op.samples == nullptr) return;
  std::minstd_rand random(17);
  const std::vector<Sample> samples = op.samples();
  for (int i = 0; i < kChanged; ++i) {
    Sample sample = samples[static_cast<size_t>(i) % samples.size()];
    Change{random}.apply(sample, op);
    try {
      use(op, sample);
    } catch (const UserError&) {
    } catch (const UnsupportedError&) {
    } catch (const Error& error) {
      ADD_FAILURE() << text_of(sample) << error.what();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MalformedSamples, testing::ValuesIn(ops::all_ops()),
                         [](const auto& info) { return std::string(info.param->name); });

}  // namespace
}  // namespace ingot::core::test
