// SPDX-License-Identifier: Apache-2.0
#include "compiler/tactic_table.h"

#include <array>
#include <charconv>
#include <ranges>
#include <thread>

#include <fmt/core.h>

#include "cache/file_lock.h"
#include "support/error.h"
#include "support/file.h"

namespace ingot::core {
namespace {

constexpr std::string_view kHeader = "# Ingot tactics 1: processor, what is computed, level, tactic, step";
constexpr size_t kFields = 5;

[[noreturn]] void refuse_line(size_t number, const std::string& name) {
  throw UserError("INGOT-U026",
                  fmt::format("line {} of the tactic file {} is not one of such a file", number, name),
                  "give a file that a build made there, or the name of a new one");
}

std::array<std::string, kFields> fields_of(std::string_view line, size_t number, const std::string& name) {
  std::array<std::string, kFields> fields;
  size_t count = 0;
  for (const auto& part : std::views::split(line, '\t')) {
    if (count == kFields) refuse_line(number, name);
    fields[count++] = std::string(part.begin(), part.end());
  }
  if (count != kFields) refuse_line(number, name);
  return fields;
}

int level_of(const std::string& text, size_t number, const std::string& name) {
  int level = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), level);
  if (error != std::errc() || end != text.data() + text.size()) refuse_line(number, name);
  return level;
}

}  // namespace

TacticTable TacticTable::parse(std::string_view text, const std::string& name) {
  TacticTable table;
  size_t number = 0;
  for (const auto& part : std::views::split(text, '\n')) {
    const std::string_view line(part.begin(), part.end());
    if (++number == 1 && line != kHeader) refuse_line(number, name);
    if (line.empty() || line.starts_with('#')) continue;
    auto [processor, site, level, tactic, step] = fields_of(line, number, name);
    table.set(processor, site, {level_of(level, number, name), std::move(tactic), std::move(step)});
  }
  return table;
}

std::string TacticTable::text() const {
  std::string text = fmt::format("{}\n", kHeader);
  for (const auto& [place, record] : records_)
    text += fmt::format("{}\t{}\t{}\t{}\t{}\n", place.first, place.second, record.level, record.tactic,
                        record.step);
  return text;
}

const TacticRecord* TacticTable::find(const std::string& processor, const std::string& site,
                                      int level) const {
  const auto suits = [&](const auto& entry) {
    const auto& [place, record] = entry;
    return place.second == site && (processor.empty() || place.first == processor) && record.level >= level;
  };
  const auto found = std::ranges::find_if(records_, suits);
  return found == records_.end() ? nullptr : &found->second;
}

void TacticTable::set(const std::string& processor, const std::string& site, TacticRecord record) {
  records_.insert_or_assign({processor, site}, std::move(record));
}

void TacticTable::merge(const TacticTable& newer) {
  for (const auto& [place, record] : newer.records_) {
    const auto [old, is_new] = records_.try_emplace(place, record);
    if (!is_new && record.level >= old->second.level) old->second = record;
  }
}

TacticTable read_tactics(const std::filesystem::path& path) {
  std::error_code failure;
  if (!std::filesystem::exists(path, failure)) return {};
  return TacticTable::parse(read_text_file(path), path.string());
}

void add_tactics(const std::filesystem::path& path, const TacticTable& found) {
  if (found.empty()) return;
  // Without locks the last of two writers wins: what it loses is timed again.
  FileLock lock(std::filesystem::path(path) += ".lock", kSystemFiles);
  constexpr std::chrono::milliseconds kPause{10};
  for (int tries = 0; lock.is_open() && !lock.try_lock() && tries < 500; ++tries)
    std::this_thread::sleep_for(kPause);
  TacticTable all = read_tactics(path);
  all.merge(found);
  const std::string text = all.text();
  write_file_atomically(path, [&](const Sink& append) { append(as_bytes(text)); });
}

}  // namespace ingot::core
