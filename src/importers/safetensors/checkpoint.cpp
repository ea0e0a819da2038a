// SPDX-License-Identifier: Apache-2.0
#include "importers/safetensors/checkpoint.h"

#include <iterator>
#include <set>
#include <string>

#include <fmt/core.h>

#include "importers/files/json.h"
#include "importers/safetensors/read_safetensors.h"
#include "support/error.h"
#include "support/file.h"
#include "support/paths.h"

namespace ingot::core {
namespace {

namespace fs = std::filesystem;

// An index comes with the model: it may not choose files elsewhere.
void require_beside(const fs::path& index, const std::string& name) {
  const fs::path file = to_path(name).lexically_normal();
  const bool is_beside = !name.empty() && name.find('\0') == name.npos && !file.has_root_path() &&
                         *file.begin() != ".." && *file.begin() != ".";
  if (is_beside) return;
  throw UserError("INGOT-U530",
                  fmt::format("'{}': the file '{}' is not beside the index", to_text(index), name),
                  "write or copy the index and its files again");
}

}  // namespace

std::vector<fs::path> checkpoint_files(const fs::path& path) {
  if (path.extension() != ".json") return {path};
  const auto is_metadata = [](std::string_view object, std::string_view key) {
    return object.empty() && key == "metadata";
  };
  const auto index = MappedFile::open(path);
  const JsonDocument document = JsonDocument::parse(index->bytes(), to_text(path), is_metadata);
  std::set<std::string> names;
  for (const auto [tensor, file] : document.root().at("weight_map").members()) names.emplace(file.text());
  std::vector<fs::path> files;
  for (const std::string& name : names) {
    require_beside(path, name);
    files.push_back(path.parent_path() / to_path(name));
  }
  return files;
}

std::vector<NamedTensor> read_checkpoint(const fs::path& path) {
  std::vector<NamedTensor> tensors;
  for (const fs::path& file : checkpoint_files(path)) {
    std::vector<NamedTensor> part = read_safetensors(MappedFile::open(file));
    tensors.insert(tensors.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  }
  require_once(tensors);
  return tensors;
}

void require_once(const std::vector<NamedTensor>& tensors) {
  std::set<std::string_view> names;
  for (const NamedTensor& tensor : tensors) {
    if (names.insert(tensor.name).second) continue;
    throw UserError("INGOT-U326", fmt::format("two files both have the weight '{}'", tensor.name),
                    "leave out one of the files: they must be parts of one checkpoint");
  }
}

}  // namespace ingot::core
