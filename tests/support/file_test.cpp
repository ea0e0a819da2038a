// SPDX-License-Identifier: Apache-2.0
#include "support/file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "support/error.h"

namespace ingot::core {
namespace {

// A folder of the test's own, removed with all that is in it.
class FileTest : public ::testing::Test {
 protected:
  FileTest() {
    std::string name = ::testing::TempDir() + "ingot_file_test_XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::filesystem::path& path, std::string_view text,
             const FileSystem& files = kSystemFiles) {
    write_file_atomically(path, [&](const Sink& sink) { sink(as_bytes(text)); }, files);
  }

  size_t entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
};

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

std::string long_text(size_t size) {
  std::string text(size, '\0');
  for (size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 7 % 253);
  return text;
}

TEST_F(FileTest, WritesAndReadsBack) {
  for (const size_t size : {0UL, 1UL, 4096UL, 16384UL, 262144UL, 1000001UL}) {
    const std::string text = long_text(size);
    write(folder_ / "a", text);
    EXPECT_EQ(read_text_file(folder_ / "a"), text);
    EXPECT_EQ(text_of(*MappedFile::open(folder_ / "a")), text);
  }
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileTest, ManyPiecesAreOneFile) {
  std::string expected;
  write_file_atomically(folder_ / "a", [&](const Sink& sink) {
    for (size_t size = 1; size < 300000; size = size * 3 + 1) {
      const std::string piece = long_text(size);
      sink(as_bytes(piece));
      expected += piece;
    }
  });
  EXPECT_EQ(read_text_file(folder_ / "a"), expected);
}

TEST_F(FileTest, MapKeepsTheOldFileWhenItIsReplaced) {
  write(folder_ / "a", "old");
  const auto old = MappedFile::open(folder_ / "a");
  write(folder_ / "a", "new");
  EXPECT_EQ(text_of(*old), "old");
  EXPECT_EQ(text_of(*old->map_executable(0, 3)), "old");
  EXPECT_EQ(text_of(*MappedFile::open(folder_ / "a")), "new");
  EXPECT_EQ(old->path(), folder_ / "a");
}

TEST_F(FileTest, FailureInTheMiddleLeavesTheOldFile) {
  write(folder_ / "a", "old");
  const auto fill = [](const Sink& sink) {
    sink(as_bytes("half of "));
    throw UserError("INGOT-U001", "stop");
  };
  EXPECT_THROW(write_file_atomically(folder_ / "a", fill), UserError);
  EXPECT_EQ(read_text_file(folder_ / "a"), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileTest, BadPathsAreUserErrorsThatNameThePath) {
  std::filesystem::create_directory(folder_ / "folder");
  const auto expect_named = [&](const std::filesystem::path& path, const auto& call) {
    try {
      call(path);
      ADD_FAILURE() << path;
    } catch (const UserError& error) {
      EXPECT_NE(error.details().message.find(path.string()), std::string::npos) << error.what();
    }
  };
  const auto map = [](const auto& path) { MappedFile::open(path); };
  const auto read = [](const auto& path) { read_text_file(path); };
  const auto replace = [&](const auto& path) { write(path, "text"); };
  expect_named(folder_ / "missing", map);
  expect_named(folder_ / "missing", read);
  expect_named(folder_ / "missing" / "a", replace);
  expect_named(folder_ / "folder", map);
  expect_named(folder_ / "folder", read);
  expect_named(folder_ / "folder", replace);
  EXPECT_EQ(entries(), 1U);
}

TEST_F(FileTest, FileIsReadableAsTheUsersMaskSays) {
  const mode_t before = ::umask(027);
  write(folder_ / "a", "text");
  ::umask(before);
  struct stat facts{};
  ASSERT_EQ(::stat((folder_ / "a").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0640U);
}

mode_t mode_of(const std::filesystem::path& path) {
  struct stat facts{};
  return ::lstat(path.c_str(), &facts) == 0 ? facts.st_mode : 0;
}

TEST_F(FileTest, KeepsThePermissionsOfTheOldFile) {
  for (const mode_t mode : {0600U, 0444U, 0666U}) {
    write(folder_ / "a", "old");
    ASSERT_EQ(::chmod((folder_ / "a").c_str(), mode), 0);
    write(folder_ / "a", "new");
    EXPECT_EQ(mode_of(folder_ / "a") & 0777U, mode);
    EXPECT_EQ(read_text_file(folder_ / "a"), "new");
  }
}

TEST_F(FileTest, FollowsLinks) {
  std::filesystem::create_directory(folder_ / "folder");
  std::filesystem::create_symlink("folder/target", folder_ / "first");  // not there yet
  std::filesystem::create_symlink(folder_ / "first", folder_ / "second");
  for (const std::string_view text : {"one", "two"}) {
    write(folder_ / "second", text);
    EXPECT_EQ(read_text_file(folder_ / "folder" / "target"), text);
    EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "first") &&
                std::filesystem::is_symlink(folder_ / "second"));
  }
  EXPECT_EQ(entries(), 3U);
  std::filesystem::create_symlink("loop", folder_ / "loop");
  EXPECT_THROW(write(folder_ / "loop", "text"), UserError);
}

TEST_F(FileTest, WritesThroughPipesAndDevices) {
  const std::filesystem::path pipe = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string text;
  std::thread reader([&] { text = read_text_file(pipe); });
  write(pipe, "through");
  reader.join();
  EXPECT_EQ(text, "through");
  EXPECT_TRUE(S_ISFIFO(mode_of(pipe)));
  std::filesystem::create_symlink("/dev/null", folder_ / "null");
  write(folder_ / "null", "gone");
  write("/dev/null", "gone");
  EXPECT_TRUE(S_ISCHR(mode_of("/dev/null")) && S_ISLNK(mode_of(folder_ / "null")));
  EXPECT_EQ(entries(), 2U);
}

TEST_F(FileTest, RefusesSockets) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  (folder_ / "s").string().copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_THROW(write(folder_ / "s", "text"), UserError);
  EXPECT_TRUE(S_ISSOCK(mode_of(folder_ / "s")));
  ::close(socket);
}

TEST_F(FileTest, IsNowhereUntilItIsFinished) {
  {
    FileWriter writer(folder_ / "a");
    writer.append(as_bytes(long_text(1000000)));
    EXPECT_EQ(entries(), 0U);  // not under another name either
  }
  EXPECT_EQ(entries(), 0U);
  FileWriter writer(folder_ / "a");
  writer.append(as_bytes("text"));
  writer.finish();
  EXPECT_THROW(writer.finish(), InternalError);
  EXPECT_THROW(writer.append({}), InternalError);
  EXPECT_EQ(read_text_file(folder_ / "a"), "text");
}

TEST_F(FileTest, ReadsWhatTheKernelMakesUp) { EXPECT_FALSE(read_text_file("/proc/self/status").empty()); }

#if defined(__x86_64__)

constexpr std::string_view kReturn42("\xb8\x2a\x00\x00\x00\xc3", 6);  // mov eax, 42; ret

int call(const std::byte* code) { return reinterpret_cast<int (*)()>(reinterpret_cast<uintptr_t>(code))(); }

TEST_F(FileTest, ExecutableCopyRuns) {
  const auto code = make_executable_copy(as_bytes(kReturn42));
  EXPECT_EQ(call(code.get()), 42);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(code.get()) % 4096, 0U);
  EXPECT_NE(make_executable_copy({}), nullptr);
}

TEST_F(FileTest, ExecutableMapRuns) {
  write(folder_ / "code", std::string(65536, '\0') + std::string(kReturn42));
  auto file = MappedFile::open(folder_ / "code");
  const auto code = file->map_executable(65536, kReturn42.size());
  file.reset();
  EXPECT_EQ(call(code->bytes().data()), 42);
  EXPECT_TRUE(code->map_executable(0, 0)->bytes().empty());
  EXPECT_THROW(code->map_executable(0, 7), InternalError);
}

TEST_F(FileTest, ExecutableMapFallsBackToACopy) {
  write(folder_ / "code", kReturn42);
  FileSystem files = kSystemFiles;
  files.map = [](int file, size_t offset, size_t size, bool executable) -> void* {
    if (!executable) return kSystemFiles.map(file, offset, size, false);
    errno = EPERM;  // the error of a file system that is mounted with noexec
    return nullptr;
  };
  const auto file = MappedFile::open(folder_ / "code", files);
  EXPECT_EQ(call(file->map_executable(0, kReturn42.size())->bytes().data()), 42);
}

#endif

}  // namespace
}  // namespace ingot::core
