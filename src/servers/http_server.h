// SPDX-License-Identifier: Apache-2.0
// A server that keeps what is PUT: bazel-remote, or any web server with WebDAV. URL/ac/KEY is a manifest,
// URL/cas/DIGEST a content.
#pragma once

#include <mutex>
#include <optional>

#include "servers/cache_server.h"
#include "servers/curl_library.h"
#include "servers/idle_connections.h"
#include "servers/server_address.h"

namespace ingot::core {

class HttpServer final : public CacheServer {
 public:
  // `ca_file`: of the certificates of authorities, for https; "": the system's.
  HttpServer(ServerAddress address, std::string ca_file);
  ~HttpServer() override;

  std::string name() const override { return address_.text(); }
  std::optional<std::string> read_manifest(const Digest& key, size_t limit, const Deadline&) override;
  std::optional<std::vector<std::byte>> read_content(const Digest& digest, uint64_t length,
                                                     const Deadline&) override;
  void write_manifest(const Digest& key, const std::string& manifest, const Deadline&) override;
  void write_content(const Digest& digest, Bytes content, const Deadline&) override;

 private:
  struct Handle;
  const CurlLibrary& library();
  std::string url_of(std::string_view folder, const Digest& digest) const;
  std::unique_ptr<Handle> prepare(const std::string& url, const Deadline& deadline);
  int perform(std::unique_ptr<Handle> handle);
  std::optional<std::vector<std::byte>> read(const std::string& url, uint64_t limit, const Deadline&);
  void write(const std::string& url, Bytes bytes, const Deadline&);

  const ServerAddress address_;
  const std::string ca_file_;
  std::mutex mutex_;  // of `library_`
  std::optional<CurlLibrary> library_;
  IdleConnections<Handle> idle_;
};

}  // namespace ingot::core
