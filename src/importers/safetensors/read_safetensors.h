// SPDX-License-Identifier: Apache-2.0
// The safetensors format: 8 bytes with the length of a JSON header, the header, the values. Nothing is
// copied.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "support/file.h"
#include "types/named_tensor.h"

namespace ingot::core {

// In the order of the header. UserError INGOT-U530 if the file is damaged or of another kind, U502 and U503
// if its header is; UnsupportedError INGOT-N510 for a dtype that Ingot lacks. All name `file`.
std::vector<NamedTensor> read_safetensors(Bytes bytes, std::shared_ptr<const void> owner,
                                          const std::string& file);
std::vector<NamedTensor> read_safetensors(const std::shared_ptr<const MappedFile>& file);

}  // namespace ingot::core
