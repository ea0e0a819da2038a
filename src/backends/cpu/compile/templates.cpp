// SPDX-License-Identifier: Apache-2.0
// The table of kernel templates: each extracts what it needs from the node.
#include <algorithm>

#include "backends/cpu/compile/templates/attention.h"
#include "backends/cpu/compile/templates/convolution.h"
#include "backends/cpu/compile/templates/grouped_linear.h"
#include "backends/cpu/compile/templates/kernel_template.h"
#include "backends/cpu/compile/templates/linear.h"
#include "backends/cpu/compile/templates/matmul.h"
#include "backends/cpu/compile/templates/scaled_linear.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/cpu/compile/templates/winograd.h"
#include "ops/attention.h"
#include "ops/convolution.h"

namespace ingot::core::cpu {

namespace {

std::vector<TensorType> operand_types(const Node& node) {
  std::vector<TensorType> types;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    if (node.has_operand(i)) types.push_back(node.operand_type(i));
  }
  return types;
}

bool has_layouts(const std::vector<Value*>& values, const std::vector<std::optional<Layout>>& wanted) {
  for (size_t i = 0; i < std::min(values.size(), wanted.size()); ++i) {
    if (values[i] != nullptr && wanted[i] && values[i]->type.layout != *wanted[i]) return false;
  }
  return true;
}

const TensorType& result_type(const Node& node) { return node.results[0]->type; }

KernelTemplate linear_template(const Op& op) {
  return {&op,
          [](const Node& node, const Target& target) {
            return supports_linear(operand_types(node), features_of(target));
          },
          [](const Node& node, const Target& target) {
            return linear_layouts(operand_types(node), features_of(target));
          },
          [](const Node& node, const loops::Kernel& epilogue, const SymbolTable& symbols,
             const Target& target, const PanelTactic& tactic) {
            return plan_linear(operand_types(node), epilogue, symbols, target, tactic);
          },
          [](const Node& node, const Target& target) {
            return linear_tactics(operand_types(node), features_of(target));
          }};
}

// The window of a convolution of floats or of integers.
std::optional<ops::Convolution> window_of(const Node& node) {
  if (node.op == &ops::convolution) return node.attributes<ops::Convolution>();
  if (node.op != &ops::integer_convolution) return std::nullopt;
  return node.attributes<ops::IntegerConvolution>().window();
}
int64_t outside_of(const Node& node) {
  return node.op == &ops::convolution ? 0 : node.attributes<ops::IntegerConvolution>().outside;
}

KernelTemplate convolution_template(const Op& op) {
  return {&op,
          [](const Node& node, const Target& target) {
            return supports_convolution(operand_types(node), *window_of(node), features_of(target));
          },
          [](const Node& node, const Target& target) {
            return convolution_layouts(operand_types(node), *window_of(node), features_of(target));
          },
          [](const Node& node, const loops::Kernel& epilogue, const SymbolTable& symbols,
             const Target& target, const PanelTactic& tactic) {
            return plan_convolution(operand_types(node), result_type(node), *window_of(node),
                                    outside_of(node), epilogue, symbols, target, tactic);
          },
          [](const Node& node, const Target& target) {
            return convolution_tactics(operand_types(node), *window_of(node), features_of(target));
          }};
}

KernelTemplate matmul_template(const Op& op) {
  return {&op,
          [](const Node& node, const Target& target) {
            return supports_matmul(operand_types(node), features_of(target));
          },
          [](const Node& node, const Target&) { return matmul_layouts(operand_types(node)); },
          [](const Node& node, const loops::Kernel& epilogue, const SymbolTable& symbols,
             const Target& target, const PanelTactic&) {
            return plan_matmul(operand_types(node), result_type(node), epilogue, symbols, target);
          }};
}

const KernelTemplate kTemplates[] = {
    linear_template(ops::linear),
    linear_template(ops::integer_linear),
    {&ops::grouped_linear,
     [](const Node& node, const Target& target) {
       return supports_grouped_linear(operand_types(node), features_of(target));
     },
     [](const Node& node, const Target& target) {
       return grouped_linear_layouts(operand_types(node), features_of(target));
     },
     [](const Node& node, const loops::Kernel& epilogue, const SymbolTable& symbols, const Target& target,
        const PanelTactic&) { return plan_grouped_linear(operand_types(node), epilogue, symbols, target); }},
    {&ops::scaled_linear,
     [](const Node& node, const Target& target) {
       return supports_scaled_linear(operand_types(node), node.attributes<ops::ScaledLinear>(),
                                     features_of(target));
     },
     [](const Node& node, const Target& target) {
       return scaled_linear_layouts(operand_types(node), node.attributes<ops::ScaledLinear>(),
                                    features_of(target));
     },
     [](const Node& node, const loops::Kernel& epilogue, const SymbolTable& symbols, const Target& target,
        const PanelTactic&) {
       return plan_scaled_linear(operand_types(node), node.attributes<ops::ScaledLinear>(), epilogue, symbols,
                                 target);
     }},
    matmul_template(ops::matmul),
    matmul_template(ops::integer_matmul),
    convolution_template(ops::convolution),
    convolution_template(ops::integer_convolution),
    {&ops::winograd_convolution,
     [](const Node& node, const Target&) {
       return supports_winograd(operand_types(node), result_type(node));
     },
     [](const Node& node, const Target& target) {
       return winograd_layouts(operand_types(node), features_of(target));
     },
     [](const Node& node, const loops::Kernel& epilogue, const SymbolTable& symbols, const Target& target,
        const PanelTactic&) {
       return plan_winograd(operand_types(node), result_type(node), epilogue, symbols, target);
     }},
    {&ops::attention,
     [](const Node& node, const Target& target) {
       return supports_attention(operand_types(node), features_of(target));
     },
     [](const Node& node, const Target&) { return attention_layouts(operand_types(node)); },
     [](const Node& node, const loops::Kernel& epilogue, const SymbolTable& symbols, const Target& target,
        const PanelTactic&) {
       return plan_attention(operand_types(node), result_type(node), node.attributes<ops::Attention>(),
                             epilogue, symbols, target);
     }},
};

}  // namespace

