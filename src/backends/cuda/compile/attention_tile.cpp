// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/attention_tile.h"

#include "backends/cuda/compile/template_text.h"

namespace ingot::core::cuda {
namespace {

// A row's sums: its values, the largest score, the total, and padding.
int64_t row_bytes(int64_t value_width) { return 4 * (value_width + 8); }

}  // namespace

bool has_new_rows(const Node& node) { return node.op == &ops::cached_attention; }

bool is_last_innermost(const TensorType& type) { return innermost(type) == type.rank() - 1; }

AttentionShape attention_shape(const Node& node) {
  const Shape &result = node.results[0]->type.shape, &k = node.operand_type(1).shape;
  AttentionShape shape{.batch_dims = {result.begin(), result.end() - 2},
                       .queries = result[result.size() - 2],
                       .keys = k[k.size() - 2]};
  for (const Dim& dim : shape.batch_dims) shape.batch = shape.batch * dim;
  return shape;
}

Dim heads_per_key_head(const Node& node) {
  if (!node.attributes<ops::Attention>().grouped) return 1;
  const Shape &q = node.operand_type(0).shape, &k = node.operand_type(1).shape;
  return floor_divide(q[q.size() - 3], k[k.size() - 3]);
}

std::optional<int64_t> rows_of_key_head(const Node& node) {
  return (attention_shape(node).queries * heads_per_key_head(node)).constant();
}

GroupMask group_mask(const Node& node) {
  constexpr int64_t kBytes = 16;
  if (!node.has_operand(ops::kMask)) return GroupMask::kNone;
  const TensorType& type = node.operand_type(ops::kMask);
  const auto keys = type.shape.back().constant();
  const bool has_rows_of_bits = type.dtype == DType::kBool && type.layout.is_row_major() &&
                                type.shape.back() == attention_shape(node).keys && keys &&
                                *keys % kBytes == 0;
  return has_rows_of_bits && !node.attributes<ops::Attention>().causal ? GroupMask::kBits
                                                                       : GroupMask::kNumbers;
}

std::string_view mask_load(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "*at == 0 ? -__int_as_float(0x7f800000) : 0";
    case DType::kF16:
      return "load_f16(at)";
    case DType::kBF16:
      return "load_bf16(at)";
    default:
      return "(f32)*at";
  }
}

int64_t AttentionTile::rows() const {
  if (few_rows > 0) return few_rows;
  return groups > 0 ? groups * kGroupQueries : warp_rows * kFragmentRows;
}

int AttentionTile::resident_blocks(int64_t value_width) const {
  if (value_width > kGroupQueries) return 1;
  const int most = keys > kKeysOfPart ? 3 : 4;
  return std::max(most / (groups * key_groups), 1);
}

int64_t AttentionTile::room(int64_t shared_bytes, int64_t value_width) const {
  constexpr int64_t kReserved = 1024, kBarriers = 256;
  return (shared_bytes + kReserved) / resident_blocks(value_width) - kReserved - kBarriers;
}

int64_t AttentionTile::panels(int64_t columns) const {
  constexpr int64_t kPanel = 128;
  return (columns * element + kPanel - 1) / kPanel * kPanel;
}

int64_t AttentionTile::row_place_bytes(int64_t width, int64_t value_width) const {
  return rows() * panels(groups > 0 ? std::max(width, value_width) : width);
}

int64_t AttentionTile::tile_bytes(int64_t width, int64_t value_width) const {
  if (few_rows > 0) return 0;
  const int row_places = row_tiles > 1 ? 2 : 1;
  return row_places * row_place_bytes(width, value_width) +
         int64_t{stages} * keys * (panels(width) + panels(value_width));
}

int64_t AttentionTile::merged_bytes(int64_t width, int64_t value_width) const {
  const int64_t share = rows() * row_bytes(value_width);
  return groups > 0 ? row_place_bytes(width, value_width) + (key_groups - 1) * share : warp_keys() * share;
}

int64_t AttentionTile::received_bytes(int64_t value_width) const {
  constexpr int64_t kBarrier = 16;
  return splits == 1 ? 0 : splits * ((rows() + splits - 1) / splits) * row_bytes(value_width) + kBarrier;
}

}  // namespace ingot::core::cuda
