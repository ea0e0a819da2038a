// SPDX-License-Identifier: Apache-2.0
#include "support/process.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>

namespace ingot::core {

int process_id() { return ::getpid(); }

bool is_process_gone(int id) { return ::kill(id, 0) != 0 && errno == ESRCH; }

uint32_t current_user() { return ::geteuid(); }

void call_in_children(void (*call)()) { ::pthread_atfork(nullptr, nullptr, call); }

}  // namespace ingot::core
