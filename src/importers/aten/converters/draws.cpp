// SPDX-License-Identifier: Apache-2.0
// Random bits by SplitMix64 (Steele, Lea and Flood 2014), counted by element, and the basic distributions.
#include <cmath>
#include <numbers>

#include "importers/aten/converters/random.h"
#include "importers/aten/converters/random_source.h"
#include "importers/aten/converters/reasons.h"
#include "ops/ops.h"

namespace ingot::core::aten {

Term whole(Call& call, int64_t value) {
  Tensor tensor = make_tensor(DType::kI64, {});
  write_integer(tensor.view(), {}, value);
  return {call, call.graph().add_constant(std::move(tensor))};
}

int digits_of(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 53;
    case DType::kF16:
      return 11;
    case DType::kBF16:
      return 8;
    default:
      return 24;
  }
}

namespace {

constexpr int64_t kGolden = static_cast<int64_t>(0x9E3779B97F4A7C15),
                  kFirst = static_cast<int64_t>(0xBF58476D1CE4E5B9),
                  kSecond = static_cast<int64_t>(0x94D049BB133111EB);
constexpr int kBits = 64;

Term shifted(const Term& bits, int count) {  // zeros come in from the left
  const auto mask = static_cast<int64_t>(~uint64_t{0} >> count);
  return bits.apply(ops::shift_right, static_cast<double>(count))
      .apply(ops::bitwise_and, whole(bits.call(), mask));
}
Term mixed(Term bits) {
  const auto fold = [](const Term& value, int count) {
    return value.apply(ops::bitwise_xor, shifted(value, count));
  };
  bits = fold(bits, 30) * whole(bits.call(), kFirst);
  bits = fold(bits, 27) * whole(bits.call(), kSecond);
  return fold(bits, 31);
}

// FNV-1a: engines of one model draw different numbers, since their nodes have different names.
int64_t hash_of(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  return static_cast<int64_t>(hash);
}

// The start of the sequence of a draw: 0-d.
Term key_of(Call& call) {
  RandomSource* source = call.scope().random();
  if (source == nullptr) call.refuse(std::string(kTorchDraws));
  if (source->state == nullptr) source->state = source->make_state();
  const auto entry = [&](int64_t index) { return Term(call, selected(call, source->state, 0, index)); };
  const int64_t salt = hash_of(call.node().name) ^ hash_of(std::to_string(source->draws++));
  return mixed(mixed(entry(0) + whole(call, salt)) + entry(1) * whole(call, kGolden));
}

}  // namespace

Term random_bits(Call& call, const Shape& shape) {
  const Term key = key_of(call);
  const Term counter(call, counting(call, product(shape)));
  const Term bits = mixed(counter * whole(call, kGolden) + key);
  return {call, reshaped(call, bits, shape)};
}

DType drawing_dtype(DType dtype) { return dtype == DType::kF64 ? DType::kF64 : DType::kF32; }

Term random_fractions(Call& call, const Shape& shape, DType dtype) {
  const int digits = digits_of(dtype);
  return (shifted(random_bits(call, shape), kBits - digits).to(drawing_dtype(dtype)) *
          std::ldexp(1.0, -digits))
      .to(dtype);
}

Term random_inside(Call& call, const Shape& shape, DType dtype) {
  const int digits = digits_of(dtype) - 1;  // the middles between multiples are exact too
  const Term steps = shifted(random_bits(call, shape), kBits - digits).to(dtype);
  return (steps + 0.5) * std::ldexp(1.0, -digits);
}

// Box and Muller's.
Term random_normals(Call& call, const Shape& shape, DType dtype) {
  const Term radius = (random_inside(call, shape, dtype).apply(ops::log) * -2.0).apply(ops::square_root);
  return radius * (random_fractions(call, shape, dtype) * (2 * std::numbers::pi)).apply(ops::cos);
}

Term random_kept(Call& call, const Shape& shape, DType dtype, double p) {
  return Term(call, !(random_fractions(call, shape, DType::kF32) < p)).to(dtype);
}
double kept_factor(double p) { return p < 1 ? 1 / (1 - p) : 0; }

}  // namespace ingot::core::aten
