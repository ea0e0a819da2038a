// SPDX-License-Identifier: Apache-2.0
// Engine files: any bytes are refused or opened, never more. The first byte says what the rest is: a whole
// file, with checksums compared or not, or the metadata and programs sections of a file that is sealed around
// them, so that what lies behind the checksums is reached. An opened engine is inspected, verified and
// written again.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "engine/inspect.h"
#include "engine/sections.h"
#include "support/error.h"
#include "tests/engine/engines.h"
#include "tests/engine/seal.h"

using namespace ingot::core;

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

enum Mode : uint8_t { kVerified, kUnverified, kSealed };
constexpr size_t kPrefix = 3;  // mode, and the length of the metadata

std::vector<std::byte> sealed(Bytes input) {
  const size_t length = std::min<size_t>(
      std::to_integer<size_t>(input[1]) | std::to_integer<size_t>(input[2]) << 8, input.size() - kPrefix);
  const Bytes metadata = input.subspan(kPrefix, length), programs = input.subspan(kPrefix + length);
  std::vector<std::vector<std::byte>> contents(kSectionCount);
  contents[1].assign(metadata.begin(), metadata.end());
  contents[2].assign(programs.begin(), programs.end());
  contents[5].resize(320);
  return testing::seal(std::move(contents));
}

void use(Bytes bytes, Checksums checksums) {
  const auto file = EngineFile::open(bytes, nullptr, checksums);
  if (inspect_json(file->data(), file.get()).empty()) std::abort();
  write_engine(file->data(), [](Bytes) {});
  file->verify_all();
}

// A right engine, so that mutation begins with something that is understood.
size_t write_seed(uint8_t* data, size_t max_size) {
  const EngineData engine = testing::small_engine();
  uint64_t length = 0;
  const std::vector<Digest> digests(engine.sources.size());
  const auto metadata =
      write_metadata(engine, place_weights(engine), place_images(engine.images, length), digests);
  const auto programs = write_programs(engine);
  if (kPrefix + metadata.size() + programs.size() > max_size) return 1;
  data[0] = kSealed;
  data[1] = static_cast<uint8_t>(metadata.size());
  data[2] = static_cast<uint8_t>(metadata.size() >> 8);
  std::memcpy(data + kPrefix, metadata.data(), metadata.size());
  std::memcpy(data + kPrefix + metadata.size(), programs.data(), programs.size());
  return kPrefix + metadata.size() + programs.size();
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int) {
  return size < 2 * kPrefix ? write_seed(data, max_size) : LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < kPrefix) return 0;
  const Bytes input = std::as_bytes(std::span(data, size));
  try {
    if (data[0] % 3 == kSealed) {
      use(sealed(input), Checksums::kVerify);
    } else {
      use(input.subspan(1), data[0] % 3 == kVerified ? Checksums::kVerify : Checksums::kIgnore);
    }
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
  return 0;
}
