// SPDX-License-Identifier: Apache-2.0
#include "servers/http_server.h"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <ctime>

#include <fmt/core.h>

namespace ingot::core {
namespace {

constexpr int kOk = 200, kMultipleChoices = 300, kNotFound = 404;

// TLS writes to sockets without a flag against SIGPIPE, which ends the process.
class WithoutPipeSignals {
 public:
  WithoutPipeSignals() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &old_);
  }
  ~WithoutPipeSignals() {
    const timespec now{};
    if (!was_pending_) ::sigtimedwait(&pipe_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }
  WithoutPipeSignals(const WithoutPipeSignals&) = delete;
  WithoutPipeSignals& operator=(const WithoutPipeSignals&) = delete;

 private:
  sigset_t pipe_, old_;
  bool was_pending_ = false;
};

}  // namespace

// An easy handle of libcurl, with its connection, and what the request at hand reads and writes.
struct HttpServer::Handle {
  explicit Handle(const CurlLibrary& functions) : curl(functions), easy(functions.easy_init()) {
    if (easy == nullptr) throw std::bad_alloc();
  }
  ~Handle() { curl.easy_cleanup(easy); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  template <typename Value>
  void set(CURLoption option, Value value) {
    if (curl.easy_setopt(easy, option, value) != CURLE_OK)
      throw ServerFailure(fmt::format("libcurl lacks its option {}", static_cast<int>(option)));
  }

  static size_t receive(char* data, size_t, size_t count, void* user) {
    auto& self = *static_cast<Handle*>(user);
    if (self.received.size() + count > self.limit) return 0;  // ends the request
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    self.received.insert(self.received.end(), bytes, bytes + count);
    return count;
  }
  static size_t send(char* target, size_t, size_t capacity, void* user) {
    auto& self = *static_cast<Handle*>(user);
    const Bytes part = self.unsent.first(std::min(capacity, self.unsent.size()));
    if (!part.empty()) std::memcpy(target, part.data(), part.size());
    self.unsent = self.unsent.subspan(part.size());
    return part.size();
  }

  const CurlLibrary& curl;
  CURL* easy;
  std::vector<std::byte> received;
  uint64_t limit = 0;
  Bytes unsent;
};

HttpServer::HttpServer(ServerAddress address, std::string ca_file)
    : address_(std::move(address)), ca_file_(std::move(ca_file)) {}
HttpServer::~HttpServer() = default;

const CurlLibrary& HttpServer::library() {
  const std::scoped_lock lock(mutex_);
  if (!library_) library_.emplace();
  return *library_;
}

std::string HttpServer::url_of(std::string_view folder, const Digest& digest) const {
  return fmt::format("{}/{}/{}", address_.text(), folder, hex(digest));
}

std::unique_ptr<HttpServer::Handle> HttpServer::prepare(const std::string& url, const Deadline& deadline) {
  deadline.require();
  std::unique_ptr<Handle> handle = idle_.take();
  if (handle == nullptr) handle = std::make_unique<Handle>(library());
  handle->curl.easy_reset(handle->easy);
  handle->received.clear();
  handle->set(CURLOPT_URL, url.c_str());
  handle->set(CURLOPT_TIMEOUT_MS, static_cast<long>(deadline.left().count()));
  handle->set(CURLOPT_NOSIGNAL, 1L);
  handle->set(CURLOPT_FOLLOWLOCATION, 0L);
  handle->set(CURLOPT_WRITEFUNCTION, &Handle::receive);
  handle->set(CURLOPT_WRITEDATA, static_cast<void*>(handle.get()));
  handle->set(CURLOPT_USERAGENT, "ingot");
  if (!ca_file_.empty()) handle->set(CURLOPT_CAINFO, ca_file_.c_str());
  if (!address_.password.empty()) {
    handle->set(CURLOPT_USERNAME, address_.user.c_str());
    handle->set(CURLOPT_PASSWORD, address_.password.c_str());
  }
  return handle;
}

// The status that the server answered. The handle is used again if all went well.
int HttpServer::perform(std::unique_ptr<Handle> handle) {
  const WithoutPipeSignals no_signals;
  const CURLcode result = handle->curl.easy_perform(handle->easy);
  if (result == CURLE_WRITE_ERROR) throw ServerFailure("its answer is longer than it may be");
  if (result == CURLE_OPERATION_TIMEDOUT) throw ServerFailure("it did not answer in time");
  if (result != CURLE_OK) throw ServerFailure(handle->curl.easy_strerror(result));
  long status = 0;
  handle->curl.easy_getinfo(handle->easy, CURLINFO_RESPONSE_CODE, &status);
  idle_.put_back(std::move(handle));
  return static_cast<int>(status);
}

std::optional<std::vector<std::byte>> HttpServer::read(const std::string& url, uint64_t limit,
                                                       const Deadline& deadline) {
  std::unique_ptr<Handle> handle = prepare(url, deadline);
  handle->limit = limit;
  std::vector<std::byte> answer;
  Handle& used = *handle;
  const int status = perform(std::move(handle));
  answer.swap(used.received);
  if (status == kNotFound) return std::nullopt;
  if (status != kOk) throw ServerFailure(fmt::format("it answered with status {}", status));
  return answer;
}

void HttpServer::write(const std::string& url, Bytes bytes, const Deadline& deadline) {
  std::unique_ptr<Handle> handle = prepare(url, deadline);
  handle->limit = UINT64_MAX;
  handle->unsent = bytes;
  handle->set(CURLOPT_UPLOAD, 1L);
  handle->set(CURLOPT_READFUNCTION, &Handle::send);
  handle->set(CURLOPT_READDATA, static_cast<void*>(handle.get()));
  handle->set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(bytes.size()));
  const int status = perform(std::move(handle));
  if (status < kOk || status >= kMultipleChoices)
    throw ServerFailure(fmt::format("it answered a PUT with status {}", status));
}

std::optional<std::string> HttpServer::read_manifest(const Digest& key, size_t limit,
                                                     const Deadline& deadline) {
  const auto text = read(url_of("ac", key), limit, deadline);
  if (!text) return std::nullopt;
  return std::string(reinterpret_cast<const char*>(text->data()), text->size());
}

std::optional<std::vector<std::byte>> HttpServer::read_content(const Digest& digest, uint64_t length,
                                                               const Deadline& deadline) {
  auto content = read(url_of("cas", digest), length, deadline);
  return content && content->size() == length ? std::move(content) : std::nullopt;
}

void HttpServer::write_manifest(const Digest& key, const std::string& manifest, const Deadline& deadline) {
  write(url_of("ac", key), as_bytes(manifest), deadline);
}

void HttpServer::write_content(const Digest& digest, Bytes content, const Deadline& deadline) {
  write(url_of("cas", digest), content, deadline);
}

}  // namespace ingot::core
