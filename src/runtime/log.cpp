// SPDX-License-Identifier: Apache-2.0
#include "runtime/log.h"

#include <cstdio>

namespace ingot::core {

void write_to_stderr(void*, int32_t level, const char* message) {
  const bool is_warning = level == static_cast<int32_t>(LogLevel::kWarning);
  std::fprintf(stderr, "ingot: %s%s\n", is_warning ? "warning: " : "", message);
}

void Log::set(Logger logger) {
  auto entry = std::make_unique<Entry>(Entry{logger, nullptr});
  Entry* replaced = current_.load(std::memory_order_relaxed);
  while (!current_.compare_exchange_weak(replaced, entry.get(), std::memory_order_acq_rel)) {
  }
  entry.release()->replaced.reset(replaced);  // only read by the destructor
}

bool Log::wants(LogLevel level) const {
  const Logger& logger = current_.load(std::memory_order_acquire)->logger;
  return logger.write != nullptr && level <= logger.level;
}

void Log::write(LogLevel level, const std::string& message) const {
  const Logger& logger = current_.load(std::memory_order_acquire)->logger;
  if (logger.write == nullptr || level > logger.level) return;
  logger.write(logger.user, static_cast<int32_t>(level), message.c_str());
}

}  // namespace ingot::core
