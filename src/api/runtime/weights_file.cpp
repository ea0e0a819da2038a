// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/weights_file.h"

#include <set>

#include <fmt/core.h>

#include "importers/safetensors/read_safetensors.h"
#include "runtime/memory.h"
#include "support/error.h"
#include "support/parallel.h"

namespace ingot::core::api {
namespace {

namespace fs = std::filesystem;

void require_file(const fs::path& path) {
  std::error_code problem;
  if (fs::is_regular_file(path, problem)) return;
  throw UserError(
      "INGOT-U335",
      fmt::format("the engine leaves its weights to the file '{}', which is not there", path.string()),
      "put it there, or give the weights when the engine is loaded (`weights`, --weights)");
}

std::vector<NamedTensor> read_tensors(const fs::path& path, FileMemory memory,
                                      std::shared_ptr<const MappedFile>& mapped) {
  require_file(path);
  if (memory == FileMemory::kCopy) {
    const FileCopy copy = read_copy(path);
    return read_safetensors(copy.bytes(), copy.memory, path.string());
  }
  mapped = MappedFile::open(path);
  return read_safetensors(mapped);
}

// Checkpoints often hold more than the engine reads.
SourceValues known_values(const EngineData& data, std::vector<NamedTensor> tensors) {
  std::set<std::string_view> names;
  for (const SourceWeight& source : data.sources) names.insert(source.name);
  for (const OtherTensor& other : data.others) names.insert(other.name);
  SourceValues values;
  for (NamedTensor& tensor : tensors) {
    if (names.contains(tensor.name)) values.emplace(tensor.name, std::move(tensor.value));
  }
  return values;
}

}  // namespace

void take_file_weights(ingot_engine& handle, const fs::path& folder, FileMemory memory) {
  const fs::path path = fs::absolute(folder / handle.data->weights_file).lexically_normal();
  std::shared_ptr<const MappedFile> mapped;
  Engine& engine = *runnable(handle);
  const SourceValues values = known_values(engine.data(), read_tensors(path, memory, mapped));
  const FileVersion version = mapped != nullptr ? mapped->opened_version() : FileVersion{};
  engine.refit_from({.path = path, .version = version}, values);
  handle.model = mapped;  // without effect once nothing of it is used any more
}

void leave_weights_to(const fs::path& file, const EngineData& built, EngineData& stripped) {
  const fs::path path = fs::absolute(file).lexically_normal();
  for_each_parallel(built.sources.size(), [&](size_t i) {
    stripped.sources[i].digest = digest_of(built.sources[i], built.sources[i].data.get());
  });
  stripped.weights_file = path.string();
  std::shared_ptr<const MappedFile> mapped;
  const SourceValues values = known_values(stripped, read_tensors(path, FileMemory::kMap, mapped));
  check_file(stripped, values, path.string(), Digests::kOfAll);
}

std::string name_from(const fs::path& folder, const fs::path& absolute) {
  const fs::path base = fs::absolute(folder).lexically_normal();
  const fs::path relative = absolute.lexically_relative(base);
  const bool is_below = !relative.empty() && *relative.begin() != "..";
  return is_below ? relative.string() : absolute.string();
}

}  // namespace ingot::core::api
