// SPDX-License-Identifier: Apache-2.0
// Which tactic was the fastest where: what was timed once is not timed again. A file of it is text, a line
// each, that people can read, merge and ship.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace ingot::core {

struct TacticRecord {
  int level = 0;       // that timed it: a higher one times more
  std::string tactic;  // LoweredKernel::tactic
  std::string step;    // what it computes, for people
};

class TacticTable {
 public:
  // UserError INGOT-U026 names the file and the line that is not one of a table.
  static TacticTable parse(std::string_view text, const std::string& name);
  std::string text() const;

  // `site`: hexadecimal digest of what is computed; `processor`: the model, or "" for whichever has the site.
  // Null if it was not timed at `level` or above.
  const TacticRecord* find(const std::string& processor, const std::string& site, int level) const;
  void set(const std::string& processor, const std::string& site, TacticRecord record);
  // The records of `newer` replace those of the same processor and site, unless their level is lower.
  void merge(const TacticTable& newer);
  bool empty() const { return records_.empty(); }

 private:
  std::map<std::pair<std::string, std::string>, TacticRecord> records_;  // by processor and site
};

// The table of a file; empty if there is none.
TacticTable read_tactics(const std::filesystem::path& path);
// Merges `found` into the file, whatever other processes write meanwhile.
void add_tactics(const std::filesystem::path& path, const TacticTable& found);

}  // namespace ingot::core
