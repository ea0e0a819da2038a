// SPDX-License-Identifier: Apache-2.0
#include "engine/flat_values.h"

#include <cmath>

#include "engine/flat_write.h"

namespace ingot::core {
namespace {

namespace fb = flatbuffers;

// As engine.fbs lists them: those of a PlainValue are its alternatives, in order.
enum class ValueTag : uint8_t { kNone, kBool, kInteger, kNumber, kText, kTensor, kSize };

PlainValue read_plain(const FlatReader& reader, ValueTag tag, const file::Value& value) {
  switch (tag) {
    case ValueTag::kBool:
      reader.require(value.integer() == 0 || value.integer() == 1, "a bool is neither true nor false");
      return value.integer() == 1;
    case ValueTag::kInteger:
      return value.integer();
    case ValueTag::kNumber:
      return value.number();
    case ValueTag::kText:
      return reader.text(value.text());
    default:
      return None{};
  }
}

CallSlot read_slot(const FlatReader& reader, const file::Value& value) {
  const auto tag = reader.enumerator(value.kind(), ValueTag::kSize);
  if (tag == ValueTag::kTensor) return TensorSlot{};
  if (tag == ValueTag::kSize) return SizeSlot{};
  return read_plain(reader, tag, value);
}

struct PlainWriter {
  fb::FlatBufferBuilder& builder;

  fb::Offset<file::Value> operator()(None) const { return write(ValueTag::kNone); }
  fb::Offset<file::Value> operator()(bool value) const { return write(ValueTag::kBool, value ? 1 : 0); }
  fb::Offset<file::Value> operator()(int64_t value) const { return write(ValueTag::kInteger, value); }
  fb::Offset<file::Value> operator()(double value) const {
    // Fields that equal their default are left out, and -0.0 equals 0.0.
    builder.ForceDefaults(value == 0 && std::signbit(value));
    const auto written = write(ValueTag::kNumber, 0, value);
    builder.ForceDefaults(false);
    return written;
  }
  fb::Offset<file::Value> operator()(const std::string& value) const {
    const auto text = builder.CreateString(value);
    return file::CreateValue(builder, static_cast<uint8_t>(ValueTag::kText), 0, 0, text);
  }
  fb::Offset<file::Value> operator()(TensorSlot) const { return write(ValueTag::kTensor); }
  fb::Offset<file::Value> operator()(SizeSlot) const { return write(ValueTag::kSize); }
  fb::Offset<file::Value> operator()(const PlainValue& value) const { return std::visit(*this, value); }

 private:
  fb::Offset<file::Value> write(ValueTag tag, int64_t integer = 0, double number = 0) const {
    return file::CreateValue(builder, static_cast<uint8_t>(tag), integer, number);
  }
};

}  // namespace

NamedValues read_attributes(const FlatReader& reader, const FlatAttributes* values) {
  NamedValues result;
  reader.each(values, [&](const file::Attribute& attribute) {
    const file::Value& value = reader.present(attribute.value());
    const auto tag = reader.enumerator(value.kind(), ValueTag::kText);
    result.push_back({reader.text(attribute.name()), read_plain(reader, tag, value)});
  });
  return result;
}

std::vector<CallSlot> read_slots(const FlatReader& reader, const FlatSlots* values) {
  std::vector<CallSlot> result;
  reader.each(values, [&](const file::Value& value) { result.push_back(read_slot(reader, value)); });
  return result;
}

fb::Offset<FlatAttributes> write_attributes(fb::FlatBufferBuilder& builder, const NamedValues& values) {
  return write_all(builder, values, [&](const NamedValue& attribute) {
    const auto name = builder.CreateString(attribute.name);
    return file::CreateAttribute(builder, name, PlainWriter{builder}(attribute.value));
  });
}

fb::Offset<FlatSlots> write_slots(fb::FlatBufferBuilder& builder, const std::vector<CallSlot>& slots) {
  return write_all(builder, slots,
                   [&](const CallSlot& slot) { return std::visit(PlainWriter{builder}, slot); });
}

}  // namespace ingot::core
