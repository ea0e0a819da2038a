// SPDX-License-Identifier: Apache-2.0
// JSON documents in the form of torch's export schema: every read is checked, so readers need no checks of
// their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/hash.h"

namespace ingot::core {

class Json;
class JsonItems;
class JsonMembers;
struct JsonMember;

// Selects members to skip, by their key and that of the enclosing object.
using IsSkipped = bool (*)(std::string_view object, std::string_view key);

// All values in one array, in document order: models have millions of them.
class JsonDocument {
 public:
  // Skips what `is_skipped` selects: metadata dominates these files. UserError INGOT-U502 (naming `document`)
  // if it is malformed, deeper than 64 levels, larger than 1 GiB or has duplicate members.
  static JsonDocument parse(Bytes bytes, std::string_view document, IsSkipped is_skipped);

  Json root() const;

 private:
  friend class Json;
  friend class JsonItems;
  friend class JsonMembers;
  friend class JsonBuilder;

  enum class Kind : uint8_t { kNull, kBool, kInteger, kFloat, kText, kList, kObject };
  struct Span {
    uint32_t offset, size;  // in texts_
  };
  struct Entry {
    Kind kind = Kind::kNull;
    uint32_t next = 0;  // index after this value and its contents
    union {
      bool boolean;
      int64_t integer;
      double number;
      Span text;
      uint64_t count = 0;  // of items or members; a member is two entries, its key and its value
    };
  };
  std::string_view text(const Entry& entry) const {
    return {texts_.data() + entry.text.offset, entry.text.size};
  }

  std::vector<Entry> entries_;
  std::string texts_;
};

// A value of a document, which must outlive it. Cheap to copy.
// All accessors throw UserError INGOT-U503 if the value is of another type.
class Json {
 public:
  Json(const JsonDocument& document, uint32_t index) : document_(&document), index_(index) {}

  bool boolean() const;
  int64_t integer() const;
  double number() const;  // also an integer, and the strings "Infinity", "-Infinity" and "NaN"
  std::string_view text() const;
  JsonItems items() const;      // of a list
  JsonMembers members() const;  // of an object, in the document's order

  std::optional<Json> find(std::string_view key) const;  // nullopt if the member is absent or null
  Json at(std::string_view key) const;                   // UserError if `find` returns nullopt
  JsonMember only_member() const;                        // of a union: an object with one member

 private:
  const JsonDocument::Entry& entry(JsonDocument::Kind expected) const;

  const JsonDocument* document_;
  uint32_t index_;
};

struct JsonMember {
  std::string_view key;
  Json value;
};

inline Json JsonDocument::root() const { return {*this, 0}; }

// Iterates over a list or an object in range-based loops.
class JsonItems {
 public:
  class Iterator {
   public:
    Iterator(const JsonDocument& document, uint32_t index) : document_(&document), index_(index) {}
    Json operator*() const { return {*document_, index_}; }
    Iterator& operator++() {
      index_ = document_->entries_[index_].next;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const JsonDocument* document_;
    uint32_t index_;
  };

  JsonItems(const JsonDocument& document, uint32_t list) : document_(&document), list_(list) {}
  size_t size() const { return document_->entries_[list_].count; }
  Iterator begin() const { return {*document_, list_ + 1}; }
  Iterator end() const { return {*document_, document_->entries_[list_].next}; }

 private:
  const JsonDocument* document_;
  uint32_t list_;
};

class JsonMembers {
 public:
  class Iterator {
   public:
    Iterator(const JsonDocument& document, uint32_t key) : document_(&document), key_(key) {}
    JsonMember operator*() const {
      return {document_->text(document_->entries_[key_]), {*document_, key_ + 1}};
    }
    Iterator& operator++() {
      key_ = document_->entries_[key_ + 1].next;
      return *this;
    }
    bool operator==(const Iterator&) const = default;

   private:
    const JsonDocument* document_;
    uint32_t key_;
  };

  JsonMembers(const JsonDocument& document, uint32_t object) : document_(&document), object_(object) {}
  size_t size() const { return document_->entries_[object_].count; }
  Iterator begin() const { return {*document_, object_ + 1}; }
  Iterator end() const { return {*document_, document_->entries_[object_].next}; }

 private:
  const JsonDocument* document_;
  uint32_t object_;
};

}  // namespace ingot::core
