// SPDX-License-Identifier: Apache-2.0
// Forked children that tests look into.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>

namespace ingot::core::testing {

// ThreadSanitizer holds the parent's threads for threads of the child, and dies of a new one whose stack is
// at the same address: the child's are larger, so that none is one of the parent's.
inline void keep_sanitizer_alive() {
#if defined(__SANITIZE_THREAD__)
  pthread_attr_t attributes;
  size_t stack = 0;
  ::pthread_getattr_default_np(&attributes);
  ::pthread_attr_getstacksize(&attributes, &stack);
  ::pthread_attr_setstacksize(&attributes, stack + stack / 2);
  ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
#endif
}

// GCC 12's AddressSanitizer does not release its own locks in a child: one that is forked while another
// thread starts, ends or allocates waits for ever. Tests that do so are skipped there.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kForksBesideThreads = false;
#else
constexpr bool kForksBesideThreads = true;
#endif

// Runs `body` in a forked child; "" if it returned true, otherwise a description. A child that hangs is
// killed.
template <typename Body>
std::string in_child(Body body) {
  const pid_t child = ::fork();
  if (child < 0) return "fork failed";
  if (child == 0) {
    keep_sanitizer_alive();
    int status = 1;
    try {
      status = body() ? 0 : 2;
    } catch (const std::exception&) {
      status = 3;
    }
    ::_exit(status);  // the child must not run the parent's exit handlers
  }
  constexpr std::chrono::seconds kLongest(60);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  int status = 0;
  while (::waitpid(child, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return "the child hung";
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (WIFSIGNALED(status)) return "the child died of signal " + std::to_string(WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? "" : "the child ended with status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace ingot::core::testing
