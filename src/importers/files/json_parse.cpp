// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "importers/files/json.h"
#include "support/error.h"

namespace ingot::core {

constexpr size_t kMaximumDepth = 64;
constexpr size_t kMaximumBytes = size_t{1} << 30;  // so that entries and characters fit 32 bits

// Receives nlohmann's events; returning false stops the parser.
class JsonBuilder {
 public:
  using Parser = nlohmann::json;
  using Kind = JsonDocument::Kind;
  using Entry = JsonDocument::Entry;

  JsonBuilder(JsonDocument& document, IsSkipped is_skipped) : document_(document), is_skipped_(is_skipped) {}

  bool null() {
    return add(Kind::kNull, [](Entry&) {});
  }
  bool boolean(bool value) {
    return add(Kind::kBool, [=](Entry& entry) { entry.boolean = value; });
  }
  bool number_integer(int64_t value) {
    return add(Kind::kInteger, [=](Entry& entry) { entry.integer = value; });
  }
  bool number_unsigned(uint64_t value) {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      return fail("an integer above 64 bits");
    return number_integer(static_cast<int64_t>(value));
  }
  bool number_float(double value, const std::string&) {
    return add(Kind::kFloat, [=](Entry& entry) { entry.number = value; });
  }
  bool string(std::string& value) {
    return add(Kind::kText, [&](Entry& entry) { entry.text = store(value); });
  }
  bool binary(Parser::binary_t&) { return fail("binary data"); }

  bool key(std::string& name) {
    if (skipped_depth_ > 0) return true;
    Frame& object = stack_.back();
    skips_next_ = is_skipped_(object.key < 0 ? "" : text(object.key), name);
    if (skips_next_) return true;
    ++entry(object.container).count;
    last_key_ = static_cast<int64_t>(document_.entries_.size());
    push(Kind::kText, [&](Entry& entry) { entry.text = store(name); });
    return true;
  }

  bool start_object(size_t) { return start(Kind::kObject); }
  bool start_array(size_t) { return start(Kind::kList); }
  bool end_object() { return end() || fail("a member is named twice"); }
  bool end_array() { return end(); }
  bool parse_error(size_t position, const std::string&, const Parser::exception&) {
    return fail(fmt::format("no JSON at byte {}", position));
  }

  std::string error;

 private:
  struct Frame {
    uint32_t container;
    int64_t key;  // entry of the its key; -1 in a list
  };

  bool fail(std::string message) {
    if (error.empty()) error = std::move(message);
    return false;
  }

  Entry& entry(size_t index) { return document_.entries_[index]; }
  std::string_view text(int64_t index) { return document_.text(entry(static_cast<size_t>(index))); }

  JsonDocument::Span store(const std::string& value) {
    const auto offset = static_cast<uint32_t>(document_.texts_.size());
    document_.texts_ += value;
    return {offset, static_cast<uint32_t>(value.size())};
  }

  template <typename Fill>
  void push(Kind kind, Fill fill) {
    Entry& entry = document_.entries_.emplace_back();
    entry.kind = kind;
    entry.next = static_cast<uint32_t>(document_.entries_.size());
    fill(entry);
  }

  // Called at the start of a value: whether to keep it.
  bool begin_value() {
    if (skipped_depth_ > 0 || std::exchange(skips_next_, false)) return false;
    if (!stack_.empty() && entry(stack_.back().container).kind == Kind::kList)
      ++entry(stack_.back().container).count;
    return true;
  }

  template <typename Fill>
  bool add(Kind kind, Fill fill) {
    if (begin_value()) push(kind, fill);
    return true;
  }

  bool start(Kind kind) {
    if (stack_.size() + skipped_depth_ >= kMaximumDepth)
      return fail(fmt::format("more than {} levels", kMaximumDepth));
    if (!begin_value()) {
      ++skipped_depth_;
      return true;
    }
    stack_.push_back({static_cast<uint32_t>(document_.entries_.size()), std::exchange(last_key_, -1)});
    push(kind, [](Entry&) {});
    return true;
  }

  bool end() {
    if (skipped_depth_ > 0) {
      --skipped_depth_;
      return true;
    }
    Entry& container = entry(stack_.back().container);
    container.next = static_cast<uint32_t>(document_.entries_.size());
    const uint32_t index = stack_.back().container;
    stack_.pop_back();
    last_key_ = -1;
    return container.kind == Kind::kList || container.count < 2 || has_unique_keys(index);
  }

  bool has_unique_keys(uint32_t object) {
    keys_.clear();
    for (const JsonMember member : Json(document_, object).members()) keys_.push_back(member.key);
    constexpr size_t kFew = 8;
    if (keys_.size() > kFew) {
      std::ranges::sort(keys_);
      return std::ranges::adjacent_find(keys_) == keys_.end();
    }
    for (auto key = keys_.begin(); key != keys_.end(); ++key)
      if (std::find(keys_.begin(), key, *key) != key) return false;
    return true;
  }

  JsonDocument& document_;
  IsSkipped is_skipped_;
  std::vector<Frame> stack_;
  std::vector<std::string_view> keys_;  // scratch
  int64_t last_key_ = -1;               // entry of the key whose value comes next
  bool skips_next_ = false;
  size_t skipped_depth_ = 0;  // open containers inside a skipped value
};

JsonDocument JsonDocument::parse(Bytes bytes, std::string_view document, IsSkipped is_skipped) {
  if (bytes.size() > kMaximumBytes)
    throw UserError("INGOT-U502", fmt::format("'{}' has more than {} bytes", document, kMaximumBytes));
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  JsonDocument result;
  JsonBuilder builder(result, is_skipped);
  if (nlohmann::json::sax_parse(text, text + bytes.size(), &builder)) return result;
  throw UserError("INGOT-U502", fmt::format("'{}' is malformed: {}", document, builder.error));
}

}  // namespace ingot::core
