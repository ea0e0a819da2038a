// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace ingot::core::pt2 {

struct ReadOptions {
  bool verify_checksums = true;
  bool verify_values = true;  // for weights too, which reads them
  std::string name = {};      // of the file, for messages
};

}  // namespace ingot::core::pt2
