// SPDX-License-Identifier: Apache-2.0
// torch's functional collectives (docs/design/040). torch returns before one is done, and waits for the
// result by another call; here it is done when it returns, and the wait is nothing.
#include <algorithm>

#include "importers/aten/converters/building.h"
#include "importers/aten/converters/converters.h"
#include "ops/collective.h"
#include "ops/size_condition.h"

namespace ingot::core::aten {
namespace {

template <typename Attributes>
Attributes of_group(Call& call) {
  Attributes attributes;
  attributes.group = call.text("group_name");
  call.require(!attributes.group.empty(), "a group without a name");
  return attributes;
}

int64_t group_size(Call& call) {
  const int64_t size = call.integer("group_size");
  call.require(size > 0, "a group without ranks");
  return size;
}

std::string reduction_of(Call& call, const core::Value* x) {
  const std::string name = call.text("reduce_op");
  const DType dtype = x->type.dtype;
  const bool is_known = name == "sum" || name == "avg" || name == "max" || name == "min" || name == "product";
  if (!is_known) call.refuse("the reduction '" + name + "'");
  call.require(ops::is_reducible(dtype), "a reduction over ranks of " + std::string(core::name(dtype)));
  call.require(name != "avg" || is_floating(dtype), "an average of integers");
  return name;
}

// Dim 0 is divided among the ranks: sizes that break this are rejected before a run.
void require_divisible(Call& call, const core::Value* x, int64_t ranks) {
  call.require(x->type.rank() > 0, "a tensor without dims");
  const Dim& rows = x->type.shape[0];
  if (rows.is_constant())
    call.require(*rows.constant() % ranks == 0, "a dim 0 that is not a multiple of the number of ranks");
  else
    ops::add_check(call.graph(), CheckKind::kGuard, compare(Predicate::Kind::kEqual, modulo(rows, ranks), 0));
}

core::Value* reduced(Call& call, core::Value* x) {
  auto attributes = of_group<ops::ReducingCollective>(call);
  attributes.reduction = reduction_of(call, x);
  return emit(call, ops::all_reduce, {x}, attributes);
}
core::Value* gathered(Call& call, core::Value* x) {
  auto attributes = of_group<ops::Collective>(call);
  attributes.ranks = group_size(call);
  call.require(x->type.rank() > 0, "a tensor without dims");
  return emit(call, ops::all_gather, {x}, attributes);
}
core::Value* scattered(Call& call, core::Value* x) {
  auto attributes = of_group<ops::ReducingCollective>(call);
  attributes.ranks = group_size(call);
  attributes.reduction = reduction_of(call, x);
  require_divisible(call, x, attributes.ranks);
  return emit(call, ops::reduce_scatter, {x}, attributes);
}

template <core::Value* collective(Call&, core::Value*)>
void over_ranks(Call& call) {
  call.give(collective(call, call.tensor("input")));
}
template <core::Value* collective(Call&, core::Value*)>
void each_over_ranks(Call& call) {
  const std::vector<core::Value*> inputs = call.tensors("inputs");
  for (size_t i = 0; i < inputs.size(); ++i) call.give(i, collective(call, inputs[i]));
}

void all_to_all_ranks(Call& call) {
  core::Value* x = call.tensor("input");
  auto attributes = of_group<ops::AllToAll>(call);
  const std::vector<Dim> received = call.dims("output_split_sizes"), sent = call.dims("input_split_sizes");
  call.require(!sent.empty() && sent.size() == received.size(),
               "splits that do not give the size of the group");
  attributes.ranks = static_cast<int64_t>(sent.size());
  const auto are_same = [&](const std::vector<Dim>& sizes) {
    return std::ranges::all_of(sizes, [&](const Dim& size) { return size == sent[0]; });
  };
  if (are_same(sent) && are_same(received)) {
    require_divisible(call, x, attributes.ranks);
  } else {
    attributes.sent = call.integers("input_split_sizes");
    attributes.received = call.integers("output_split_sizes");
  }
  call.give(emit(call, ops::all_to_all, {x}, attributes));
}

void broadcast_over_ranks(Call& call) {
  auto attributes = of_group<ops::Broadcast>(call);
  attributes.source = call.integer("src");
  call.require(attributes.source >= 0, "a source that is not a rank");
  call.give(emit(call, ops::broadcast, {call.tensor("input")}, attributes));
}

// A collective that torch runs is not done yet: torch waits for it too.
void wait(Call& call) {
  core::Value* x = call.tensor("tensor");
  call.require(x->producer != nullptr && x->producer->op->traits.has(Trait::kCollective),
               "the collective that it waits for runs in torch");
  call.give(x);
}

constexpr Converter kCollectiveConverters[] = {
    {"_c10d_functional.all_gather_into_tensor.default", over_ranks<gathered>},
    {"_c10d_functional.all_gather_into_tensor_coalesced.default", each_over_ranks<gathered>},
    {"_c10d_functional.all_reduce.default", over_ranks<reduced>},
    {"_c10d_functional.all_reduce_coalesced.default", each_over_ranks<reduced>},
    {"_c10d_functional.all_to_all_single.default", all_to_all_ranks},
    {"_c10d_functional.broadcast.default", broadcast_over_ranks},
    {"_c10d_functional.reduce_scatter_tensor.default", over_ranks<scattered>},
    {"_c10d_functional.reduce_scatter_tensor_coalesced.default", each_over_ranks<scattered>},
    {"_c10d_functional.wait_tensor.default", wait},
    {"_c10d_functional_autograd.all_gather_into_tensor.default", over_ranks<gathered>},
    {"_c10d_functional_autograd.all_to_all_single.default", all_to_all_ranks},
    {"_c10d_functional_autograd.reduce_scatter_tensor.default", over_ranks<scattered>},
};

}  // namespace

std::span<const Converter> collective_converters() { return kCollectiveConverters; }

}  // namespace ingot::core::aten
