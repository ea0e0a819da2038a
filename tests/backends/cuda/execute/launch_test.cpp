// SPDX-License-Identifier: Apache-2.0
// What an engine file may say of a launch: nothing else reaches the driver.
#include <gtest/gtest.h>

#include "backends/cuda/compile/tensor_map.h"
#include "backends/cuda/execute/execute.h"
#include "backends/cuda/kernel_abi.h"

namespace ingot::core::cuda {
namespace {

Launch plain() {
  Launch launch;
  launch.sizes = {1, 0, 0};
  launch.constants = {128, 128, 1};
  return launch;
}

Launch with_map() {
  Launch launch = plain();
  TensorMap map = map_of_dense(0, {64, 32});
  map.box[1] = 16;
  add_tensor_map(map, launch);
  return launch;
}

Launch with_windows() {
  Launch launch = plain();
  TensorMap map = map_of_dense(1, {64, 9, 9, 2});
  map.windows = TensorMap::Windows{.steps = {1, 2}, .lower = {-1, -1}, .upper = {-1, -1}};
  add_tensor_map(map, launch);
  return launch;
}

bool accepts(const Launch& launch) { return executor().is_valid(launch, 2); }

Launch changed(Launch launch, size_t constant, int64_t value) {
  launch.constants[constant] = value;
  return launch;
}

TEST(CudaLaunch, TakesWhatTheCompilerWrites) {
  EXPECT_TRUE(accepts(plain()));
  EXPECT_TRUE(accepts(with_map()));
  EXPECT_TRUE(accepts(with_windows()));
}

TEST(CudaLaunch, RejectsThreadsOutOfRange) {
  EXPECT_FALSE(accepts(changed(plain(), kBlock, 0)));
  EXPECT_FALSE(accepts(changed(plain(), kBlock, kMostThreads + 1)));
  EXPECT_FALSE(accepts(changed(plain(), kGroup, 100)));
  EXPECT_FALSE(accepts(changed(plain(), kCluster, kMostBlocksOfCluster + 1)));
}

TEST(CudaLaunch, RejectsMapsThatCannotBeEncoded) {
  const auto map = [](MapConstant constant) { return kLaunchConstants + size_t{constant}; };
  for (const auto& [constant, value] :
       std::initializer_list<std::pair<size_t, int64_t>>{{map(kMapBuffer), 2},
                                                         {map(kMapBuffer), -1},
                                                         {map(kMapDims), 1},
                                                         {map(kMapDims), 6},
                                                         {map(kMapIsWindows), 2},
                                                         {map(kMapBox), 32},
                                                         {map(kMapBox) + 1, 0},
                                                         {map(kMapBox) + 1, 257}})
    EXPECT_FALSE(accepts(changed(with_map(), constant, value))) << constant << " = " << value;
  for (const auto& [constant, value] :
       std::initializer_list<std::pair<size_t, int64_t>>{{map(kMapDims), 3},
                                                         {map(kMapBox) + 1, 1025},
                                                         {map(kMapSteps), 0},
                                                         {map(kMapSteps) + 1, 9},
                                                         {map(kMapLower), -128},
                                                         {map(kMapUpper) + 1, 128}})
    EXPECT_FALSE(accepts(changed(with_windows(), constant, value))) << constant << " = " << value;
}

TEST(CudaLaunch, RejectsListsOfOtherLengths) {
  for (size_t missing = 1; missing < kMapConstants; ++missing) {
    Launch launch = with_map();
    launch.constants.resize(launch.constants.size() - missing);
    EXPECT_FALSE(accepts(launch)) << missing;
  }
  Launch launch = with_map();
  launch.sizes.pop_back();
  EXPECT_FALSE(accepts(launch));
  EXPECT_FALSE(accepts({}));
}

TEST(CudaLaunch, RejectsMoreThanParametersHold) {
  Launch many = plain();
  many.symbols.assign(kMostArguments, Dim(1));
  EXPECT_FALSE(accepts(many));
  Launch maps = plain();
  for (size_t i = 0; i <= kMostMaps; ++i) add_tensor_map(map_of_dense(0, {64, 32}), maps);
  EXPECT_FALSE(accepts(maps));
}

}  // namespace
}  // namespace ingot::core::cuda
