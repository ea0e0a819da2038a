// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/generate.h"

#include <llvm/Support/ErrorHandling.h>

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>

#include "support/error.h"

namespace ingot::core::cpu {
namespace {

// Shared by the thread that waits and the thread that works, which outlives the call after a fatal error.
struct Job {
  std::function<Image()> make;
  std::promise<Image> result;
  bool sleeps = false;  // its thread never ends; set before the result
};

// LLVM tells its handler neither what it was working on nor for whom.
thread_local Job* current_job = nullptr;

[[noreturn]] void sleep_forever() {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable never;
  for (;;) never.wait(lock);
}

// Returning would end the process: right for a thread that runs none of our jobs.
void on_fatal_error(void*, const char* reason, bool) {
  if (current_job == nullptr) return;
  current_job->sleeps = true;
  current_job->result.set_exception(std::make_exception_ptr(
      InternalError(std::string("LLVM cannot generate the code of a kernel: ") + reason)));
  sleep_forever();
}

// LLVM takes it for granted that this does not return.
void on_no_memory(void*, const char*, bool) {
  if (current_job == nullptr) throw std::bad_alloc();
  current_job->sleeps = true;
  current_job->result.set_exception(std::make_exception_ptr(std::bad_alloc()));
  sleep_forever();
}

void install_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(on_fatal_error);
    llvm::install_bad_alloc_error_handler(on_no_memory);
  });
}

void run(const std::shared_ptr<Job>& job) {
  current_job = job.get();
  try {
    job->result.set_value(job->make());
  } catch (...) {
    job->result.set_exception(std::current_exception());
  }
}

}  // namespace

Image generate(std::function<Image()> make) {
  install_handlers();
  const auto job = std::make_shared<Job>();
  job->make = std::move(make);
  std::future<Image> result = job->result.get_future();
  std::thread thread;
  try {
    thread = std::thread([job] { run(job); });
  } catch (const std::system_error&) {
    return job->make();  // there is no thread to be had: here, fatal errors end the process
  }
  result.wait();
  job->sleeps ? thread.detach() : thread.join();
  return result.get();
}

}  // namespace ingot::core::cpu
