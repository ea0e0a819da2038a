// SPDX-License-Identifier: Apache-2.0
#include "api/runtime/weights_file.h"

#include <iterator>
#include <set>

#include <fmt/core.h>

#include "importers/safetensors/checkpoint.h"
#include "importers/safetensors/read_safetensors.h"
#include "runtime/memory.h"
#include "support/error.h"
#include "support/parallel.h"
#include "support/paths.h"

namespace ingot::core::api {
namespace {

namespace fs = std::filesystem;

void require_file(const fs::path& path) {
  std::error_code problem;
  if (fs::is_regular_file(path, problem)) return;
  throw UserError(
      "INGOT-U335",
      fmt::format("the engine leaves its weights to the file '{}', which is not there", to_text(path)),
      "put it there, or give the weights when the engine is loaded (`weights`, --weights)");
}

// Files of weights, and what is in them.
struct OpenedFiles {
  WeightsFiles files;
  std::vector<std::weak_ptr<const MappedFile>> mapped;
  std::vector<NamedTensor> tensors;

  void add(const fs::path& path, FileMemory memory) {
    require_file(path);
    std::vector<NamedTensor> part;
    FileVersion version{};
    if (memory == FileMemory::kCopy) {
      const FileCopy copy = read_copy(path);
      part = read_safetensors(copy.bytes(), copy.memory, to_text(path));
    } else {
      const auto file = MappedFile::open(path);
      part = read_safetensors(file);
      version = file->opened_version();
      mapped.push_back(file);  // without effect once nothing of it is used any more
    }
    files.push_back({path, version});
    tensors.insert(tensors.end(), std::make_move_iterator(part.begin()), std::make_move_iterator(part.end()));
  }
};

OpenedFiles open_files(const std::vector<fs::path>& paths, FileMemory memory) {
  OpenedFiles opened;
  for (const fs::path& path : paths) opened.add(path, memory);
  require_once(opened.tensors);
  return opened;
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

// Of all parts of the sharded weights, which one engine for all ranks compares.
void add_part_digests(const SourceValues& values, EngineData& stripped) {
  for_each_parallel(stripped.sources.size(), [&](size_t i) {
    SourceWeight& source = stripped.sources[i];
    const auto found = values.find(source.name);
    if (source.shards.empty() || found == values.end()) return;
    const TensorView& whole = found->second.view;
    if (whole.shape != whole_shape(source.shape, source.shards)) return;  // the check says so
    for (int64_t part = 0; part < part_count(source.shards); ++part)
      source.part_digests.push_back(
          digest_of(source, filled_up(part_of(whole, source.shards, part), source.shape).data.get()));
  });
}

// The values with the part in place of each whole tensor that the model had when it was built.
SourceValues built_parts(SourceValues values, const EngineData& built, EngineData& stripped) {
  for (size_t i = 0; i < built.sources.size(); ++i) {
    SourceWeight& source = stripped.sources[i];
    const auto found = values.find(source.name);
    if (source.shards.empty()) continue;
    source.digest = digest_of(source, built.sources[i].data.get());
    if (source.part_digests.empty() || found == values.end()) continue;
    const auto part = std::ranges::find(source.part_digests, source.digest) - source.part_digests.begin();
    const int64_t number = std::min<int64_t>(part, part_count(source.shards) - 1);
    found->second.view = part_of(found->second.view, source.shards, number);
    if (found->second.view.shape == source.shape) continue;
    const Tensor filled = filled_up(found->second.view, source.shape);
    found->second = {filled.view(), filled.data};
  }
  return values;
}

}  // namespace

void take_file_weights(ingot_engine& handle, const fs::path& folder, FileMemory memory,
                       const ShardRanks& ranks) {
  std::vector<fs::path> paths;
  for (const std::string& name : handle.data->weights_files)
    paths.push_back(fs::absolute(folder / to_path(name)).lexically_normal());
  Engine& engine = *runnable(handle);
  OpenedFiles opened = open_files(paths, memory);
  engine.refit_from(opened.files, known_values(engine.data(), std::move(opened.tensors)), ranks);
  handle.model = std::move(opened.mapped);
}

void leave_weights_to(const std::vector<std::string>& given, const EngineData& built, EngineData& stripped) {
  std::vector<fs::path> paths;
  for (const std::string& each : given) {
    for (const fs::path& file : checkpoint_files(to_path(each)))
      paths.push_back(fs::absolute(file).lexically_normal());
  }
  for_each_parallel(built.sources.size(), [&](size_t i) {
    if (built.sources[i].shards.empty())
      stripped.sources[i].digest = digest_of(built.sources[i], built.sources[i].data.get());
  });
  for (const fs::path& path : paths) stripped.weights_files.push_back(to_text(path));
  OpenedFiles opened = open_files(paths, FileMemory::kMap);
  const SourceValues values = known_values(stripped, std::move(opened.tensors));
  add_part_digests(values, stripped);
  check_files(stripped, built_parts(values, built, stripped), opened.files, Digests::kOfAll, {},
              UnknownRanks::kFilledUp);
  for (SourceWeight& source : stripped.sources)
    if (!source.part_digests.empty()) source.digest = {};  // nothing tells which rank has built it
}

std::string name_from(const fs::path& folder, const fs::path& absolute) {
  const fs::path base = fs::absolute(folder).lexically_normal();
  const fs::path relative = absolute.lexically_relative(base);
  const bool is_below = !relative.empty() && *relative.begin() != "..";
  return to_text(is_below ? std::filesystem::path(relative.generic_string<PathChar>()) : absolute);
}

}  // namespace ingot::core::api
