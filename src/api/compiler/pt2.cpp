// SPDX-License-Identifier: Apache-2.0
// Builds from .pt2 files of torch.export.
#include <algorithm>
#include <vector>

#include "api/compiler/build.h"
#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "api/runtime/named_tensors.h"
#include "importers/aten/program/aten_text.h"
#include "importers/pt2/read_pt2.h"
#include "importers/safetensors/checkpoint.h"
#include "ingot/build.h"
#include "runtime/memory.h"

using namespace ingot::core;

extern "C" {

ingot_status* ingot_build_pt2(const char* path, const ingot_build_options* options, ingot_engine** engine,
                              ingot_text** report) {
  return api::guard([&] {
    api::require(path, "path");
    const auto read = [&] {
      const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
      return api::Model{pt2::read_pt2(file), file, {}};
    };
    api::build(read, options, engine, report);
  });
}

ingot_status* ingot_build_pt2_memory(const void* data, size_t size, const ingot_build_options* options,
                                     ingot_engine** engine, ingot_text** report) {
  return api::guard([&] {
    api::require(data, "data");
    // The engine's weights point into the archive, which belongs to the caller and lives only during this
    // call.
    const auto* first = static_cast<const std::byte*>(data);
    const auto archive = std::make_shared<const std::vector<std::byte>>(first, first + size);
    api::build([&] { return api::Model{pt2::read_pt2(Bytes(*archive), archive), {}, {}}; }, options, engine,
               report);
  });
}

ingot_status* ingot_open_model_tensors(const char* path, ingot_tensors** tensors) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(tensors, "tensors");
    const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
    const Bytes bytes = file->bytes(), archive = as_bytes("PK");
    const bool is_archive =
        bytes.size() >= archive.size() && std::ranges::equal(bytes.first(archive.size()), archive);
    *tensors = new ingot_tensors(is_archive ? pt2::read_pt2_weights(file) : read_checkpoint(path));
  });
}

ingot_status* ingot_inspect_pt2(const char* path, ingot_text** text) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(text, "text");
    const FileCopy file = read_copy(path);
    *text = api::make_text(
        aten::to_string(pt2::read_pt2(file.bytes(), file.memory, {.verify_values = false, .name = path})));
  });
}

}  // extern "C"
