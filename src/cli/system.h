// SPDX-License-Identifier: Apache-2.0
// What differs between operating systems.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace ingot::cli {

// Everywhere in this program paths are text, in UTF-8 on Windows; these are for the standard library.
std::filesystem::path to_path(const std::string& text);
std::string to_text(const std::filesystem::path& path);
std::string extension_of(const std::string& path);  // ".npz"

// For opening a file with the standard library, whose limit on Windows is 260 characters otherwise.
std::filesystem::path path_to_open(const std::string& path);
bool is_folder(const std::string& path);

// The arguments of main, in UTF-8 on Windows; they live as long as the process. A console there shows what is
// printed from now on as UTF-8.
char** own_arguments(int& argc, char** argv);

// A process may be started without the standard streams; opens /dev/null for those, so that no file gets
// their number and then what is printed.
void own_standard_streams();

// Starts the ranks 0 to count - 1 as processes of this machine, copies of this one, each with the environment
// that makes it find the others; their rank is returned there, and rank 0 alone keeps its standard output. In
// this process waits for them and returns nullopt; CommandError if one of them failed.
std::optional<int> start_ranks(int count, double deadline_seconds);

// An unzFile of minizip; null if it is not an archive.
void* open_zip(const std::string& path);

}  // namespace ingot::cli
