// SPDX-License-Identifier: Apache-2.0
#include "importers/pt2/archive.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "importers/files/crc32.h"
#include "importers/pt2/node_source.h"
#include "support/error.h"

namespace ingot::core::pt2 {
namespace {

constexpr std::string_view kModels = "models/";
constexpr std::string_view kJson = ".json";
constexpr std::string_view kSaveAgain =
    "load it with the torch that wrote it, and save it again with torch.export.save of torch 2.11 to 2.15";

std::string_view as_text(Bytes bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.substr(0, text.find_last_not_of(" \r\n") + 1);
}

[[noreturn]] void refuse_other(std::string message, std::string advice) {
  throw UserError("INGOT-U501", std::move(message), std::move(advice));
}

}  // namespace

Archive::Archive(Bytes file, std::shared_ptr<const void> owner, const ReadOptions& options)
    : members_(read_zip_directory(file)), owner_(std::move(owner)), options_(options) {
  refuse_other_kinds();
  check_markers();
  name_ = find_program();
  if (members_.contains(fmt::format("data/weights/{}.pt", name_)))
    throw UnsupportedError("INGOT-N501", "the weights are pickled, as torch 2.8 did",
                           std::string(kSaveAgain));
}

void Archive::refuse_other_kinds() const {
  const auto has = [this](std::string_view name) { return members_.contains(name); };
  if (has("serialized_exported_program.json") || has("serialized_state_dict.pt"))
    throw UnsupportedError("INGOT-N501", "the archive has the flat form of torch 2.7 and older",
                           std::string(kSaveAgain));
  if (has("constants.pkl")) refuse_torchscript();
  if (has("data.pkl"))
    refuse_other("this is a file of torch.save", "save the program with torch.export.save instead");
}

void Archive::check_markers() const {
  const std::optional<Bytes> format = find("archive_format");
  if (!format || as_text(*format) != "pt2")
    refuse_other("this ZIP file is not a torch.export archive: its archive_format is not 'pt2'",
                 "save the program with torch.export.save(torch.export.export(model, args), path)");
  if (const std::optional<Bytes> version = find("archive_version"); version && as_text(*version) != "0")
    throw UnsupportedError(
        "INGOT-N502",
        fmt::format("the archive's version is '{}', but only '0' is supported", as_text(*version)));
  if (const std::optional<Bytes> order = find("byteorder"); order && as_text(*order) != "little")
    throw UnsupportedError(
        "INGOT-N502",
        fmt::format("the archive's byte order is '{}', but only 'little' is supported", as_text(*order)),
        "save the program on a little-endian machine");
}

std::string Archive::find_program() const {
  std::vector<std::string> names;
  for (auto member = members_.lower_bound(kModels); member != members_.end(); ++member) {
    const std::string& path = member->first;
    if (!path.starts_with(kModels)) break;
    if (path.ends_with(kJson))
      names.push_back(path.substr(kModels.size(), path.size() - kModels.size() - kJson.size()));
  }
  if (names.empty())
    refuse_other(
        "the archive contains no exported program",
        "packages of AOTInductor contain only compiled code; save the program with torch.export.save");
  if (names.size() == 1) return names[0];
  if (std::ranges::find(names, "model") != names.end()) return "model";
  throw UserError("INGOT-U511",
                  fmt::format("the archive contains {} programs: {}", names.size(), fmt::join(names, ", ")),
                  "save the program by itself, or under the name 'model'");
}

std::optional<Bytes> Archive::find(const std::string& name) const {
  const auto member = members_.find(name);
  if (member == members_.end()) return std::nullopt;
  if (options_.verify_checksums && crc32(member->second.data) != member->second.crc32)
    throw UserError("INGOT-U505", fmt::format("'{}' is damaged: its checksum is wrong", name),
                    "copy the file again");
  return member->second.data;
}

std::optional<JsonDocument> Archive::find_json(const std::string& name) const {
  const std::optional<Bytes> bytes = find(name);
  if (!bytes) return std::nullopt;
  return JsonDocument::parse(*bytes, name, is_unused_metadata);
}

JsonDocument Archive::program() const { return *find_json(fmt::format("{}{}{}", kModels, name_, kJson)); }

std::optional<JsonDocument> Archive::weights_config() const {
  return find_json(fmt::format("data/weights/{}_weights_config.json", name_));
}

std::optional<JsonDocument> Archive::constants_config() const {
  return find_json(fmt::format("data/constants/{}_constants_config.json", name_));
}

Payloads Archive::payloads(std::string folder, const std::optional<JsonDocument>& config) const {
  return Payloads(config ? std::optional(config->root()) : std::nullopt, std::move(folder), members_, owner_);
}

}  // namespace ingot::core::pt2
