// SPDX-License-Identifier: Apache-2.0
// Messages of the process for whoever runs it. Errors are no messages: they are thrown.
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
  LogLevel level = LogLevel::kOff;  // what is above it is not written
};

// To stderr, one line per message.
void write_to_stderr(void* user, int32_t level, const char* message);

// Without a lock, as other threads may log while the logger is replaced, and while one forks.
class Log {
 public:
  explicit Log(Logger logger) : current_(new Entry{logger, nullptr}) {}
  ~Log() { delete current_.load(); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  // Loggers that were replaced are kept, since a message may be on its way to them.
  void set(Logger logger);
  bool wants(LogLevel level) const;
  // Make the text only if the log wants it.
  void write(LogLevel level, const std::string& message) const;

 private:
  struct Entry {
    Logger logger;
    std::unique_ptr<Entry> replaced;
  };
  std::atomic<Entry*> current_;
};

}  // namespace ingot::core
