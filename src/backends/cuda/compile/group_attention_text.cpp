// SPDX-License-Identifier: Apache-2.0
#include "backends/cuda/compile/group_attention_text.h"

#include "backends/cuda/compile/warp_group_text.h"

namespace ingot::core::cuda {
namespace {

// A row's scores, weights and results are in the registers of four lanes.
constexpr std::string_view kRows = R"cuda(
struct Rows {  // a lane's part of 16 rows: rows lane / 4 and that + 8
  f32 values[kValueWidth / 8][4], most[2], total[2];  // totals: of the lane's keys alone
};
struct Scores {
  f32 each[kKeys / 8][4];
};
typedef u32 Weights[kKeys / 16][4];
DEVICE u32 pack(f32 low, f32 high) { return kBf16 ? pack_bf16(low, high) : pack_f16(low, high); }
DEVICE int key_group() { return threadIdx.x / (kGroups * 128); }
DEVICE int group_row() { return threadIdx.x / 32 % (kGroups * 4) * 16 + threadIdx.x % 32 / 4; }  // of the block's rows, the lane's first
DEVICE void synchronize_group() { asm volatile("bar.sync %0, 128;" ::"r"(1 + threadIdx.x / 128) : "memory"); }
// Keys are the depth of values, whose columns are innermost.
DEVICE u64 values_of(const u16* place) { return (u64)((shared_address(place) & 0x3ffff) >> 4) | (u64)(kKeys * 128 >> 4) << 16 | (u64)(1024 >> 4) << 32 | 1ull << 62; }

)cuda";

// What a part's scores become where not all of its keys are seen. Without a mask: as far as the keys go, or a
// row's own.
constexpr std::string_view kLimits = R"cuda(
struct Seen {
  int below[2];  // of two rows: so many keys from the lane's first on
  __device__ __forceinline__ void load(idx first_row, idx first_key, const Mask*, idx, const Operands& x) {
    #pragma unroll
    for (int h = 0; h < 2; ++h) below[h] = (int)(least(x.keys, kCausal ? first_row + group_row() + h * 8 + 1 : x.keys) - first_key) - threadIdx.x % 4 * 2;
  }
  __device__ __forceinline__ void apply(Scores& scores) const {
    #pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
      #pragma unroll
      for (int e = 0; e < 4; ++e) scores.each[j][e] = j * 8 + e % 2 < below[e / 2] ? scores.each[j][e] * kScale : minus_infinity();
  }
};
)cuda";

constexpr std::string_view kAddends = R"cuda(
struct Seen {
  Scores biases;
  __device__ __forceinline__ void load(idx first_row, idx first_key, const Mask* mask, idx batch, const Operands& x) {
    #pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
      #pragma unroll
      for (int e = 0; e < 4; ++e) biases.each[j][e] = bias_at(mask, batch, first_row + group_row() + e / 2 * 8, first_key + j * 8 + threadIdx.x % 4 * 2 + e % 2, x);
  }
  __device__ __forceinline__ void apply(Scores& scores) const {
    #pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
      #pragma unroll
      for (int e = 0; e < 4; ++e) scores.each[j][e] = biases.each[j][e] == minus_infinity() ? minus_infinity() : fmaf(scores.each[j][e], kScale, biases.each[j][e]);
  }
};
)cuda";

// Each of a row's four lanes reads 16 neighbouring keys, of which it needs four, and makes bits of them for
// the others. Rows beyond the last are computed like that one, and not stored.
constexpr std::string_view kBits = R"cuda(
DEVICE u32 bits_of(u32 four) {  // bytes other than 0
  const u32 highest = (((four & 0x7f7f7f7fu) + 0x7f7f7f7fu) | four) & 0x80808080u;
  return (highest >> 7) * 0x01020408u >> 24;
}
DEVICE u32 bits_of(const Mask* mask, bool aligned) {  // of 16 keys
  if (aligned) {
    const uint4 chunk = *(const uint4*)mask;
    return bits_of(chunk.x) | bits_of(chunk.y) << 4 | bits_of(chunk.z) << 8 | bits_of(chunk.w) << 12;
  }
  u32 bits = 0;
  for (int i = 0; i < 16; ++i) bits |= (u32)(mask[i] != 0) << i;
  return bits;
}
struct Seen {
  u32 rows[kKeys / 64];  // 16 bits of each of two
  __device__ __forceinline__ void load(idx first_row, idx first_key, const Mask* mask, idx batch, const Operands& x) {
    #pragma unroll
    for (int c = 0; c < kKeys / 64; ++c) {
      rows[c] = 0;
      #pragma unroll
      for (int h = 0; h < 2; ++h) {
        const idx row = least<idx>(first_row + group_row() + h * 8, x.queries - 1), key = first_key + c * 64 + threadIdx.x % 4 * 16;
        if (key < x.keys) rows[c] |= bits_of(mask + mask_place(x, batch, row, key), x.aligned) << 16 * h;
      }
    }
  }
  __device__ __forceinline__ void apply(Scores& scores) const {
    const int lane = threadIdx.x % 32, own = lane % 4;
    #pragma unroll
    for (int j = 0; j < kKeys / 8; j += 2) {
      const u32 seen = __shfl_sync(~0u, rows[j / 8], (lane & ~3) | j / 2 % 4) >> 2 * own;
      #pragma unroll
      for (int i = 0; i < 2; ++i)
        #pragma unroll
        for (int e = 0; e < 4; ++e) scores.each[j + i][e] = seen >> (e / 2 * 16 + i * 8 + e % 2) & 1 ? scores.each[j + i][e] * kScale : minus_infinity();
    }
  }
};
)cuda";

