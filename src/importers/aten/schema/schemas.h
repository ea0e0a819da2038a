// SPDX-License-Identifier: Apache-2.0
// ATen's schemas of torch 2.13: names, order, kinds and defaults of arguments, and what a call writes or
// aliases. Older torches of the same major version lack some arguments, which then have defaults.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "importers/aten/program/aten_graph.h"

namespace ingot::core::aten {

// Symbolic and plain numbers have the same kind: either is accepted.
enum class ArgumentKind {
  kTensor,
  kInteger,
  kFloat,
  kBool,
  kScalar,  // int, float or bool
  kString,
  kDType,
  kLayout,
  kMemoryFormat,
  kDevice,
  kGenerator,
};

// "Tensor(a!)[]": kind, form and aliasing of an argument or a result.
struct SchemaType {
  std::string text;  // as written in the schema, for messages
  ArgumentKind kind = ArgumentKind::kTensor;
  bool is_list = false;
  int list_size = 0;         // int[2]: a single number counts for that many equal ones; 0: not allowed
  bool is_optional = false;  // None may be given
  bool has_optional_elements = false;  // Tensor?[]
  std::string alias;        // "a": shares memory with arguments or results of the same letter; "" if fresh
  bool is_written = false;  // Tensor(a!): the call writes it
};

struct SchemaArgument {
  std::string name;
  SchemaType type;
  bool is_keyword_only = false;
  std::optional<Argument> default_value;
};

// How torch converts the operands of an elementwise overload, by the names of torch's own table.
enum class Promotion {
  kNone,            // not in the table
  kDefault,         // to torch.result_type
  kNoOpmath,        // so too; torch moves elements and computes nothing
  kIntToFloat,      // integers to floats
  kAlwaysBool,      // to torch.result_type, for a result that is bool
  kBoolToLong,      // bools to i64
  kComplexToFloat,  // to torch.result_type, for a result that is real
};

struct Schema {
  std::string target;  // "aten.add.Tensor"
  std::vector<SchemaArgument> arguments;
  std::vector<SchemaType> returns;
  Promotion promotion = Promotion::kNone;
  bool is_inplace_view = false;  // changes the sizes and strides of its operand, and writes nothing
  bool draws = false;            // each call draws random numbers
};

// The schema of "aten.linear.default"; nullopt for other namespaces, out= variants and functions that
// inference programs do not call.
std::optional<Schema> find_schema(std::string_view target);

// Whether each call of it draws random numbers, in every mode.
bool draws_random_numbers(std::string_view target);

// Completes the node's arguments to those of its schema, named and in order: arguments without a name are
// positional, absent ones get their defaults, a number becomes a list for int[2], and a float for float. A
// node without a schema is unchanged. UserError INGOT-U510: an argument is missing, unknown, given twice or
// of the wrong kind.
void complete_arguments(Node& node);

}  // namespace ingot::core::aten
