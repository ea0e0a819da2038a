// SPDX-License-Identifier: Apache-2.0
#include "api/compiler/model_file.h"

#include <filesystem>
#include <optional>
#include <vector>

#include "importers/aten/program/aten_text.h"
#include "importers/onnx/import.h"
#include "importers/pt2/read_pt2.h"
#include "runtime/memory.h"
#include "support/error.h"

namespace ingot::core::api {
namespace {

Model model_of(const std::shared_ptr<const onnx::LoadedModel>& loaded) {
  const auto import = [loaded](bool weights_are_constants) {
    return onnx::import_model(*loaded, weights_are_constants);
  };
  return {onnx::describe(*loaded), {}, import};
}

}  // namespace

Model read_model_file(const char* path) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  if (!onnx::is_onnx(file->bytes())) return {pt2::read_pt2(file), file, {}};
  return model_of(onnx::load(file->bytes(), file, std::filesystem::path(path).parent_path()));
}

Model read_onnx(Bytes file, const char* folder) {
  const auto copy = std::make_shared<const std::vector<std::byte>>(file.begin(), file.end());
  std::optional<std::filesystem::path> place;
  if (folder != nullptr) place = folder;
  return model_of(onnx::load(*copy, copy, place));
}

std::string describe_model_file(const char* path) {
  const FileCopy file = read_copy(path);
  if (!onnx::is_onnx(file.bytes()))
    return aten::to_string(pt2::read_pt2(file.bytes(), file.memory, {.verify_values = false, .name = path}));
  return onnx::to_string(*onnx::load(file.bytes(), file.memory, std::filesystem::path(path).parent_path()));
}

}  // namespace ingot::core::api
