// SPDX-License-Identifier: Apache-2.0
#include "cli/system.h"

#include <fcntl.h>
#include <minizip/unzip.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "cli/commands.h"

namespace ingot::cli {
namespace {

// A port of this machine that nobody uses now.
int free_port() {
  const int file = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  const bool is_found = ::bind(file, any, size) == 0 && ::getsockname(file, any, &size) == 0;
  ::close(file);
  if (!is_found) throw CommandError("no port of this machine is free for the ranks");
  return ntohs(address.sin_port);
}

void become_rank(int rank, int count, int port, double deadline_seconds) {
  const auto milliseconds = static_cast<int64_t>(std::ceil(deadline_seconds * 1000));
  ::setenv("INGOT_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("INGOT_WORLD_SIZE", std::to_string(count).c_str(), 1);
  ::setenv("INGOT_ADDRESS", fmt::format("127.0.0.1:{}", port).c_str(), 1);
  ::setenv("INGOT_GROUP_DEADLINE", std::to_string(milliseconds).c_str(), 1);
  if (rank == 0) return;
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDOUT_FILENO);
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
  const int port = free_port();
  std::vector<pid_t> processes;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t process = ::fork();
    if (process == 0) {
      become_rank(rank, count, port, deadline_seconds);
      return rank;
    }
    if (process < 0) break;  // those that were started miss the others at the deadline
    processes.push_back(process);
  }
  std::vector<int> failed = wait_for_all(processes);
  for (int rank = static_cast<int>(processes.size()); rank < count; ++rank) failed.push_back(rank);
  if (failed.empty()) return std::nullopt;
  throw CommandError(
      fmt::format("{} {} failed", failed.size() == 1 ? "rank" : "ranks", fmt::join(failed, ", ")));
}

char** own_arguments(int&, char** argv) { return argv; }

void* open_zip(const std::string& path) { return unzOpen64(path.c_str()); }

}  // namespace ingot::cli
