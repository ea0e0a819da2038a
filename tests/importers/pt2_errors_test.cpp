// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "importers/aten/program/aten_text.h"
#include "support/error.h"
#include "tests/importers/pt2_archives.h"

namespace ingot::core::pt2::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr const char* kModel = "models/model.json";
constexpr const char* kWeights = "data/weights/model_weights_config.json";

// One change of a golden archive, and the expected beginning of the error.
struct Damage {
  const char *archive, *member, *from, *to, *code, *message;
};
void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.code << " " << damage.to; }

class Pt2Damage : public ::testing::TestWithParam<Damage> {};

TEST_P(Pt2Damage, IsRefusedByName) {
  const Damage& damage = GetParam();
  Members members = golden_members(damage.archive);
  ASSERT_EQ(error_of(write_zip(members)), "");
  replace(members.at(damage.member), damage.from, damage.to);
  const std::string error = error_of(write_zip(members));
  EXPECT_THAT(error, StartsWith(std::string("[") + damage.code));
  EXPECT_THAT(error, HasSubstr(damage.message));
}

INSTANTIATE_TEST_SUITE_P(
    Markers, Pt2Damage,
    ::testing::Values(Damage{"image", "archive_format", "pt2", "pt3", "INGOT-U501", "archive_format"},
                      Damage{"image", "archive_version", "0", "1", "INGOT-N502", "version is '1'"},
                      Damage{"image", "byteorder", "little", "big", "INGOT-N502", "byte order is 'big'"},
                      Damage{"image", kModel, "\"major\": 8", "\"major\": 9", "INGOT-N502", "schema 9.20"}));

INSTANTIATE_TEST_SUITE_P(
    Json, Pt2Damage,
    ::testing::Values(
        Damage{"image", kModel, "{", "[", "INGOT-U502", "'models/model.json' is malformed"},
        Damage{"image", kModel, "\"nodes\": [", "\"nodes\": 3, \"n\": [", "INGOT-U503",
               "where a list is expected"},
        Damage{"image", kModel, "\"target\"", "\"tarket\"", "INGOT-U503", "lacks the member 'target'"},
        Damage{"image", kModel, "\"input_specs\"", "\"graph\": 1, \"graph\"", "INGOT-U502", "named twice"},
        Damage{"image", kModel, "\"as_int\": 3", "\"as_int\": 18446744073709551615", "INGOT-U5", ""},
        Damage{"arguments", kModel, "\"-Infinity\"", "\"Infinite\"", "INGOT-U503", "a number is expected"}));

INSTANTIATE_TEST_SUITE_P(
    Nodes, Pt2Damage,
    ::testing::Values(Damage{"image", kModel, "\"as_tensor\": {\"name\": \"image\"}}, \"kind\"",
                             "\"as_future\": 1}, \"kind\"", "INGOT-N507",
                             "argument 'as_future' is unknown; the program's schema is 8.20"},
                      Damage{"image", kModel, "{\"name\": \"conv2d\"}}, \"kind\"",
                             "{\"name\": \"conv3d\"}}, \"kind\"", "INGOT-U506",
                             "'conv3d' is used before it is defined"},
                      Damage{"image", kModel, "\"name\": \"weight\"", "\"name\": \"wait\"", "INGOT-U510",
                             "no argument 'wait'"},
                      Damage{"mutation", kModel, "\"as_int\": 0}", "\"as_string\": \"zero\"}", "INGOT-U510",
                             "but the schema requires int"},
                      Damage{"arguments", kModel, "\"as_scalar_type\": 6", "\"as_scalar_type\": 77",
                             "INGOT-N507", "dtype '77' is unknown"},
                      Damage{"arguments", kModel, "\"as_scalar_type\": 6", "\"as_scalar_type\": 31",
                             "INGOT-N504", "float8_e4m3fnuz"},
                      Damage{"arguments", kModel, "\"as_int\": 3}, \"kind\"",
                             "\"as_custom_obj\": {\"name\": \"a\", \"class_fqn\": \"my.Class\"}}, \"kind\"",
                             "INGOT-N506", "my.Class"}));

INSTANTIATE_TEST_SUITE_P(
    Sizes, Pt2Damage,
    ::testing::Values(Damage{"dynamic", kModel, "Symbol('s27'", "Symbol(s27", "INGOT-U508", "is malformed"},
                      Damage{"dynamic", kModel, "\"min_val\": 2", "\"min_val\": 17", "INGOT-U508",
                             "17..16 of symbol 's77' is empty"},
                      Damage{"image", kModel, "\"layout\": 7", "\"layout\": 2", "INGOT-N505", "sparse_csr"}));

