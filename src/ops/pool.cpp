// SPDX-License-Identifier: Apache-2.0
// Pooling over windows of [N, C, *spatial].
#include <algorithm>

#include "ops/ops.h"
#include "ops/pool.h"
#include "ops/samples.h"
#include "ops/window.h"

namespace ingot::core::ops {
namespace {

constexpr Operand kPoolOperands[] = {{"x", DTypeSet::kNumeric}};
constexpr Operand kAverageOperands[] = {{"x", DTypeSet::kFloating}};

Index joined(const Index& a, size_t count, const Index& b) {
  Index index(a.begin(), a.begin() + static_cast<ptrdiff_t>(count));
  index.insert(index.end(), b.begin(), b.end());
  return index;
}
Shape sizes(const std::vector<int64_t>& values) { return Shape(values.begin(), values.end()); }
std::vector<int64_t> ones(size_t count) { return std::vector<int64_t>(count, 1); }
Index after_two(const Index& index) { return Index(index.begin() + 2, index.end()); }

template <typename Pool>
Types infer_windows(const Node& node, const Pool& pool, const std::vector<int64_t>& dilation) {
  TensorType type = infer_same(node)[0];
  require(type.rank() >= 3 && pool.kernel.size() + 2 == type.rank(), node,
          "x must be [N, C, *spatial], one kernel entry per spatial dim");
  require_window_attributes(node, type.rank() - 2, pool.stride, pool.padding, dilation);
  for (size_t i = 0; i < pool.kernel.size(); ++i) {
    require(2 * pool.padding[i] <= pool.kernel[i], node, "the padding must be at most half of the kernel");
    type.shape[i + 2] = window_count(type.shape[i + 2], pool.kernel[i], pool.stride[i], pool.padding[i],
                                     dilation[i], pool.ceil_mode);
  }
  return {type};
}

// Window positions that can be inside of x: one that is at or beyond a dim's end in the first window, which
// starts in the low padding, is so in all. Sizes that are not known keep small loops constant.
constexpr int64_t kSmallWindow = 64;
Shape reached(const std::vector<int64_t>& kernel, const Shape& spatial, const std::vector<int64_t>& padding,
              const std::vector<int64_t>& dilation) {
  Shape extents = sizes(kernel);
  for (size_t i = 0; i < kernel.size(); ++i) {
    if (spatial[i].is_constant() || kernel[i] > kSmallWindow)
      extents[i] = core::minimum(extents[i], ceil_divide(spatial[i] + Dim(padding[i]), dilation[i]));
  }
  return extents;
}

Types infer_max_pool(const Node& node) {
  const auto pool = node.attributes<MaxPool>();
  return infer_windows(node, pool, pool.dilation);
}
loops::Kernel lower_max_pool(const Node& node) {
  const auto pool = node.attributes<MaxPool>();
  const Shape spatial = spatial_dims(node.operand_type(0).shape);
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const StageLoops window = kernel.loops(reached(pool.kernel, spatial, pool.padding, pool.dilation));
  const WindowElement element = window_element(spatial, after_two(index), window.index, pool.stride,
                                               pool.padding, pool.dilation, pool.ceil_mode);
  const Expr value = kernel.load(0, joined(index, 2, element.place));
  kernel.store_reduced(index, loops::Combine::kMaximum, window,
                       guarded(element.guard, value, lowest(value->dtype)));
  return kernel.finish();
}

Types infer_max_pool_indices(const Node& node) { return {{DType::kI64, infer_max_pool(node)[0].shape, {}}}; }
// Row-major position, in the spatial dims, of the first maximum of each window; NaN is the maximum.
template <typename ElementOf>
void store_place_of_maximum(KernelBuilder& kernel, const Node& node, const Index& index, const Shape& window,
                            const ElementOf& element_of) {
  const Shape spatial = spatial_dims(node.operand_type(0).shape);
  const StageLoops searched = kernel.loops(window);
  const WindowElement element = element_of(searched);
  const Expr value = kernel.load(0, joined(index, 2, element.place));
  const Expr largest = kernel.reduce("largest", loops::Combine::kMaximum, searched,
                                     guarded(element.guard, value, lowest(value->dtype)));
  const StageLoops again = kernel.loops(window);
  const WindowElement candidate = element_of(again);
  const Expr seen = kernel.load(0, joined(index, 2, candidate.place));
  const Expr none = loops::index_value(core::product(spatial));
  const Expr place = loops::select(either(equal_to(seen, largest), is_not_a_number(seen)),
                                   loops::index_value(linear_index(spatial, candidate.place)), none);
  kernel.store_reduced(index, loops::Combine::kMinimum, again, guarded(candidate.guard, place, none));
}
loops::Kernel lower_max_pool_indices(const Node& node) {
  const auto pool = node.attributes<MaxPool>();
  const Shape spatial = spatial_dims(node.operand_type(0).shape);
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const Shape window_size = reached(pool.kernel, spatial, pool.padding, pool.dilation);
  store_place_of_maximum(kernel, node, index, window_size, [&](const StageLoops& window) {
    return window_element(spatial, after_two(index), window.index, pool.stride, pool.padding, pool.dilation,
                          pool.ceil_mode);
  });
  return kernel.finish();
}

Types infer_average_pool(const Node& node) {
  const auto pool = node.attributes<AveragePool>();
  return infer_windows(node, pool, ones(pool.kernel.size()));
}
// Number of elements of the window at `index`: up to the high padding, or only those of x.
Dim window_elements(const AveragePool& pool, const Shape& spatial, const Index& index) {
  Dim count = 1;
  for (size_t i = 0; i < spatial.size(); ++i) {
    const Dim start = index[i] * Dim(pool.stride[i]) - Dim(pool.padding[i]);
    const Dim end = start + Dim(pool.kernel[i]);
    if (pool.padding[i] == 0 && !pool.ceil_mode) {
      count = count * Dim(pool.kernel[i]);
    } else if (pool.count_padding) {
      count = count * (core::minimum(end, spatial[i] + Dim(pool.padding[i])) - start);
    } else {
      count = count * (core::minimum(end, spatial[i]) - core::maximum(start, 0));
    }
  }
  return count;
}
loops::Kernel lower_average_pool(const Node& node) {
  const auto pool = node.attributes<AveragePool>();
  const Shape spatial = spatial_dims(node.operand_type(0).shape);
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const std::vector<int64_t> dilation = ones(spatial.size());
  const StageLoops window = kernel.loops(reached(pool.kernel, spatial, pool.padding, dilation));
  const WindowElement element = window_element(spatial, after_two(index), window.index, pool.stride,
                                               pool.padding, dilation, pool.ceil_mode);
  const Expr value = kernel.load(0, joined(index, 2, element.place));
  const Expr sum =
      kernel.reduce("sum", loops::Combine::kAdd, window, guarded(element.guard, value, number(value, 0)));
  const Dim count = pool.divisor != 0 ? Dim(pool.divisor) : window_elements(pool, spatial, after_two(index));
  kernel.store(index, sum / size_value(sum->dtype, count));
  return kernel.finish();
}

Types infer_adaptive_pool(const Node& node) {
  const auto pool = node.attributes<AdaptivePool>();
  TensorType type = infer_same(node)[0];
  require(type.rank() >= 3 && pool.size.size() + 2 == type.rank(), node,
          "x must be [N, C, *spatial], one size per spatial dim");
  require(std::ranges::find(pool.size, Dim(0)) == pool.size.end(), node, "a size must not be 0");
  std::ranges::copy(pool.size, type.shape.begin() + 2);
  return {type};
}
// Window `index` of a dim: starts at floor(index * from / to), ends before ceil((index + 1) * from / to).
struct AdaptiveWindow {
  Dim start, count, most;
  AdaptiveWindow(const Dim& from, const Dim& to, const Dim& index) {
    const auto source = from.constant(), target = to.constant();
    if (to == Dim(1) || (source && target && *source % *target == 0)) {
      most = count = core::floor_divide(from, to);
      start = index * count;
      return;
    }
    start = core::floor_divide(index * from, to);
    count = ceil_divide((index + 1) * from, to) - start;
    most = ceil_divide(from, to) + 1;
  }
};
// The windows of all dims at `index` of the result.
struct AdaptiveWindows {
  std::vector<AdaptiveWindow> each;
  Shape most;
  Dim count = 1;
  AdaptiveWindows(const Node& node, const Index& index) {
    const Shape spatial = spatial_dims(node.operand_type(0).shape);
    const auto pool = node.attributes<AdaptivePool>();
    for (size_t i = 0; i < spatial.size(); ++i) {
      each.emplace_back(spatial[i], pool.size[i], index[i + 2]);
      most.push_back(each.back().most);
      count = count * each.back().count;
    }
  }
  WindowElement at(const StageLoops& over) const {
    WindowElement element;
    for (size_t i = 0; i < each.size(); ++i) {
      element.place.push_back(each[i].start + over.index[i]);
      if (each[i].most == each[i].count) continue;
      const Expr within = below(loops::index_value(over.index[i]), loops::index_value(each[i].count));
      element.guard = element.guard ? both(element.guard, within) : within;
    }
    return element;
  }
};
loops::Kernel lower_adaptive(const Node& node, loops::Combine combine) {
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const AdaptiveWindows windows(node, index);
  const StageLoops over = kernel.loops(windows.most);
  const WindowElement element = windows.at(over);
  const Expr value = kernel.load(0, joined(index, 2, element.place));
  if (combine == loops::Combine::kMaximum) {
    kernel.store_reduced(index, combine, over, guarded(element.guard, value, lowest(value->dtype)));
  } else {
    const Expr sum = kernel.reduce("sum", combine, over, guarded(element.guard, value, number(value, 0)));
    kernel.store(index, sum / size_value(sum->dtype, windows.count));
  }
  return kernel.finish();
}
Types infer_adaptive_indices(const Node& node) {
  return {{DType::kI64, infer_adaptive_pool(node)[0].shape, {}}};
}
loops::Kernel lower_adaptive_indices(const Node& node) {
  KernelBuilder kernel(node);
  const Index index = kernel.parallel(node.results[0]->type.shape);
  const AdaptiveWindows windows(node, index);
  store_place_of_maximum(kernel, node, index, windows.most,
                         [&](const StageLoops& over) { return windows.at(over); });
  return kernel.finish();
}

template <loops::Combine kCombine>
loops::Kernel lower_adaptive_pool(const Node& node) {
  return lower_adaptive(node, kCombine);
}

Samples max_pool_samples() {
  return {sample({f32({batch(), 2, 7, 8})}, MaxPool{{3, 2}, {2, 2}, {1, 0}, {1, 2}, false}),
          sample({f32({1, 2, 8})}, MaxPool{{3}, {2}, {1}, {1}, true}),
          sample({f32({1, 2, 2, 3})}, MaxPool{{70, 4}, {70, 2}, {0, 2}, {1, 2}, true})};
}
Samples average_pool_samples() {
  return {sample({f32({batch(), 2, 7, 8})}, AveragePool{{3, 2}, {2, 2}, {1, 0}, false, true, 0}),
          sample({f32({1, 2, 8})}, AveragePool{{3}, {2}, {1}, true, false, 0}),
          sample({f32({1, 2, 8})}, AveragePool{{2}, {2}, {0}, false, true, 5}),
          sample({f32({1, 2, 2, length()})}, AveragePool{{70, 70}, {70, 70}, {0, 35}, true, false, 0})};
}
Samples adaptive_samples() {
  return {sample({f32({batch(), 2, 7, 8})}, AdaptivePool{{1, 1}}),
          sample({f32({1, 2, 7, 8})}, AdaptivePool{{3, 4}}),
          sample({f32({1, 2, length()})}, AdaptivePool{{2}})};
}

constexpr Op pool_op(std::string_view name, std::string_view summary, std::span<const Operand> operands,
                     AttributeSchema attributes, Types (*infer)(const Node&),
                     loops::Kernel (*lower)(const Node&), Samples (*samples)()) {
  return Op{.name = name,
            .summary = summary,
            .operands = operands,
            .attributes = attributes,
            .traits = Trait::kReduction,
            .infer = infer,
            .lower = lower,
            .samples = samples};
}

}  // namespace

constinit const Op max_pool =
    pool_op("max_pool", "largest of each window", kPoolOperands, attribute_schema<MaxPool>(), infer_max_pool,
            lower_max_pool, max_pool_samples);
constinit const Op max_pool_indices =
    pool_op("max_pool_indices", "row-major index of each window's maximum in the spatial dims", kPoolOperands,
            attribute_schema<MaxPool>(), infer_max_pool_indices, lower_max_pool_indices, max_pool_samples);
constinit const Op average_pool =
    pool_op("average_pool", "average of each window", kAverageOperands, attribute_schema<AveragePool>(),
            infer_average_pool, lower_average_pool, average_pool_samples);
constinit const Op adaptive_average_pool =
    pool_op("adaptive_average_pool", "averages of windows that divide each dim into a given number",
            kAverageOperands, attribute_schema<AdaptivePool>(), infer_adaptive_pool,
            lower_adaptive_pool<loops::Combine::kAdd>, adaptive_samples);
constinit const Op adaptive_max_pool_indices =
    pool_op("adaptive_max_pool_indices", "row-major index, in the spatial dims, of each window's maximum",
            kPoolOperands, attribute_schema<AdaptivePool>(), infer_adaptive_indices, lower_adaptive_indices,
            adaptive_samples);
constinit const Op adaptive_max_pool =
    pool_op("adaptive_max_pool", "largest of windows that divide each dim into a given number", kPoolOperands,
            attribute_schema<AdaptivePool>(), infer_adaptive_pool,
            lower_adaptive_pool<loops::Combine::kMaximum>, adaptive_samples);

}  // namespace ingot::core::ops
