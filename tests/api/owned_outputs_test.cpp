// SPDX-License-Identifier: Apache-2.0
// Runs into memory of the library.
#include <cstdint>

#include "tests/api/fixtures.h"

namespace ingot::core::testing {
namespace {

class OwnedOutputsTest : public ::testing::Test {
 protected:
  std::string run(const ingot_run_options* options = nullptr) {
    const ingot_tensor input{x_.data(), INGOT_F32, 2, shape_, nullptr};
    return code_of(ingot_context_run_owned(context_.get(), 1, nullptr, &input, options, &output_));
  }
  ~OwnedOutputsTest() override { ingot_tensor_free(output_); }

  EngineOnDisk file_{echo_engine()};
  Owned<ingot_engine> engine_ = load(file_.path());
  Owned<ingot_context> context_ = context_of(engine_.get());
  std::vector<float> x_ = {1, 2, 3, 4, 5, 6};
  int64_t shape_[2] = {2, 3};
  ingot_tensor* output_ = nullptr;
};

TEST_F(OwnedOutputsTest, OutliveContextAndEngine) {
  ASSERT_EQ(run(), "");
  context_.reset();
  engine_.reset();
  ASSERT_NE(output_, nullptr);
  EXPECT_EQ(output_->dtype, INGOT_F32);
  EXPECT_EQ(std::vector<int64_t>(output_->shape, output_->shape + output_->rank),
            (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(output_->strides, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(output_->data) % 64, 0u);
  const auto* values = static_cast<const float*>(output_->data);
  EXPECT_EQ(std::vector<float>(values, values + 6), x_);
}

TEST_F(OwnedOutputsTest, EachRunHasItsOwn) {
  ASSERT_EQ(run(), "");
  ingot_tensor* const first = output_;
  x_[0] = 7;
  ASSERT_EQ(run(), "");
  EXPECT_EQ(static_cast<const float*>(first->data)[0], 1);
  EXPECT_EQ(static_cast<const float*>(output_->data)[0], 7);
  ingot_tensor_free(first);
}

TEST_F(OwnedOutputsTest, AreNullAfterAFailure) {
  shape_[0] = 17;  // the engine takes up to 16
  x_.resize(17 * 3);
  ingot_tensor stale{};
  output_ = &stale;
  const std::string code = run();
  EXPECT_EQ(output_, nullptr);
  EXPECT_EQ(code, "INGOT-U305");
}

TEST_F(OwnedOutputsTest, TakeLimitsButNoAllocator) {
  int32_t cancel = 1;
  ingot_run_options options{.struct_size = sizeof(options), .cancel = &cancel};
  EXPECT_EQ(run(&options), "INGOT-U316");
  EXPECT_EQ(output_, nullptr);
  cancel = 0;
  EXPECT_EQ(run(&options), "");
  ingot_tensor* const before = output_;
  options.outputs_on_device = 1;
  EXPECT_EQ(run(&options), "INGOT-U002");
  options.outputs_on_device = 0;
  options.allocate = FloatOutputs::allocate;
  EXPECT_EQ(run(&options), "INGOT-U002");
  EXPECT_EQ(output_, before);  // nothing was run
}

}  // namespace
}  // namespace ingot::core::testing
