// SPDX-License-Identifier: Apache-2.0
// Tensors that depend on attributes only.
#include "ops/generate.h"
#include "ops/infer.h"
#include "ops/lowering.h"
#include "ops/ops.h"
#include "ops/samples.h"

namespace ingot::core::ops {
namespace {

Types infer_full(const Node& node) {
  const auto full = node.attributes<Full>();
  return {{full.dtype, full.shape, {}}};
}
loops::Kernel lower_full(const Node& node) {
  const auto full = node.attributes<Full>();
  KernelBuilder kernel(node);
  const DType dtype = loops::arithmetic_dtype(full.dtype);
  const Index index = kernel.parallel(full.shape);
  const auto constant = full.integer.constant();
  if (is_floating(dtype)) {
    kernel.store(index, loops::constant(dtype, full.value));
  } else {
    kernel.store(index, constant ? loops::integer_constant(dtype, *constant)
                                 : loops::convert(dtype, loops::index_value(full.integer)));
  }
  return kernel.finish();
}
Samples full_samples() {
  return {sample({}, Full{1.5, 0, DType::kF32, {2, 3}}), sample({}, Full{0, length() * 2, DType::kI64, {}}),
          sample({}, Full{0, 1, DType::kBool, {batch()}})};
}

Types infer_iota(const Node& node) {
  const auto iota = node.attributes<Iota>();
  return {{iota.dtype, {iota.extent}, {}}};
}
loops::Kernel lower_iota(const Node& node) {
  const auto iota = node.attributes<Iota>();
  KernelBuilder kernel(node);
  const Index index = kernel.parallel({iota.extent});
  kernel.store(index, loops::index_value(iota.start + iota.step * index[0]));
  return kernel.finish();
}
Samples iota_samples() {
  return {sample({}, Iota{0, 1, 7, DType::kI64}), sample({}, Iota{length(), -2, batch(), DType::kF32})};
}

}  // namespace

constinit const Op full = {.name = "full",
                           .summary = "a constant everywhere: `value` for floats, otherwise `integer`",
                           .attributes = attribute_schema<Full>(),
                           .traits = Trait::kElementwise,
                           .infer = infer_full,
                           .lower = lower_full,
                           .samples = full_samples};

constinit const Op iota = {.name = "iota",
                           .summary = "start, start + step, ... : `extent` numbers",
                           .attributes = attribute_schema<Iota>(),
                           .traits = Trait::kElementwise,
                           .infer = infer_iota,
                           .lower = lower_iota,
                           .samples = iota_samples};

}  // namespace ingot::core::ops
