// SPDX-License-Identifier: Apache-2.0
// Tensors of random numbers that the engine draws: other numbers than torch's, of the same distributions.
#include "importers/aten/converters/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "importers/aten/converters/converters.h"
#include "ops/axis.h"
#include "ops/ops.h"
#include "ops/reduce.h"
#include "ops/sort.h"
#include "ops/statistics.h"

namespace ingot::core::aten {
namespace {

// The result's dtype and sizes: requested by the call, or those of the tensor that it resembles or replaces.
struct Drawn {
  DType dtype;
  Shape shape;
  explicit Drawn(Call& call)
      : dtype(call.dtype("dtype").value_or(call.result_meta().dtype)),
        shape(call.has("size") ? call.dims("size")
                               : call.tensor(call.has("input") ? "input" : "self")->type.shape) {}
  DType real() const { return drawing_dtype(dtype); }
};

// ---- real numbers ----

void fractions(Call& call) {
  const Drawn drawn(call);
  call.give(random_fractions(call, drawn.shape, drawn.dtype));
}
void standard_normals(Call& call) {
  const Drawn drawn(call);
  call.give(random_normals(call, drawn.shape, drawn.real()).to(drawn.dtype));
}
void uniform(Call& call) {
  const Drawn drawn(call);
  const double from = call.number("from"), to = call.number("to");
  call.require(from <= to, "a range whose end is before its start");
  call.give((random_fractions(call, drawn.shape, drawn.real()) * (to - from) + from).to(drawn.dtype));
}
void normal_in_place(Call& call) {
  const Drawn drawn(call);
  call.give((random_normals(call, drawn.shape, drawn.real()) * call.number("std") + call.number("mean"))
                .to(drawn.dtype));
}
// Mean and standard deviation are tensors or numbers.
void normal(Call& call) {
  const DType dtype = call.result_meta().dtype, real = drawing_dtype(dtype);
  Shape shape;
  if (call.has("size")) {
    shape = call.dims("size");
  } else {
    shape = emit(call, ops::add, {operand(call, "mean", real), operand(call, "std", real)})->type.shape;
  }
  const Term mean(call, operand(call, "mean", real)), deviation(call, operand(call, "std", real));
  call.give((random_normals(call, shape, real) * deviation + mean).to(dtype));
}
void log_normal(Call& call) {
  const Drawn drawn(call);
  const Term exponent =
      random_normals(call, drawn.shape, drawn.real()) * call.number("std") + call.number("mean");
  call.give(exponent.apply(ops::exp).to(drawn.dtype));
}
Term exponentials(Call& call, const Shape& shape, DType real) {
  return -random_inside(call, shape, real).apply(ops::log);
}
void exponential(Call& call) {
  const Drawn drawn(call);
  call.give((exponentials(call, drawn.shape, drawn.real()) / call.number("lambd")).to(drawn.dtype));
}
void cauchy(Call& call) {
  const Drawn drawn(call);
  const Term angle = (random_inside(call, drawn.shape, drawn.real()) + -0.5) * std::numbers::pi;
  call.give((angle.apply(ops::tan) * call.number("sigma") + call.number("median")).to(drawn.dtype));
}

// ---- integers ----

// Of [low, high), from 63 bits.
void give_integers(Call& call, const Drawn& drawn, int64_t low, int64_t high) {
  call.require(low < high, "an empty range");
  call.require(low >= 0 || high <= std::numeric_limits<int64_t>::max() + low, "a range of more than 63 bits");
  const Term bits = random_bits(call, drawn.shape).apply(ops::bitwise_and, whole(call, kLargestInteger));
  call.give((bits.apply(ops::remainder, whole(call, high - low)) + whole(call, low)).to(drawn.dtype));
}
void integers_to(Call& call) { give_integers(call, Drawn(call), 0, call.integer("high")); }
void integers_between(Call& call) {
  give_integers(call, Drawn(call), call.integer("low"), call.integer("high"));
}
// One more than the largest integer up to which the dtype holds all.
int64_t limit_of(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 2;
    case DType::kU8:
      return int64_t{1} << 8;
    case DType::kI8:
      return int64_t{1} << 7;
    case DType::kI16:
      return int64_t{1} << 15;
    case DType::kI32:
      return int64_t{1} << 31;
    case DType::kI64:
      return kLargestInteger;
    default:
      return (int64_t{1} << digits_of(dtype)) + 1;
  }
}
void integers_of_the_dtype(Call& call) {
  const Drawn drawn(call);
  give_integers(call, drawn, 0, limit_of(drawn.dtype));
}
void integers_below(Call& call) { give_integers(call, Drawn(call), 0, call.integer("to")); }
void geometric(Call& call) {
  const Drawn drawn(call);
  const Term tries =
      random_inside(call, drawn.shape, drawn.real()).apply(ops::log) / std::log1p(-call.number("p"));
  call.give(tries.apply(ops::ceil).apply(ops::maximum, 1).to(drawn.dtype));
}

// ---- choices ----

void give_trials(Call& call, const Drawn& drawn, const Term& p) {
  call.give((random_fractions(call, drawn.shape, p.dtype()) < p).to(drawn.dtype));
}
void trials(Call& call) { give_trials(call, Drawn(call), real_term(call, "self")); }
void trials_of_one(Call& call) {
  const Drawn drawn(call);
  give_trials(call, drawn, {call, scalar(call.graph(), call.number("p"), drawn.real())});
}
void trials_of_each(Call& call) { give_trials(call, Drawn(call), real_term(call, "p")); }

void permutation(Call& call) {
  const Term bits = random_bits(call, {call.dim("n")});
  const core::Node* sorted = call.graph().add(ops::sort, {bits}, ops::Sort{0, false});
  call.give(converted(call.graph(), sorted->results[1], call.dtype("dtype").value_or(DType::kI64)));
}

// The first of exponential clocks whose rates are the weights. Without replacement: the first ones.
void categories(Call& call) {
  const Term weights = operand_term(call, "self");
  const DType real = drawing_dtype(weights.dtype());
  Shape shape = weights.shape();
  const auto last = static_cast<int64_t>(shape.size()) - 1;
  call.require(last >= 0, "weights without a dim");
  if (!call.flag("replacement")) {
    const Term order = weights.to(real) / exponentials(call, shape, real);
    return call.give(call.graph()
                         .add(ops::top_k, {order}, ops::TopK{last, call.integer("num_samples"), true})
                         ->results[1]);
  }
  shape.insert(shape.end() - 1, call.dim("num_samples"));
  const Term lines(call, unsqueezed(call, weights.to(real), static_cast<size_t>(last)));
  const Term order = lines / exponentials(call, shape, real);
  call.give(emit(call, ops::argmax, {order}, ops::ArgReduce{last + 1, false}));
}

// ---- dropout and random slopes ----

bool drops(Call& call) {
  const bool trains = !call.has("train") || call.flag("train");
  return trains && call.number("p") != 0;
}

void give_dropped(Call& call, const Shape& noise) {
  const Term x = operand_term(call, "input");
  const double p = call.number("p");
  call.give(x * (random_kept(call, noise, x.dtype(), p) * kept_factor(p)));
}
void dropout(Call& call) {
  if (!drops(call)) return call.give(call.tensor("input"));
  give_dropped(call, call.tensor("input")->type.shape);
}
// One element per sample and channel.
Shape channels(Call& call) {
  Shape shape = call.tensor("input")->type.shape;
  call.require(shape.size() >= 2, "channels of a tensor with fewer than two dims");
  std::fill(shape.begin() + 2, shape.end(), Dim(1));
  return shape;
}
void feature_dropout(Call& call) {
  if (!drops(call)) return call.give(call.tensor("input"));
  give_dropped(call, channels(call));
}
// The second result tells what was kept.
void native_dropout(Call& call) {
  const Term x = operand_term(call, "input");
  if (!drops(call)) {
    call.give(x);
    if (call.result_count() > 1) call.give(1, filled(call, x.shape(), 1, DType::kBool));
    return;
  }
  const double p = call.number("p");
  const Term kept = random_kept(call, x.shape(), DType::kBool, p);
  call.give(x * kept.to(x.dtype()) * kept_factor(p));
  if (call.result_count() > 1) call.give(1, kept);
}
// Dropped elements get the value that SELU tends to; mean and variance stay.
void give_alpha_dropped(Call& call, const Shape& noise) {
  constexpr double kAlpha = 1.7580993408473766;
  const Term x = operand_term(call, "input");
  const double p = call.number("p");
  const Term kept = random_kept(call, noise, x.dtype(), p);
  if (p == 1) return call.give(x * kept);
  const double scale = 1 / std::sqrt((kAlpha * kAlpha * p + 1) * (1 - p));
  call.give(x * (kept * scale) + ((kept - kept.constant(1)) * (kAlpha * scale) + kAlpha * scale * p));
}
void alpha_dropout(Call& call) {
  if (!drops(call)) return call.give(call.tensor("input"));
  give_alpha_dropped(call, call.tensor("input")->type.shape);
}
void feature_alpha_dropout(Call& call) {
  if (!drops(call)) return call.give(call.tensor("input"));
  give_alpha_dropped(call, channels(call));
}

Term random_slopes(Call& call, const Term& x) {
  const double lower = call.number("lower"), upper = call.number("upper");
  const Term slopes = random_fractions(call, x.shape(), drawing_dtype(x.dtype())) * (upper - lower) + lower;
  return (x <= 0).choose(slopes.to(x.dtype()), filled_like(x, 1));
}
Term mean_slopes(Call& call, const Term& x) {
  return (x > 0).choose(x, x * ((call.number("lower") + call.number("upper")) / 2));
}
void rrelu(Call& call) {
  const Term x = operand_term(call, "self");
  call.give(call.flag("training") ? x * random_slopes(call, x) : mean_slopes(call, x));
}
void rrelu_with_noise(Call& call) {
  const Term x = operand_term(call, "self");
  if (!call.flag("training")) {
    call.give(mean_slopes(call, x));
    return call.give(1, call.tensor("noise"));
  }
  const Term slopes = random_slopes(call, x);
  call.give(x * slopes);
  call.give(1, slopes);
}

constexpr Converter kRandomConverters[] = {
    {"aten.alpha_dropout.default", alpha_dropout},
    {"aten.bernoulli.Tensor", trials_of_each},
    {"aten.bernoulli.default", trials},
    {"aten.bernoulli.p", trials_of_one},
    {"aten.cauchy.default", cauchy},
    {"aten.dropout.default", dropout},
    {"aten.exponential.default", exponential},
    {"aten.feature_alpha_dropout.default", feature_alpha_dropout},
    {"aten.feature_dropout.default", feature_dropout},
    {"aten.geometric.default", geometric},
    {"aten.log_normal.default", log_normal},
    {"aten.multinomial.default", categories},
    {"aten.native_dropout.default", native_dropout},
    {"aten.normal.Tensor_Tensor", normal},
    {"aten.normal.Tensor_float", normal},
    {"aten.normal.float_Tensor", normal},
    {"aten.normal.float_float", normal},
    {"aten.normal_functional.default", normal_in_place},
    {"aten.rand.default", fractions},
    {"aten.rand_like.default", fractions},
    {"aten.randint.default", integers_to},
    {"aten.randint.low", integers_between},
    {"aten.randint_like.default", integers_to},
    {"aten.randint_like.low_dtype", integers_between},
    {"aten.randn.default", standard_normals},
    {"aten.randn_like.default", standard_normals},
    {"aten.random.default", integers_of_the_dtype},
    {"aten.random.to", integers_below},
    {"aten.randperm.default", permutation},
    {"aten.rrelu.default", rrelu, kComposed},
    {"aten.rrelu_with_noise_functional.default", rrelu_with_noise},
    {"aten.uniform.default", uniform},
};

}  // namespace

std::span<const Converter> random_converters() { return kRandomConverters; }

}  // namespace ingot::core::aten
