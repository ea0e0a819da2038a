// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace ingot::core::exported {

// ONNX has one name per value of a graph and all graphs inside of it.
class UniqueNames {
 public:
  std::string unused(const std::string& wanted);  // `wanted`, with a number if it is taken; never ""

 private:
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, int> tried_;
};

}  // namespace ingot::core::exported
