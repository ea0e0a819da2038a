// SPDX-License-Identifier: Apache-2.0
#include "tests/importers/onnx_messages.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "importers/onnx/converters/converters.h"
#include "importers/onnx/wire.h"
#include "support/error.h"

namespace ingot::core::onnx::test {
namespace {

enum class Message : uint8_t {
  kNone,
  kModel,
  kGraph,
  kNode,
  kAttribute,
  kTensor,
  kValue,
  kType,
  kTensorType,
  kShape,
  kDim,
  kFunction,
  kOpset
};

struct Nesting {
  Message outer;
  uint32_t number;
  Message inner;
};
// The fields of onnx.proto that are messages.
constexpr auto kNestings = std::to_array<Nesting>({
    {Message::kModel, 7, Message::kGraph},
    {Message::kModel, 8, Message::kOpset},
    {Message::kModel, 25, Message::kFunction},
    {Message::kGraph, 1, Message::kNode},
    {Message::kGraph, 5, Message::kTensor},
    {Message::kGraph, 11, Message::kValue},
    {Message::kGraph, 12, Message::kValue},
    {Message::kNode, 5, Message::kAttribute},
    {Message::kAttribute, 5, Message::kTensor},
    {Message::kAttribute, 6, Message::kGraph},
    {Message::kValue, 2, Message::kType},
    {Message::kType, 1, Message::kTensorType},
    {Message::kTensorType, 2, Message::kShape},
    {Message::kShape, 1, Message::kDim},
    {Message::kFunction, 7, Message::kNode},
    {Message::kFunction, 9, Message::kOpset},
    {Message::kFunction, 11, Message::kAttribute},
});
constexpr uint32_t kOperator = 4;  // of a node

Message inner_message(Message outer, const WireField& field) {
  if (field.kind != WireField::Kind::kBytes) return Message::kNone;
  for (const Nesting& nesting : kNestings) {
    if (nesting.outer == outer && nesting.number == field.number) return nesting.inner;
  }
  return Message::kNone;
}

struct Field {
  uint32_t number = 0;
  WireField::Kind kind = WireField::Kind::kVarint;
  uint64_t bits = 0;
  std::string text;  // of bytes that are not a message
  Message message = Message::kNone;
  std::vector<Field> fields;  // of a message
};

// Throws for bytes that are not a message.
std::vector<Field> fields_of(Bytes bytes, Message message, size_t depth) {
  constexpr size_t kMostLevels = 200;
  if (depth > kMostLevels) refuse_file("it is nested too deep");
  std::vector<Field> fields;
  WireReader reader(bytes);
  for (WireField field; reader.next(field);) {
    Field read{.number = field.number, .kind = field.kind, .bits = field.bits};
    read.message = inner_message(message, field);
    if (read.message != Message::kNone) {
      read.fields = fields_of(field.bytes, read.message, depth + 1);
    } else if (field.kind == WireField::Kind::kBytes) {
      read.text = bytes_of(field);
    }
    fields.push_back(std::move(read));
  }
  return fields;
}

void write_varint(uint64_t value, std::string& bytes) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  bytes += static_cast<char>(value);
}

std::string written(const std::vector<Field>& fields) {
  std::string bytes;
  for (const Field& field : fields) {
    write_varint(uint64_t{field.number} << 3 | static_cast<uint64_t>(field.kind), bytes);
    if (field.kind == WireField::Kind::kVarint) {
      write_varint(field.bits, bytes);
    } else if (field.kind == WireField::Kind::kBytes) {
      const std::string inner = field.message == Message::kNone ? field.text : written(field.fields);
      write_varint(inner.size(), bytes);
      bytes += inner;
    } else {
      const size_t size = field.kind == WireField::Kind::kFixed32 ? 4 : 8;
      bytes.append(reinterpret_cast<const char*>(&field.bits), size);
    }
  }
  return bytes;
}

struct Place {
  std::vector<Field>* fields;
  size_t index;
  Message outer;
  Field& field() const { return (*fields)[index]; }
};

void collect(std::vector<Field>& fields, Message outer, std::vector<Place>& all) {
  for (size_t i = 0; i < fields.size(); ++i) {
    all.push_back({&fields, i, outer});
    if (fields[i].message != Message::kNone) collect(fields[i].fields, fields[i].message, all);
  }
}

const std::vector<std::string>& operators() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> names;
#define FAMILY(family) \
  for (const Converter& converter : family##_converters()) names.emplace_back(converter.name);
#include "importers/onnx/converters/families.def"
#undef FAMILY
    return names;
  }();
  return all;
}

