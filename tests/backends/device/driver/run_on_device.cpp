// SPDX-License-Identifier: Apache-2.0
// ingot_run_on_device LEVEL MODEL.pt2...: runs each on the fake device beside the interpreter, and prints
// "right", "unsupported: WHY" or "wrong: HOW" for each, a line each.
#include <fmt/core.h>

#include <cstdlib>
#include <string_view>

#include "importers/aten/import.h"
#include "importers/pt2/read_pt2.h"
#include "support/error.h"
#include "tests/backends/device/model_check.h"

using namespace ingot::core;

namespace {

std::string verdict(const char* path, int level) {
  try {
    const aten::Imported model = aten::import_program(pt2::read_pt2(MappedFile::open(path)));
    const std::string wrong = test::check_on_device(model, level);
    return wrong.empty() ? "right" : "wrong: " + wrong;
  } catch (const UnsupportedError& error) {
    return "unsupported: " + error.details().message;
  } catch (const std::exception& error) {
    return std::string("wrong: ") + error.what();
  }
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const int level = std::atoi(words[1]);
  for (int i = 2; i < count; ++i) {
    fmt::print("{}\n", verdict(words[i], level));
    std::fflush(stdout);
  }
}
