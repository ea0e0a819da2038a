// SPDX-License-Identifier: Apache-2.0
#include "cli/safetensors.h"

#include <fmt/core.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/commands.h"

namespace ingot::cli {
namespace {

[[noreturn]] void refuse(const std::string& origin, const std::string& problem) {
  throw CommandError(fmt::format("'{}': {}", origin, problem));
}

int32_t dtype_of(const std::string& name, const std::string& origin) {
  static const std::map<std::string, int32_t> names = {
      {"BOOL", INGOT_BOOL}, {"U8", INGOT_U8},        {"I8", INGOT_I8},       {"I16", INGOT_I16},
      {"I32", INGOT_I32},   {"I64", INGOT_I64},      {"F16", INGOT_F16},     {"BF16", INGOT_BF16},
      {"F32", INGOT_F32},   {"F64", INGOT_F64},      {"U16", INGOT_U16},     {"U32", INGOT_U32},
      {"U64", INGOT_U64},   {"F8_E4M3", INGOT_E4M3}, {"F8_E5M2", INGOT_E5M2}};
  const auto found = names.find(name);
  if (found == names.end()) refuse(origin, fmt::format("dtype {} is not supported", name));
  return found->second;
}

Array parse_tensor(const std::string& name, const nlohmann::json& entry, std::span<const char> data,
                   const std::string& origin) {
  Array array{.name = name,
              .dtype = dtype_of(entry.at("dtype").get<std::string>(), origin),
              .shape = entry.at("shape").get<std::vector<int64_t>>(),
              .data = {}};
  const auto begin = entry.at("data_offsets").at(0).get<uint64_t>(),
             end = entry.at("data_offsets").at(1).get<uint64_t>();
  uint64_t wanted = element_bits(array.dtype) / 8;
  for (const int64_t size : array.shape) {
    if (size < 0 || __builtin_mul_overflow(wanted, static_cast<uint64_t>(size), &wanted))
      refuse(origin, name + " has a bad shape");
  }
  if (begin > end || end > data.size() || end - begin != wanted) refuse(origin, name + " has bad offsets");
  array.data.assign(data.begin() + static_cast<ptrdiff_t>(begin), data.begin() + static_cast<ptrdiff_t>(end));
  return array;
}

}  // namespace

std::vector<Array> parse_safetensors(std::span<const char> bytes, const std::string& origin) {
  uint64_t length = 0;
  if (bytes.size() < sizeof(length)) refuse(origin, "it is not a .safetensors file");
  std::memcpy(&length, bytes.data(), sizeof(length));
  if (length > bytes.size() - sizeof(length)) refuse(origin, "it ends inside its header");
  const std::span<const char> header = bytes.subspan(sizeof(length), length),
                              data = bytes.subspan(sizeof(length) + length);
  std::vector<Array> arrays;
  try {
    const auto json = nlohmann::json::parse(header.begin(), header.end());
    for (const auto& [name, entry] : json.items()) {
      if (name != "__metadata__") arrays.push_back(parse_tensor(name, entry, data, origin));
    }
  } catch (const nlohmann::json::exception& error) {
    refuse(origin, fmt::format("its header is damaged ({})", error.what()));
  }
  return arrays;
}

}  // namespace ingot::cli
