// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "importers/files/json.h"
#include "importers/files/zip_archive.h"
#include "importers/pt2/read_context.h"
#include "types/tensor.h"

namespace ingot::core::pt2 {

// The values of parameters, buffers and constants: a table of names over the storages of one folder of the
// archive. Tensors that shared a storage in torch (ties, slices, transposes) point into the same bytes here.
class Payloads {
 public:
  // `folder` ends with '/'. The document of `config` and `members` must outlive this; `owner` keeps the
  // members' bytes alive.
  Payloads(std::optional<Json> config, std::string folder, const ZipMembers& members,
           std::shared_ptr<const void> owner);

  // UserError: INGOT-U504 no such name or member, INGOT-U507 outside of its storage, INGOT-U509 values
  // omitted. UnsupportedError: INGOT-N503 pickled, and those of read_tensor_meta.
  OwnedView find(const std::string& name, ReadContext& context);

  std::vector<std::string> names() const;          // all, sorted
  bool is_pickled(const std::string& name) const;  // `find` rejects it

  // Verifies the checksums of all members with values used so far. UserError INGOT-U505.
  void verify() const;

 private:
  struct Storage {
    Bytes bytes;
    std::shared_ptr<const void> owner;
    uint32_t crc32 = 0;
  };
  const Storage& storage(const std::string& path, const std::string& name);

  std::map<std::string_view, Json> config_;
  std::string folder_;
  const ZipMembers& members_;
  std::shared_ptr<const void> owner_;
  std::map<std::string, Storage> storages_;
};

}  // namespace ingot::core::pt2
