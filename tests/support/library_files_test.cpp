// SPDX-License-Identifier: Apache-2.0
#include "support/library_files.h"

#include <cstdlib>

#include <gtest/gtest.h>

namespace ingot::core {
namespace {

#ifndef _WIN32

constexpr char kVariable[] = "INGOT_TEST_LIBRARY";
constexpr LibraryFiles kSystem{"the C library", kVariable, {"libingot_has_no_such.so", "libc.so.6"}, "2"};

struct Functions {
  int (*process)();
  int (*missing)();
};
void find_process(FunctionFinder& get, Functions& functions) { get("getpid", functions.process); }
void find_both(FunctionFinder& get, Functions& functions) {
  get("ingot_has_no_such", functions.missing);
  find_process(get, functions);
  get("ingot_has_no_other", functions.missing);
}

TEST(LibraryFiles, TriesFilesInTurn) {
  ::unsetenv(kVariable);
  const auto opened = open_functions<Functions>(kSystem, find_process);
  ASSERT_TRUE(opened.functions);
  EXPECT_GT(opened.functions->process(), 0);
  const char* reason = nullptr;
  EXPECT_NE(opened.get(&reason), nullptr);
}

TEST(LibraryFiles, TriesOnlyTheFileThatTheVariableNames) {
  ::setenv(kVariable, "/nowhere/libingot.so", 1);
  const auto opened = open_functions<Functions>(kSystem, find_process);
  ::unsetenv(kVariable);
  const char* reason = nullptr;
  EXPECT_EQ(opened.get(&reason), nullptr);
  EXPECT_TRUE(std::string(reason).starts_with("the C library cannot be opened: /nowhere/libingot.so"))
      << reason;
  EXPECT_EQ(std::string(reason).find(';'), std::string::npos) << reason;
}

TEST(LibraryFiles, SaysWhatALibraryLacks) {
  const auto opened = open_functions<Functions>(kSystem, find_both);
  EXPECT_FALSE(opened.functions);
  EXPECT_EQ(opened.problem, "the C library is too old: it lacks ingot_has_no_such; 2 is needed");
}

TEST(LibraryFiles, SaysWhatIsTooOld) {
  EXPECT_EQ(problem_with_version(kSystem, 20, 20), "");
  EXPECT_EQ(problem_with_version(kSystem, 19, 20),
            "the C library is too old: its version is 19; 2 is needed");
}

#endif

}  // namespace
}  // namespace ingot::core
