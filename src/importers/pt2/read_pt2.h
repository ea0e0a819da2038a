// SPDX-License-Identifier: Apache-2.0
// Reads the archives that torch.export.save writes, without torch: schema major 8 of torch 2.11 to 2.15, in
// the training dialect (with in-place calls) and in the functional one. Runs nothing from the file and
// unpickles nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "importers/aten/program/aten_graph.h"
#include "importers/pt2/read_options.h"
#include "support/file.h"
#include "types/named_tensor.h"

namespace ingot::core::pt2 {

// Weights are not copied: they point into the mapped file, which lives as long as they do. Calls have all
// arguments of their schemas. UserError INGOT-U5xx: a file that is damaged, truncated or of another kind.
// UnsupportedError INGOT-N5xx: a valid one with unsupported content. Both name the node and its line, if any.
aten::Program read_pt2(const std::shared_ptr<const MappedFile>& file);

// The same for bytes in memory, which `owner` keeps alive. Unaligned values are copied.
aten::Program read_pt2(Bytes archive, std::shared_ptr<const void> owner, const ReadOptions& options = {});

// The values in the archive alone: parameters and buffers by their names, and constants.
std::vector<NamedTensor> read_pt2_weights(const std::shared_ptr<const MappedFile>& file);

}  // namespace ingot::core::pt2
