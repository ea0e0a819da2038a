// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/converters/windows.h"

#include <algorithm>

#include "ops/concat.h"
#include "types/predicate.h"

namespace ingot::core::onnx {
namespace {

constexpr int64_t kMost = int64_t{1} << 31;  // so that sums and products do not overflow

std::vector<int64_t> entries(Call& call, std::string_view name, size_t count, int64_t otherwise,
                             int64_t least) {
  if (!call.has_attribute(name)) return std::vector<int64_t>(count, otherwise);
  std::vector<int64_t> values = call.attributes(name);
  const bool fits = values.size() == count && std::ranges::all_of(values, [&](int64_t value) {
                      return value >= least && value <= kMost;
                    });
  if (!fits)
    refuse_node("the attribute '" + std::string(name) + "' has a wrong number of entries, or a wrong one");
  return values;
}

// As many windows as there are strides in the dim; the larger half of the padding is at the end (SAME_UPPER).
void pad_to_same(Windows& windows, const Shape& shape, bool is_upper, const SymbolTable& symbols) {
  for (size_t i = 0; i < windows.kernel.size(); ++i) {
    const int64_t reach = windows.dilation[i] * (windows.kernel[i] - 1) + 1;
    Dim total = reach - windows.stride[i];
    if (windows.stride[i] != 1) {
      const Dim size = shape[i + 2];
      total = (ceil_divide(size, windows.stride[i]) - 1) * Dim(windows.stride[i]) + Dim(reach) - size;
    }
    if (!provably_not_negative(total, symbols)) total = maximum(total, 0);
    const Dim half = floor_divide(total, 2);
    windows.low[i] = is_upper ? half : total - half;
    windows.high[i] = is_upper ? total - half : half;
  }
}

}  // namespace

bool Windows::is_even() const { return low == high && std::ranges::all_of(low, &Dim::is_constant); }

bool Windows::is_within_half() const {
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (2 * low[i].constant().value() > kernel[i]) return false;
  }
  return true;
}

std::vector<int64_t> Windows::even() const {
  std::vector<int64_t> padding;
  for (const Dim& dim : low) padding.push_back(dim.constant().value());
  return padding;
}

Windows windows_of(Call& call, const Shape& shape, std::vector<int64_t> kernel) {
  const size_t count = kernel.size();
  const bool is_sane = std::ranges::all_of(kernel, [](int64_t size) { return size >= 1 && size <= kMost; });
  if (!is_sane) refuse_node("the kernel is empty or very large");
  Windows windows{.kernel = std::move(kernel),
                  .stride = entries(call, "strides", count, 1, 1),
                  .dilation = entries(call, "dilations", count, 1, 1),
                  .low = Shape(count, 0),
                  .high = Shape(count, 0)};
  const std::string automatic = call.attribute_text("auto_pad", "NOTSET");
  if (automatic == "SAME_UPPER" || automatic == "SAME_LOWER") {
    if (!shape.empty()) pad_to_same(windows, shape, automatic == "SAME_UPPER", call.graph().symbols);
  } else if (automatic == "NOTSET" || automatic.empty()) {
    const std::vector<int64_t> pads = entries(call, "pads", 2 * count, 0, 0);
    std::copy_n(pads.begin(), count, windows.low.begin());
    std::copy_n(pads.begin() + static_cast<ptrdiff_t>(count), count, windows.high.begin());
  } else if (automatic != "VALID") {
    refuse_node("there is no auto_pad '" + automatic + "'");
  }
  return windows;
}

Value* padded(Graph& graph, Value* x, const Windows& windows, double value) {
  ops::Pad pad{{0, 0}, {0, 0}, value, "constant"};
  pad.low.insert(pad.low.end(), windows.low.begin(), windows.low.end());
  pad.high.insert(pad.high.end(), windows.high.begin(), windows.high.end());
  const Shape none(pad.low.size(), 0);
  return pad.low == none && pad.high == none ? x : graph.call(ops::pad, {x}, pad);
}

}  // namespace ingot::core::onnx
