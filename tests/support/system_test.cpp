// SPDX-License-Identifier: Apache-2.0
// The small parts of the layer over the operating system; files, threads and forks have tests of their own.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "support/environment.h"
#include "support/paths.h"
#include "support/process.h"
#include "support/shared_library.h"
#include "support/system_memory.h"

namespace ingot::core {
namespace {

TEST(Paths, KeepEveryByte) {
  for (const std::string text : {"", "a/b.ingot", "模型 größe", "\xff\xfe", "a\\b"})
    EXPECT_EQ(to_text(to_path(text)), text);
}

TEST(Process, EndsForOthersToo) {
  EXPECT_EQ(process_id(), ::getpid());
  EXPECT_FALSE(is_process_gone(process_id()));
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(is_process_gone(child));
  EXPECT_FALSE(is_process_gone(1));  // of another user, maybe
}

TEST(SharedLibrary, SaysWhyItCannotBeOpened) {
  std::string problem;
  EXPECT_EQ(open_shared_library("libingot-has-no-such.so", problem), nullptr);
  EXPECT_NE(problem.find("libingot-has-no-such.so"), std::string::npos);
  void* const library = open_shared_library("libc.so.6", problem);
  ASSERT_NE(library, nullptr);
  EXPECT_NE(find_function(library, "getpid"), nullptr);
  EXPECT_EQ(find_function(library, "ingot_has_no_such"), nullptr);
}

TEST(SystemMemory, IsAligned) {
  for (const size_t alignment : {size_t{64}, size_t{4096}, size_t{2} << 20}) {
    void* const memory = allocate_aligned(4 * alignment, alignment);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % alignment, 0);
    prefer_huge_pages(memory, 4 * alignment);
    release_aligned(memory);
  }
}

// A variable as it was, after the test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name), before_(environment_variable(name)) {
    ::setenv(name, value, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_.empty() ? ::unsetenv(name_) : ::setenv(name_, before_.c_str(), 1); }

 private:
  const char* name_;
  std::string before_;
};

TEST(Environment, NamesTheFolderOfCaches) {
  EXPECT_EQ(environment_variable("INGOT_HAS_NO_SUCH"), "");
  const Variable home("HOME", "/somewhere");
  {
    const Variable cache("XDG_CACHE_HOME", "/elsewhere");
    EXPECT_EQ(user_cache_folder(), "/elsewhere");
  }
  const Variable relative("XDG_CACHE_HOME", "elsewhere");  // does not count
  EXPECT_EQ(user_cache_folder(), "/somewhere/.cache");
  const Variable unusable("HOME", "");
  EXPECT_EQ(user_cache_folder(), "");
}

}  // namespace
}  // namespace ingot::core
