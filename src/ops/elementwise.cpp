// SPDX-License-Identifier: Apache-2.0
#include "ops/elementwise.h"

namespace ingot::core::ops {

Samples floating_samples() { return {sample({f32({3, 5})}), sample({f32({batch(), 4}, -9, 9)})}; }
Samples positive_samples() { return {sample({f32({3, 5}, 0.01, 2)}), sample({f32({batch()}, 1, 1000)})}; }
Samples unit_samples() { return {sample({f32({3, 5}, -1, 1)})}; }
Samples integer_samples() { return {sample({i64({3, 5})}), sample({tensor(DType::kU8, {batch()}, 0, 255)})}; }
Samples boolean_samples() { return {sample({boolean_tensor({3, 5})})}; }
Samples floating_pair_samples() {
  return {sample({f32({3, 5}), f32({3, 5})}), sample({f32({batch(), 1, 4}), f32({3, 1})}),
          sample({f32({2, 3}), f32({})})};
}
Samples power_samples() {
  return {sample({f32({3, 5}, 0, 3), f32({3, 5})}), sample({f32({batch(), 3}, 0.5, 2), f32({})})};
}
Samples integer_pair_samples() {
  return {sample({i64({4, 5}, -9, 9), i64({4, 5}, 0, 7)}), sample({i64({batch(), 3}), i64({1, 3}, 1, 5)})};
}
Samples boolean_pair_samples() { return {sample({boolean_tensor({3, 5}), boolean_tensor({5})})}; }

}  // namespace ingot::core::ops
