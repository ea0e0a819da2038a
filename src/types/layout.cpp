// SPDX-License-Identifier: Apache-2.0
#include "types/layout.h"

#include <algorithm>
#include <charconv>
#include <numeric>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {
namespace {

Dim axis_index(const LayoutAxis& axis, std::span<const Dim> index) {
  const Dim block = floor_divide(index[static_cast<size_t>(axis.dim)], axis.divisor);
  return axis.modulus == 0 ? block : modulo(block, axis.modulus);
}

std::string to_string(const LayoutAxis& axis) {
  std::string text = std::to_string(axis.dim);
  if (axis.divisor != 1) text += fmt::format("/{}", axis.divisor);
  if (axis.modulus != 0) text += fmt::format("%{}", axis.modulus);
  return text;
}

class LayoutParser {
 public:
  LayoutParser(std::string_view text, size_t rank) : text_(text), rest_(text), rank_(rank) {}

  Layout parse() {
    Layout layout;
    if (rest_.empty()) return layout;
    if (!accept('{')) fail("expected '{'");
    do {
      layout.axes.push_back(axis());
    } while (accept(','));
    if (!accept('}') || !rest_.empty()) fail("expected '}' at the end");
    return layout;
  }

 private:
  LayoutAxis axis() {
    const int64_t dim = number();
    if (dim >= static_cast<int64_t>(rank_))
      fail(fmt::format("dim {} is out of range for {} dims", dim, rank_));
    LayoutAxis result{static_cast<int32_t>(dim)};
    if (accept('/')) result.divisor = positive();
    if (accept('%')) result.modulus = positive();
    return result;
  }

  int64_t positive() {
    const int64_t value = number();
    if (value == 0) fail("a block size of 0");
    return value;
  }

  int64_t number() {
    skip_spaces();
    int64_t value = -1;
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc() || value < 0) fail("expected a number that is not negative");
    rest_.remove_prefix(static_cast<size_t>(stop - rest_.data()));
    return value;
  }

  void skip_spaces() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }

  bool accept(char expected) {
    skip_spaces();
    if (!rest_.starts_with(expected)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  [[noreturn]] void fail(std::string_view cause) const {
    const size_t column = text_.size() - rest_.size() + 1;
    throw UserError("INGOT-U106", fmt::format("'{}' is not a layout: {} at column {}", text_, cause, column));
  }

  std::string_view text_;
  std::string_view rest_;
  size_t rank_;
};

}  // namespace

bool Layout::is_permutation() const {
  return std::ranges::all_of(axes,
                             [](const LayoutAxis& axis) { return axis.divisor == 1 && axis.modulus == 0; });
}

Layout Layout::permutation(std::span<const int> order) {
  Layout layout;
  if (std::ranges::is_sorted(order)) return layout;  // row-major has one form
  for (const int dim : order) layout.axes.push_back({dim});
  return layout;
}

Layout Layout::blocked(std::span<const int> order, int dim, int64_t block) {
  Layout layout;
  for (const int each : order)
    layout.axes.push_back(each == dim ? LayoutAxis{each, block} : LayoutAxis{each});
  layout.axes.push_back({dim, 1, block});
  return layout;
}

std::vector<int> channels_last(size_t rank) {
  std::vector<int> order(rank);
  std::iota(order.begin() + 1, order.end() - 1, 2);
  order.back() = 1;
  return order;
}

std::vector<Dim> storage_shape(const Layout& layout, std::span<const Dim> shape) {
  if (layout.is_row_major()) return {shape.begin(), shape.end()};
  std::vector<Dim> result;
  for (const LayoutAxis& axis : layout.axes) {
    const Dim& extent = shape[static_cast<size_t>(axis.dim)];
    result.push_back(axis.modulus == 0 ? ceil_divide(extent, axis.divisor) : Dim(axis.modulus));
  }
  return result;
}

Dim storage_elements(const Layout& layout, std::span<const Dim> shape) {
  return product(storage_shape(layout, shape));
}

Dim storage_offset(const Layout& layout, std::span<const Dim> shape, std::span<const Dim> index) {
  const std::vector<Dim> extents = storage_shape(layout, shape);
  Dim offset, stride = 1;
  for (size_t i = extents.size(); i-- > 0;) {
    const Dim position = layout.is_row_major() ? index[i] : axis_index(layout.axes[i], index);
    offset = position * stride + offset;
    stride = extents[i] * stride;
  }
  return offset;
}

std::string to_string(const Layout& layout) {
  if (layout.is_row_major()) return "";
  std::string text;
  for (const LayoutAxis& axis : layout.axes) text += (text.empty() ? "{" : ", ") + to_string(axis);
  return text + "}";
}

Layout parse_layout(std::string_view text, size_t rank) { return LayoutParser(text, rank).parse(); }

}  // namespace ingot::core
