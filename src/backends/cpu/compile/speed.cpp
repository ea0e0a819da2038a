// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/compile/speed.h"

#include <algorithm>

#include <fmt/core.h>

#include "backends/cpu/compile/speed_of_routines.h"
#include "backends/cpu/compile/templates/kernel_template.h"
#include "backends/cpu/compile/templates/target.h"
#include "backends/cpu/compile/templates/tile.h"
#include "backends/steps/fusion_rules.h"
#include "backends/steps/loop_steps.h"
#include "ops/axis.h"
#include "ops/convolution.h"
#include "ops/grid_sample.h"
#include "ops/search_sorted.h"
#include "ops/statistics.h"
#include "ops/view.h"

namespace ingot::core::cpu {
namespace {

constexpr int kTemplateLevel = 3;

// A peer's rates on one thread: multiply-adds per nanosecond (about half as many for f64), bytes moved per
// nanosecond from memory and from caches, and the cost of a call. Measured, like the rates in the rows:
// docs/design/012-slow-paths.md.
constexpr double kPeerProducts = 27, kPeerDoubleProducts = 11, kBytes = 8, kCachedBytes = 32,
                 kPeerCall = 4000;
constexpr double kCache = 16 << 20;  // bytes that stay in caches between two nodes
// Predictions are only this accurate: nodes closer to the peer count as fast.
constexpr double kNotable = 1.1;

double moving_time(double bytes) { return bytes / (bytes <= kCache ? kCachedBytes : kBytes); }

// One reason for being slow. Both rates are in steps per nanosecond, on one thread.
struct Row {
  std::string (*reason)(const Node& node, const Target& target);  // "" if the row does not apply to the node
  double (*own_rate)(const Node& node, const Target& target);
  double (*peer_rate)(const Node& node, const Target& target);
};

template <int kPerMicrosecond>
double rate(const Node&, const Target&) {
  return kPerMicrosecond / 1000.0;
}

double product_rate(const Node& node, const Target&) {
  return node.results[0]->type.dtype == DType::kF64 ? kPeerDoubleProducts : kPeerProducts;
}

// Plain loops try each tap of the window for each result element; only one per stride matches an element.
double transposed_rate(const Node& node, const Target& target) {
  double rate = product_rate(node, target);
  for (const int64_t stride : node.attributes<ops::ConvolutionTranspose>().stride)
    rate *= static_cast<double>(stride);
  return rate;
}
std::string is_transposed(const Node& node, const Target&) {
  return node.op == &ops::convolution_transpose ? "transposed convolutions like this one run as plain loops"
                                                : "";
}

std::string lacks_template(const Node& node, const Target& target) {
  if (!node.op->traits.has(Trait::kContraction)) return {};
  const bool is_of_bytes = node.op == &ops::integer_linear || node.op == &ops::integer_matmul ||
                           node.op == &ops::integer_convolution;
  if (!is_floating(node.results[0]->type.dtype) && !is_of_bytes) return {};
  const KernelTemplate* kernel_template = find_template(*node.op);
  if (kernel_template == nullptr) return fmt::format("{} runs as plain loops", node.op->name);
  const Fit fit = kernel_template->supports(node, target);
  return fit.yes ? std::string() : fit.reason;
}
std::string convolution_lacks_template(const Node& node, const Target& target) {
  return node.op == &ops::convolution ? lacks_template(node, target) : std::string();
}

// Groups that fill neither a vector nor a microkernel of whole images.
std::string has_middle_groups(const Node& node, const Target&) {
  if (node.op != &ops::convolution) return {};
  const auto channels = node.operand_type(1).shape[1].constant();  // of a group
  const bool is_middle = channels && *channels > 8 && *channels < 32;
  if (node.attributes<ops::Convolution>().groups == 1 || !is_middle) return {};
  return "groups of 9 to 31 channels do not fill the tiles of products";
}

// The first operand of a product is copied into rows. That is a notable part of products with few columns,
// and of those with few rows and a long depth, whose copies read one line after the other.
const Node* transposed_operand(const Node& node) {
  const Node* producer = node.op == &ops::matmul ? node.operands[0]->producer : nullptr;
  return producer != nullptr && producer->op == &ops::transpose ? producer : nullptr;
}
std::string transposes_few_rows(const Node& node, const Target&) {
  if (transposed_operand(node) == nullptr) return {};
  const Shape& shape = node.operand_type(0).shape;
  const auto rows = shape[shape.size() - 2].constant(), depth = shape.back().constant();
  constexpr int64_t kDeep = 8;
  const bool is_deep = rows && depth && *depth >= kDeep * *rows;
  return is_deep ? "the first operand is transposed, and copied for few products" : "";
}
constexpr int64_t kFewColumns = 256;
std::string transposes_for_few_columns(const Node& node, const Target&) {
  if (transposed_operand(node) == nullptr) return {};
  const auto columns = node.operand_type(1).shape.back().constant();
  return columns && *columns > 0 && *columns <= kFewColumns
             ? "the first operand is transposed, and copied for few products"
             : "";
}
constexpr double kProductsOfMatrices = 76;  // multiply-adds per nanosecond without the copy
double product_rate_of_matrices(const Node&, const Target&) { return kProductsOfMatrices; }
double rate_with_copy(const Node& node, const Target&) {
  constexpr double kCopy = 0.35;  // nanoseconds per element
  const auto columns = static_cast<double>(*node.operand_type(1).shape.back().constant());
  return 1 / (1 / kProductsOfMatrices + kCopy / columns);
}

// AVX-512 has fast gathers of 32 bits. Peers interpolate halves at half of their speed.
enum class Loads : uint8_t { kGathers, kOfHalves, kOneByOne };
Loads loads_of(const Node& node, const Target& target) {
  const int width = bit_width(node.operand_type(0).dtype);
  if (width == 16) return Loads::kOfHalves;
  return width == 32 && features_of(target).has(CpuFeature::kX86V4) ? Loads::kGathers : Loads::kOneByOne;
}
bool gathers_halves(const Node& node, const Target& target) {
  return loads_of(node, target) == Loads::kOfHalves && features_of(target).has(CpuFeature::kX86V4);
}
constexpr const char* kNotAlongChannels =
    "its channels are few, or their number is not known, or its elements are not of 16 or 32 bits";
template <Loads kLoads>
std::string interpolates_one_by_one(const Node& node, const Target& target) {
  const bool applies = node.op == &ops::resize_linear && !prefers_channels_last(node, target) &&
                       loads_of(node, target) == kLoads && !gathers_halves(node, target);
  return applies ? fmt::format("it interpolates element by element: {}", kNotAlongChannels) : "";
}

// Volumes are faster than the peer's, which samples them without vectors.
template <bool kNearest>
std::string samples_one_by_one(const Node& node, const Target& target) {
  if (node.op != &ops::grid_sample || prefers_channels_last(node, target) ||
      node.operand_type(0).rank() != 4 || gathers_halves(node, target))
    return {};
  if ((node.attributes<ops::GridSample>().mode == "nearest") != kNearest) return {};
  return fmt::format("each neighbour of a sample is gathered by itself: {}", kNotAlongChannels);
}

constexpr int64_t kManySteps = 24;
std::string searches_lines_of_any_length(const Node& node, const Target&) {
  if (node.op != &ops::search_sorted || node.attributes<ops::SearchSorted>().steps < kManySteps) return {};
  return "lines of any length are searched in as many steps as the longest needs: give the size a maximum";
}

// Peers multiply bf16 by matrix registers or in pairs, also where our kernel templates do not.
std::string widens_bf16(const Node& node, const Target& target) {
  const bool multiplies = node.op == &ops::matmul || node.op == &ops::linear || node.op == &ops::convolution;
  const CpuFeatures features = features_of(target);
  const bool in_hardware = features.has(CpuFeature::kAmxBf16) || multiplies_bf16(features);
  if (!multiplies || !in_hardware) return {};
  const Node* producer = node.operands[0]->producer;
  const bool widened =
      producer != nullptr && producer->op == &ops::convert && producer->operand_type(0).dtype == DType::kBF16;
  return widened ? "bf16 is multiplied as f32, although this processor has bf16 instructions" : "";
}
double bf16_rate(const Node&, const Target& target) {
  return kPeerProducts * (features_of(target).has(CpuFeature::kAmxBf16) ? 8 : 2);
}

bool is_innermost(const Node& node, int64_t axis) {
  return axis + 1 == static_cast<int64_t>(node.results[0]->type.rank());
}
bool makes_halves(const Node& node) {
  return !node.results.empty() && bit_width(node.results[0]->type.dtype) == 16;
}

// Vectors of 16-bit elements that are not adjacent are put together one by one.
std::string picks_halves(const Node& node, const Target&) {
  if (!makes_halves(node)) return {};
  if (node.op != &ops::slice) return {};
  const auto slice = node.attributes<ops::Slice>();
  const bool picks = slice.step > 1 && is_innermost(node, slice.axis);
  return picks ? "16-bit elements that are not adjacent are loaded one by one" : "";
}
// Without masks they are stored one by one.
std::string joins_single_integers(const Node& node, const Target& target) {
  if (features_of(target).has(CpuFeature::kX86V4)) return {};
  if (node.op != &ops::concat || !is_innermost(node, node.attributes<ops::Axis>().axis)) return {};
  if (node.operand_type(0).shape.back() != Dim(1)) return {};
  const DType dtype = node.results[0]->type.dtype;
  return dtype == DType::kI32 || dtype == DType::kI64 ? "integers are joined one by one" : "";
}
double peer_rate_of_joined_integers(const Node& node, const Target&) {
  return node.results[0]->type.dtype == DType::kI32 ? 2.3 : 1.69;
}
// Squares of bf16 overflow f32: they are summed in f64.
std::string sums_squares_in_f64(const Node& node, const Target&) {
  const bool applies = node.op == &ops::norm && node.results[0]->type.dtype == DType::kBF16;
  if (!applies || node.attributes<ops::Norm>().order != 2) return {};
  const std::vector<int64_t> axes = node.attributes<ops::Norm>().axes;
  const auto innermost = static_cast<int64_t>(node.operand_type(0).rank()) - 1;
  return std::ranges::find(axes, innermost) != axes.end() ? "squares of bf16 are summed in f64" : "";
}
// Functions whose code takes longer than the peer's: elements per microsecond of each; 0: as fast as the
// peer.
struct Rates {
  double own = 0, peer = 0;
};
struct Function {
  const Op* op;
  Rates half, single, wide;  // by the dtype: 16, 32 or 64 bits
};
constexpr Function kFunctions[] = {
    {.op = &ops::exp, .wide = {1260, 1560}},
    {.op = &ops::log, .single = {2980, 3290}},
    {.op = &ops::log2, .single = {2310, 2890}},
    {.op = &ops::log10, .single = {2290, 2700}, .wide = {454, 1100}},
    {.op = &ops::erf, .wide = {450, 758}},
    {.op = &ops::erfc, .single = {830, 1625}, .wide = {196, 632}},
    {.op = &ops::square_root, .wide = {947, 1495}},
};
// Zeros if the node is none of them.
Rates rates_of(const Node& node) {
  const auto* const found = std::ranges::find(kFunctions, node.op, &Function::op);
  if (found == std::end(kFunctions) || !is_floating(node.results[0]->type.dtype)) return {};
  const int width = bit_width(node.results[0]->type.dtype);
  return width == 64 ? found->wide : width == 32 ? found->single : found->half;
}
double own_rate_of_function(const Node& node, const Target&) { return rates_of(node).own / 1000; }
// The sum of the prime factors from 7 on of a transform's length: each takes as many multiplications per
// number. Torch's library has code of its own for them.
int64_t unusual_factors(const Node& node) {
  const bool transforms =
      node.op == &ops::fourier || node.op == &ops::real_fourier || node.op == &ops::inverse_real_fourier;
  if (!transforms) return 0;
  int64_t length = node.operand_type(node.operands.size() - 1).shape[1].constant().value_or(1), sum = 0;
  for (int64_t factor = 2; factor * factor <= length; ++factor) {
    for (; length % factor == 0; length /= factor) sum += factor < 7 ? 0 : factor;
  }
  return sum + (length < 7 ? 0 : length);
}
std::string transforms_unusual_lengths(const Node& node, const Target&) {
  return unusual_factors(node) > 0 ? "the length of the Fourier transform has a prime factor above 5" : "";
}
double rate_of_unusual_lengths(const Node& node, const Target&) {
  return 1 / (1 + 0.25 * static_cast<double>(unusual_factors(node)));
}

double peer_rate_of_function(const Node& node, const Target&) { return rates_of(node).peer / 1000; }
std::string computes_slowly(const Node& node, const Target&) {
  if (rates_of(node).own == 0) return {};
  return fmt::format("the code of {} takes longer than a library's", node.op->name);
}

std::string has_slower_routine(const Node& node, const Target&) {
  if (rates_of_routine(node).own == 0) return {};
  return fmt::format("the routine of {} takes longer than a library's", node.op->name);
}
double own_rate_of_routine(const Node& node, const Target&) { return rates_of_routine(node).own; }
double peer_rate_of_routine(const Node& node, const Target&) { return rates_of_routine(node).peer; }

// The first row with a reason applies.
constexpr Row kRows[] = {
    {is_transposed, rate<400>, transposed_rate},
    {convolution_lacks_template, rate<600>, product_rate},
    {lacks_template, rate<4000>, product_rate},
    {has_middle_groups, rate<31300>, rate<45300>},
    {transposes_few_rows, rate<60000>, rate<80000>},
    {transposes_for_few_columns, rate_with_copy, product_rate_of_matrices},
    {interpolates_one_by_one<Loads::kOneByOne>, rate<165>, rate<400>},
    {interpolates_one_by_one<Loads::kGathers>, rate<520>, rate<635>},
    {interpolates_one_by_one<Loads::kOfHalves>, rate<275>, rate<340>},
    {widens_bf16, rate<static_cast<int>(1000 * kPeerProducts)>, bf16_rate},
    {samples_one_by_one<false>, rate<290>, rate<490>},
    {samples_one_by_one<true>, rate<370>, rate<1200>},
    {searches_lines_of_any_length, rate<14>, rate<40>},
    {picks_halves, rate<1450>, rate<2350>},
    {joins_single_integers, rate<1330>, peer_rate_of_joined_integers},
    {sums_squares_in_f64, rate<7020>, rate<10350>},
    {transforms_unusual_lengths, rate_of_unusual_lengths, rate<290>},
    {computes_slowly, own_rate_of_function, peer_rate_of_function},
    {has_slower_routine, own_rate_of_routine, peer_rate_of_routine},
};

}  // namespace

bool prefers_channels_last(const Node& node, const Target& target) {
  constexpr int64_t kVector = 8, kMasked = 16, kTailed = 32;  // channels that are worth an incomplete vector
  const bool gathers = node.op == &ops::resize_linear || node.op == &ops::grid_sample ||
                       (node.op == &ops::resize_nearest && reads_data_dependent_indices(node));
  if (!gathers) return false;
  const int width = bit_width(node.operand_type(0).dtype);
  const auto channels = node.operand_type(0).shape[1].constant();
  if (!channels || *channels <= 0 || (width != 32 && width != 16)) return false;
  const bool has_masks = features_of(target).has(CpuFeature::kX86V4);
  return *channels % kVector == 0 || *channels > (has_masks ? kMasked : kTailed);
}

Support judge_speed(const Node& node, const SymbolValues& sizes, const Target& target) {
  if (target.level < kTemplateLevel) return {};
  for (const Row& row : kRows) {
    std::string reason = row.reason(node, target);
    if (reason.empty()) continue;
    // The rates of routines include their memory traffic: expanded indices take no memory.
    const double work = loop_steps(node, sizes),
                 moved = node.op->lower == nullptr ? 0 : moving_time(moved_bytes(node, sizes));
    const double own = std::max(work / row.own_rate(node, target), moved);
    const double peer = std::max(work / row.peer_rate(node, target), moved);
    if (own < kNotable * peer || own < peer + kPeerCall) return {};
    return {Support::Answer::kSlow, std::move(reason), own, peer + kPeerCall};
  }
  return {};
}

double predicted_ns(const Node& node, const SymbolValues& sizes) {
  constexpr double kCall = 2000, kLoopSteps = 1;  // ns, and per ns
  const bool multiplies = node.op->traits.has(Trait::kContraction);
  const double computing = loop_steps(node, sizes) / (multiplies ? kPeerProducts : kLoopSteps);
  return kCall + computing + moving_time(moved_bytes(node, sizes));
}

}  // namespace ingot::core::cpu
