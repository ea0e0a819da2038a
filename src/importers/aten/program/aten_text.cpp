// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/program/aten_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <functional>

#include "types/tensor_type.h"

namespace ingot::core::aten {
namespace {

bool is_row_major(const TensorMeta& meta) {
  Dim expected = 1;
  for (size_t i = meta.shape.size(); i-- > 0;) {
    if (meta.strides[i] != expected && meta.shape[i] != Dim(1)) return false;
    expected = expected * meta.shape[i];
  }
  return true;
}

std::string print_range(const DimRange& range) {
  return fmt::format("{}..{}", range.min == INT64_MIN ? "" : std::to_string(range.min),
                     range.max == INT64_MAX ? "" : std::to_string(range.max));
}

std::string_view keyword(InputKind kind) {
  switch (kind) {
    case InputKind::kUser:
      return "input";
    case InputKind::kParameter:
      return "parameter";
    case InputKind::kBuffer:
      return "buffer";
    case InputKind::kConstant:
      return "constant";
  }
  return "?";
}

// Prints one graph with the names of its values.
class GraphPrinter {
 public:
  // `graph` is null if no names are known.
  GraphPrinter(const Graph* graph, std::string indent) : graph_(graph), indent_(std::move(indent)) {}

  std::string body() const {
    std::string text;
    for (const auto& [name, info] : graph_->symbols)
      text += fmt::format("{}where {} in {}{}\n", indent_, name, print_range(info.range),
                          info.typical ? fmt::format(" (typical {})", *info.typical) : "");
    for (const Input& input : graph_->inputs) text += indent_ + print(input) + "\n";
    for (const Node& node : graph_->nodes) text += indent_ + print(node) + "\n";
    for (const Output& output : graph_->outputs) text += indent_ + print(output) + "\n";
    return text;
  }

  std::string print(const Argument& argument) const {
    return std::visit([this](const auto& value) { return print(value); }, argument.value);
  }

 private:
  std::string print(None) const { return "none"; }
  std::string print(ValueId id) const {
    return graph_ && id < graph_->values.size() ? "%" + graph_->values[id].name : fmt::format("%{}", id);
  }
  std::string print(bool value) const { return value ? "true" : "false"; }
  std::string print(int64_t value) const { return std::to_string(value); }
  std::string print(double value) const {
    const std::string text = fmt::format("{}", value);
    return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
  }
  std::string print(std::complex<double> value) const {
    return fmt::format("({} {} {}j)", print(value.real()), std::signbit(value.imag()) ? '-' : '+',
                       print(std::abs(value.imag())));
  }
  std::string print(const std::string& value) const { return fmt::format("{:?}", value); }
  std::string print(DType dtype) const { return std::string(name(dtype)); }
  std::string print(const Device& device) const {
    return device.index < 0 ? device.type : fmt::format("{}:{}", device.type, device.index);
  }
  std::string print(const ArgumentList& list) const {
    std::vector<std::string> parts;
    for (const Argument& element : list) parts.push_back(print(element));
    return fmt::format("[{}]", fmt::join(parts, ", "));
  }
  std::string print(const std::shared_ptr<Graph>& graph) const {
    return fmt::format("graph {{\n{}{}}}", GraphPrinter(graph.get(), indent_ + "  ").body(), indent_);
  }

  std::string print_definition(ValueId id) const {
    const Value& value = graph_->values[id];
    switch (value.kind) {
      case ValueKind::kTensor:
        return fmt::format("%{}: {}", value.name, to_string(value.tensor));
      case ValueKind::kSymInt:
        return fmt::format("%{}: int{}", value.name, value.integer ? " " + value.integer->to_string() : "");
      case ValueKind::kSymFloat:
        return fmt::format("%{}: float", value.name);
      case ValueKind::kSymBool:
        return fmt::format("%{}: bool", value.name);
      case ValueKind::kOther:
        break;
    }
    return "%" + value.name;
  }

  std::string print(const Input& input) const {
    const std::string& value_name = graph_->values[input.value].name;
    std::string text = fmt::format("{} {}", keyword(input.kind), print_definition(input.value));
    if (input.name != value_name && !input.name.empty()) text += fmt::format(" {:?}", input.name);
    if (input.literal) text += " = " + print(*input.literal);
    return text;
  }

  std::string print(const Node& node) const {
    std::vector<std::string> results, arguments;
    for (const auto& output : node.outputs) results.push_back(output ? print_definition(*output) : "_");
    for (const NamedArgument& argument : node.arguments)
      arguments.push_back((argument.name.empty() ? "" : argument.name + "=") + print(argument.argument));
    const std::string source = to_string(node.source);
    return fmt::format("{}{}{}({}){}", fmt::join(results, ", "), results.empty() ? "" : " = ", node.target,
                       fmt::join(arguments, ", "), source.empty() ? "" : "  -- " + source);
  }

  std::string print(const Output& output) const {
    if (output.kind == OutputKind::kUser) return "return " + print(output.value);
    const bool is_buffer = output.kind == OutputKind::kBufferMutation;
    return fmt::format("update {} {:?} = {}", is_buffer ? "buffer" : "input", output.target,
                       print(output.value));
  }

  const Graph* graph_;
  std::string indent_;
};

}  // namespace

std::string to_string(const Source& source) {
  if (source.file.empty()) return {};
  std::string text = fmt::format("{}:{}", source.file, source.line);
  if (!source.function.empty()) text += " in " + source.function;
  return text;
}

std::string to_string(const TensorMeta& meta) {
  std::string text = fmt::format("{}{}", name(meta.dtype), core::to_string(meta.shape));
  if (meta.strides.size() != meta.shape.size() || is_row_major(meta)) return text;
  std::vector<std::string> strides;
  for (const Dim& stride : meta.strides) strides.push_back(stride.to_string());
  return text + fmt::format("{{{}}}", fmt::join(strides, ", "));
}

std::string to_string(const Argument& argument) { return GraphPrinter(nullptr, "").print(argument); }

std::string to_string(const Program& program) {
  const std::string origin = program.origin.empty() ? "" : "  -- " + program.origin;
  std::string guards;
  for (const std::string& guard : program.guards) guards += fmt::format("  guard {}\n", guard);
  return fmt::format("program {{{}\n{}{}}}\n", origin, guards, GraphPrinter(&program.graph, "  ").body());
}

}  // namespace ingot::core::aten
