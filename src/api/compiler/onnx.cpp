// SPDX-License-Identifier: Apache-2.0
// Builds from model files of any kind, and from ONNX models in memory.
#include "api/compiler/build.h"
#include "api/compiler/model_file.h"
#include "api/runtime/checks.h"
#include "api/runtime/guard.h"
#include "api/runtime/handles.h"
#include "importers/onnx/import.h"
#include "ingot/build.h"

using namespace ingot::core;

extern "C" {

ingot_status* ingot_build_model(const char* path, const ingot_build_options* options, ingot_engine** engine,
                                ingot_text** report) {
  return api::guard([&] {
    api::require(path, "path");
    api::build([&] { return api::read_model_file(path); }, options, engine, report);
  });
}

ingot_status* ingot_build_onnx_memory(const void* data, size_t size, const char* folder,
                                      const ingot_build_options* options, ingot_engine** engine,
                                      ingot_text** report) {
  return api::guard([&] {
    api::require(data, "data");
    const Bytes file(static_cast<const std::byte*>(data), size);
    api::build([&] { return api::read_onnx(file, folder); }, options, engine, report);
  });
}

ingot_status* ingot_inspect_model(const char* path, ingot_text** text) {
  return api::guard([&] {
    api::require(path, "path");
    api::require(text, "text");
    *text = api::make_text(api::describe_model_file(path));
  });
}

int32_t ingot_imports_onnx_operator(const char* name) {
  return name != nullptr && onnx::has_importer(name) ? 1 : 0;
}

}  // extern "C"
