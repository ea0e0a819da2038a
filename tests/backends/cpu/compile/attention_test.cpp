// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/attention.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/steps/members.h"
#include "support/cpu_features.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/attention.h"
#include "tests/backends/cpu/compile/template_runner.h"

namespace ingot::core::cpu {
namespace {

struct AttentionCase {
  std::vector<int64_t> query, key, value, mask;  // mask empty: none
  bool causal = false, grouped = false;
  bool heads_inside = false;    // [B, L, H, E] in memory
  bool static_queries = false;  // otherwise the number of queries and keys is a symbol
};
void PrintTo(const AttentionCase& c, std::ostream* out) {
  *out << sizes_text(c.query) << " keys " << sizes_text(c.key) << " values " << sizes_text(c.value)
       << (c.mask.empty() ? "" : " mask ") << sizes_text(c.mask) << (c.causal ? " causal" : "")
       << (c.grouped ? " grouped" : "") << (c.heads_inside ? " heads inside" : "")
       << (c.static_queries ? " static queries" : "");
}

class AttentionTemplate : public testing::TestWithParam<std::tuple<AttentionCase, Multiplication>> {};

TensorType type_of(const std::vector<int64_t>& shape, const AttentionCase& c, DType dtype) {
  TensorType type{dtype, Shape(shape.begin(), shape.end()), {}};
  if (c.heads_inside) type.layout = Layout::permutation(std::array{0, 2, 1, 3});
  return type;
}

std::vector<TensorType> attention_operand_types(const AttentionCase& c, DType dtype) {
  std::vector<TensorType> types{type_of(c.query, c, dtype), type_of(c.key, c, dtype),
                                type_of(c.value, c, dtype)};
  if (!c.static_queries) {
    size_t row = c.query.size() - 2;
    types[0].shape[row] = Dim::symbol("L");
    types[1].shape[row] = types[2].shape[row] = Dim::symbol("S");
  }
  if (!c.mask.empty()) types.push_back({dtype, Shape(c.mask.begin(), c.mask.end()), {}});
  return types;
}

// One row of the result by the definition.
std::vector<double> expected_row(const AttentionCase& c, const std::vector<HostBuffer>& operands,
                                 std::vector<int64_t> place) {
  size_t dims = c.query.size() - 2;
  int64_t keys = c.key[dims], query = place[dims];
  auto batch = [&](const std::vector<int64_t>& shape, bool shared) {
    std::vector<int64_t> index;
    for (size_t i = 0; i < dims; ++i) index.push_back(shape[i] == 1 ? 0 : place[i]);
    if (shared && c.grouped) index.back() = place[dims - 1] / (c.query[dims - 1] / shape[dims - 1]);
    return index;
  };
  auto at = [&](size_t operand, std::vector<int64_t> index, int64_t row, int64_t column) {
    index.push_back(row);
    index.push_back(column);
    return double{operands[operand].at(index)};
  };
  std::vector<double> scores(keys), result(c.value.back());
  double largest = -INFINITY, total = 0;
  for (int64_t key = 0; key < keys; ++key) {
    for (int64_t e = 0; e < c.query.back(); ++e) {
      scores[key] += at(0, batch(c.query, false), query, e) * at(1, batch(c.key, true), key, e);
    }
    scores[key] /= std::sqrt(c.query.back());
    if (c.causal && key > query) scores[key] = -INFINITY;
    if (!c.mask.empty()) {
      std::vector<int64_t> full = place, index;
      full[dims + 1] = key;
      for (size_t i = 0; i < c.mask.size(); ++i) {
        index.push_back(c.mask[i] == 1 ? 0 : full[full.size() - c.mask.size() + i]);
      }
      scores[key] += operands[3].at(index);
    }
    largest = std::max(largest, scores[key]);
  }
  for (double& score : scores) total += score = largest == -INFINITY ? 0 : std::exp(score - largest);
  for (int64_t key = 0; key < keys; ++key) {
    for (size_t v = 0; v < result.size() && total > 0; ++v) {
      result[v] += scores[key] / total * at(2, batch(c.value, true), key, static_cast<int64_t>(v));
    }
  }
  return result;
}

// Halves: for few queries, and bf16 where its pairs are multiplied.
bool is_supported(const AttentionCase& c, const Multiplication& numbers) {
  const int64_t queries = c.query[c.query.size() - 2];
  const bool few = c.static_queries && queries <= 3;
  return numbers.a == DType::kF32 || few ||
         (std::string_view(numbers.level).ends_with("+bf16") && c.query.back() % 2 == 0);
}

// Exponentials and results are rounded to the dtype, whose numbers here are up to 1.
double tolerance_of(DType dtype) { return dtype == DType::kF32 ? 2e-6 : dtype == DType::kF16 ? 1e-3 : 8e-3; }

TEST_P(AttentionTemplate, EqualsTheDefinition) {
  const auto& [c, numbers] = GetParam();
  const char* const level = numbers.level;
  if (!host_cpu_features().covers(parse_cpu_features(level)))
    GTEST_SKIP() << "this processor has no " << level;
  Target target;
  target.device = level;
  size_t dims = c.query.size() - 2;
  ops::Attention attributes{0, c.causal, c.grouped};
  std::vector<TensorType> operands = attention_operand_types(c, numbers.a);
  ASSERT_EQ(supports_attention(operands, features_of(target)).yes, is_supported(c, numbers));
  if (!is_supported(c, numbers)) return;
  std::vector<int64_t> shape = c.query;
  shape.back() = c.value.back();
  TensorType result = type_of(shape, c, numbers.a);
  if (!c.static_queries) result.shape[dims] = Dim::symbol("L");
  SymbolTable table{{"L", {}}, {"S", {}}};
  TemplateKernel plan = plan_attention(operands, result, attributes, plain_epilogue(result), table, target);

  SymbolValues symbols{{"L", c.query[dims]}, {"S", c.key[dims]}};
  std::vector<HostBuffer> buffers;
  for (const TensorType& type : operands) buffers.push_back(random_buffer(type, symbols, buffers.size()));
  if (!c.mask.empty()) hide_some(buffers[3], c.mask);
  buffers.push_back(HostBuffer(result, symbols));
  run_template(plan, symbols, buffers);
  shape.pop_back();
  for_each_index(shape, [&](const std::vector<int64_t>& row) {
    std::vector<int64_t> place = row;
    place.push_back(0);
    std::vector<double> expected = expected_row(c, buffers, place);
    for (size_t v = 0; v < expected.size(); ++v) {
      place.back() = static_cast<int64_t>(v);
      ASSERT_NEAR(buffers.back().at(place), expected[v], tolerance_of(numbers.a))
          << testing::PrintToString(place);
    }
  });
}

const AttentionCase kAttentionCases[] = {
    {{2, 3, 40, 16}, {2, 3, 40, 16}, {2, 3, 40, 16}, {}},
    {{1, 2, 70, 24}, {1, 2, 150, 24}, {1, 2, 150, 20}, {}},         // several blocks of keys; partial vectors
    {{1, 2, 150, 32}, {1, 2, 150, 32}, {1, 2, 150, 32}, {}, true},  // causal
    {{2, 2, 33, 16}, {2, 2, 35, 16}, {2, 2, 35, 16}, {2, 1, 33, 35}},            // a mask by query
    {{2, 2, 33, 16}, {2, 2, 35, 16}, {2, 2, 35, 16}, {2, 1, 1, 35}},             // by key
    {{1, 4, 20, 8}, {1, 2, 20, 8}, {1, 2, 20, 8}, {}, true, true},               // grouped heads
    {{2, 3, 17, 16}, {2, 3, 19, 16}, {2, 3, 19, 16}, {19}, false, false, true},  // heads inside
    {{5, 7}, {9, 7}, {9, 3}, {5, 9}},                                            // no batch
    {{0, 2, 4, 8}, {0, 2, 4, 8}, {0, 2, 4, 8}, {}},                              // nothing
    {{2, 4, 1, 64}, {2, 2, 130, 64}, {2, 2, 130, 64}, {2, 1, 1, 130}, false, true, true, true},  // a stream
                                                                                                 // of keys
    {{1, 2, 3, 20}, {1, 2, 37, 20}, {1, 2, 37, 140}, {}, true, false, false, true},
    {{1, 2, 128, 64}, {1, 2, 128, 64}, {1, 2, 128, 64}, {}, false, false, true, true},
    {{1, 1, 50, 40}, {1, 1, 259, 40}, {1, 1, 259, 40}, {50, 259}},  // words and keys that do not fill vectors
};

constexpr Multiplication kAttentionNumbers[] = {
    {"x86-64-v3"},
    {"x86-64-v4"},
    {"x86-64-v3", DType::kBF16, DType::kBF16},
    {"x86-64-v4", DType::kF16, DType::kF16},
    {"x86-64-v4+bf16", DType::kBF16, DType::kBF16},
};

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTemplate,
                         testing::Combine(testing::ValuesIn(kAttentionCases),
                                          testing::ValuesIn(kAttentionNumbers)),
                         multiplication_test_name<AttentionCase>);

}  // namespace
}  // namespace ingot::core::cpu
