// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "support/bytes.h"

namespace ingot::core {

constexpr std::string_view kEngineMagic = "INGOTENG";  // the first bytes of the file

// Whether a file begins like an engine. It may be damaged after that.
inline bool is_engine(Bytes file) {
  const std::string_view content(reinterpret_cast<const char*>(file.data()), file.size());
  return content.starts_with(kEngineMagic);
}

}  // namespace ingot::core