INSTANTIATE_TEST_SUITE_P(
    Signature, Pt2Damage,
    ::testing::Values(
        Damage{"image", kModel, "\"input_specs\": [", "\"input_specs\": [{\"user_input\": {}}, ",
               "INGOT-U506", "the graph 2"},
        Damage{"image", kModel, "\"user_input\"", "\"token\"", "INGOT-N506", "token"},
        Damage{"image", kModel, "\"user_input\"", "\"new_input\"", "INGOT-N507", "input 'new_input'"},
        Damage{"image", kModel, "\"user_output\"", "\"loss_output\"", "INGOT-N508", "loss"},
        Damage{"image", kModel, "\"user_output\"", "\"new_output\"", "INGOT-N507", "output 'new_output'"},
        Damage{"mutation.functional", kModel, "\"user_input_name\": \"x\"", "\"user_input_name\": \"q\"",
               "INGOT-U506", "mutates 'q'"},
        Damage{"image", kModel, "\"parameter_name\": \"body", "\"parameter_name\": \"nobody", "INGOT-U504",
               "no values for 'nobody.0.0.weight'"}));

INSTANTIATE_TEST_SUITE_P(
    Weights, Pt2Damage,
    ::testing::Values(
        Damage{"image", kWeights, "\"use_pickle\": false", "\"use_pickle\": true", "INGOT-N503",
               "tensor subclass"},
        Damage{"image", kWeights, "weight_0", "weight_1", "INGOT-U504", "lacks 'data/weights/weight_1'"},
        Damage{"image", kWeights, "\"storage_offset\": {\"as_int\": 0}",
               "\"storage_offset\": {\"as_int\": 1}", "INGOT-U507", "reaches out"},
        Damage{"image", kWeights, "{\"as_int\": 8}", "{\"as_int\": 4611686018427387904}", "INGOT-U507",
               "overflow"},
        Damage{"image", kWeights, "{\"as_int\": 8}", "{\"as_int\": -8}", "INGOT-U507",
               "non-negative integer"},
        Damage{"image", kWeights, "{\"as_int\": 3}", "{\"as_int\": 4}", "INGOT-U507", "reaches out"},
        Damage{"image", kWeights, "{\"as_int\": 3}", "{\"as_int\": 2}", "INGOT-U506",
               "do not have the type declared"}));

TEST(Pt2Errors, NameTheNodeAndTheLine) {
  Members members = golden_members("image");
  replace(members[kModel], "\"name\": \"weight\"", "\"name\": \"wait\"");
  try {
    read(write_zip(members));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.details().node, "conv2d");
    EXPECT_THAT(error.details().source_line, StartsWith("make_pt2.py:"));
  }
}

TEST(Pt2Errors, UnknownMembersOfStructuresAreIgnored) {
  Members members = golden_members("image");
  const std::string before = to_string(read(write_zip(members)));
  replace(members[kModel], "\"nodes\": [{", "\"novelty\": {\"a\": [1]}, \"nodes\": [{\"more\": null, ");
  EXPECT_EQ(to_string(read(write_zip(members))), before);
}

std::string error_of_members(const Members& members) { return error_of(write_zip(members)); }

TEST(Pt2Errors, TellOtherFilesApart) {
  EXPECT_THAT(error_of("this is a text, and long enough for a ZIP file"), StartsWith("[INGOT-U501"));
  EXPECT_THAT(error_of(""), StartsWith("[INGOT-U501"));
  EXPECT_THAT(error_of_members({{"data.pkl", ""}}), HasSubstr("torch.save"));
  EXPECT_THAT(error_of_members({{"data.pkl", ""}, {"constants.pkl", ""}}), HasSubstr("TorchScript"));
  EXPECT_THAT(error_of_members({{"serialized_exported_program.json", "{}"}}), StartsWith("[INGOT-N501"));
  EXPECT_THAT(error_of_members({{"archive_format", "pt2"}, {"data/aotinductor/model/a.so", ""}}),
              HasSubstr("AOTInductor"));
  EXPECT_THAT(error_of_members({{"archive_format", "pt2"}, {kModel, "{}"}, {"data/weights/model.pt", ""}}),
              HasSubstr("torch 2.8"));
  EXPECT_THAT(error_of_members({{"archive_format", "pt2"}, {"models/a.json", "{}"}, {"models/b.json", "{}"}}),
              HasSubstr("2 programs: a, b"));
}

TEST(Pt2Errors, LeftOutValuesAreNoted) {
  Members members = golden_members("image");
  members["data/weights/weight_0"].clear();
  EXPECT_THAT(error_of(write_zip(members)), StartsWith("[INGOT-U509"));
}

TEST(Pt2Errors, NestingIsLimited) {
  Members members = golden_members("image");
  members[kModel] = "{\"metadata\": {\"from_node\": " + std::string(100000, '[');
  EXPECT_THAT(error_of(write_zip(members)), HasSubstr("more than 64 levels"));
  members[kModel] = std::string(100000, '[');
  EXPECT_THAT(error_of(write_zip(members)), HasSubstr("more than 64 levels"));
}

}  // namespace
}  // namespace ingot::core::pt2::test
