// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/attribute.h"
#include "ir/op.h"

namespace ingot::core::ops {

// Operands: query [*, L, E], key [*, S, E], value [*, S, V], optional mask broadcastable to [*, L, S] (bool:
// true keeps a key; float: added). grouped: query heads (dim -3) are a multiple of key heads.
struct Attention {
  double scale = 0;  // 0: 1 / sqrt(E)
  bool causal = false;
  bool grouped = false;
  bool empty_is_nan = false;  // a query whose keys are all masked gives NaN, as softmax does; otherwise zeros
  // Of `causal`: -infinity is added to hidden scores, as masks are, rather than put in their place. NaN and
  // infinity of a hidden key reach its query then.
  bool causal_by_sum = false;
  static constexpr auto fields() {
    return std::tuple{Field{"scale", &Attention::scale}, Field{"causal", &Attention::causal},
                      Field{"grouped", &Attention::grouped}, Field{"empty_is_nan", &Attention::empty_is_nan},
                      Field{"causal_by_sum", &Attention::causal_by_sum}};
  }
};

// Operands of attention, and behind them those of cached_attention.
enum AttentionOperand : size_t { kQuery, kKey, kValue, kMask, kPositions, kNewKeys, kNewValues };

// A form for targets: attention after index_copy of new rows into keys and values, which it leaves as they
// are. Operands: those of attention, then positions [n], new_keys and new_values, with n rows instead of S. n
// is constant. A position out of range counts for nothing.
extern const Op cached_attention;

bool is_attention(const Op& op);  // in either form

}  // namespace ingot::core::ops
