// SPDX-License-Identifier: Apache-2.0
#include "servers/server_address.h"

#include <charconv>
#include <optional>

#include <fmt/core.h>

#include "support/error.h"

namespace ingot::core {
namespace {

struct Scheme {
  std::string_view name;
  ServerKind kind;
  uint16_t port;
};
constexpr Scheme kSchemes[] = {
    {"redis", ServerKind::kRedis, 6379}, {"http", ServerKind::kHttp, 80}, {"https", ServerKind::kHttp, 443}};

// Passwords are not repeated.
[[noreturn]] void refuse_address(std::string_view problem) {
  throw UserError("INGOT-U027", fmt::format("the address of the cache server {}", problem),
                  "use redis://HOST:PORT/NAMESPACE, http://HOST:PORT/PATH or https://HOST/PATH");
}

std::string_view cut_before(std::string_view& text, std::string_view separator) {
  const size_t at = text.find(separator);
  if (at == text.npos) return {};
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(at + separator.size());
  return head;
}

// %40 is @.
std::string unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    uint8_t byte = 0;
    const char* const digits = text.data() + i + 1;
    const bool is_escaped = text[i] == '%' && i + 2 < text.size() &&
                            std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2;
    plain += is_escaped ? static_cast<char>(byte) : text[i];
    if (is_escaped) i += 2;
  }
  return plain;
}

uint16_t parse_port(std::string_view text) {
  uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0)
    refuse_address(fmt::format("has the port '{}'", text));
  return port;
}

// [::1] is a host with colons.
void set_host(ServerAddress& address, std::string_view text) {
  const size_t bracket = text.starts_with('[') ? text.find(']') : text.npos;
  const size_t colon = text.find(':', bracket == text.npos ? 0 : bracket);
  if (colon != text.npos) address.port = parse_port(text.substr(colon + 1));
  const std::string_view host = text.substr(0, colon);
  address.host = bracket == text.npos ? host : host.substr(1, bracket - 1);
  if (address.host.empty()) refuse_address("has no host");
}

void set_space(ServerAddress& address, std::string_view text) {
  while (text.starts_with('/')) text.remove_prefix(1);
  while (text.ends_with('/')) text.remove_suffix(1);
  for (const char c : text) {
    if (c <= ' ' || c == '?' || c == '#' || c == 127) refuse_address("has a namespace with spaces, ? or #");
  }
  address.space = text;
}

}  // namespace

ServerAddress parse_server_address(std::string_view text) {
  ServerAddress address;
  address.scheme = cut_before(text, "://");
  for (const Scheme& scheme : kSchemes) {
    if (scheme.name != address.scheme) continue;
    address.kind = scheme.kind;
    address.port = scheme.port;
  }
  if (address.port == 0) refuse_address("does not begin with redis://, http:// or https://");
  const size_t slash = std::min(text.find('/'), text.size());
  std::string_view host = text.substr(0, slash);
  set_space(address, text.substr(slash));
  if (const size_t at = host.rfind('@'); at != host.npos) {
    std::string_view secret = host.substr(0, at);
    host.remove_prefix(at + 1);
    address.user = unescape(cut_before(secret, ":"));
    address.password = unescape(secret);
  }
  set_host(address, host);
  return address;
}

std::string ServerAddress::text() const {
  const std::string brackets = host.find(':') == host.npos ? host : fmt::format("[{}]", host);
  return fmt::format("{}://{}:{}{}{}", scheme, brackets, port, space.empty() ? "" : "/", space);
}

}  // namespace ingot::core
