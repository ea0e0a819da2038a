// SPDX-License-Identifier: Apache-2.0
#include "tests/random/case.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <sstream>
#include <stdexcept>

#include "ir/text.h"
#include "ops/ops.h"

namespace ingot::core::random_graphs {
namespace {

std::string describe(const Tensor& tensor) {
  std::string digits;
  for (size_t i = 0; i < tensor.bytes(); ++i)
    digits += fmt::format("{:02x}", std::to_integer<int>(tensor.data.get()[i]));
  return fmt::format("{} [{}] x{}", name(tensor.dtype), fmt::join(tensor.shape, ","), digits);
}

int64_t integer_of(std::string_view text, int base) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size())
    throw std::runtime_error("a number is expected: " + std::string(text));
  return value;
}

std::vector<int64_t> read_shape(std::string_view text) {
  std::vector<int64_t> shape;
  std::istringstream words(std::string(text.substr(1, text.size() - 2)));
  for (std::string word; std::getline(words, word, ',');) shape.push_back(integer_of(word, 10));
  return shape;
}

Tensor read_tensor(std::istringstream& words) {
  std::string dtype, shape, digits;
  words >> dtype >> shape >> digits;
  const auto parsed = parse_dtype(dtype);
  if (!parsed || digits.empty()) throw std::runtime_error("expected a value");
  Tensor tensor = make_tensor(*parsed, read_shape(shape));
  if (digits.size() != 1 + 2 * tensor.bytes()) throw std::runtime_error("a value has other bytes");
  for (size_t i = 0; i < tensor.bytes(); ++i)
    tensor.data.get()[i] =
        static_cast<std::byte>(integer_of(std::string_view(digits).substr(1 + 2 * i, 2), 16));
  return tensor;
}

}  // namespace

std::string to_string(const Build& build) {
  const std::string device = build.backend == "cpu" ? to_string(build.features) : build.backend;
  const std::string cut = build.cut == 0 ? "" : fmt::format(" and its host, cut {}", build.cut);
  return fmt::format("level {}, {}{}", build.level, device, cut);
}

std::string write_case(const Case& test) {
  std::string text = fmt::format("-- numerics {}\n", test.strict ? "strict" : "default");
  for (const auto& [name, value] : test.sources)
    text += fmt::format("-- source {} {}\n", name, describe(value));
  for (const auto& inputs : test.runs) {
    text += "-- run\n";
    for (const Tensor& input : inputs) text += fmt::format("-- input {}\n", describe(input));
  }
  return text + to_string(test.graph, {.sources = false});
}

Case read_case(std::string_view text) {
  Case test{parse_graph(text, ops::find_op), {}, {}, false};
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line) && line.starts_with("--");) {
    std::istringstream words(line.substr(2));
    std::string kind, name;
    words >> kind;
    if (kind == "numerics") {
      words >> name;
      test.strict = name == "strict";
    } else if (kind == "source") {
      words >> name;
      test.sources.emplace(name, read_tensor(words));
    } else if (kind == "run") {
      test.runs.emplace_back();
    } else if (kind == "input") {
      test.runs.at(test.runs.size() - 1).push_back(read_tensor(words));
    }
  }
  return test;
}

}  // namespace ingot::core::random_graphs
