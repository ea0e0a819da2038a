// SPDX-License-Identifier: Apache-2.0
#include "cli/system.h"

#include <fcntl.h>
#include <minizip/unzip.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <system_error>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/commands.h"

namespace ingot::cli {
namespace {

// How rank 0 tells the others where it listens: one record per rank, each read whole.
class AddressPipe {
 public:
  AddressPipe() {
    if (::pipe2(files_, O_CLOEXEC) != 0) throw CommandError("this process cannot open a pipe for the ranks");
  }
  AddressPipe(const AddressPipe&) = delete;
  AddressPipe& operator=(const AddressPipe&) = delete;
  ~AddressPipe() {
    ::close(files_[0]);
    end_writing();
  }

  void write(const std::string& address, int readers) const {
    std::string records;
    for (int i = 0; i < readers; ++i) records += address + std::string(kRecord - address.size(), '\0');
    if (::write(files_[1], records.data(), records.size()) != static_cast<ssize_t>(records.size()))
      throw CommandError("rank 0 cannot tell the others its address");
  }

  // Empty if rank 0 has ended.
  std::string read() {
    end_writing();
    char record[kRecord] = {};
    ssize_t count = 0;
    do {
      count = ::read(files_[0], record, kRecord);
    } while (count < 0 && errno == EINTR);
    return count == static_cast<ssize_t>(kRecord) ? record : "";
  }

 private:
  static constexpr size_t kRecord = 32;

  void end_writing() {
    if (files_[1] >= 0) ::close(files_[1]);
    files_[1] = -1;
  }

  int files_[2] = {-1, -1};
};

// The environment is for what asks for the rank; the group is there already.
void set_environment(int rank, int count, const std::string& address) {
  ::setenv("INGOT_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("INGOT_WORLD_SIZE", std::to_string(count).c_str(), 1);
  ::setenv("INGOT_ADDRESS", address.c_str(), 1);
}

void join(ingot_group_options options) {
  options.struct_size = sizeof(options);
  options.name = "world";
  ingot_group* group = nullptr;
  check(ingot_group_join(&options, &group));
  check(ingot_group_share("", group));
  ingot_group_free(group);
}

void join_as_first(int count, const AddressPipe& pipe, int64_t deadline) {
  ingot_group_listener* listener = nullptr;
  check(ingot_group_listen("127.0.0.1:0", &listener));
  const std::string address = ingot_group_listener_address(listener);
  pipe.write(address, count - 1);
  set_environment(0, count, address);
  join({.size = count, .deadline_ms = deadline, .listener = listener});
  ingot_group_listener_free(listener);
}

void join_as_other(int rank, int count, AddressPipe& pipe, int64_t deadline) {
  const std::string address = pipe.read();
  if (address.empty()) throw CommandError(fmt::format("rank {}: rank 0 ended before the ranks met", rank));
  set_environment(rank, count, address);
  join({.address = address.c_str(), .rank = rank, .size = count, .deadline_ms = deadline});
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDOUT_FILENO);
}

void become_rank(int rank, int count, AddressPipe& pipe, double deadline_seconds) {
  const auto deadline = static_cast<int64_t>(std::ceil(deadline_seconds * 1000));
  rank == 0 ? join_as_first(count, pipe, deadline) : join_as_other(rank, count, pipe, deadline);
}

// Those that did not return 0.
std::vector<int> wait_for_all(const std::vector<pid_t>& processes) {
  std::vector<int> failed;
  for (size_t rank = 0; rank < processes.size(); ++rank) {
    int status = 0;
    while (::waitpid(processes[rank], &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) failed.push_back(static_cast<int>(rank));
  }
  return failed;
}

}  // namespace

std::optional<int> start_ranks(int count, double deadline_seconds) {
  std::optional<AddressPipe> pipe;
  pipe.emplace();
  std::vector<pid_t> processes;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t process = ::fork();
    if (process == 0) {
      become_rank(rank, count, *pipe, deadline_seconds);
      return rank;
    }
    if (process < 0) break;  // those that were started miss the others at the deadline
    processes.push_back(process);
  }
  pipe.reset();
  std::vector<int> failed = wait_for_all(processes);
  for (int rank = static_cast<int>(processes.size()); rank < count; ++rank) failed.push_back(rank);
  if (failed.empty()) return std::nullopt;
  throw CommandError(
      fmt::format("{} {} failed", failed.size() == 1 ? "rank" : "ranks", fmt::join(failed, ", ")));
}

std::filesystem::path path_to_open(const std::string& path) { return to_path(path); }

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(to_path(path), ignored);
}

char** own_arguments(int&, char** argv) { return argv; }

void own_standard_streams() {
  int file = 0;
  while (file >= 0 && file <= STDERR_FILENO) file = ::open("/dev/null", O_RDWR);  // the lowest free number
  if (file >= 0) ::close(file);
}

void* open_zip(const std::string& path) { return unzOpen64(path.c_str()); }

}  // namespace ingot::cli
