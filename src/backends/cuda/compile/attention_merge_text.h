// SPDX-License-Identifier: Apache-2.0
// What all forms of attention share: how scores become weights, and how shares of the keys become one result.
#pragma once

#include <string_view>

namespace ingot::core::cuda {

// weight_of(score, largest) and bias_at(), what is added to a score.
std::string_view score_functions();
// Sums of a share of the keys in shared memory; add_up() of several, and store_row().
std::string_view row_sums();
// struct Cluster, whose merge() calls the form's keep_rows(), and blocks of a cluster if there are several.
std::string_view merge_of_shares(int splits);
std::string_view no_merge();

}  // namespace ingot::core::cuda
