// SPDX-License-Identifier: Apache-2.0
#include <new>
#include <stdexcept>

#include "api/runtime/guard.h"
#include "support/error.h"
#include "tests/api/fixtures.h"

namespace ingot::core::testing {
namespace {

template <typename Exception>
Owned<ingot_status> status_of(Exception&& exception) {
  return Owned<ingot_status>(api::guard([&] { throw exception; }));
}

TEST(Status, SuccessIsNull) {
  EXPECT_EQ(api::guard([] {}), nullptr);
}

TEST(Status, KeepsEveryDetail) {
  const auto status = status_of(UserError(ErrorDetails{.code = "INGOT-U302",
                                                       .message = "wrong dtype",
                                                       .node = "linear_1",
                                                       .source_line = "model.py:3 in forward",
                                                       .advice = "convert it"}));
  EXPECT_EQ(ingot_status_kind(status.get()), INGOT_USER_ERROR);
  EXPECT_STREQ(ingot_status_code(status.get()), "INGOT-U302");
  EXPECT_STREQ(ingot_status_message(status.get()), "wrong dtype");
  EXPECT_STREQ(ingot_status_node(status.get()), "linear_1");
  EXPECT_STREQ(ingot_status_source(status.get()), "model.py:3 in forward");
  EXPECT_STREQ(ingot_status_advice(status.get()), "convert it");
  EXPECT_NE(std::string(ingot_status_text(status.get())).find("model.py:3"), std::string::npos);
}

TEST(Status, TellsTheKinds) {
  EXPECT_EQ(ingot_status_kind(status_of(UnsupportedError("INGOT-N001", "")).get()), INGOT_UNSUPPORTED_ERROR);
  EXPECT_EQ(ingot_status_kind(status_of(InternalError("broken")).get()), INGOT_INTERNAL_ERROR);
  EXPECT_EQ(ingot_status_kind(status_of(DeviceError("INGOT-D001", "")).get()), INGOT_DEVICE_ERROR);
}

TEST(Status, ConvertsForeignExceptions) {
  EXPECT_EQ(ingot_status_kind(status_of(std::bad_alloc()).get()), INGOT_DEVICE_ERROR);
  EXPECT_EQ(ingot_status_kind(status_of(std::runtime_error("x")).get()), INGOT_INTERNAL_ERROR);
  EXPECT_EQ(ingot_status_kind(status_of(7).get()), INGOT_INTERNAL_ERROR);
}

TEST(Status, NullIsHarmless) {
  EXPECT_STREQ(ingot_status_code(nullptr), "");
  EXPECT_STREQ(ingot_status_text(nullptr), "");
  EXPECT_STREQ(ingot_text_data(nullptr), "");
  EXPECT_EQ(ingot_text_size(nullptr), 0u);
  ingot_status_free(nullptr);
  ingot_text_free(nullptr);
}

TEST(Versions, AreThoseOfTheHeader) {
  EXPECT_EQ(ingot_abi_version(), static_cast<uint32_t>(INGOT_ABI_VERSION));
  EXPECT_EQ(std::string(ingot_version()).find('.'), 1u);
}

TEST(Explain, KnowsTheCodes) {
  ASSERT_NE(ingot_explain("INGOT-U302"), nullptr);
  EXPECT_NE(std::string(ingot_explain("INGOT-U302")).find("dtype"), std::string::npos);
  EXPECT_EQ(ingot_explain("U302"), ingot_explain("INGOT-U302"));
  EXPECT_EQ(ingot_explain("ingot-u302"), ingot_explain("INGOT-U302"));
  EXPECT_EQ(ingot_explain("INGOT-"), nullptr);
  EXPECT_EQ(ingot_explain("INGOT-U999"), nullptr);
  EXPECT_EQ(ingot_explain(""), nullptr);
  EXPECT_EQ(ingot_explain(nullptr), nullptr);
}

}  // namespace
}  // namespace ingot::core::testing