//   for part of the keys, kKeys at a time, kStages of them being copied:
//     each group: scores of its 64 queries, while those of the part before times values are still being added
//     up; running maximum; exponentials; these times values
//   groups with other keys of the same queries -> shared memory -> the first of them
//   results / totals -> shared memory, in place of the queries -> rows in memory
// Groups do not wait for each other (Shah et al. 2024 describe the same overlap).
constexpr std::string_view kGroupAttention = R"cuda(
// Begins products that wait_for_products ends.
DEVICE void begin_scores(Scores& scores, const u16* q, const u16* k) {
  hold_sums(scores.each);
  begin_products();
  #pragma unroll
  for (int d = 0; d < kWidth / 16; ++d)
    multiply_scores(scores.each, matrix_of(q + d / 4 * kRows * kPanel) + d % 4 * 2, matrix_of(k + d / 4 * kKeys * kPanel) + d % 4 * 2);
  commit_products();
}
DEVICE void begin_values(Rows& rows, Weights& weights, const u16* v) {
  hold_sums(rows.values);
  begin_products();
  #pragma unroll
  for (int j = 0; j < kKeys / 16; ++j) multiply_values(rows.values, weights[j], values_of(v) + j * (16 * 128 >> 4));
  commit_products();
}

// Scores become weights, relative to a number that was the largest: as long as no score is much larger, results
// of earlier parts need no scaling. Each is still below 2^kSlack then.
template <bool scaled> DEVICE void weigh(Rows& rows, Scores& scores, Weights& weights) {
  constexpr f32 kLog2E = 1.44269504f, kUnit = scaled ? kLog2E : kScale * kLog2E, kSlack = 8 / kLog2E;
  f32 most[2];
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    most[h] = minus_infinity();
    #pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
      #pragma unroll
      for (int e = 2 * h; e < 2 * h + 2; ++e) most[h] = fmaxf(most[h], scores.each[j][e]);
    most[h] = largest_of_row(most[h]);
    if (!scaled) most[h] *= kScale;
  }
  if (__any_sync(~0u, most[0] > rows.most[0] + kSlack || most[1] > rows.most[1] + kSlack)) {
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      most[h] = fmaxf(most[h], rows.most[h]);
      const f32 factor = weight_of(rows.most[h], most[h]);
      rows.most[h] = most[h];
      rows.total[h] *= factor;
      #pragma unroll
      for (int n = 0; n < kValueWidth / 8; ++n)
        #pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; ++e) rows.values[n][e] *= factor;
    }
  }
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    const f32 base = rows.most[h] == minus_infinity() ? 0 : rows.most[h] * kLog2E;
    f32 sum = 0;
    #pragma unroll
    for (int j = 0; j < kKeys / 8; ++j)
      #pragma unroll
      for (int e = 2 * h; e < 2 * h + 2; ++e) sum += scores.each[j][e] = power_of_two(fmaf(scores.each[j][e], kUnit, -base));
    rows.total[h] += sum;
  }
  #pragma unroll
  for (int j = 0; j < kKeys / 16; ++j)
    #pragma unroll
    for (int e = 0; e < 4; ++e) weights[j][e] = pack(scores.each[2 * j + e / 2][e % 2 * 2], scores.each[2 * j + e / 2][e % 2 * 2 + 1]);
}

