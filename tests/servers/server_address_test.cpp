// SPDX-License-Identifier: Apache-2.0
#include "servers/server_address.h"

#include <gtest/gtest.h>

#include "support/error.h"

namespace ingot::core {
namespace {

TEST(ServerAddress, HasDefaults) {
  const ServerAddress address = parse_server_address("redis://cache.example");
  EXPECT_EQ(address.kind, ServerKind::kRedis);
  EXPECT_EQ(address.host, "cache.example");
  EXPECT_EQ(address.port, 6379);
  EXPECT_EQ(address.space, "");
  EXPECT_EQ(parse_server_address("http://h").port, 80);
  EXPECT_EQ(parse_server_address("https://h").port, 443);
}

TEST(ServerAddress, HasAllParts) {
  const ServerAddress address = parse_server_address("https://me:p%40ss:word@[::1]:8443//a/b/");
  EXPECT_EQ(address.kind, ServerKind::kHttp);
  EXPECT_EQ(address.user, "me");
  EXPECT_EQ(address.password, "p@ss:word");
  EXPECT_EQ(address.host, "::1");
  EXPECT_EQ(address.port, 8443);
  EXPECT_EQ(address.space, "a/b");
  EXPECT_EQ(address.text(), "https://[::1]:8443/a/b");
}

TEST(ServerAddress, PasswordsOfRedisNeedNoUser) {
  const ServerAddress address = parse_server_address("redis://:secret@h");
  EXPECT_EQ(address.user, "");
  EXPECT_EQ(address.password, "secret");
}

TEST(ServerAddress, MalformedOnesAreErrorsWithoutTheirPassword) {
  for (const char* text : {"", "redis", "redis://", "redis:h", "ftp://me:secret@h", "redis://:secret@h:0",
                           "redis://:secret@h:65536", "redis://:secret@h:x", "redis://:secret@",
                           "http://me:secret@h/a b", "http://me:secret@h/a?b", "redis://:secret@[::1"}) {
    try {
      parse_server_address(text);
      ADD_FAILURE() << text;
    } catch (const UserError& error) {
      EXPECT_EQ(error.details().code, "INGOT-U027");
      EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace ingot::core
