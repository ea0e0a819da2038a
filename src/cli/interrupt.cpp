// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <utility>

namespace ingot::cli {
namespace {

// The only state that a signal handler touches.
volatile std::sig_atomic_t interrupted = 0;
std::atomic<const std::string*> last_words[2];
static_assert(std::atomic<const std::string*>::is_always_lock_free);

void note_interrupt(int) {
  interrupted = 1;
  std::signal(SIGINT, SIG_DFL);
}

void write_all(int file, const std::string* text) {
  for (size_t done = 0; text != nullptr && done < text->size();) {
    const ssize_t count = ::write(file, text->data() + done, text->size() - done);
    if (count <= 0) return;
    done += static_cast<size_t>(count);
  }
}

// By the signal, not by an exit status, so that shell loops end too.
void end_at_once(int) {
  write_all(STDERR_FILENO, last_words[0]);
  write_all(STDOUT_FILENO, last_words[1]);
  std::signal(SIGINT, SIG_DFL);
  std::raise(SIGINT);
}

// Shells ignore the signal for jobs in the background, for which it is not meant: then it stays ignored.
void handle_interrupts(void (*handler)(int)) {
  static const bool was_ignored = std::signal(SIGINT, SIG_IGN) == SIG_IGN;
  std::signal(SIGINT, was_ignored ? SIG_IGN : handler);
}

}  // namespace

void catch_interrupts() { handle_interrupts(note_interrupt); }
bool was_interrupted() { return interrupted != 0; }

EndOnInterrupt::EndOnInterrupt(std::string message, std::string output)
    : message_(std::move(message)), output_(std::move(output)) {
  last_words[0] = &message_;
  last_words[1] = &output_;
  handle_interrupts(end_at_once);
}

EndOnInterrupt::~EndOnInterrupt() {
  handle_interrupts(SIG_DFL);
  last_words[0] = last_words[1] = nullptr;
}

void EndOnInterrupt::begin_cleanup() { catch_interrupts(); }

void EndOnInterrupt::end() {
  end_at_once(SIGINT);
  ::_exit(130);  // reached if the signal is blocked
}

}  // namespace ingot::cli
