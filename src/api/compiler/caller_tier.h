// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cache/entry_tier.h"
#include "ingot/build.h"

namespace ingot::core::api {

// Entries in a store of the caller, which outlives this.
class CallerTier final : public EntryTier {
 public:
  explicit CallerTier(const ingot_cache_store& store);  // UserError INGOT-U016 if it is incomplete

  std::string name() const override { return "custom_engine_cache"; }
  Blob find(const Digest& key, const ReportProblem& report) override;
  void put(const Digest& key, Bytes sealed, const ReportProblem& report) override;

 private:
  const ingot_cache_store store_;
};

}  // namespace ingot::core::api
