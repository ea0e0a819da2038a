// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "importers/files/json.h"
#include "importers/files/zip_archive.h"
#include "importers/pt2/payloads.h"
#include "importers/pt2/read_options.h"

namespace ingot::core::pt2 {

// The members of a .pt2 file, by name.
class Archive {
 public:
  // Checks that this is an archive of an exported program in a supported form. UserError INGOT-U501: anything
  // else; UnsupportedError: INGOT-N501 an older form, INGOT-N502 another byte order.
  Archive(Bytes file, std::shared_ptr<const void> owner, const ReadOptions& options);

  JsonDocument program() const;
  std::optional<JsonDocument> weights_config() const;
  std::optional<JsonDocument> constants_config() const;
  Payloads payloads(std::string folder,
                    const std::optional<JsonDocument>& config) const;  // refers to this and to `config`

 private:
  std::optional<Bytes> find(const std::string& name) const;  // UserError INGOT-U505: checksum
  std::optional<JsonDocument> find_json(const std::string& name) const;
  std::string find_program() const;
  void check_markers() const;
  void refuse_other_kinds() const;

  ZipMembers members_;
  std::shared_ptr<const void> owner_;
  ReadOptions options_;
  std::string name_;  // of the program in the archive: "model"
};

}  // namespace ingot::core::pt2