// Rows of a warp go through the place of its group's queries, 16 bytes of a row at a time.
DEVICE void store_rows(Rows& rows, Element* gathered, Element* result, idx batch, idx first_row, const Operands& x) {
  const int lane = threadIdx.x % 32;
  synchronize_group();  // all have read the queries
  #pragma unroll
  for (int h = 0; h < 2; ++h) {
    const f32 total = sum_of_row(rows.total[h]);
    const f32 factor = total == 0 ? (kEmptyIsNan ? __int_as_float(0x7fc00000) : 1) : 1 / total;  // without keys: 0, or NaN beside infinite values
    #pragma unroll
    for (int n = 0; n < kValueWidth / 8; ++n)
      ((u32*)chunk_of(gathered, kRows, group_row() + h * 8, n))[lane % 4] = pack(rows.values[n][2 * h] * factor, rows.values[n][2 * h + 1] * factor);
  }
  __syncwarp();
  for (int c = lane; c < 16 * (kValueWidth / 8); c += 32) {
    const int row = threadIdx.x / 32 * 16 + c / (kValueWidth / 8), chunk = c % (kValueWidth / 8);
    if (first_row + row >= x.queries) break;
    const Element* const from = chunk_of(gathered, kRows, row, chunk);
    Element* const to = result + result_place(x, batch, first_row + row, chunk * 8);
    if (kNeighbours && is_aligned(to)) *(Packed*)to = *(const Packed*)from;
    else
      for (int k = 0; k < 8; ++k) result[result_place(x, batch, first_row + row, chunk * 8 + k)] = from[k];
  }
}

// Groups that had other keys of the same queries hand their registers to the first, one after another in order.
DEVICE void merge_groups(Rows& rows, f32* shares) {
  constexpr int kPlaces = kGroups * 128, kNumbers = kValueWidth / 8 * 4 + 4;  // [kKeyGroups - 1][kNumbers][kPlaces]
  const int place = threadIdx.x % kPlaces;
  __syncthreads();  // all have read the keys and values, in whose place the shares lie, behind the queries, in whose place results will
  if (key_group() > 0) {
    f32* const own = shares + (key_group() - 1) * kNumbers * kPlaces + place;
    #pragma unroll
    for (int n = 0; n < kValueWidth / 8; ++n)
      #pragma unroll
      for (int e = 0; e < 4; ++e) own[(n * 4 + e) * kPlaces] = rows.values[n][e];
    #pragma unroll
    for (int h = 0; h < 2; ++h) own[(kNumbers - 4 + h) * kPlaces] = rows.most[h], own[(kNumbers - 2 + h) * kPlaces] = rows.total[h];
  }
  __syncthreads();
  if (key_group() > 0) return;
  for (int group = 1; group < kKeyGroups; ++group) {
    const f32* const other = shares + (group - 1) * kNumbers * kPlaces + place;
    #pragma unroll
    for (int h = 0; h < 2; ++h) {
      const f32 others = other[(kNumbers - 4 + h) * kPlaces], most = fmaxf(rows.most[h], others);
      const f32 factor = weight_of(rows.most[h], most), other_factor = weight_of(others, most);
      rows.most[h] = most;
      rows.total[h] = rows.total[h] * factor + other[(kNumbers - 2 + h) * kPlaces] * other_factor;
      #pragma unroll
      for (int n = 0; n < kValueWidth / 8; ++n)
        #pragma unroll
        for (int e = 2 * h; e < 2 * h + 2; ++e) rows.values[n][e] = rows.values[n][e] * factor + other[(n * 4 + e) * kPlaces] * other_factor;
    }
  }
}

