// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/contraction.h"

#include <array>

#include <fmt/core.h>

#include "backends/cuda/compile/contraction_epilogue.h"
#include "backends/cuda/compile/moments_text.h"
#include "backends/cuda/compile/operand_text.h"
#include "backends/cuda/compile/product_form.h"
#include "backends/cuda/compile/template_text.h"
#include "backends/cuda/compile/tensor_core_text.h"
#include "backends/cuda/compile/type_text.h"
#include "loops/expand_math.h"
#include "ops/normalization.h"
#include "ops/ops.h"

namespace ingot::core::cuda {
namespace {

class ContractionWriter {
 public:
  ContractionWriter(const ContractionSite& site, loops::Kernel epilogue, const ProductTactic& tactic)
      : node_(site.node),
        b_is_weight_(site.b_is_weight),
        columns_are_weights_(site.columns_are_weights),
        epilogue_(std::move(epilogue)),
        shape_(product_shape(node_)),
        out_(node_, kernels(), site.symbols),
        form_(product_form(node_, shape_, typical_size(node_, shape_, site.rounds_to_tf32, out_),
                           site.rounds_to_tf32, tactic)) {}

  TemplateKernel write() {
    out_.line("typedef {} idx;\n", out_.wide ? "i64" : "i32");
    const DType dtype = node_.operand_type(0).dtype;
    write_element_functions(dtype, out_);
    out_.line("constexpr bool kBIsWeight = {};\n{}", b_is_weight_, form_.constants);
    out_.line("struct Operands {{ const Element *a, *b; idx rows, columns, depth{}; }};\n",
              out_.symbol_fields());
    write_a_places(node_, shape_, out_);
    write_b_places(node_, shape_, out_);
    if (has_maps()) write_box_copies(node_, shape_, out_);
    out_.text += sum_one_by_one();
    out_.text += moments_functions(node_, moments_offset());
    out_.text += form_.body;
    out_.text += centering_functions(node_);
    write_kernel();
    const Dim tiles = ceil_divide(shape_.rows, form_.rows) * ceil_divide(shape_.columns, form_.columns);
    return {.threads = form_.threads,
            .cluster = form_.splits,
            .items = shape_.batch * tiles,
            .shared_bytes = moments_offset() + moments_bytes(node_, form_.rows),
            .maps = form_.maps,
            .symbols = out_.symbols,
            .text = std::string(tensor_core_functions()) + form_.functions + out_.text};
  }

 private:
  std::array<const loops::Kernel*, 1> kernels() const { return {&epilogue_}; }
  bool has_maps() const { return !form_.maps.empty(); }
  bool is_normalized() const { return node_.op == &ops::normalized_linear; }

  // After the form's own shared memory.
  int64_t moments_offset() const {
    constexpr int64_t kAlignment = 16;
    return (form_.shared_bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  void write_kernel() {
    write_signature();
    out_.declare_symbols();
    out_.line("const Operands x = {{x0, x1, {}, {}, {}{}}};\n", out_.scope.text(shape_.rows),
              out_.scope.text(shape_.columns), out_.scope.text(shape_.depth), out_.symbol_fields());
    out_.line(
        "const idx across = (x.columns + kColumns - 1) / kColumns, down = (x.rows + kRows - 1) / kRows;\n");
    out_.line(
        "const int share = blockIdx.x % kSplits;\nconst bool aligned = is_aligned(x0) && is_aligned(x1) && "
        "x.rows <= kMostRows && x.columns <= kMostRows;\n");
    if (has_maps()) out_.line("Parts parts = make_parts(shared, aligned, &a_map, &b_map);\n");
    out_.line(
        "for (idx tile = blockIdx.x / kSplits; tile < across * down * {}; tile += gridDim.x / kSplits) {{\n",
        out_.scope.text(shape_.batch));
    out_.line(
        "const idx first_column = tile % across * kColumns, first_row = tile / across % down * kRows, ");
    out_.line("batch = tile / across / down;\n");
    write_epilogue_loads(node_, shape_, epilogue_, form_.wide, columns_are_weights_, out_);
    out_.line(
        "if (aligned) {{\nmultiply_tile(shared, {}share, batch, first_row, first_column, {}x, "
        "begin_epilogue);\n"
        "}} else {{\n",
        has_maps() ? "parts, " : "", has_maps() ? "&a_map, &b_map, " : "");
    out_.line("wait_for_previous();\nif (kNextWithOperands) let_next_start();\nbegin_epilogue();\n");
    out_.line("multiply_one_by_one(shared, share, batch, first_row, first_column, x);\n}}\n");
    if (is_normalized()) {
      out_.line("finish_moments(shared, aligned, first_row, x);\n");
      out_.line("center_far_rows(shared, first_row, first_column, x);\n");
    }
    write_contraction_epilogue(node_, shape_, epilogue_, form_.wide, out_);
    out_.line("end_tile(tile + gridDim.x / kSplits >= across * down * {});\n}}\n}}\n",
              out_.scope.text(shape_.batch));
  }

  void write_signature() {
    out_.line("extern \"C\" __global__ void __launch_bounds__({}) {} ingot_kernel(", form_.threads,
              form_.splits > 1 ? fmt::format("__cluster_dims__({})", form_.splits) : "");
    write_operand_arguments(node_, epilogue_, out_);
    out_.line("char* scratch, i32* status{}) {{\n",
              has_maps()
                  ? ", const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map"
                  : "");
    out_.line("extern __shared__ __align__(1024) char shared[];\nif (kNextAtOnce) let_next_start();\n");
  }

  const Node& node_;
  const bool b_is_weight_, columns_are_weights_;
  const loops::Kernel epilogue_;
  const ProductShape shape_;
  TemplateText out_;
  const ProductForm form_;
};

}  // namespace

TemplateKernel write_contraction(const ContractionSite& site, const loops::Kernel& epilogue,
                                 const ProductTactic& tactic) {
  TemplateKernel kernel = ContractionWriter(site, loops::expand_math(epilogue), tactic).write();
  kernel.tactic = name(tactic);
  return kernel;
}

std::vector<ProductTactic> rank_tactics(const ContractionSite& site) {
  const TemplateText text(site.node, {}, site.symbols);
  const ProductShape shape = product_shape(site.node);
  return rank_tactics(site.node, shape, typical_size(site.node, shape, site.rounds_to_tf32, text),
                      limits_of(site.architecture));
}

}  // namespace ingot::core::cuda
