// SPDX-License-Identifier: Apache-2.0
// Any bytes: the .pt2 reader throws an Error of the user's kinds, or gives a program that can be printed.
#include <cstdlib>
#include <memory>
#include <string>

#include "importers/aten/aten_text.h"
#include "importers/pt2/read_pt2.h"
#include "support/error.h"

using namespace ingot::core;

namespace {

void read(const std::shared_ptr<const std::string>& archive, bool verify_checksums) {
  try {
    to_string(pt2::read_pt2(as_bytes(*archive), archive, {.verify_checksums = verify_checksums}));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::kInternal) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto archive = std::make_shared<const std::string>(reinterpret_cast<const char*>(data), size);
  read(archive, true);
  read(archive, false);
  return 0;
}
