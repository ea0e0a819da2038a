// SPDX-License-Identifier: Apache-2.0
// Log messages of the process, for whoever operates it. Errors are not logged: they are thrown.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace ingot::core {

enum class LogLevel : int32_t { kOff, kWarning, kInfo };

struct Logger {
  void (*write)(void* user, int32_t level, const char* message) = nullptr;
  void* user = nullptr;
  LogLevel level = LogLevel::kOff;  // messages above it are dropped
};

// To stderr, one line per message.
void write_to_stderr(void* user, int32_t level, const char* message);

// Lock-free, as other threads may log while the logger is replaced, and while one of them forks.
class Log {
 public:
  explicit Log(Logger logger) : current_(new Entry{logger, nullptr}) {}
  ~Log() { delete current_.load(); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Replaced loggers are kept, since another thread may still be calling them.
  void set(Logger logger);
  bool wants(LogLevel level) const;
  // Format the text only if the log wants it.
  void write(LogLevel level, const std::string& message) const;

 private:
  struct Entry {
    Logger logger;
    std::unique_ptr<Entry> replaced;
  };
  std::atomic<Entry*> current_;
};

}  // namespace ingot::core
