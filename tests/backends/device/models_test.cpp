// SPDX-License-Identifier: Apache-2.0
// Exported models on the device, by every level, against the interpreter.
#include <gtest/gtest.h>

#include "importers/aten/import.h"
#include "importers/pt2/read_pt2.h"
#include "tests/backends/device/model_check.h"

namespace ingot::core::test {
namespace {

class DeviceModels : public ::testing::TestWithParam<std::string> {};

TEST_P(DeviceModels, GiveWhatTheInterpreterGives) {
  const auto file = MappedFile::open(std::string(INGOT_SOURCE_DIR "/tests/data/pt2/") + GetParam() + ".pt2");
  const aten::Imported model = aten::import_program(pt2::read_pt2(file));
  for (int level = 0; level <= 3; ++level) EXPECT_EQ(check_on_device(model, level), "");
}

INSTANTIATE_TEST_SUITE_P(Archives, DeviceModels,
                         ::testing::Values("arguments", "control", "dynamic", "image", "pair", "weights"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace ingot::core::test
