// SPDX-License-Identifier: Apache-2.0
// Calls with arguments of the kinds that a schema has, of any rank, size and number: what a file may hold.
#pragma once

#include <random>

#include "importers/aten/schema/schemas.h"

namespace ingot::core::aten::test {

class RandomCalls {
 public:
  // `mild`: as a model might call, with small numbers. `tensors` and `sizes` are what the calls take.
  RandomCalls(std::minstd_rand& random, bool mild, std::vector<ValueId> tensors,
              std::vector<ValueId> sizes = {})
      : random_(random), mild_(mild), tensors_(std::move(tensors)), sizes_(std::move(sizes)) {}

  // Some of those that have a default are left out.
  std::vector<NamedArgument> arguments(const Schema& schema);
  // For operators without a schema.
  std::vector<NamedArgument> positional_arguments();

 private:
  size_t below(size_t count) { return count == 0 ? 0 : random_() % count; }
  int64_t integer();
  double real();
  std::string text();
  Argument tensor();
  Argument size();
  Argument value(const SchemaType& type);
  Argument element(const SchemaType& type);

  std::minstd_rand& random_;
  bool mild_;
  std::vector<ValueId> tensors_, sizes_;
};

// One call of `target`, of inputs of several ranks, sizes and dtypes; what it gives are the program's
// outputs.
Program random_program(const std::string& target, std::minstd_rand& random);

}  // namespace ingot::core::aten::test
