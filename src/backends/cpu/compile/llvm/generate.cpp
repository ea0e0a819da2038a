// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/llvm/generate.h"

#include <llvm/Support/ErrorHandling.h>

#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "support/error.h"

namespace ingot::core::cpu {
namespace {

// Shared by the waiting thread and the working one, which outlives the call after a fatal error.
struct Job {
  std::function<Image()> make;
  std::promise<Image> result;
  std::exception_ptr no_memory = std::make_exception_ptr(std::bad_alloc());  // created while there is memory
  bool sleeps = false;  // its thread never ends; set before the result
  bool lacks_memory = false;
};

// LLVM's handlers get no context: neither the work nor its owner.
thread_local Job* current_job = nullptr;

[[noreturn]] void sleep_forever() {
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable never;
  for (;;) never.wait(lock);
}

// Returning would end the process: correct for a thread that runs none of our jobs.
void on_fatal_error(void*, const char* reason, bool) {
  if (current_job == nullptr) return;
  const std::string message = std::string("LLVM cannot generate the code of a kernel: ") + reason;
  Job& job = *std::exchange(current_job, nullptr);
  job.sleeps = true;
  job.result.set_exception(std::make_exception_ptr(InternalError(message)));
  sleep_forever();
}

// Nothing may unwind through LLVM: its data would be inconsistent, and destructors would read it.
void end_job_without_memory() {
  if (current_job == nullptr) return;
  Job& job = *std::exchange(current_job, nullptr);
  job.sleeps = job.lacks_memory = true;
  job.result.set_exception(job.no_memory);
  sleep_forever();
}

// LLVM assumes that this does not return.
void on_no_memory(void*, const char*, bool) {
  end_job_without_memory();
  throw std::bad_alloc();
}

// Process-wide, while a compiler exists: LLVM allocates by operator new too.
class NewHandler {
 public:
  NewHandler() : previous_(std::set_new_handler(on_failed_new)) { present_ = this; }
  ~NewHandler() {
    if (std::get_new_handler() == on_failed_new) std::set_new_handler(previous_);
  }
  NewHandler(const NewHandler&) = delete;
  NewHandler& operator=(const NewHandler&) = delete;

 private:
  static void on_failed_new() {
    end_job_without_memory();
    if (present_->previous_ == nullptr) throw std::bad_alloc();
    present_->previous_();
  }
  static inline NewHandler* present_ = nullptr;
  std::new_handler previous_;
};

void install_handlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::install_fatal_error_handler(on_fatal_error);
    llvm::install_bad_alloc_error_handler(on_no_memory);
    static const NewHandler new_handler;
  });
}

void run(const std::shared_ptr<Job>& job) {
  current_job = job.get();
  try {
    Image image = job->make();
    current_job = nullptr;
    job->result.set_value(std::move(image));
  } catch (...) {
    current_job = nullptr;
    job->result.set_exception(std::current_exception());
  }
}

Image run_on_own_thread(const std::shared_ptr<Job>& job) {
  std::future<Image> result = job->result.get_future();
  std::thread thread;
  try {
    thread = std::thread([job] { run(job); });
  } catch (const std::system_error&) {
    return job->make();  // no thread available: here, fatal errors end the process
  }
  result.wait();
  job->sleeps ? thread.detach() : thread.join();
  return result.get();
}

// LLVM initializes itself on first use, holding process-wide locks. A thread that is put to sleep meanwhile
// keeps them. So the first kernel is compiled alone; later ones hold no locks that others need.
struct FirstUse {
  std::mutex alone;
  bool is_over = false;
  bool failed = false;
};

Image generate_first(FirstUse& use, const std::shared_ptr<Job>& job) {
  if (use.failed)
    throw InternalError(
        "LLVM ran out of memory during initialization, and cannot be initialized again in this process");
  try {
    Image image = run_on_own_thread(job);
    use.is_over = true;
    return image;
  } catch (...) {
    use.failed = job->lacks_memory;
    throw;
  }
}

}  // namespace

Image generate(std::function<Image()> make) {
  install_handlers();
  static FirstUse use;
  const auto job = std::make_shared<Job>();
  job->make = std::move(make);
  std::unique_lock alone(use.alone);
  if (!use.is_over) return generate_first(use, job);
  alone.unlock();
  return run_on_own_thread(job);
}

}  // namespace ingot::core::cpu
