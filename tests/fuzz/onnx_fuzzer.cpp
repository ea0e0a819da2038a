// SPDX-License-Identifier: Apache-2.0
// Any bytes: the ONNX reader and importer throw an Error of the user's kinds, or give a model that can be
// printed, and that the compiler rejects by such an Error or makes an engine of.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "backends/null/compile/backend.h"
#include "compiler/compile.h"
#include "importers/onnx/import.h"
#include "ir/verify.h"
#include "support/error.h"
#include "tests/importers/onnx_messages.h"

using namespace ingot::core;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::minstd_rand random(seed);
  if (random() % 8 != 0) {
    const auto model = onnx::test::mutated_model({reinterpret_cast<const char*>(data), size}, random);
    if (model && model->size() <= max_size) {
      std::memcpy(data, model->data(), model->size());
      return model->size();
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size);
  try {
    const auto model = onnx::load(as_bytes(*input), input, std::nullopt);
    to_string(*model);
    const aten::Program program = onnx::describe(*model);
    verify(onnx::import_model(*model, true).graph, "importing");
    const Backend* const backends[] = {&null::backend()};
    CompileOptions options;
    options.target.backend = "null";
    compile_model(program, [&] { return onnx::import_model(*model, false); }, options, backends);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInternal) return 0;
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}
