// SPDX-License-Identifier: Apache-2.0
// Engine files: any bytes are rejected or opened, never more. The first byte says what the rest is: a whole
// file, with checksums compared or not, or the metadata and programs sections of a file that is sealed around
// them, so that what lies behind the checksums is reached. An opened engine is inspected, verified, written
// again and run.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "engine/inspect.h"
#include "support/error.h"
#include "tests/engine/engines.h"
#include "tests/fuzz/engine/mutate.h"
#include "tests/fuzz/engine/parts.h"
#include "tests/fuzz/engine/run.h"

using namespace ingot::core;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

void use(Bytes bytes, Checksums checksums) {
  const auto file = EngineFile::open(bytes, nullptr, checksums);
  if (inspect_json(file->data(), file.get()).empty()) std::abort();
  write_engine(file->data(), [](Bytes) {});
  fuzz::run_engine(file);
  file->verify_all();
}

size_t give(const std::vector<std::byte>& made, uint8_t* data, size_t max_size) {
  if (made.size() > max_size) return 0;
  std::memcpy(data, made.data(), made.size());
  return made.size();
}

}  // namespace

// Half of the time the contents of sections are changed, and not their bytes.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  std::minstd_rand random(seed);
  if (size >= fuzz::kPrefix && data[0] % 3 == fuzz::kSealed && random() % 2 == 0) {
    if (auto parts = fuzz::read_parts(std::as_bytes(std::span(data, size)))) {
      fuzz::mutate(parts->engine, random);
      if (const size_t made = give(fuzz::write_parts(*parts), data, max_size); made > 0) return made;
    }
  }
  return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < fuzz::kPrefix) return 0;
  const Bytes input = std::as_bytes(std::span(data, size));
  try {
    if (data[0] % 3 == fuzz::kSealed) {
      use(fuzz::seal_parts(input), Checksums::kVerify);
    } else {
      use(input.subspan(1), data[0] % 3 == fuzz::kVerified ? Checksums::kVerify : Checksums::kIgnore);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kInternal) return 0;
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
  return 0;
}
