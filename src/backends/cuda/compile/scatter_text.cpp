// SPDX-License-Identifier: Apache-2.0
// Reductions with repeated indices: whoever has an element of the result takes those elements of the source
// that have its index, in their order. Nothing depends on which thread is first.
#include "backends/cuda/compile/routine_kernels.h"
#include "backends/cuda/compile/type_text.h"
#include "loops/scalar.h"
#include "ops/axis.h"
#include "ops/ops.h"
#include "ops/sort.h"

namespace ingot::core::cuda {
namespace {

constexpr int kScatterThreads = 256;

struct Reduction {
  size_t axis;
  std::string combine;  // of the prelude
  bool is_mean = false, include_self = true;
};

Reduction reduction_of(const Node& node) {
  if (node.op == &ops::scatter_add) return {static_cast<size_t>(node.attributes<ops::Axis>().axis), "add_"};
  const auto scatter = node.attributes<ops::ScatterReduce>();
  const std::string combine = scatter.reduce == "prod"   ? "multiply_"
                              : scatter.reduce == "amax" ? "maximum_"
                              : scatter.reduce == "amin" ? "minimum_"
                                                         : "add_";
  return {static_cast<size_t>(scatter.axis), combine, scatter.reduce == "mean", scatter.include_self};
}

class ScatterWriter {
 public:
  ScatterWriter(const Node& node, const SymbolTable& symbols)
      : node_(node), reduction_(reduction_of(node)), out_(node, {}, symbols) {}

  TemplateKernel write() {
    out_.line("typedef i64 idx;\n");
    return has_one_index_a_row(node_) ? write_rows() : write_elements();
  }

