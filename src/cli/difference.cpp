// SPDX-License-Identifier: Apache-2.0
#include "cli/difference.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ingot/half.h"

namespace ingot::cli {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <typename Element>
double load(const void* data, size_t position) {
  Element element;
  std::memcpy(&element, static_cast<const char*>(data) + position * sizeof(Element), sizeof(Element));
  return static_cast<double>(element);
}

using Load = double (*)(const void* data, size_t position);

// Null for dtypes without a C++ type.
Load load_of(int32_t dtype) {
  switch (dtype) {
    case INGOT_BOOL:
    case INGOT_U8:
      return &load<uint8_t>;
    case INGOT_I8:
      return &load<int8_t>;
    case INGOT_I16:
      return &load<int16_t>;
    case INGOT_I32:
      return &load<int32_t>;
    case INGOT_I64:
      return &load<int64_t>;
    case INGOT_U16:
      return &load<uint16_t>;
    case INGOT_U32:
      return &load<uint32_t>;
    case INGOT_U64:
      return &load<uint64_t>;
    case INGOT_F16:
      return &load<Float16>;
    case INGOT_BF16:
      return &load<BFloat16>;
    case INGOT_F32:
      return &load<float>;
    case INGOT_F64:
      return &load<double>;
    default:
      return nullptr;
  }
}

bool is_floating(int32_t dtype) {
  return dtype == INGOT_F16 || dtype == INGOT_BF16 || dtype == INGOT_F32 || dtype == INGOT_F64;
}

// Reads pairs of elements of both.
class Pairs {
 public:
  Pairs(const Elements& result, const Elements& reference)
      : result_(result),
        reference_(reference),
        load_result_(load_of(result.dtype)),
        load_reference_(load_of(reference.dtype)) {}

  ElementPair operator()(size_t position) const {
    return {position, load_result_(result_.data, position), load_reference_(reference_.data, position)};
  }
  // Integers beyond 2^53 may differ though their doubles are equal.
  double distance(const ElementPair& pair) const {
    const double result = pair.result, reference = pair.reference;
    if (!is_floating(result_.dtype))
      return is_same(pair.position) ? 0 : std::max(std::fabs(result - reference), 1.0);
    if (result == reference || (std::isnan(result) && std::isnan(reference))) return 0;
    const double distance = std::fabs(result - reference);
    return std::isfinite(distance) ? distance : kInfinity;
  }
  double root_mean_square() const {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < reference_.count; ++i) {
      const double value = load_reference_(reference_.data, i);
      if (!std::isfinite(value)) continue;
      sum += value * value;
      ++count;
    }
    return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
  }

 private:
  bool is_same(size_t position) const {
    const size_t bytes = element_bits(result_.dtype) / 8;
    return std::memcmp(static_cast<const char*>(result_.data) + position * bytes,
                       static_cast<const char*>(reference_.data) + position * bytes, bytes) == 0;
  }

  Elements result_, reference_;
  Load load_result_, load_reference_;
};

std::string describe_type(const Array& array) {
  return fmt::format("{}[{}]", dtype_name(array.dtype), fmt::join(array.shape, ","));
}

std::string find_problem(const Array& result, const Array& reference) {
  const bool has_dtype =
      result.dtype == reference.dtype || (is_floating(result.dtype) && is_floating(reference.dtype));
  if (!has_dtype || result.shape != reference.shape)
    return fmt::format("it is {}, the reference {}", describe_type(result), describe_type(reference));
  if (load_of(result.dtype) == nullptr)
    return fmt::format("values of {} cannot be compared", dtype_name(result.dtype));
  return "";
}

bool is_complex(const Array& array) { return array.dtype == INGOT_C64 || array.dtype == INGOT_C128; }

// Complex numbers as pairs of their parts.
Array as_reals(const Array& array) {
  Array reals = array;
  if (!is_complex(array)) return reals;
  reals.dtype = array.dtype == INGOT_C64 ? INGOT_F32 : INGOT_F64;
  reals.shape.push_back(2);
  return reals;
}

double allowed(const Array& result, const Array& reference, const Tolerance& tolerance, double value,
               double rms) {
  if (tolerance.relative || tolerance.absolute)
    return tolerance.relative.value_or(0) * std::fabs(value) + tolerance.absolute.value_or(0);
  return std::max(allowed_by_rule(result.dtype, value, rms), allowed_by_rule(reference.dtype, value, rms));
}

double share_of(double distance, double tolerance) {
  if (distance == 0) return 0;
  // Within the tolerance of an infinite reference, which is infinite, is nothing but that infinity.
  return std::isfinite(distance) && tolerance > 0 ? distance / tolerance : kInfinity;
}

}  // namespace

Elements elements_of(const Array& array) {
  return {array.data.data(), array.dtype, array.data.size() * 8 / element_bits(array.dtype)};
}

Elements elements_of(const ingot_tensor& tensor) {
  size_t count = 1;
  for (int32_t axis = 0; axis < tensor.rank; ++axis) count *= static_cast<size_t>(tensor.shape[axis]);
  return {tensor.data, tensor.dtype, count};
}

Difference difference_of(const Array& result, const Array& reference, const Tolerance& tolerance) {
  if (is_complex(result) || is_complex(reference))
    return difference_of(as_reals(result), as_reals(reference), tolerance);
  Difference difference{.problem = find_problem(result, reference), .largest_at = {}, .share_at = {}};
  if (!difference.problem.empty()) return difference;
  const Pairs pairs(elements_of(result), elements_of(reference));
  const double rms = pairs.root_mean_square();
  difference.elements = 1;
  for (const int64_t size : result.shape) difference.elements *= static_cast<size_t>(size);
  for (size_t i = 0; i < difference.elements; ++i) {
    const ElementPair pair = pairs(i);
    const double distance = pairs.distance(pair);
    const double share = share_of(distance, allowed(result, reference, tolerance, pair.reference, rms));
    difference.outside += share > 1 ? 1 : 0;
    if (distance > difference.largest) difference.largest = distance, difference.largest_at = pair;
    if (share > difference.share) difference.share = share, difference.share_at = pair;
  }
  return difference;
}

double relative_error(const Elements& result, const Elements& reference) {
  if (load_of(result.dtype) == nullptr || load_of(reference.dtype) == nullptr) return 0;
  const Pairs pairs(result, reference);
  double error = 0, norm = 0;
  for (size_t i = 0; i < result.count; ++i) {
    const ElementPair pair = pairs(i);
    const double distance = pairs.distance(pair);
    error += distance * distance;
    if (std::isfinite(pair.reference)) norm += pair.reference * pair.reference;
  }
  if (error == 0) return 0;
  return norm == 0 ? kInfinity : std::sqrt(error / norm);
}

std::vector<const Array*> match_outputs(const std::vector<Array>& results,
                                        const std::vector<Array>& references) {
  if (results.size() != references.size())
    throw CommandError(fmt::format("the result has {} outputs, the reference {}: they cannot be compared",
                                   results.size(), references.size()));
  std::vector<const Array*> matches;
  for (const Array& result : results) {
    const auto match = std::ranges::find(references, result.name, &Array::name);
    if (match != references.end()) matches.push_back(&*match);
  }
  if (matches.size() == results.size()) return matches;
  matches.clear();
  for (const Array& reference : references) matches.push_back(&reference);
  return matches;
}

}  // namespace ingot::cli