// A block's queries, kRows at a time. If there are several such tiles, all parts of the keys are in shared memory
// at once and stay there, and the next queries come while these are worked on.
DEVICE void attend(char* shared, int, Cluster&, bool, Arrivals& arrivals, const Maps& maps, const Mask* mask, Element* result, idx batch, idx first_row, const Operands& x) {
  constexpr bool kMayAllBeSeen = !kHasMask && kScale > 0;
  Element* const places = (Element*)shared + kRowPlaces * kRowPlace;  // of keys and values
  const int group = threadIdx.x / 128 % kGroups;
  const auto q_of = [&](int turn) { return (Element*)shared + turn % kRowPlaces * kRowPlace; };
  const auto k_of = [&](int part) { return places + (x.aligned ? (arrivals.used + part) % kStages : 0) * (kKeyTile + kValueTile); };
  const auto parts_before = [&](idx row) { return (int)(((kCausal ? least(x.keys, row) : x.keys) + kKeys - 1) / kKeys); };
  const idx end_row = least<idx>(x.queries, first_row + kRowTiles * kRows);
  const int all_parts = parts_before(first_row + kRowTiles * kRows);
  const auto copy_part = [&](int part) { arrivals.copy(part, part == 0 ? q_of(0) : nullptr, k_of(part), k_of(part) + kKeyTile, maps, batch, first_row, (idx)part * kKeys, x); };
  const auto copy_unaligned = [&](int part, int turn) {
    __syncthreads();
    if (part == 0) copy_rows(q_of(turn), kWidth, kRows, first_row + turn * kRows, x.queries, q_place, batch, x);
    copy_rows(k_of(part), kWidth, kKeys, (idx)part * kKeys, x.keys, k_place, batch, x);
    copy_rows(k_of(part) + kKeyTile, kValueWidth, kKeys, (idx)part * kKeys, x.keys, v_place, batch, x);
    order_shared_memory();
    __syncthreads();
  };
  for (int part = key_group(); part < kStages && part < all_parts && x.aligned; part += kKeyGroups) copy_part(part);
  if (kKeyGroups > 1 && x.aligned && all_parts > 0) {
    arrivals.wait(0);  // the queries arrive with the first part
    __syncthreads();
  }
  const int first = x.aligned ? key_group() : 0, step = x.aligned ? kKeyGroups : 1;
  #pragma unroll 1
  for (int turn = 0; turn < kRowTiles && first_row + turn * kRows < end_row; ++turn) {
    const idx row = first_row + turn * kRows;
    const bool last_turn = row + kRows >= end_row;
    Element* const q = q_of(turn);
    if (kRowTiles > 1 && x.aligned && all_parts > 0) {
      if (turn > 0) arrivals.wait_for_rows();
      if (!last_turn) arrivals.copy_rows(q_of(turn + 1), maps, batch, row + kRows, x);
    }
    const int parts = parts_before(row + kRows);
    Rows rows = {};
    rows.most[0] = rows.most[1] = minus_infinity();
    Weights weights;
    for (int part = first; part < parts; part += step) {
      const idx first_key = (idx)part * kKeys, last_key = first_key + kKeys - 1;
      const bool all_seen = kMayAllBeSeen && last_key < x.keys && (!kCausal || last_key <= row + group * 64);
      Scores scores = {};
      Seen seen;
      if (!all_seen) seen.load(row, first_key, mask, batch, x);
      if (x.aligned) arrivals.wait(part);
      else {
        wait_for_products<0>();
        hold_sums(rows.values);
        copy_unaligned(part, turn);
        if (part % kKeyGroups != key_group()) continue;
      }
      begin_scores(scores, q + group * 64 * kPanel, k_of(part));
      wait_for_products<0>();
      hold_sums(scores.each);
      hold_sums(rows.values);
      if (kRowTiles == 1 && part > first && x.aligned) {
        arrivals.release(part - step);
        if (part - step + kStages < parts) copy_part(part - step + kStages);
      }
      if (all_seen) weigh<false>(rows, scores, weights);
      else {
        seen.apply(scores);
        weigh<true>(rows, scores, weights);
      }
      begin_values(rows, weights, k_of(part) + kKeyTile);
    }
    wait_for_products<0>();
    hold_sums(rows.values);
    if (kRowTiles == 1 && x.aligned && parts > first) arrivals.release(parts - 1 - (parts - 1 - first) % step);
    if (kKeyGroups > 1) merge_groups(rows, (f32*)places);
    if (key_group() == 0) store_rows(rows, q, result, batch, row, x);
    if (kRowTiles > 1 && !last_turn) {
      order_shared_memory();
      __syncthreads();
    }
  }
  if (!x.aligned) return;
  for (int part = 0; kRowTiles > 1 && part < all_parts; ++part) arrivals.release(part);
  arrivals.used += all_parts;
}
)cuda";

}  // namespace

std::string group_attention_functions(int keys, int value_width, bool bf16) {
  return std::string(bulk_copy_functions()) + std::string(group_product_functions()) +
         group_product({.name = "multiply_scores", .columns = keys, .bf16 = bf16}) +
         group_product(
             {.name = "multiply_values", .columns = value_width, .bf16 = bf16, .a_in_registers = true});
}

std::string group_attention(GroupMask mask) {
  const std::string_view seen = mask == GroupMask::kNone   ? kLimits
                                : mask == GroupMask::kBits ? kBits
                                                           : kAddends;
  return std::string(kRows) + std::string(seen) + std::string(kGroupAttention);
}

}  // namespace ingot::core::cuda
