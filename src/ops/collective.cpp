// SPDX-License-Identifier: Apache-2.0
#include "ops/collective.h"

#include "ops/infer.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kMovedOperands[] = {{"x", DTypeSet::kAny}};
constexpr Operand kReducedOperands[] = {{"x", DTypeSet::kNumeric}};

constexpr int64_t kMostRanks = 1 << 20;
constexpr int64_t kMostRows = int64_t{1} << 40;

// Rows per rank, which have to be of `x` or of the result; -1 if they cannot be.
int64_t sum_of(const std::vector<int64_t>& rows) {
  int64_t sum = 0;
  for (const int64_t count : rows) {
    if (count < 0 || count > kMostRows - sum) return -1;
    sum += count;
  }
  return sum;
}

// The group has as many ranks; `x` has a dim 0 to divide or join.
int64_t require_rows(const Node& node) {
  const int64_t ranks = node.attributes<Collective>().ranks;
  require(ranks > 0 && ranks <= kMostRanks, node, "the number of ranks must be known");
  require(node.operand_type(0).rank() > 0, node, "a tensor without dims cannot be divided among ranks");
  return ranks;
}

void require_reduction(const Node& node) {
  const std::string reduction = node.attributes<ReducingCollective>().reduction;
  const bool is_average = reduction == "avg";
  require(is_reducible(node.operand_type(0).dtype), node, "the ranks' tensors have a dtype without sums");
  if (!is_average && reduction != "max" && reduction != "min" && reduction != "product" && reduction != "sum")
    fail(node, "'" + reduction + "' is not one of avg, max, min, product and sum");
  require(!is_average || is_floating(node.operand_type(0).dtype), node,
          "only floating-point numbers have an average");
}

Types infer_all_reduce(const Node& node) {
  require_reduction(node);
  return infer_same(node);
}

Types infer_all_gather(const Node& node) {
  const int64_t ranks = require_rows(node);
  TensorType type = infer_same(node)[0];
  type.shape[0] = type.shape[0] * ranks;
  return {type};
}

Types infer_reduce_scatter(const Node& node) {
  require_reduction(node);
  const int64_t ranks = require_rows(node);
  TensorType type = infer_same(node)[0];
  if (type.shape[0].is_constant() && *type.shape[0].constant() % ranks != 0)
    fail(node, "dim 0 of " + to_string(type.shape) + " is not a multiple of the number of ranks");
  type.shape[0] = core::floor_divide(type.shape[0], ranks);
  return {type};
}

Types infer_all_to_all(const Node& node) {
  const auto ranks = static_cast<size_t>(require_rows(node));
  const auto attributes = node.attributes<AllToAll>();
  TensorType type = infer_same(node)[0];
  require(attributes.sent.empty() == attributes.received.empty(), node,
          "the rows to and from each rank must both be given, or neither");
  if (attributes.sent.empty()) {
    if (type.shape[0].is_constant() && *type.shape[0].constant() % static_cast<int64_t>(ranks) != 0)
      fail(node, "dim 0 of " + to_string(type.shape) + " is not a multiple of the number of ranks");
    return {type};
  }
  require(attributes.sent.size() == ranks && attributes.received.size() == ranks, node,
          "there must be one number of rows per rank");
  const int64_t sent = sum_of(attributes.sent), received = sum_of(attributes.received);
  require(sent >= 0 && received >= 0, node, "numbers of rows are not negative");
  require(Dim(sent) == type.shape[0], node, "the rows that are sent are not those of dim 0");
  type.shape[0] = received;
  return {type};
}

Types infer_broadcast_from(const Node& node) {
  require(node.attributes<Broadcast>().source >= 0, node, "the source is a rank of the group");
  return infer_same(node);
}

// A group of one rank: what it computes needs no other.
template <typename Attributes>
Attributes alone() {
  Attributes attributes;
  attributes.group = "alone";
  attributes.ranks = 1;
  return attributes;
}

Samples reducing_samples() {
  Samples samples;
  for (const char* reduction : {"sum", "avg", "max", "min", "product"}) {
    auto attributes = alone<ReducingCollective>();
    attributes.reduction = reduction;
    samples.push_back(sample({f32({batch(), 3})}, attributes));
  }
  samples.push_back(sample({i64({4, 2})}, alone<ReducingCollective>()));
  return samples;
}
Samples gathering_samples() {
  return {sample({f32({batch(), 3})}, alone<Collective>()), sample({i64({4})}, alone<Collective>())};
}
Samples exchanging_samples() {
  auto uneven = alone<AllToAll>();
  uneven.sent = uneven.received = {4};
  return {sample({f32({batch(), 3})}, alone<AllToAll>()), sample({i64({4, 2})}, uneven)};
}
Samples broadcasting_samples() {
  return {sample({f32({batch(), 3})}, alone<Broadcast>()), sample({boolean_tensor({})}, alone<Broadcast>())};
}

constexpr Op collective(std::string_view name, std::string_view summary, AttributeSchema attributes,
                        Types (*infer)(const Node&), Samples (*samples)(), bool reduces = false) {
  return Op{.name = name,
            .summary = summary,
            .operands = reduces ? kReducedOperands : kMovedOperands,
            .attributes = attributes,
            .traits = Trait::kSideEffect | Trait::kCollective,
            .infer = infer,
            .routine = name,
            .samples = samples};
}

}  // namespace

bool is_reducible(DType dtype) {
  return (is_integer(dtype) || is_floating(dtype)) && bit_width(dtype) >= 8 && dtype != DType::kE4M3 &&
         dtype != DType::kE5M2;
}

constinit const Op all_gather =
    collective("all_gather", "the tensors of all ranks, one after another along dim 0",
               attribute_schema<Collective>(), infer_all_gather, gathering_samples);
constinit const Op all_reduce =
    collective("all_reduce", "the tensors of all ranks, reduced element by element",
               attribute_schema<ReducingCollective>(), infer_all_reduce, reducing_samples, true);
constinit const Op all_to_all =
    collective("all_to_all", "rows of dim 0 to each rank, and from each", attribute_schema<AllToAll>(),
               infer_all_to_all, exchanging_samples);
constinit const Op broadcast =
    collective("broadcast", "the tensor of one rank", attribute_schema<Broadcast>(), infer_broadcast_from,
               broadcasting_samples);
constinit const Op reduce_scatter =
    collective("reduce_scatter", "this rank's part along dim 0 of what all_reduce would return",
               attribute_schema<ReducingCollective>(), infer_reduce_scatter, reducing_samples, true);

}  // namespace ingot::core::ops
