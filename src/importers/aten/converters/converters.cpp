// SPDX-License-Identifier: Apache-2.0
#include "importers/aten/converters/converters.h"

#include <unordered_map>

namespace ingot::core::aten {
namespace {

std::unordered_map<std::string_view, const Row*> index_rows_by_target() {
  std::unordered_map<std::string_view, const Row*> index;
  for (const Row* row : all_rows()) index.emplace(row->target, row);
  return index;
}

}  // namespace

std::vector<const Row*> all_rows() {
  std::vector<const Row*> all;
  for (const auto rows :
       {elementwise_rows(),   special_rows(),    binary_rows(),      view_rows(),     rearrange_rows(),
        slice_rows(),         index_rows(),      scatter_rows(),     order_rows(),    strided_rows(),
        reduction_rows(),     statistics_rows(), contraction_rows(), product_rows(),  einsum_rows(),
        normalization_rows(), recurrent_rows(),  encoder_rows(),     bag_rows(),      window_rows(),
        image_rows(),         resample_rows(),   loss_rows(),        creation_rows(), symbol_rows()}) {
    for (const Row& row : rows) all.push_back(&row);
  }
  return all;
}

const Row* find_row(std::string_view target) {
  static const auto index = index_rows_by_target();
  const auto found = index.find(target);
  return found == index.end() ? nullptr : found->second;
}

}  // namespace ingot::core::aten
