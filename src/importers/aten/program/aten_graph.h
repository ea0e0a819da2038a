// SPDX-License-Identifier: Apache-2.0
// A program of ATen calls from torch.export or torch.compile, independent of torch and of any front end.
// Python and the readers fill it without interpretation; import.h defines its meaning.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "types/dim.h"
#include "types/dtype.h"
#include "types/plain_value.h"
#include "types/tensor.h"

namespace ingot::core::aten {

using ValueId = uint32_t;  // index into Graph::values

struct Graph;

// A tensor's static metadata. Strides count elements; empty strides mean contiguous or unknown.
struct TensorMeta {
  DType dtype = DType::kF32;
  std::vector<Dim> shape;
  std::vector<Dim> strides;
};

enum class ValueKind { kTensor, kSymInt, kSymFloat, kSymBool, kOther };

struct Value {
  std::string name;
  ValueKind kind = ValueKind::kTensor;
  TensorMeta tensor;           // kTensor
  std::optional<Dim> integer;  // kSymInt: its expression over the graph's symbols, if any
};

using core::None;

struct Device {
  std::string type;  // "cpu", "cuda"
  int index = -1;
};

// An argument of a call. Lists nest as in ATen's schemas. Enum-like arguments (memory format, layout) are
// strings.
struct Argument;
using ArgumentList = std::vector<Argument>;
struct Argument {
  std::variant<None, ValueId, bool, int64_t, double, std::complex<double>, std::string, DType, Device,
               ArgumentList, std::shared_ptr<Graph>>
      value;
};

struct NamedArgument {
  std::string name;  // the schema's name; "" for positional operands of higher-order operators
  Argument argument;
};

// The position of a node in the user's model.
struct Source {
  std::string file;
  int line = 0;
  std::string function;
  std::string module_path;  // "encoder.layer.0.attention.self"
};

struct Node {
  std::string target;  // "aten.linear.default", "_operator.add", "higher_order.cond", "ingot.run.default"
  std::string name;    // unique in its graph
  std::vector<NamedArgument> arguments;
  std::vector<std::optional<ValueId>>
      outputs;  // a Tensor[] return is flattened; nullopt: undefined or unused output
  bool returns_list = false;
  Source source;
};

enum class InputKind {
  kUser,
  kParameter,  // weight
  kBuffer,     // weight if floating and never mutated, constant if integer, state if mutated
  kConstant,   // lifted tensor literal
};

struct Input {
  ValueId value;
  InputKind kind = InputKind::kUser;
  std::string name;                 // user inputs: the argument's name; weights: the fully qualified name
  std::optional<OwnedView> data;    // weights, buffers, constants: the values
  bool is_saved = true;             // false: a buffer that state dicts leave out
  std::optional<Argument> literal;  // a user input that the program was specialized to (int, bool, str, None)
};

enum class OutputKind { kUser, kBufferMutation, kUserInputMutation };

struct Output {
  Argument value;  // ValueId, or a literal (None, int) for constant user outputs
  OutputKind kind = OutputKind::kUser;
  std::string target;  // mutations: name of the mutated Input
};

struct Graph {
  std::vector<Value> values;
  std::vector<Input> inputs;  // in calling order
  std::vector<Node> nodes;    // in execution order; may mutate (add_, copy_): import.h functionalizes
  std::vector<Output> outputs;
  SymbolTable symbols;  // ranges of the symbols in shapes (top graph only)
  bool single_tensor_return = false;
  // Integers among the inputs and numbers among the outputs are passed, as tensors without dims (top graph
  // only). Otherwise the sizes of tensors determine these integers, and no output is a number.
  bool passes_numbers = false;
};

// A name of the model's state dict that no input has.
struct OtherName {
  std::string name;
  std::string tied_to;  // the input that holds the same tensor; "": none, as nothing reads it
};

// A whole program and the model's signature.
struct Program {
  Graph graph;
  std::vector<OtherName> other_names;
  std::string input_tree;                   // torch's pytree spec JSON of (args, kwargs), "" for flat calls
  std::string output_tree;                  // torch's pytree spec JSON of the result
  std::vector<std::string> argument_names;  // forward's argument names, if known
  std::vector<std::string> output_names;    // if outputs have names; empty: they are paths in output_tree
  std::vector<std::string>
      guards;          // Python boolean expressions over L['x'].size()[i] that torch specialized on
  std::string origin;  // "torch 2.13.0, schema 8.20", for messages
};

}  // namespace ingot::core::aten
