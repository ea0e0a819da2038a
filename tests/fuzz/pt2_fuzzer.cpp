// SPDX-License-Identifier: Apache-2.0
// Any bytes: the .pt2 reader throws an Error of the user's kinds, or gives a program that can be printed, and
// that the compiler rejects by such an Error or makes a right graph and an engine of. The bytes are an
// archive, or the JSON documents of one, which is made around them.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "backends/null/compile/backend.h"
#include "compiler/compile.h"
#include "importers/aten/import.h"
#include "importers/aten/program/aten_text.h"
#include "importers/pt2/read_pt2.h"
#include "ir/verify.h"
#include "support/error.h"
#include "tests/fuzz/pt2/documents.h"

using namespace ingot::core;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

bool is_archive(std::string_view input) { return !input.starts_with('{'); }

void read(const std::shared_ptr<const std::string>& archive, bool verify_checksums) {
  try {
    const aten::Program program =
        pt2::read_pt2(as_bytes(*archive), archive, {.verify_checksums = verify_checksums});
    to_string(program);
    verify(aten::import_program(program).graph, "importing");
    const Backend* const backends[] = {&null::backend()};
    CompileOptions options;
    options.target.backend = "null";
    compile(program, options, backends);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInternal) return;
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::minstd_rand random(seed);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (!is_archive(input) && random() % 4 != 0) {
    fuzz::Json documents = fuzz::Json::parse(input, nullptr, false);
    if (documents.is_object()) {
      fuzz::mutate(documents, random);
      const std::string text = documents.dump(-1, ' ', false, fuzz::Json::error_handler_t::replace);
      if (text.size() <= max_size) {
        std::memcpy(data, text.data(), text.size());
        return text.size();
      }
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto input = std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size);
  if (is_archive(*input)) {
    read(input, true);
    read(input, false);
  } else if (auto archive = fuzz::archive_of(*input)) {
    read(std::make_shared<const std::string>(std::move(*archive)), true);
  }
  return 0;
}