const KernelTemplate* find_template(const Op& op) {
  const auto* found = std::ranges::find(kTemplates, &op, &KernelTemplate::op);
  return found == std::end(kTemplates) ? nullptr : found;
}

bool has_template_of(const Node& node, DType dtype, const Target& target) {
  std::vector<TensorType> types = operand_types(node);
  for (TensorType& type : types) type.dtype = is_floating(type.dtype) ? dtype : type.dtype;
  const CpuFeatures features = features_of(target);
  if (node.op == &ops::linear) return supports_linear(types, features).yes;
  if (node.op == &ops::matmul) return supports_matmul(types, features).yes;
  if (node.op == &ops::attention)
    return dtype == DType::kBF16 && multiplies_attention_of_bf16(types, features) &&
           supports_attention(types, features).yes;
  return node.op == &ops::convolution &&
         supports_convolution(types, node.attributes<ops::Convolution>(), features).yes;
}

bool has_integer_template(const Node& node, const Target& target, int64_t multiple) {
  std::vector<TensorType> types = operand_types(node);
  types.resize(2);  // the bias is not part of the product
  types[0].dtype = DType::kU8;
  types[1].dtype = DType::kI8;
  const bool is_linear = node.op == &ops::linear || node.op == &ops::integer_linear;
  const bool is_matmul = node.op == &ops::matmul || node.op == &ops::integer_matmul;
  const size_t depth_of_b = is_matmul ? types[1].rank() - 2 : 1;
  for (Dim* dim :
       {is_linear || is_matmul ? &types[0].shape.back() : &types[0].shape[1], &types[1].shape[depth_of_b]})
    *dim = core::ceil_divide(*dim, multiple) * Dim(multiple);
  const CpuFeatures features = features_of(target);
  if (is_matmul) return supports_matmul(types, features).yes;
  if (is_linear) return supports_linear(types, features).yes;
  const std::optional<ops::Convolution> window = window_of(node);
  return window && supports_convolution(types, *window, features).yes;
}

int64_t channel_multiple(const Node& convolution, const Target& target) {
  std::vector<TensorType> types = operand_types(convolution);
  const CpuFeatures features = features_of(target);
  const DType dtype = types[0].dtype;
  if (!is_half(dtype) || !has_tiles(dtype, types[1].dtype, features)) return 1;
  const int64_t group = choose_tile(0, features, dtype, types[1].dtype).group();
  for (TensorType* type : {&types[0], &types[1]})
    type->shape[1] = core::ceil_divide(type->shape[1], group) * Dim(group);
  return supports_convolution(types, convolution.attributes<ops::Convolution>(), features).yes ? group : 1;
}

const KernelTemplate* find_ready_template(const Node& node, const Target& target) {
  const KernelTemplate* kernel_template = find_template(*node.op);
  if (kernel_template == nullptr || !kernel_template->supports(node, target).yes) return nullptr;
  const LayoutRequest request = kernel_template->layouts(node, target);
  const bool ready =
      has_layouts(node.operands, request.operands) && has_layouts(node.results, request.results);
  return ready ? kernel_template : nullptr;
}

}  // namespace ingot::core::cpu
