// SPDX-License-Identifier: Apache-2.0
// Passes that depend on the target. Its decisions are parameters, so that passes are independent of backends.
#pragma once

#include <functional>

#include "ir/graph.h"
#include "ops/layout_request.h"
#include "ops/precision_choice.h"
#include "passes/rewrites.h"

namespace ingot::core {

// Assigns a layout to every value. Nodes with a request get it, through `relayout` nodes if needed; a
// transpose becomes free by permuting its result's layout; other nodes follow their first permuted operand,
// in-place ones always operand 0; inputs, outputs and the new values of states stay row-major.
using LayoutRule = std::function<LayoutRequest(const Node&)>;
Graph assign_layouts(Graph graph, const LayoutRule& rule, Rewrites& rewrites);

// Groups nodes into `fused` nodes, each of which the backend turns into one kernel:
//  1. a contraction takes the elementwise nodes that follow it one after another (its epilogue), and another
//  contraction whose result these join with its own,
//  2. a reduction takes elementwise nodes around it,
//  3. the remaining elementwise and view nodes are joined with their only consumers, in-place writes among
//  them.
// A slice of what is stored anyway is a part of each group that reads it.
struct FuseRules {
  std::function<bool(const Node& root, const Node& consumer)> may_take_consumer;
  std::function<bool(const Node& root, const Node& producer)> may_take_producer;
  // Also if others read its result: the region has it, too.
  std::function<bool(const Node& root, const Node& producer)> may_keep_producer =
      [](const Node&, const Node&) { return false; };
  std::function<bool(const Node& root, const Node& twin)> may_take_twin = [](const Node&, const Node&) {
    return false;
  };
};
Graph fuse(Graph graph, const FuseRules& rules, Rewrites& rewrites);

// Computes contractions of f32 in the dtypes that the rule chooses. What they read in f16 is rounded where it
// is computed, for all readers, so that it is stored once; sums, and what is computed of results, stay f32.
using PrecisionRule = std::function<PrecisionChoice(const PrecisionSite& site)>;
Graph lower_precision(Graph graph, const PrecisionRule& rule, Rewrites& rewrites);

// Linear layers and convolutions of dequantized tensors by constant dequantized weights multiply the
// integers, and scale the sums. The tensor has one scale, the weight one for each column and no zero point.
// Products and sums are exact. The rule says of which number the channels, or the depth, must be a multiple:
// they are padded with zeros; 0: the contraction stays.
using QuantizedRule = std::function<int64_t(const Node& contraction)>;
Graph multiply_quantized(Graph graph, const QuantizedRule& rule, Rewrites& rewrites);

// The decisions that every backend provides for the passes above, which are in the table for all of them.
struct TargetRules {
  LayoutRule layouts;
  FuseRules fuse;
  PrecisionRule precision;
  QuantizedRule quantized;
};

// The following passes are rows of the backends that use them, each with its own rule.

// Computes contractions in the dtype that the target names, if that differs from their own: operands are
// converted before, the result after. Sums are accumulated at least as precisely as before.
struct ComputeDType {
  DType dtype;
  bool converts_weight = true;  // false: operand 1 stays as it is stored, kernels convert it
};
using ComputeDTypeRule = std::function<ComputeDType(const Node& contraction)>;
Graph widen_contractions(Graph graph, const ComputeDTypeRule& rule, Rewrites& rewrites);

// Linear layers whose constant weights were widened read them as they are stored, where the rule says that
// the target converts that dtype in its kernels. Loses nothing.
using NarrowWeightRule = std::function<bool(const Node& linear, DType stored)>;
Graph keep_narrow_weights(Graph graph, const NarrowWeightRule& rule, Rewrites& rewrites);

// Products by constant weights that the graph dequantizes multiply the stored numbers, where the rule says
// so: by linear layers whose results are scaled, or by scaled_linear. Changes rounding: neither the
// dequantized weight nor a conversion of it is rounded.
struct StoredWeightForm {
  DType numbers = DType::kI8;
  bool is_packed = false;  // elements of four bits
  bool has_zero_points = false;
  int64_t block = 0;  // elements of the depth per scale; 0: one scale per column, and no zero points
};
using StoredWeightRule = std::function<bool(const Node& product, const StoredWeightForm& form)>;
Graph keep_quantized_weights(Graph graph, const StoredWeightRule& rule, Rewrites& rewrites);

// Integer linear layers and convolutions of i8 become ones of u8 where the rule says so: processors multiply
// unsigned by signed bytes. Exact.
using IntegerRule = std::function<bool(const Node& contraction)>;
Graph shift_to_unsigned(Graph graph, const IntegerRule& rule, Rewrites& rewrites);

// Replaces transposed convolutions by operators with kernel templates: those of stride 1 by a convolution
// with the flipped window, the others by a product and a fold of its overlapping windows.
using TransposedConvolutionRule = std::function<bool(const Node& convolution)>;
Graph expand_transposed_convolutions(Graph graph, const TransposedConvolutionRule& rule, Rewrites& rewrites);

// Computes the convolutions that the target selects, and whose weights do not depend on inputs, with fewer
// products (ops/winograd.cpp). Changes rounding.
using ConvolutionRule = std::function<bool(const Node& convolution)>;
Graph use_winograd(Graph graph, const ConvolutionRule& rule, Rewrites& rewrites);

// Convolutions over one dim become ones over two, the first of extent 1, where the rule says so.
Graph lift_convolutions(Graph graph, const ConvolutionRule& rule, Rewrites& rewrites);

// Convolutions of few channels whose windows lie side by side, as at the start of vision transformers, become
// products of all pixels of each window. `rule`: those that get faster by it.
Graph fold_patches(Graph graph, const ConvolutionRule& rule, Rewrites& rewrites);

// Convolutions of few channels that step over pixels, with constant weights, become ones by steps of 1 over
// squares of pixels, whose pixels are channels. The rule says of which number the elements of a row of the
// new window must be a multiple (channels of zeros are added); 0: the convolution stays.
using WindowRowRule = std::function<int64_t(const Node& convolution)>;
Graph fold_strides(Graph graph, const WindowRowRule& rule, Rewrites& rewrites);

// Gives convolutions with constant weights channels of zeros, up to a multiple of what the target answers; 1:
// as they are.
using ChannelRule = std::function<int64_t(const Node& convolution)>;
Graph pad_channels(Graph graph, const ChannelRule& rule, Rewrites& rewrites);

// Linear layers of a norm over the last dim, with constant weights, become `normalized_linear` of the norm's
// input where the rule says so for each reader of the norm: its scale and shift go into their weights.
// Changes rounding.
using NormRule = std::function<bool(const Node& norm, const Node& linear)>;
Graph fold_norms(Graph graph, const NormRule& rule, Rewrites& rewrites);

// A norm over the last dim between products loses its place in the graph: the linear layer before it, which
// may add a residual, keeps the moments of its rows beside its result, linear layers behind it, with constant
// weights, become `normalized_linear` of the norm's input, and sums that linear layers end with compute it
// for their own elements. The rule answers for a linear layer before the norm, behind it, or with such a sum.
// Changes rounding.
Graph split_norms(Graph graph, const NormRule& rule, Rewrites& rewrites);

// Attention to keys and values that it alone reads behind an index_copy into a state becomes
// cached_attention, where the rule says so of it and the number of new rows: it reads the state as it was
// when the run began. All writes stand before the last product, or at the end if attention comes behind that.
using AttentionRule = std::function<bool(const Node& attention, int64_t rows)>;
Graph defer_cache_writes(Graph graph, const AttentionRule& rule, Rewrites& rewrites);

// Operands that the rule names of a node, which elementwise nodes compute and others read too, are computed
// for it alone by copies of these nodes, which its region can take in.
using OperandRule = std::function<std::vector<size_t>(const Node& node)>;
Graph recompute_operands(Graph graph, const OperandRule& rule, Rewrites& rewrites);

// Independent nodes and regions that run one after another, all of which the rule selects, become one region
// with several results.
using JoinRule = std::function<bool(const Node& node)>;
Graph join_regions(Graph graph, const JoinRule& rule, Rewrites& rewrites);

// Linear layers of one input, with weights of one shape (or of any width if there is one row) and nothing but
// views behind them, become one: it is cut by slices.
using LinearRule = std::function<bool(const Node& linear)>;
Graph merge_linears(Graph graph, const LinearRule& rule, Rewrites& rewrites);

}  // namespace ingot::core
