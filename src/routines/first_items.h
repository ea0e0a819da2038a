// SPDX-License-Identifier: Apache-2.0
// The first elements of a line in sorting order, for a count far below the line's length. An element that
// does not precede the last one kept so far is compared once, by vectors of elements as they are stored.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <type_traits>

#include "routines/sort_keys.h"

namespace ingot::core::routines {

// A test that may hold for more elements than those that precede the limit: it holds for NaN, and for all if
// the limit is NaN.
template <typename Stored, bool kDescending>
struct MayPrecede {
  Stored limit;
  bool operator()(Stored x) const { return kDescending ? !(x <= limit) : !(x >= limit); }
};

// For 16 bits with a sign, an exponent and a fraction, by integers that have their order but for NaN.
template <uint16_t kInfinity, bool kDescending>
struct MayPrecedeHalf {
  static constexpr int16_t kMagnitude = 0x7fff;
  int16_t limit;

  explicit MayPrecedeHalf(uint16_t bits) : limit(is_nan(bits) ? kMagnitude : ordered(bits)) {}
  static bool is_nan(uint16_t bits) { return static_cast<int16_t>(bits & kMagnitude) > int16_t{kInfinity}; }
  static int16_t ordered(uint16_t bits) {
    const auto sign = static_cast<int16_t>(static_cast<int16_t>(bits) >> 15);
    return static_cast<int16_t>(bits ^ (sign & kMagnitude));
  }
  bool operator()(uint16_t bits) const {
    return (kDescending ? ordered(bits) > limit : ordered(bits) < limit) | is_nan(bits);
  }
};
template <bool kDescending>
struct MayPrecede<Half, kDescending> : MayPrecedeHalf<0x7c00, kDescending> {
  explicit MayPrecede(Half limit) : MayPrecedeHalf<0x7c00, kDescending>(limit.bits) {}
  bool operator()(Half x) const { return MayPrecedeHalf<0x7c00, kDescending>::operator()(x.bits); }
};
template <bool kDescending>
struct MayPrecede<BFloat16, kDescending> : MayPrecedeHalf<0x7f80, kDescending> {
  explicit MayPrecede(BFloat16 limit) : MayPrecedeHalf<0x7f80, kDescending>(limit.bits) {}
  bool operator()(BFloat16 x) const { return MayPrecedeHalf<0x7f80, kDescending>::operator()(x.bits); }
};

inline constexpr size_t kFirstItemsBlock = 16;

// How many items the work takes.
inline size_t items_for_first(size_t count) { return 2 * (count + kFirstItemsBlock); }

// `kept` has items_for_first(count) items; elements are `stride` apart. count > 0.
template <bool kDescending, typename Stored, typename Key>
class FirstItems {
 public:
  FirstItems(const Stored* line, int64_t stride, size_t count, std::span<SortItem<Key>> kept)
      : line_(line), stride_(stride), count_(count), kept_(kept) {}

  // Moves the `count` first of the line's `extent` elements to the front of `kept`, in order.
  void select(size_t extent) {
    for (size_t i = 0; i < extent; i += kFirstItemsBlock) {
      const bool is_whole = extent - i >= kFirstItemsBlock;
      if (is_limited_ && is_whole && stride_ == 1 && !any_may_precede(line_ + i)) continue;
      add(i, std::min(i + kFirstItemsBlock, extent));
      if (size_ + kFirstItemsBlock > kept_.size()) limit();
    }
    if (size_ > count_) keep_first();
    std::sort(kept_.begin(), kept_.begin() + static_cast<ptrdiff_t>(count_));
  }

 private:
  Stored element(size_t i) const { return line_[static_cast<int64_t>(i) * stride_]; }

  bool any_may_precede(const Stored* block) const {
    using Flag = std::conditional_t<sizeof(Stored) == 8, uint64_t,
                                    std::conditional_t<sizeof(Stored) == 4, uint32_t, uint16_t>>;
    constexpr auto kYes = static_cast<Flag>(~Flag{0});
    const MayPrecede<Stored, kDescending> precedes{limit_element_};
    Flag any = 0;
    for (size_t k = 0; k < kFirstItemsBlock; ++k) any |= precedes(block[k]) ? kYes : Flag{0};
    return any != 0;
  }

  void add(size_t begin, size_t end) {
    for (size_t k = begin; k < end; ++k) {
      const Key key = sort_key(element(k)), ordered = kDescending ? static_cast<Key>(~key) : key;
      if (!is_limited_ || ordered < limit_) kept_[size_++] = {ordered, static_cast<Key>(k)};
    }
  }

  void keep_first() {
    const auto last = kept_.begin() + static_cast<ptrdiff_t>(count_ - 1);
    std::nth_element(kept_.begin(), last, kept_.begin() + static_cast<ptrdiff_t>(size_));
    size_ = count_;
  }

  void limit() {
    keep_first();
    limit_ = kept_[count_ - 1].key;
    limit_element_ = element(static_cast<size_t>(kept_[count_ - 1].index));
    is_limited_ = true;
  }

  const Stored* line_;
  int64_t stride_;
  size_t count_;
  std::span<SortItem<Key>> kept_;
  size_t size_ = 0;
  bool is_limited_ = false;
  Key limit_{};
  Stored limit_element_{};
};

}  // namespace ingot::core::routines
