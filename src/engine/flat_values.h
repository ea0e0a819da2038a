// SPDX-License-Identifier: Apache-2.0
// Plain values in the tables of an engine file.
#pragma once

#include "engine/engine_generated.h"
#include "engine/flat_read.h"
#include "types/plain_value.h"

namespace ingot::core {

using FlatAttributes = flatbuffers::Vector<flatbuffers::Offset<file::Attribute>>;
using FlatSlots = flatbuffers::Vector<flatbuffers::Offset<file::Value>>;

NamedValues read_attributes(const FlatReader& reader, const FlatAttributes* values);
std::vector<CallSlot> read_slots(const FlatReader& reader, const FlatSlots* values);

flatbuffers::Offset<FlatAttributes> write_attributes(flatbuffers::FlatBufferBuilder& builder,
                                                     const NamedValues& values);
flatbuffers::Offset<FlatSlots> write_slots(flatbuffers::FlatBufferBuilder& builder,
                                           const std::vector<CallSlot>& slots);

}  // namespace ingot::core
