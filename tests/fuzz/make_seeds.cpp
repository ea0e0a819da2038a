// SPDX-License-Identifier: Apache-2.0
// Right inputs to begin with: make_seeds FOLDER writes FOLDER/NAME_fuzzer/* for the targets that read binary
// files. Engines are those of the tests, and what the null backend makes of the archives of tests/data/pt2.
#include <filesystem>
#include <fstream>
#include <iostream>

#include "backends/null/compile/backend.h"
#include "compiler/compile.h"
#include "support/error.h"
#include "tests/engine/engines.h"
#include "tests/fuzz/engine/parts.h"
#include "tests/fuzz/engine/programs.h"
#include "tests/fuzz/pt2/documents.h"
#include "tests/importers/onnx_models.h"
#include "tests/importers/pt2_archives.h"

using namespace ingot::core;

namespace {

void write(const std::filesystem::path& path, Bytes bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

// As a whole file, its checksums compared or not, and as the parts of one.
void write_forms(const std::filesystem::path& folder, const std::string& name, const EngineData& engine) {
  for (const fuzz::Mode mode : {fuzz::kVerified, fuzz::kUnverified}) {
    std::vector<std::byte> file = {static_cast<std::byte>(mode)};
    write_engine(engine, [&](Bytes part) { file.insert(file.end(), part.begin(), part.end()); });
    write(folder / (name + (mode == fuzz::kVerified ? ".verified" : ".unverified")), file);
  }
  fuzz::Parts parts{engine, place_weights({&engine}).levels[0], {}};
  uint64_t length = 0;
  parts.images = place_images(engine.images, length);
  write(folder / (name + ".sealed"), fuzz::write_parts(parts));
}

void write_engines(const std::filesystem::path& folder) {
  write_forms(folder, "small", testing::small_engine());
  write_forms(folder, "levels", testing::engine_of_levels({"x86-64-v3", "x86-64-v4", "aarch64"}));
  for (const EngineData& engine : fuzz::engines()) write_forms(folder, engine.name, engine);
  const Backend* const backends[] = {&null::backend()};
  CompileOptions options;
  options.target.backend = "null";
  for (const std::string& name : pt2::test::golden_names()) {
    try {
      write_forms(
          folder, name,
          *compile(pt2::test::read(pt2::test::read_bytes(pt2::test::golden_path(name))), options, backends));
    } catch (const Error& error) {
      std::cout << name << " is not an engine: " << error.what() << "\n";
    }
  }
}

void write_archives(const std::filesystem::path& folder) {
  for (const std::string& name : pt2::test::golden_names()) {
    write(folder / (name + ".pt2"), as_bytes(pt2::test::read_bytes(pt2::test::golden_path(name))));
    write(folder / (name + ".json"), as_bytes(fuzz::documents_of(name).dump()));
  }
}

void write_models(const std::filesystem::path& folder) {
  std::vector<std::string> models = onnx::test::control_models();
  models.push_back(onnx::test::small_model());
  for (size_t i = 0; i < models.size(); ++i)
    write(folder / (std::to_string(i) + ".onnx"), as_bytes(models[i]));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const std::filesystem::path folder = arguments[1];
  for (const char* target : {"engine_fuzzer", "onnx_fuzzer", "pt2_fuzzer"})
    std::filesystem::create_directories(folder / target);
  write_engines(folder / "engine_fuzzer");
  write_archives(folder / "pt2_fuzzer");
  write_models(folder / "onnx_fuzzer");
  return 0;
}
