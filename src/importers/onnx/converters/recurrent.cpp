// SPDX-License-Identifier: Apache-2.0
// Recurrent layers. ONNX orders gates in its own way, and keeps directions in a dim.
#include <array>

#include "importers/onnx/converters/converters.h"
#include "ops/recurrent.h"
#include "ops/view.h"

namespace ingot::core::onnx {
namespace {

constexpr size_t kBias = 3, kLengths = 4, kHidden = 5, kCell = 6, kPeepholes = 7;  // inputs

// Blocks of rows in another order: `order` lists the blocks of the operand.
Value* reordered(Graph& graph, Value* rows, const std::vector<int64_t>& order, size_t axis) {
  const auto count = static_cast<int64_t>(order.size());
  const std::optional<Dim> size = exact_quotient({dim_of(rows, axis)}, {count});
  if (!size) refuse_node("the weights have a wrong number of rows");
  std::vector<Value*> blocks;
  for (const int64_t block : order)
    blocks.push_back(sliced(graph, rows, axis, *size * Dim(block), *size * Dim(block + 1)));
  return concatenated(graph, std::move(blocks), axis);
}

struct Layer {
  Graph& graph;
  Call& call;
  const std::vector<int64_t> gates;  // ONNX's index of each of our gates
  const int64_t states;
  std::string direction = call.attribute_text("direction", "forward");
  bool is_batch_first = call.flag("layout");

  // [D, G*H, K] -> [D*G*H, K]
  Value* matrix(size_t input) {
    Value* given = call.tensor(input);
    if (given->type.rank() != 3) refuse_node("the weights must have three dims");
    Value* rows = reordered(graph, given, gates, 1);
    const Shape shape = rows->type.shape;
    return reshaped(graph, rows, {shape[0] * shape[1], shape[2]});
  }
  // Half 0 of [D, 2*G*H] belongs to the input, half 1 to the hidden state.
  Value* bias(int64_t half) {
    if (!call.has(kBias)) return nullptr;
    Value* given = call.tensor(kBias);
    const std::optional<Dim> width =
        given->type.rank() == 2 ? exact_quotient({given->type.shape[1]}, {2}) : std::nullopt;
    if (!width) refuse_node("the bias has a wrong shape");
    Value* own =
        reordered(graph, sliced(graph, given, 1, *width * Dim(half), *width * Dim(half + 1)), gates, 1);
    return reshaped(graph, own, {product(own->type.shape)});
  }
  Value* state(size_t input, const Shape& shape, DType dtype) {
    if (!call.has(input)) return filled(graph, shape, 0, dtype);
    Value* given = call.tensor(input);
    return is_batch_first ? transposed(graph, given, {1, 0, 2}) : given;
  }
};

void refuse_variants(Call& call) {
  if (call.has(kLengths)) refuse("sequences of different lengths");
  if (call.has(kPeepholes)) refuse("peepholes");
  if (call.has_attribute("clip")) refuse("clipped gates");
  if (call.flag("input_forget")) refuse("coupled gates");
}

void refuse_activations(Call& call, const std::vector<std::string>& usual) {
  std::vector<std::string> given = call.attribute_texts("activations");
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] != usual[i % usual.size()]) refuse("the activation " + given[i]);
  }
}

void convert_layer(Call& call, Layer layer, const Op& op, std::span<const AttributeValue> attributes) {
  refuse_variants(call);
  Graph& graph = call.graph();
  Value* x = call.tensor(0);
  if (x->type.rank() != 3) refuse_node("the input must have three dims");
  if (layer.is_batch_first) x = transposed(graph, x, {1, 0, 2});
  const bool is_reverse = layer.direction == "reverse";
  if (is_reverse) x = graph.call(ops::flip, {x}, ops::Axes{{0}});
  Value *weight = layer.matrix(1), *hidden_weight = layer.matrix(2);
  const Dim directions = layer.direction == "bidirectional" ? 2 : 1, hidden = hidden_weight->type.shape[1];
  const Shape state{directions, x->type.shape[1], hidden};
  const DType dtype = x->type.dtype;
  std::vector<Value*> operands{x, layer.state(kHidden, state, dtype)};
  if (layer.states == 2) operands.push_back(layer.state(kCell, state, dtype));
  for (Value* each : {weight, hidden_weight, layer.bias(0), layer.bias(1)}) operands.push_back(each);
  const Node* node =
      graph.add(op, std::move(operands), AttributeValues(attributes.begin(), attributes.end()));
  Value* all = node->results[0];  // [T, B, D*H]
  if (is_reverse) all = graph.call(ops::flip, {all}, ops::Axes{{0}});
  all = reshaped(graph, all, {all->type.shape[0], state[1], directions, hidden});
  call.give(0, transposed(graph, all,
                          layer.is_batch_first ? std::vector<int64_t>{1, 0, 2, 3}
                                               : std::vector<int64_t>{0, 2, 1, 3}));
  for (size_t i = 1; i < node->results.size(); ++i) {
    Value* last = node->results[i];
    call.give(i, layer.is_batch_first ? transposed(graph, last, {1, 0, 2}) : last);
  }
}

void convert_lstm(Call& call) {
  refuse_activations(call, {"Sigmoid", "Tanh", "Tanh"});
  convert_layer(call, Layer{call.graph(), call, {0, 2, 3, 1}, 2}, ops::lstm, {});
}

void convert_gru(Call& call) {
  refuse_activations(call, {"Sigmoid", "Tanh"});
  if (!call.flag("linear_before_reset")) refuse("a reset gate before the product: linear_before_reset=0");
  convert_layer(call, Layer{call.graph(), call, {1, 0, 2}, 1}, ops::gru, {});
}

void convert_rnn(Call& call) {
  const std::vector<std::string> given = call.attribute_texts("activations");
  const bool is_relu = !given.empty() && given[0] == "Relu";
  refuse_activations(call, {is_relu ? "Relu" : "Tanh"});
  const AttributeValues attributes = to_values(ops::Rnn{is_relu});
  convert_layer(call, Layer{call.graph(), call, {0}, 1}, ops::rnn, attributes);
}

constexpr auto kRecurrent = std::to_array<Converter>({
    {"GRU", convert_gru, nullptr, 7},
    {"LSTM", convert_lstm, nullptr, 7},
    {"RNN", convert_rnn, nullptr, 7},
});

}  // namespace

std::span<const Converter> recurrent_converters() { return kRecurrent; }

}  // namespace ingot::core::onnx
