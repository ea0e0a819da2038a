// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/random/maker.h"

namespace ingot::core::random_graphs {

// Each adds a node or two, with new sources where it needs some; false where nothing came of it.
bool add_elementwise(Maker& maker);
bool add_view(Maker& maker);
bool add_indexed(Maker& maker);     // gather, take, index
bool add_found_part(Maker& maker);  // at a position that the run finds
bool add_in_place(Maker& maker);    // index_copy, index_put, scatter, slice_scatter
bool add_along_axis(Maker& maker);  // reductions, softmax, scans, sorts: whatever has an axis
bool add_contraction(Maker& maker);
bool add_long_rows(Maker& maker);  // joined, padded, shifted: conditions on their index change along them
bool add_number(Maker& maker);     // beside a tensor
bool add_narrowed(Maker& maker);   // halves, and what shows that they were rounded
bool add_sample(Maker& maker);     // any operator, as a sample of its record calls it

}  // namespace ingot::core::random_graphs
