// SPDX-License-Identifier: Apache-2.0
#include "cli/system.h"

#include <windows.h>

#include <minizip/unzip.h>

#include <minizip/iowin32.h>  // after unzip.h, which it needs
#include <shellapi.h>

#include <vector>

#include "cli/commands.h"
#include "support/windows/full_path.h"

// Files are not searched for arguments with a * or ?, as shells do elsewhere.
extern "C" {
int _CRT_glob = 0;  // NOLINT
}

namespace ingot::cli {

std::filesystem::path path_to_open(const std::string& path) { return core::full_path(to_path(path).c_str()); }

// std::filesystem takes the prefix of long paths for a pattern.
bool is_folder(const std::string& path) {
  const DWORD attributes = ::GetFileAttributesW(path_to_open(path).c_str());
  return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY) != 0;
}

char** own_arguments(int& argc, char** argv) {
  ::SetConsoleOutputCP(CP_UTF8);
  wchar_t** const wide = ::CommandLineToArgvW(::GetCommandLineW(), &argc);
  if (wide == nullptr) return argv;
  auto* const texts = new std::vector<std::string>(static_cast<size_t>(argc));
  auto* const arguments = new std::vector<char*>;
  for (size_t i = 0; i < texts->size(); ++i) (*texts)[i] = to_text(wide[i]);
  for (std::string& text : *texts) arguments->push_back(text.data());
  arguments->push_back(nullptr);
  ::LocalFree(wide);
  return arguments->data();
}

void own_standard_streams() {}  // the C runtime keeps the numbers of those that are missing

std::optional<int> start_ranks(int, double) {
  throw CommandError("--ranks is not available on Windows: groups of ranks need Linux");
}

void* open_zip(const std::string& path) {
  zlib_filefunc64_def functions;
  fill_win32_filefunc64W(&functions);
  return unzOpen2_64(path_to_open(path).c_str(), &functions);
}

}  // namespace ingot::cli
