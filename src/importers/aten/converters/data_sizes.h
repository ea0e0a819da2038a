// SPDX-License-Identifier: Apache-2.0
// Sizes that follow from data.
#pragma once

#include <string>

#include "importers/aten/converters/call.h"

namespace ingot::core::aten {

// A number of elements that is known once it has been computed.
struct DataCount {
  core::Value* count;  // i64 scalar
  Dim size;
};

// Where nothing else limits a size: more do not fit in memory.
inline constexpr int64_t kMostFound = int64_t{1} << 40;

// Whether inputs or earlier nodes give the symbol its value.
bool is_known(const core::Graph& graph, const std::string& symbol);

// A symbol for the first result, that the program has none for.
Dim own_symbol(Call& call);

core::Value* flattened(Call& call, core::Value* x);

// The size of a dim of the first result, as the front end recorded it.
const Dim& recorded_size(Call& call, size_t axis = 0);

// The largest value of an integer of a run: memory is planned for that of a size.
Dim largest_number(const Scope& scope, const std::string& symbol);

// Makes `count`, at most `limit`, the value of the size that the program records as `recorded`: of its
// symbol, or asserts that it is that size, if that is known otherwise.
DataCount bind_count(Call& call, core::Value* count, const Dim& recorded, const Dim& limit);

// Make a scalar that a run computes the result of a call, an integer or a bool. An integer that the front end
// knows from the sizes stays what it is.
void give_computed_integer(Call& call, core::Value* integer);
void give_computed_answer(Call& call, core::Value* is_true);

// The indices of the true elements of a bool mask: i64[count, rank].
core::Value* indices_of_true(Call& call, core::Value* mask, const Dim& recorded);

}  // namespace ingot::core::aten
