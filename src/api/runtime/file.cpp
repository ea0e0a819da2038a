// SPDX-License-Identifier: Apache-2.0
// ingot_file_*: files written next to engines.
#include "support/file.h"

#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "support/error.h"
#include "support/paths.h"

using namespace ingot::core;

struct ingot_file {
  explicit ingot_file(const char* path) : writer(to_path(path)) {}
  void require_unfinished() const {
    if (is_finished)
      throw UserError("INGOT-U120", "the file is finished already", "create another one for more bytes");
  }
  FileWriter writer;
  bool is_finished = false;
};

extern "C" {

ingot_status* ingot_file_create(const char* path, ingot_file** file) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(file, "file");
    *file = new ingot_file(path);
  });
}

ingot_status* ingot_file_write(ingot_file* file, const void* data, size_t size) {
  return api::guard([&] {
    api::require(file, "file");
    if (size > 0) api::require(data, "data");
    file->require_unfinished();
    file->writer.append({static_cast<const std::byte*>(data), size});
  });
}

ingot_status* ingot_file_finish(ingot_file* file) {
  return api::guard([&] {
    api::require(file, "file");
    file->require_unfinished();
    file->is_finished = true;
    file->writer.finish();
  });
}

void ingot_file_free(ingot_file* file) { delete file; }

}  // extern "C"
