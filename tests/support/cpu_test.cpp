// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "support/cpu_features.h"
#include "support/cpu_quota.h"
#include "support/error.h"

namespace ingot::core {
namespace {

TEST(CpuFeatures, TextReadsBack) {
  for (const char* text : {"x86-64", "x86-64-v3", "x86-64-v4", "x86-64-v4+vnni", "x86-64-v4+vnni+bf16+fp16",
                           "x86-64-v4+vnni+bf16+fp16+vbmi+amx-tile+amx-bf16+amx-int8", "aarch64"}) {
    EXPECT_EQ(to_string(parse_cpu_features(text)), text);
  }
  EXPECT_EQ(parse_cpu_features(to_string(host_cpu_features())), host_cpu_features());
  EXPECT_EQ(parse_cpu_features("native"), host_cpu_features());
}

TEST(CpuFeatures, HigherLevelsCoverLowerOnes) {
  EXPECT_TRUE(parse_cpu_features("x86-64-v4+vnni").covers(parse_cpu_features("x86-64-v3")));
  EXPECT_FALSE(parse_cpu_features("x86-64-v3").covers(parse_cpu_features("x86-64-v4")));
  EXPECT_FALSE(parse_cpu_features("x86-64-v4").covers(parse_cpu_features("x86-64-v4+bf16")));
  EXPECT_FALSE(parse_cpu_features("x86-64-v4").covers(parse_cpu_features("aarch64")));
}

TEST(CpuFeatures, UnknownWordsNameTheNearest) {
  for (const char* text :
       {"", "x86-64-v5x", "x86-64-v4+", "vnni", "x86-64-v4+x86-64-v3", "x86-64-v4 +vnni"}) {
    EXPECT_THROW(parse_cpu_features(text), UserError) << text;
  }
  try {
    parse_cpu_features("x86-64-v4+vnn");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(error.details().advice.find("'vnni'"), std::string::npos) << error.what();
  }
}

// Every text of a base and extensions is parsed, or rejected because an extension lacks its required feature.
TEST(CpuFeatures, ExtensionsComeWithTheirBase) {
  const char* const extensions[] = {"vnni", "bf16", "fp16", "vbmi", "amx-tile", "amx-bf16", "amx-int8"};
  for (const char* base : {"x86-64", "x86-64-v3", "x86-64-v4", "aarch64"}) {
    for (unsigned set = 0; set < 128; ++set) {
      std::string text = base;
      for (unsigned i = 0; i < 7; ++i) text += set >> i & 1 ? std::string("+") + extensions[i] : "";
      const bool needs_v4 = (set & 15) != 0, needs_v3 = (set & 16) != 0, needs_tile = (set & 96) != 0;
      const bool v4 = std::string_view(base) == "x86-64-v4", v3 = v4 || std::string_view(base) == "x86-64-v3";
      if ((!needs_v4 || v4) && (!needs_v3 || v3) && (!needs_tile || needs_v3)) {
        EXPECT_EQ(to_string(parse_cpu_features(text)), text);
      } else {
        EXPECT_THROW(parse_cpu_features(text), UserError) << text;
      }
    }
  }
}

#if defined(__x86_64__)
TEST(CpuFeatures, AgreeWithTheCompilersRuntime) {
  const CpuFeatures host = host_cpu_features();
  EXPECT_EQ(host.has(CpuFeature::kX86V3),
            __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(host.has(CpuFeature::kX86V4), __builtin_cpu_supports("avx512vl") != 0);
  EXPECT_EQ(host.has(CpuFeature::kAvx512Vnni), __builtin_cpu_supports("avx512vnni") != 0);
  EXPECT_EQ(host.has(CpuFeature::kAvx512Bf16), __builtin_cpu_supports("avx512bf16") != 0);
  EXPECT_EQ(host.has(CpuFeature::kAvx512Vbmi), __builtin_cpu_supports("avx512vbmi") != 0);
}

TEST(CacheSizes, AgreeWithTheSystemLibrary) {
  const CacheSizes sizes = host_cache_sizes();
  if (const long known = ::sysconf(_SC_LEVEL1_DCACHE_SIZE); known > 0) {
    EXPECT_EQ(sizes.l1d, known);
  }
  if (const long known = ::sysconf(_SC_LEVEL2_CACHE_SIZE); known > 0) {
    EXPECT_EQ(sizes.l2, known);
  }
}
#endif

// A folder that looks like mounted control groups.
class CpuQuotaTest : public ::testing::Test {
 protected:
  CpuQuotaTest() {
    std::string name = ::testing::TempDir() + "ingot_quota_test_XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~CpuQuotaTest() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, std::string_view text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::filesystem::path root_;
};

TEST_F(CpuQuotaTest, NoGroupIsNoLimit) {
  EXPECT_EQ(cpu_quota("", root_), std::nullopt);
  EXPECT_EQ(cpu_quota("0::/a/b\n", root_), std::nullopt);
  EXPECT_EQ(cpu_quota("nonsense", root_), std::nullopt);
}

TEST_F(CpuQuotaTest, Version2TakesTheSmallestOnTheWayUp) {
  write("a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota("0::/a/b\n", root_), std::nullopt);
  write("a/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota("0::/a/b\n", root_), 1.5);
  write("a/b/cpu.max", "400000 100000\n");
  EXPECT_EQ(cpu_quota("0::/a/b\n", root_), 1.5);
  write("cpu.max", "100000 200000\n");
  EXPECT_EQ(cpu_quota("0::/a/b\n", root_), 0.5);
}

TEST_F(CpuQuotaTest, Version1ReadsTwoFilesOfTheCpuController) {
  const char* groups = "7:memory:/m\n4:cpu,cpuacct:/c\n1:name=systemd:/\n";
  write("cpu/c/cpu.cfs_quota_us", "-1\n");
  write("cpu/c/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(groups, root_), std::nullopt);
  write("cpu/c/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(cpu_quota(groups, root_), 2.5);
  EXPECT_EQ(cpu_quota("4:cpuset:/c\n", root_), std::nullopt);
}

TEST_F(CpuQuotaTest, PathOfTheHostInsideAContainerFallsBackToTheRoot) {
  write("cpu.max", "300000 100000\n");
  EXPECT_EQ(cpu_quota("0::/docker/0123456789\n", root_), 3.0);
}

TEST_F(CpuQuotaTest, MalformedFilesAreNoLimit) {
  for (const char* text : {"", "100000", "x y", "0 0", "-5 100000", "99999999999999999999 1"}) {
    write("cpu.max", text);
    EXPECT_EQ(cpu_quota("0::/\n", root_), std::nullopt) << text;
  }
}

// The system that enables them gives them; asking again changes nothing.
TEST(CpuFeatures, MatrixRegistersAreGivenOnRequest) {
  CpuFeatures matrices = host_cpu_features();
  matrices.add(CpuFeature::kAmxTile);
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(request_cpu_features(matrices), host_cpu_features().has(CpuFeature::kAmxTile));
  EXPECT_TRUE(request_cpu_features(parse_cpu_features("x86-64-v4")));
  EXPECT_TRUE(request_cpu_features({}));
}

}  // namespace
}  // namespace ingot::core