 private:
  // for each row of the result, and each part of its elements (the dims but the axis), a warp:
  //   for each 256 indices: which of them are the row's
  //     the part of each such row of the source
  TemplateKernel write_rows() {
    constexpr int kEach = 4, kPart = 32 * kEach;
    const Shape& shape = node_.operand_type(0).shape;
    Shape others = shape;
    others.erase(others.begin() + static_cast<ptrdiff_t>(reduction_.axis));
    const Dim elements = product(others), parts = ceil_divide(elements, Dim(kPart)),
              rows = shape[reduction_.axis];
    open_routine(node_, kScatterThreads, out_);
    out_.line("const idx elements = {}, parts = {}, rows = {}, count = {};\n", out_.scope.text(elements),
              out_.scope.text(parts), out_.scope.text(rows),
              out_.scope.text(node_.operand_type(2).shape[reduction_.axis]));
    out_.line("const int lane = threadIdx.x % 32;\n");
    out_.line(
        "for (idx item = ((idx)blockIdx.x * {0} + threadIdx.x) / 32; item < rows * parts; item += "
        "(idx)gridDim.x * {0} / 32) {{\nconst idx row = item / parts, part = item % parts * {1};\n",
        kScatterThreads, kPart);
    out_.line("{} value[{}];\nidx place[{}], from[{}];\nbool valid[{}];\ni64 taken = {};\n", arithmetic(),
              kEach, kEach, kEach, kEach, reduction_.include_self ? 1 : 0);
    out_.line("#pragma unroll\nfor (int k = 0; k < {}; ++k) {{\nconst idx element = part + k * 32 + lane;\n",
              kEach);
    IndexScope scope = out_.scope;
    index_ = out_.decode(others, "element", "c", scope);
    index_.insert(index_.begin() + static_cast<ptrdiff_t>(reduction_.axis), Dim(0));
    Dim row_step = 1, source_step = 1;
    const Dim to = offset_of(0, row_step), source = offset_of(2, source_step);
    out_.line("place[k] = element < elements ? {} + row * {} : -1;\n", scope.text(to), scope.text(row_step));
    out_.line("valid[k] = element < elements && {};\nfrom[k] = {};\n", inside(scope), scope.text(source));
    out_.line("if (place[k] >= 0) value[k] = {};\n}}\n", load("x0 + place[k]"));
    out_.line(R"cuda(for (idx first = 0; first < count; first += 256) {{
i64 own[8];
#pragma unroll
for (int k = 0; k < 8; ++k) {{
own[k] = first + k * 32 + lane < count ? (i64)x1[first + k * 32 + lane] : row - 1;
if (first + k * 32 + lane < count && (own[k] < 0 || own[k] >= rows)) *status = 1;
}}
#pragma unroll
for (int k = 0; k < 8; ++k) {{
for (u32 found = __ballot_sync(~0u, own[k] == row); found != 0; found &= found - 1, ++taken) {{
const idx i = first + k * 32 + __ffs(found) - 1;
#pragma unroll
for (int e = 0; e < {}; ++e) {{
if (!valid[e]) continue;
const {} other = {};
value[e] = taken == 0 ? other : {}(value[e], other);
}}
}}
}}
}}
)cuda",
              kEach, arithmetic(), load(fmt::format("x2 + from[e] + i * {}", scope.text(source_step))),
              reduction_.combine);
    out_.line("#pragma unroll\nfor (int e = 0; e < {}; ++e) {{\nif (place[e] < 0) continue;\n", kEach);
    if (reduction_.is_mean)
      out_.line("if (valid[e] && taken > 1) value[e] = value[e] / ({})taken;\n", arithmetic());
    out_.line("{}}}\n}}\n}}\n", store("place[e]", "value[e]"));
    return {.threads = kScatterThreads,
            .items = ceil_divide(rows * parts * Dim(32), Dim(kScatterThreads)),
            .symbols = out_.symbols,
            .text = out_.text};
  }

  TemplateKernel write_elements() {
    const Shape& shape = node_.results[0]->type.shape;
    open_routine(node_, kScatterThreads, out_);
    const Dim elements = product(shape);
    out_.line("const idx elements = {};\n", out_.scope.text(elements));
    out_.line(
        "for (idx place = (idx)blockIdx.x * {0} + threadIdx.x; place < elements; place += (idx)gridDim.x * "
        "{0}) {{\n",
        kScatterThreads);
    IndexScope scope = out_.scope;
    index_ = out_.decode(shape, "place", "c", scope);
    write_element(scope);
    out_.line("}}\n}}\n");
    return {.threads = kScatterThreads,
            .items = ceil_divide(elements, Dim(kScatterThreads)),
            .symbols = out_.symbols,
            .text = out_.text};
  }

  // What is outside of the source along another dim keeps its value.
  std::string inside(const IndexScope& scope) const {
    std::string text = "true";
    for (size_t i = 0; i < index_.size(); ++i) {
      const Dim& extent = node_.operand_type(2).shape[i];
      if (i != reduction_.axis && extent != node_.operand_type(0).shape[i])
        text += fmt::format(" && {} < {}", scope.text(index_[i]), scope.text(extent));
    }
    return text;
  }

  // The offset into operand `operand` at place 0 of the axis; `step`: along it.
  Dim offset_of(size_t operand, Dim& step) const {
    const Shape& shape = node_.operand_type(operand).shape;
    Dim offset = 0, stride = 1;
    for (size_t i = shape.size(); i-- > 0; stride = stride * shape[i]) {
      if (i == reduction_.axis)
        step = stride;
      else if (shape[i] != Dim(1))
        offset = offset + index_[i] * stride;
    }
    return offset;
  }

  DType dtype() const { return node_.operand_type(0).dtype; }
  std::string_view arithmetic() const {
    return is_floating(dtype()) && bit_width(dtype()) < 32 ? "f32" : type_name(dtype());
  }
  bool is_half() const { return dtype() == DType::kF16 || dtype() == DType::kBF16; }
  std::string load(const std::string& address) const {
    return is_half() ? fmt::format("load_{}({})", name(dtype()), address) : fmt::format("*({})", address);
  }
  std::string store(const std::string& place, const std::string& value) const {
    return is_half() ? fmt::format("store_{}(y0 + {}, {});\n", name(dtype()), place, value)
                     : fmt::format("y0[{}] = {};\n", place, value);
  }

  void write_element(const IndexScope& scope) {
    Dim index_step = 1, source_step = 1;
    const Dim at = offset_of(1, index_step), from = offset_of(2, source_step);
    out_.line("{} value = {};\ni64 taken = {};\n", arithmetic(), load("x0 + place"),
              reduction_.include_self ? 1 : 0);
    out_.line("if ({}) {{\nconst idx count = {};\n", inside(scope),
              scope.text(node_.operand_type(2).shape[reduction_.axis]));
    out_.line("#pragma unroll 4\nfor (idx i = 0; i < count; ++i) {{\nconst i64 index = x1[{} + i * {}];\n",
              scope.text(at), scope.text(index_step));
    out_.line("if (index < 0 || index >= {}) *status = 1;\n",
              scope.text(node_.operand_type(0).shape[reduction_.axis]));
    out_.line("if (index != {}) continue;\n", scope.text(index_[reduction_.axis]));
    out_.line("const {} other = {};\nvalue = taken == 0 ? other : {}(value, other);\n++taken;\n}}\n}}\n",
              arithmetic(), load(fmt::format("x2 + {} + i * {}", scope.text(from), scope.text(source_step))),
              reduction_.combine);
    if (reduction_.is_mean) out_.line("if (taken > 1) value = value / ({})taken;\n", arithmetic());
    out_.text += store("place", "value");
  }

  const Node& node_;
  const Reduction reduction_;
  TemplateText out_;
  std::vector<Dim> index_;  // of the element
};

}  // namespace

std::optional<size_t> scatter_axis(const Node& node) {
  if (node.op != &ops::scatter_add && node.op != &ops::scatter_reduce) return std::nullopt;
  return reduction_of(node).axis;
}

bool has_one_index_a_row(const Node& scatter) {
  const Shape& indices = scatter.operand_type(1).shape;
  const size_t axis = reduction_of(scatter).axis;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i != axis && indices[i] != Dim(1)) return false;
  }
  return true;
}

TemplateKernel write_scatter(const Node& node, const SymbolTable& symbols) {
  return ScatterWriter(node, symbols).write();
}

}  // namespace ingot::core::cuda
