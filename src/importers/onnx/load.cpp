// SPDX-License-Identifier: Apache-2.0
#include "importers/onnx/load.h"

#include <fmt/core.h>

#include "importers/onnx/read_model.h"
#include "importers/onnx/tensors.h"
#include "support/error.h"

namespace ingot::core::onnx {
namespace {

constexpr int64_t kOldestOpset = 7, kNewestOpset = 23;

void refuse_other_opsets(const Model& model) {
  const int64_t opset = opset_of(model);
  if (opset == 0 || (opset >= kOldestOpset && opset <= kNewestOpset)) return;
  throw UnsupportedError("INGOT-N542", fmt::format("the model has opset {}", opset),
                         "export it with an opset from 13 to 23, or convert it with onnx.version_converter");
}

}  // namespace

int64_t opset_of(const Model& model) {
  const auto found = model.opsets.find("");
  if (found == model.opsets.end()) return 0;  // operators of other domains alone
  return found->second;
}

bool is_onnx(Bytes file) {
  // The first field of a ModelProto is in practice its version: field 1, a small number.
  constexpr auto kVersionField = std::byte{0x08};
  return file.size() > 2 && file[0] == kVersionField && file[1] < std::byte{0x80};
}

std::shared_ptr<const LoadedModel> load(Bytes file, std::shared_ptr<const void> owner,
                                        std::optional<std::filesystem::path> folder) {
  auto loaded = std::make_shared<LoadedModel>();
  loaded->model = read_model(file);
  loaded->owner = std::move(owner);
  refuse_other_opsets(loaded->model);
  if (loaded->model.graph.sparse_initializers > 0)
    throw UnsupportedError("INGOT-N540", "the model has sparse initializers");
  TensorReader reader(std::move(folder));
  for (const TensorDef& tensor : loaded->model.graph.initializers) {
    if (!loaded->values.emplace(tensor.name, reader.read(tensor)).second)
      throw UserError("INGOT-U543", fmt::format("the model has two initializers '{}'", tensor.name));
  }
  return loaded;
}

}  // namespace ingot::core::onnx
