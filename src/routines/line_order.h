// SPDX-License-Identifier: Apache-2.0
// The order of one line: items that have a key and a position, sorted or partly sorted.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <utility>

#include "routines/sort_keys.h"

namespace ingot::core::routines {

// Keys less the smallest one, above their positions in the same 64 bits: an item is compared and moved as one
// integer.
struct PackedItems {
  using Item = uint64_t;
  uint64_t smallest;
  int first_bit, end_bit;  // of the key in an item

  explicit PackedItems(std::span<const uint64_t> keys) {
    const auto [least, most] = std::ranges::minmax(keys);
    smallest = least;
    first_bit = std::bit_width(keys.size() - 1);
    end_bit = first_bit + std::bit_width(most - least);
  }
  bool fit() const { return end_bit <= 64; }
  Item item(uint64_t key, size_t position) const { return (key - smallest) << first_bit | position; }
  uint64_t key(Item item) const { return (item >> first_bit) + smallest; }
  uint64_t position(Item item) const { return item & ((uint64_t{1} << first_bit) - 1); }
  uint64_t bits(Item item) const { return item; }
};

// Keys and positions that do not fit 64 bits together.
struct WideItems {
  using Item = SortItem<uint64_t>;
  static constexpr int first_bit = 0, end_bit = 64;

  Item item(uint64_t key, size_t position) const { return {key, position}; }
  uint64_t key(const Item& item) const { return item.key; }
  uint64_t position(const Item& item) const { return item.index; }
  uint64_t bits(const Item& item) const { return item.key; }
};

// Stable radix sort of items in the order of their positions, by digits of up to 10 bits, lowest first; a
// digit that all items share is skipped. Returns the one of both that has the result.
template <typename Items>
std::span<typename Items::Item> radix_sort(const Items& kind, std::span<typename Items::Item> items,
                                           std::span<typename Items::Item> spare) {
  constexpr int kDigit = 10;
  const int width = kind.end_bit - kind.first_bit, passes = (width + kDigit - 1) / kDigit;
  for (int pass = 0; pass < passes; ++pass) {
    const int begin = width * pass / passes, end = width * (pass + 1) / passes;
    std::array<size_t, size_t{1} << kDigit> starts{};
    const auto digit = [&](const auto& item) {
      return kind.bits(item) >> (kind.first_bit + begin) & ((uint64_t{1} << (end - begin)) - 1);
    };
    for (const auto& item : items) ++starts[digit(item)];
    if (starts[digit(items[0])] == items.size()) continue;
    size_t next = 0;
    for (size_t& start : starts) start = std::exchange(next, next + start);
    for (const auto& item : items) spare[starts[digit(item)]++] = item;
    std::swap(items, spare);
  }
  return items;
}

// The items in order, of which the `count` smallest come first; in one of the two spans.
template <typename Items>
std::span<typename Items::Item> sort_first(const Items& kind, std::span<typename Items::Item> items,
                                           size_t count, std::span<typename Items::Item> spare) {
  // Counting the digits costs about as much as a comparison sort of this many.
  constexpr size_t kWorthRadix = 512;
  const auto first = items.begin(), middle = first + static_cast<ptrdiff_t>(count);
  if (count == 0) return items;
  if (count == items.size() && count >= kWorthRadix) return radix_sort(kind, items, spare);
  if (count < items.size()) std::nth_element(first, middle, items.end());
  std::sort(first, middle);
  return items;
}

// Working memory for a line of `extent` elements: words for items, for as many more, and the keys.
template <typename Key>
constexpr size_t words_for_line(size_t extent) {
  return extent * (sizeof(Key) == sizeof(uint64_t) ? 4 : 2);
}

// Calls use(kind, items, spare) with the items of the line whose keys are the last ones of `words`.
template <typename Use>
void with_items(std::span<uint64_t> words, size_t extent, const Use& use) {
  const auto keys = words.last(extent);
  const auto fill = [&](const auto& kind, auto items) {
    for (size_t i = 0; i < extent; ++i) items[i] = kind.item(keys[i], i);
    return items;
  };
  if (const PackedItems packed(keys); packed.fit()) {
    const auto items = fill(packed, words.first(extent));
    return use(packed, items, words.subspan(extent, extent));
  }
  auto* const wide = reinterpret_cast<SortItem<uint64_t>*>(words.data());
  const auto items = fill(WideItems{}, std::span(wide, extent));
  use(WideItems{}, items, std::span(wide + extent, extent));
}

}  // namespace ingot::core::routines
