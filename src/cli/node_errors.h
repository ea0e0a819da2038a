// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/array.h"
#include "cli/session.h"

namespace ingot::cli {

// A value that both engines store.
struct NodeError {
  std::string node, op, source;  // of the last node that the step computes
  double error = 0;              // see `relative_error`
};

// The values of nodes of one engine, with which those of another are compared while it runs.
class NodeValues {
 public:
  const std::vector<Array>& record(Session& session);          // runs it
  const std::vector<Array>& compare_with(Session& reference);  // likewise
  std::vector<NodeError> worst() const;                        // of the largest errors first

 private:
  struct Value {
    std::string op, source;
    Array array;
    bool has_error = false;
    double error = 0;
  };
  std::map<std::string, Value> values_;
};

}  // namespace ingot::cli
