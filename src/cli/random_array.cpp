// SPDX-License-Identifier: Apache-2.0
#include "cli/random_array.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <random>

#include "cli/commands.h"

namespace ingot::cli {
namespace {

[[noreturn]] void refuse_shape(const std::string& part) {
  throw CommandError(fmt::format("'{}' is not a shape: write name:1x128", part), 2);
}

std::vector<int64_t> parse_sizes(const std::string& part, size_t begin) {
  std::vector<int64_t> shape;
  const char* at = part.data() + begin;
  const char* last = part.data() + part.size();
  while (at < last) {
    int64_t size = 0;
    const auto [next, error] = std::from_chars(at, last, size);
    const bool ends_well = next == last || (*next == 'x' && next + 1 < last);
    if (error != std::errc() || size < 0 || !ends_well) refuse_shape(part);
    shape.push_back(size);
    at = next + 1;
  }
  return shape;
}

template <typename Element, typename Make>
void fill(std::vector<char>& data, size_t count, Make&& make) {
  data.resize(std::max<size_t>(count * sizeof(Element), 1));
  for (size_t i = 0; i < count; ++i) {
    const Element value = make();
    std::memcpy(data.data() + i * sizeof(Element), &value, sizeof(Element));
  }
}

}  // namespace

std::map<std::string, std::vector<int64_t>> parse_shape_list(const std::string& text) {
  std::map<std::string, std::vector<int64_t>> shapes;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string part = text.substr(begin, end - begin);
    const size_t colon = part.rfind(':');
    if (colon == std::string::npos || colon == 0) refuse_shape(part);
    const std::string name = part.substr(0, colon);
    if (shapes.contains(name)) throw CommandError(fmt::format("--shapes names '{}' twice", name), 2);
    shapes[name] = parse_sizes(part, colon + 1);
    begin = end + 1;
  }
  return shapes;
}

Array smallest_array(const ingot_port& port, const KnownSizes& known) {
  Array array{.name = port.name, .dtype = port.dtype, .shape = {}, .data = {}};
  for (int32_t axis = 0; axis < port.rank; ++axis) {
    const auto given = known.find(port.dims[axis]);
    array.shape.push_back(given == known.end() ? std::max<int64_t>(port.min[axis], 1) : given->second);
  }
  return array;
}

void fill_randomly(Array& array, uint64_t seed) {
  size_t count = 1;
  for (const int64_t size : array.shape) count *= static_cast<size_t>(size);
  std::mt19937_64 generator(seed);
  std::normal_distribution<float> normal;
  const auto bit = [&] { return generator() & 1; };
  switch (array.dtype) {
    case INGOT_C64:
      fill<float>(array.data, 2 * count, [&] { return normal(generator); });
      break;
    case INGOT_C128:
      fill<double>(array.data, 2 * count, [&] { return static_cast<double>(normal(generator)); });
      break;
    case INGOT_F32:
      fill<float>(array.data, count, [&] { return normal(generator); });
      break;
    case INGOT_F64:
      fill<double>(array.data, count, [&] { return static_cast<double>(normal(generator)); });
      break;
    case INGOT_BF16:
      fill<uint16_t>(array.data, count, [&] {
        const float value = normal(generator);
        uint32_t bits;
        std::memcpy(&bits, &value, sizeof(bits));
        return static_cast<uint16_t>(bits >> 16);
      });
      break;
    case INGOT_I64:
    case INGOT_U64:
      fill<uint64_t>(array.data, count, [&] { return uint64_t{bit()}; });
      break;
    case INGOT_I32:
    case INGOT_U32:
      fill<uint32_t>(array.data, count, [&] { return static_cast<uint32_t>(bit()); });
      break;
    case INGOT_BOOL:
      fill<uint8_t>(array.data, count, [] { return uint8_t{1}; });
      break;
    default:  // all bits zero is 0 in every dtype
      array.data.resize(std::max<size_t>(count * element_bits(array.dtype) / 8, 1));
  }
}

}  // namespace ingot::cli
