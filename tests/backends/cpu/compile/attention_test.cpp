// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/templates/attention.h"
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

class AttentionTemplate : public testing::TestWithParam<std::tuple<AttentionCase, const char*>> {};

TensorType type_of(const std::vector<int64_t>& shape, const AttentionCase& c) {
  TensorType type{DType::kF32, Shape(shape.begin(), shape.end()), {}};
  if (c.heads_inside) type.layout = Layout::permutation(std::array{0, 2, 1, 3});
  return type;
}

std::vector<TensorType> attention_operand_types(const AttentionCase& c) {
  std::vector<TensorType> types{type_of(c.query, c), type_of(c.key, c), type_of(c.value, c)};
  if (!c.static_queries) {
    size_t row = c.query.size() - 2;
    types[0].shape[row] = Dim::symbol("L");
    types[1].shape[row] = types[2].shape[row] = Dim::symbol("S");
  }
  if (!c.mask.empty()) types.push_back({DType::kF32, Shape(c.mask.begin(), c.mask.end()), {}});
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

TEST_P(AttentionTemplate, EqualsTheDefinition) {
  const auto& [c, level] = GetParam();
  if (!host_cpu_features().covers(parse_cpu_features(level)))
    GTEST_SKIP() << "this processor has no " << level;
  Target target;
  target.device = level;
  size_t dims = c.query.size() - 2;
  ops::Attention attributes{0, c.causal, c.grouped};
  std::vector<TensorType> operands = attention_operand_types(c);
  ASSERT_TRUE(supports_attention(operands).yes);
  std::vector<int64_t> shape = c.query;
  shape.back() = c.value.back();
  TensorType result = type_of(shape, c);
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
      ASSERT_NEAR(buffers.back().at(place), expected[v], 2e-6) << testing::PrintToString(place);
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
};

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTemplate,
                         testing::Combine(testing::ValuesIn(kAttentionCases),
                                          testing::Values("x86-64-v3", "x86-64-v4")),
                         template_test_name<AttentionCase>);

}  // namespace
}  // namespace ingot::core::cpu
