// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/kernel_writer.h"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "backends/cuda/compile/half_functions.h"
#include "backends/cuda/compile/neighbours.h"
#include "backends/cuda/compile/prelude.h"
#include "backends/cuda/compile/stage_bindings.h"
#include "backends/cuda/compile/type_text.h"
#include "loops/order_for_storage.h"
#include "loops/rewrite.h"

namespace ingot::core::cuda {

KernelWriter::KernelWriter(loops::Kernel kernel, const std::string& entry, KernelOptions options)
    : kernel_(std::move(kernel)), options_(std::move(options)) {
  result_.plan = plan_launch(kernel_, options_.row);
  result_.entry = entry;
}

KernelText KernelWriter::write() {
  const LaunchPlan& plan = result_.plan;
  scope_.ranges = kernel_.symbols;
  for (size_t i = 0; i < plan.symbols.size(); ++i) {
    const auto known = kernel_.symbols.find(plan.symbols[i]);
    scope_.add(plan.symbols[i], fmt::format("s{}", i),
               known == kernel_.symbols.end() ? DimRange{INT64_MIN, INT64_MAX} : known->second.range);
  }
  line("namespace of_{} {{\ntypedef {} idx;\n", result_.entry,
       needs_64_bits(kernel_, scope_.ranges) ? "i64" : "i32");
  write_signature();
  plan.flat ? write_flat() : write_grouped();
  line("}}\n}}\n");
  result_.text = std::move(text_);
  return std::move(result_);
}

void KernelWriter::write_signature() {
  line("extern \"C\" __global__ void __launch_bounds__({}) {}(", result_.plan.block, result_.entry);
  for (size_t i = 0; i < kernel_.buffers.size(); ++i) {
    const loops::Buffer& buffer = kernel_.buffers[i];
    line("{}{}* b{}, ", buffer.access == loops::Access::kRead ? "const " : "",
         storage_name(buffer.type.dtype), i);
  }
  for (size_t i = 0; i < result_.plan.symbols.size(); ++i) line("i64 a{}, ", i);
  line("char* scratch, i32* status) {{\n{}",
       options_.next_start == NextStart::kAtOnce ? "let_next_start();\n" : "");
  for (size_t i = 0; i < result_.plan.symbols.size(); ++i) line("const idx s{} = (idx)a{};\n", i, i);
  if (!result_.plan.row) line("wait_for_previous();\n");
}

void KernelWriter::decode(const std::vector<Loop>& loops, const std::string& number, IndexScope& scope) {
  std::string rest = number;
  for (size_t i = loops.size(); i-- > 0;) {
    const std::string name = fmt::format("at{}", next_++);
    if (i == 0) {
      line("const idx {} = {};\n", name, rest);
    } else {
      const std::string extent = scope.text(loops[i].extent), quotient = fmt::format("q{}", next_++);
      line("const idx {} = {} % {};\nconst idx {} = {} / {};\n", name, rest, extent, quotient, rest, extent);
      rest = quotient;
    }
    scope.add(loops[i], name);
  }
}

void KernelWriter::bind(const Stage& stage, bool inner, IndexScope& scope, ExpressionWriter& writer) {
  const std::vector<bool> are_inner = inner_bindings(stage);
  for (size_t k = 0; k < stage.bindings.size(); ++k) {
    const loops::Binding& binding = stage.bindings[k];
    if (are_inner[k] != inner) continue;
    const std::string value = writer.value(binding.value, scope, guards_), limit = scope.text(binding.limit);
    const std::string name = fmt::format("at{}", next_++), valid = fmt::format("v{}", next_++);
    line("const bool {} = {} >= 0 && {} < (i64)({});\nif (!{}) *status = 1;\n", valid, value, value, limit,
         valid);
    line("const idx {} = {} ? (idx){} : 0;\n", name, valid, value);
    scope.add(binding.symbol, name, {0, std::max<int64_t>(range_of(binding.limit, scope.ranges).max - 1, 0)});
    guards_[binding.symbol] = valid;
  }
}

void KernelWriter::finish(const Stage& stage, size_t number, const std::string& value,
                          const IndexScope& scope) {
  if (!stage.store) {
    line("{}[{}] = {};\n", locals_[number].name, point_, value);
    return;
  }
  const loops::Buffer& buffer = kernel_.buffers[static_cast<size_t>(stage.store->buffer)];
  const Dim offset = storage_offset(buffer.type.layout, buffer.type.shape, stage.store->index);
  text_ += condition_of(offset);
  text_ += store_text(buffer, fmt::format("b{}", stage.store->buffer), scope.text(offset), value);
}

std::string KernelWriter::condition_of(const Dim& offset) const {
  std::string guard;
  for (const std::string& symbol : offset.symbols()) {
    if (const auto found = guards_.find(symbol); found != guards_.end())
      guard += (guard.empty() ? "" : " && ") + found->second;
  }
  return guard.empty() ? "" : fmt::format("if ({}) ", guard);
}

void KernelWriter::write_grouped() {
  const LaunchPlan& plan = result_.plan;
  const int groups = plan.block / plan.group;
  line("const idx group = (idx)blockIdx.x * {} + threadIdx.x / {}, lane = threadIdx.x % {};\n", groups,
       plan.group, plan.group);
  if (!plan.row) declare_rows(groups);
  const size_t before_points = text_.size();
  line("for (idx point = group; point < {}; point += (idx)gridDim.x * {}) {{\n", scope_.text(plan.points),
       groups);
  IndexScope scope = scope_;
  decode(kernel_.parallel, "point", scope);
  if (plan.row) {
    const RegisterRowText row = register_row_text(kernel_, *plan.row, scope, options_.are_weights);
    text_ += row.point;
    text_.insert(before_points, row.weights + "wait_for_previous();\n");
  }
  for (size_t k = 0; !plan.row && k < kernel_.stages.size(); ++k) write_stage(k, scope);
  line("}}\n");
}

void KernelWriter::declare_rows(int groups) {
  const LaunchPlan& plan = result_.plan;
  const bool in_memory = plan.group > 1 && plan.row_bytes != Dim(0);
  if (in_memory) {
    if (plan.rows_in_shared) line("extern __shared__ __align__(16) char shared[];\n");
    line("char* rows = {} + (i64){} * ({});\n", plan.rows_in_shared ? "shared" : "scratch",
         scope_.text(plan.row_bytes),
         plan.rows_in_shared ? fmt::format("threadIdx.x / {}", plan.group)
                             : fmt::format("blockIdx.x * {} + threadIdx.x / {}", groups, plan.group));
  }
  Dim offset = 0;
  for (size_t k = 0; k < kernel_.stages.size(); ++k) {
    const Stage& stage = kernel_.stages[k];
    locals_.push_back({fmt::format("l{}", k), extents_of(stage.loops)});
    if (stage.store || stage.loops.empty()) continue;
    const std::string_view type = type_name(stage.value->dtype);
    const Dim elements = product(extents_of(stage.loops));
    if (!in_memory) {
      line("{} l{}[{}];\n", type, k, std::max<int64_t>(elements.constant().value(), 1));
      continue;
    }
    line("{}* l{} = ({}*)(rows + (i64){});\n", type, k, type, scope_.text(offset));
    const Dim bytes = elements * Dim(std::max(bit_width(stage.value->dtype) / 8, 1));
    offset = offset + ceil_divide(bytes, 16) * Dim(16);
  }
}

void KernelWriter::write_stage(size_t k, const IndexScope& outer) {
  const Stage& stage = kernel_.stages[k];
  guards_.clear();
  if (stage.scan) {
    write_scan(k, outer);
  } else if (!stage.reduce.empty() && is_shared_reduction(stage)) {
    write_shared_reduction(k, outer);
  } else {
    write_points(k, outer);
  }
  if (!stage.loops.empty() || stage.store) line("synchronize<{}>();\n", result_.plan.group);
}

bool KernelWriter::is_shared_reduction(const Stage& stage) const {
  if (result_.plan.group == 1) return false;
  const auto points = product(extents_of(stage.loops)).constant();
  return stage.loops.empty() || (points && *points < result_.plan.group);
}

void KernelWriter::open_points(size_t k, std::string_view first, int step, IndexScope& scope) {
  const Stage& stage = kernel_.stages[k];
  const bool scalar = stage.loops.empty();
  if (scalar && !stage.store) line("{} l{};\n", type_name(stage.value->dtype), k);
  point_ = fmt::format("p{}", next_++);
  if (scalar) return line("{{\n");
  line("for (idx {} = {}; {} < {}; {} += {}) {{\n", point_, first, point_,
       scope.text(product(extents_of(stage.loops))), point_, step);
  decode(stage.loops, point_, scope);
}

void KernelWriter::close_points(size_t k, const std::string& value, bool one_writes,
                                const IndexScope& scope) {
  const Stage& stage = kernel_.stages[k];
  const bool scalar = stage.loops.empty();
  if (scalar && !stage.store) {
    line("l{} = {};\n", k, value);
  } else if (one_writes || scalar) {
    line("if (lane == 0) {{\n");
    finish(stage, k, value, scope);
    line("}}\n");
  } else {
    finish(stage, k, value, scope);
  }
  line("}}\n");
}

void KernelWriter::write_points(size_t k, const IndexScope& outer) {
  const Stage& stage = kernel_.stages[k];
  IndexScope scope = outer;
  open_points(k, "lane", result_.plan.group, scope);
  ExpressionWriter writer(kernel_, locals_, text_);
  bind(stage, false, scope, writer);
  const std::string value =
      stage.reduce.empty() ? writer.value(stage.value, scope, guards_) : reduce(stage, scope, writer, "0", 1);
  close_points(k, value, false, scope);
}

//   for part: for point of the part: sum of the part; sum of the parts
std::string KernelWriter::reduce(const Stage& stage, const IndexScope& outer, ExpressionWriter& writer,
                                 std::string_view first, int step) {
  constexpr int64_t kPart = 256;
  const DType dtype = stage.value->dtype;
  const Dim count = product(extents_of(stage.reduce));
  const std::string total = fmt::format("r{}", next_++), sum = fmt::format("r{}", next_++);
  const std::string number = fmt::format("p{}", next_++), part = fmt::format("p{}", next_++);
  const std::string identity = identity_text(stage.combine, dtype), end = outer.text(count);
  const bool in_parts = is_floating(dtype) && stage.combine == loops::Combine::kAdd &&
                        range_of(count, outer.ranges).max > kPart * step;
  const std::string_view type = type_name(dtype), op = reduction_name(stage.combine);
  line("{} {} = {};\n", type, total, identity);
  if (in_parts) {
    line("for (idx {} = {}; {} < {}; {} += {}) {{\n{} {} = {};\n", part, first, part, end, part, kPart * step,
         type, sum, identity);
    line("for (idx {} = {}; {} < {} && {} - {} < {}; {} += {}) {{\n", number, part, number, end, number, part,
         kPart * step, number, step);
  } else {
    line("for (idx {} = {}; {} < {}; {} += {}) {{\n", number, first, number, end, number, step);
  }
  IndexScope scope = outer;
  const auto guards = guards_;
  writer.begin_block();
  decode(stage.reduce, number, scope);
  bind(stage, true, scope, writer);
  const std::string value = writer.value(stage.value, scope, guards_);
  const std::string& into = in_parts ? sum : total;
  line("{} = {}::apply({}, {});\n}}\n", into, op, into, value);
  if (in_parts) line("{} = {}::apply({}, {});\n}}\n", total, op, total, sum);
  writer.end_block();
  guards_ = guards;
  return total;
}

void KernelWriter::write_shared_reduction(size_t k, const IndexScope& outer) {
  const Stage& stage = kernel_.stages[k];
  IndexScope scope = outer;
  open_points(k, "0", 1, scope);
  ExpressionWriter writer(kernel_, locals_, text_);
  bind(stage, false, scope, writer);
  const std::string part = reduce(stage, scope, writer, "lane", result_.plan.group);
  const std::string_view type = type_name(stage.value->dtype);
  const std::string all = fmt::format("r{}", next_++);
  line("const {} {} = reduce_group<{}, {}, {}>({});\n", type, all, reduction_name(stage.combine), type,
       result_.plan.group, part);
  close_points(k, all, true, scope);
}

void KernelWriter::write_scan(size_t k, const IndexScope& outer) {
  const Stage& stage = kernel_.stages[k];
  const std::vector<Loop> rows(stage.loops.begin(), stage.loops.end() - 1);
  const Loop& along = stage.loops.back();
  const std::string row = fmt::format("p{}", next_++), base = fmt::format("p{}", next_++);
  const std::string_view type = type_name(stage.value->dtype), op = reduction_name(stage.combine);
  const std::string identity = identity_text(stage.combine, stage.value->dtype);
  IndexScope scope = outer;
  line("for (idx {} = 0; {} < {}; ++{}) {{\n", row, row, scope.text(product(extents_of(rows))), row);
  decode(rows, row, scope);
  const std::string extent = scope.text(along.extent);
  line("{} carry = {};\nfor (idx {} = 0; {} < {}; {} += 32) {{\n", type, identity, base, base, extent, base);
  line("{} scanned = {};\nconst idx at = {} + lane;\n", type, identity, base);
  const auto compute = [&](bool first) {
    IndexScope inner = scope;
    inner.add(along, "at");
    ExpressionWriter writer(kernel_, locals_, text_);
    guards_.clear();
    line("if (at < {}) {{\n", extent);
    if (first) {
      bind(stage, false, inner, writer);
      const std::string value = stage.reduce.empty() ? writer.value(stage.value, inner, guards_)
                                                     : reduce(stage, inner, writer, "0", 1);
      line("scanned = {};\n}}\n", value);
      return;
    }
    if (stage.store) bind(stage, false, inner, writer);
    point_ = fmt::format("{} * {} + at", row, extent);
    finish(stage, k, "scanned", inner);
    line("}}\n");
  };
  compute(true);
  line(
      "scanned = {}::apply(carry, scan_warp<{}>(scanned, (int)lane));\ncarry = Shuffle<{}>::from(scanned, "
      "31);\n",
      op, op, type);
  compute(false);
  line("}}\n}}\n");
}

KernelText write_kernel(const loops::Kernel& kernel, const std::string& entry, const KernelOptions& options) {
  return KernelWriter(loops::order_for_storage(expand_functions(kernel, options.exact_functions)), entry,
                      options)
      .write();
}

std::string translation_unit(std::span<const KernelText> kernels) {
  std::string text = prelude();
  for (const KernelText& kernel : kernels) text += kernel.text;
  return text;
}

}  // namespace ingot::core::cuda
