// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/program.h"
#include "exporters/onnx/onnx_model.h"
#include "exporters/onnx/unique_names.h"

namespace ingot::core::exported {

// Buffers of a program as values of a graph, each of which one node makes. Nodes that this takes are added to
// the graph.
class BufferValues {
 public:
  BufferValues(const Program& program, UniqueNames& names, OnnxGraph& graph);

  // Calls the current value of a buffer that no step has written: an input, a weight.
  void set(BufferId buffer, std::string name);
  std::string read(BufferId buffer);                      // the name of its current value
  std::string write(BufferId buffer);                     // the name of a new one
  void prefer(BufferId buffer, const std::string& name);  // for its values, in place of the buffer's own

 private:
  struct Content {
    std::string value;  // "": none
    uint64_t version = 0;
    std::vector<BufferId> parts;  // of a whole buffer: its parts that were written since
  };

  void join_parts(BufferId whole);
  void add_unwritten(BufferId buffer);
  std::string add_value(BufferId buffer);
  void add_node(const char* op, std::vector<std::string> inputs, const std::string& output);

  const Program& program_;
  UniqueNames& names_;
  OnnxGraph& graph_;
  std::vector<Content> contents_;
  std::vector<std::string> preferred_;
};

}  // namespace ingot::core::exported
