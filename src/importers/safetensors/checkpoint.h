// SPDX-License-Identifier: Apache-2.0
// Checkpoints that are divided into several .safetensors files, which an index names:
// {"metadata": ..., "weight_map": {"encoder.weight": "model-00001-of-00002.safetensors", ...}}
#pragma once

#include <filesystem>
#include <vector>

#include "types/named_tensor.h"

namespace ingot::core {

// The files that the index `path` (model.safetensors.index.json) names, each once, in the order of their
// names; of any other file, itself. UserError INGOT-U530 if a name leads out of the index's folder, U502 and
// U503 if it is not an index.
std::vector<std::filesystem::path> checkpoint_files(const std::filesystem::path& path);

// The tensors of all of these files, which are mapped. UserError as of read_safetensors, and INGOT-U326 if
// two files have a tensor of one name.
std::vector<NamedTensor> read_checkpoint(const std::filesystem::path& path);

void require_once(const std::vector<NamedTensor>& tensors);  // each name: else INGOT-U326

}  // namespace ingot::core