class Mutator {
 public:
  Mutator(std::vector<Field>& model, std::minstd_rand& random) : random_(random) {
    collect(model, Message::kModel, all_);
  }

  void run() {
    if (all_.empty()) return;
    const Place place = any();
    switch (below(6)) {
      case 0:
        return change_list(place);
      case 1: {
        Field other = like(place).field();  // the pointers may dangle
        place.field() = std::move(other);
        return;
      }
      default:
        return change_value(place);
    }
  }

 private:
  size_t below(size_t count) { return count == 0 ? 0 : random_() % count; }
  Place any() { return all_[below(all_.size())]; }

  // Mostly another of the same kind, at any depth.
  Place like(const Place& place) {
    for (int i = 0; i < 64; ++i) {
      const Place other = any();
      if (other.outer == place.outer && other.field().number == place.field().number) return other;
    }
    return place;
  }

  void change_list(const Place& place) {
    std::vector<Field>& fields = *place.fields;
    const auto at = fields.begin() + static_cast<std::ptrdiff_t>(place.index);
    const size_t way = below(4);
    if (way == 0) {
      fields.erase(at);
    } else if (way == 1) {
      std::swap(*at, fields[below(fields.size())]);
    } else {
      Field copy = way == 2 ? *at : like(place).field();
      fields.insert(fields.begin() + static_cast<std::ptrdiff_t>(below(fields.size() + 1)), std::move(copy));
    }
  }

  void change_value(const Place& place) {
    Field& field = place.field();
    if (field.message != Message::kNone) return change_list(place);
    if (field.kind != WireField::Kind::kBytes) {
      field.bits = number(field.bits);
    } else if (place.outer == Message::kNode && field.number == kOperator) {
      field.text = operators()[below(operators().size())];
    } else if (place.outer == Message::kTensor) {
      change_bytes(field.text);
    } else if (below(4) != 0) {
      field.text = name();
    } else {
      change_bytes(field.text);
    }
  }

  uint64_t number(uint64_t old) {
    static constexpr int64_t kNumbers[] = {0,  1,  2,       3,         4,         5,        6,  7,
                                           9,  10, 11,      16,        -1,        -2,       17, 22,
                                           64, 99, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN};
    const size_t way = below(4);
    if (way < 2) return way == 0 ? old + 1 : old - 1;
    return static_cast<uint64_t>(kNumbers[below(std::size(kNumbers))]);
  }

  // A text that stands somewhere in the model; sometimes none.
  std::string name() {
    for (int i = 0; i < 16; ++i) {
      const Place other = any();
      if (other.outer != Message::kTensor && !other.field().text.empty()) return other.field().text;
    }
    return {};
  }

  void change_bytes(std::string& text) {
    static constexpr int64_t kElements[] = {0, 1, -1, 2, INT64_MAX, INT64_MIN};
    const size_t at = below(text.size() + 1);
    const size_t way = below(4);
    if (way == 0 && at < text.size()) {
      text.erase(at, 1 + below(8));
    } else if (way == 1) {
      text.insert(at, 1 + below(8), static_cast<char>(random_()));
    } else if (way == 2 && text.size() >= sizeof(int64_t)) {
      const int64_t element = kElements[below(std::size(kElements))];
      text.replace(below(text.size() / sizeof(element)) * sizeof(element), sizeof(element),
                   reinterpret_cast<const char*>(&element), sizeof(element));
    } else if (at < text.size()) {
      text[at] = static_cast<char>(random_());
    }
  }

  std::minstd_rand& random_;
  std::vector<Place> all_;
};

}  // namespace

std::optional<std::string> mutated_model(std::string_view model, std::minstd_rand& random) {
  try {
    const std::string bytes(model);
    std::vector<Field> fields = fields_of(as_bytes(bytes), Message::kModel, 0);
    for (size_t changes = 1 + random() % 3; changes > 0; --changes) Mutator(fields, random).run();
    return written(fields);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace ingot::core::onnx::test
