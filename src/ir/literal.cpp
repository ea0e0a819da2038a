// SPDX-License-Identifier: Apache-2.0
#include "ir/literal.h"

#include <fmt/core.h>

#include <charconv>
#include <limits>
#include <vector>

#include "ir/attribute.h"
#include "support/hash.h"

namespace ingot::core {
namespace {

constexpr int64_t kMostInlineElements = 32;

// Calls `visit` with each index of a shape, the last dim fastest.
template <typename Visit>
void for_each_index(const Tensor& tensor, Visit&& visit) {
  std::vector<int64_t> index(tensor.shape.size(), 0);
  for (int64_t count = tensor.elements(); count > 0; --count) {
    visit(std::span<const int64_t>(index));
    for (size_t dim = index.size(); dim-- > 0;) {
      if (++index[dim] < tensor.shape[dim]) break;
      index[dim] = 0;
    }
  }
}

std::string print_element(const TensorView& view, std::span<const int64_t> index) {
  if (view.dtype == DType::kF64) return fmt::format("{}", read_double(view, index));
  if (is_floating(view.dtype)) return fmt::format("{}", static_cast<float>(read_double(view, index)));
  const int64_t value = read_integer(view, index);
  if (view.dtype == DType::kU64) return std::to_string(static_cast<uint64_t>(value));
  return std::to_string(value);
}

template <typename Number>
bool read(std::string_view text, Number& value) {
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size() && !text.empty();
}

bool write_element(const TensorView& view, std::span<const int64_t> index, std::string_view text) {
  if (is_floating(view.dtype)) {
    double value = 0;
    if (!read(text, value)) return false;
    write_double(view, index, value);
    return true;
  }
  int64_t value = 0;
  uint64_t large = 0;
  if (view.dtype == DType::kU64 && read(text, large)) {
    value = static_cast<int64_t>(large);
  } else if (!read(text, value)) {
    return false;
  }
  write_integer(view, index, value);
  return read_integer(view, index) == value;
}

// Product of the dims, or limit + 1 if it is larger.
int64_t bounded_elements(std::span<const int64_t> shape, int64_t limit) {
  int64_t elements = 1;
  bool empty = false;
  for (const int64_t dim : shape) {
    empty = empty || dim == 0;
    const bool small = dim == 0 || elements <= limit / dim;
    elements = small ? elements * dim : limit + 1;
    if (elements == 0) elements = 1;
  }
  return empty ? 0 : elements;
}

std::vector<int64_t> parse_shape(Scanner& scanner) {
  std::vector<int64_t> shape;
  scanner.expect("[");
  if (scanner.accept("]")) return shape;
  do {
    const std::string_view text = scanner.word();
    int64_t dim = 0;
    if (!read(text, dim) || dim < 0) scanner.fail("expected a size");
    shape.push_back(dim);
  } while (scanner.accept(","));
  scanner.expect("]");
  return shape;
}

std::vector<std::string_view> parse_elements(Scanner& scanner) {
  std::vector<std::string_view> elements;
  if (scanner.accept(")")) return elements;
  do {
    elements.push_back(scanner.raw_until(",)"));
  } while (scanner.accept(","));
  scanner.expect(")");
  return elements;
}

// What both forms begin with: the dtype, and the shape up to the bracket of the values.
Tensor parse_literal_type(Scanner& scanner) {
  const auto dtype = parse_dtype(scanner.word());
  if (!dtype) scanner.fail("expected a dtype of a constant");
  std::vector<int64_t> shape = parse_shape(scanner);
  scanner.expect("(");
  return {.data = nullptr, .dtype = *dtype, .shape = std::move(shape)};
}

Tensor parse_values(Scanner& scanner, Tensor type) {
  if (is_complex(type.dtype)) scanner.fail("constants of complex dtypes are printed without their values");
  const size_t place = scanner.position() - 1;  // of the bracket
  const std::vector<std::string_view> elements = parse_elements(scanner);
  const int64_t count = static_cast<int64_t>(elements.size());
  if (bounded_elements(type.shape, count) != count) {
    scanner.fail(place, fmt::format("{} values do not fill the shape of the constant", count));
  }
  const Tensor tensor = make_tensor(type.dtype, std::move(type.shape));
  const TensorView view = tensor.view();
  auto element = elements.begin();
  for_each_index(tensor, [&](std::span<const int64_t> index) {
    if (!write_element(view, index, *element)) {
      scanner.fail(place, fmt::format("'{}' is not a value of {}", *element, name(type.dtype)));
    }
    ++element;
  });
  return tensor;
}

}  // namespace

std::string print_literal(const Tensor& tensor) {
  std::string text(name(tensor.dtype));
  text += '[';
  for (size_t i = 0; i < tensor.shape.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ",", tensor.shape[i]);
  text += "](";
  if (tensor.elements() > kMostInlineElements || is_complex(tensor.dtype)) {
    return text + "sha256:" + hex(digest({tensor.data.get(), tensor.bytes()})) + ")";
  }
  const TensorView view = tensor.view();
  bool first = true;
  for_each_index(tensor, [&](std::span<const int64_t> index) {
    text += (first ? "" : ", ") + print_element(view, index);
    first = false;
  });
  return text + ")";
}

Tensor parse_literal(Scanner& scanner) {
  Tensor type = parse_literal_type(scanner);
  if (scanner.accept("sha256:"))
    scanner.fail("the values of this constant were left out when it was printed");
  return parse_values(scanner, std::move(type));
}

Tensor parse_literal_or_digest(Scanner& scanner) {
  Tensor type = parse_literal_type(scanner);
  if (!scanner.accept("sha256:")) return parse_values(scanner, std::move(type));
  scanner.raw_until(")");
  scanner.expect(")");
  return type;
}

}  // namespace ingot::core
