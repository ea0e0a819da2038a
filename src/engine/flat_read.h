// SPDX-License-Identifier: Apache-2.0
// Reading verified FlatBuffers: their verifier checks bounds, but not presence, alignment of vector elements,
// or UTF-8.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include <flatbuffers/flatbuffers.h>

#include "engine/container.h"
#include "support/utf8.h"
#include "types/dtype.h"
#include "types/layout.h"

namespace ingot::core {

// Reads one section, which errors name.
class FlatReader {
 public:
  explicit FlatReader(SectionType section) : section_(section) {}

  [[noreturn]] void refuse(std::string_view cause) const { refuse_content(section_, cause); }
  void require(bool condition, std::string_view cause) const {
    if (!condition) refuse(cause);
  }

  std::string text(const flatbuffers::String* value) const {
    if (value == nullptr) return {};
    std::string result = value->str();
    require(is_utf8(result), "a string is not UTF-8");
    return result;
  }

  template <typename Number>
  std::vector<Number> numbers(const flatbuffers::Vector<Number>* values) const {
    std::vector<Number> result(values == nullptr ? 0 : values->size());
    if (!result.empty()) std::memcpy(result.data(), values->Data(), result.size() * sizeof(Number));
    return result;
  }

  std::vector<std::string> texts(
      const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* values) const {
    std::vector<std::string> result;
    for (size_t i = 0; values != nullptr && i < values->size(); ++i)
      result.push_back(text(values->Get(static_cast<uint32_t>(i))));
    return result;
  }

  // Calls function(table) for each table of a vector that may be absent.
  template <typename Table, typename Function>
  void each(const flatbuffers::Vector<flatbuffers::Offset<Table>>* tables, Function&& function) const {
    for (uint32_t i = 0; tables != nullptr && i < tables->size(); ++i) function(*tables->Get(i));
  }

  template <typename Table>
  const Table& present(const Table* table) const {
    require(table != nullptr, "a table is missing");
    return *table;
  }

  template <typename Enum>
  Enum enumerator(uint8_t value, Enum last) const {
    require(value <= static_cast<uint8_t>(last), "it contains an unknown kind");
    return static_cast<Enum>(value);
  }

  DType dtype(uint8_t value) const {
    require(value >= static_cast<uint8_t>(DType::kBool) && value <= static_cast<uint8_t>(DType::kC128),
            "it contains an unknown dtype");
    return static_cast<DType>(value);
  }

  Layout layout(const flatbuffers::Vector<int64_t>* values) const;

  // The root table of a section, after the FlatBuffers verifier has passed it.
  template <typename Table>
  const Table& root(Bytes bytes) const {
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
    require(verifier.VerifyBuffer<Table>(nullptr), "its tables are inconsistent");
    return *flatbuffers::GetRoot<Table>(bytes.data());
  }

 private:
  SectionType section_;
};

}  // namespace ingot::core
