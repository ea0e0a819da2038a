// SPDX-License-Identifier: Apache-2.0
#include "support/process.h"

#include <windows.h>

namespace ingot::core {

int process_id() { return static_cast<int>(::GetCurrentProcessId()); }

bool is_process_gone(int id) {
  const HANDLE process = ::OpenProcess(SYNCHRONIZE, FALSE, static_cast<DWORD>(id));
  if (process == nullptr) return ::GetLastError() == ERROR_INVALID_PARAMETER;  // no process has that number
  const bool has_ended = ::WaitForSingleObject(process, 0) == WAIT_OBJECT_0;
  ::CloseHandle(process);
  return has_ended;
}

// FileFacts::owner is 0 for files of this user, and of those who may do everything here.
uint32_t current_user() { return 0; }

void call_in_children(void (*)()) {}

}  // namespace ingot::core
