// SPDX-License-Identifier: Apache-2.0
// Random bits by SplitMix64 (Steele, Lea and Flood 2014), counted by element.
#include "importers/aten/converters/random.h"
#include "importers/aten/converters/random_source.h"
#include "importers/aten/converters/reasons.h"
#include "ops/ops.h"

namespace ingot::core::aten {

namespace {

Term whole(Call& call, int64_t value) {
  Tensor tensor = make_tensor(DType::kI64, {});
  write_integer(tensor.view(), {}, value);
  return {call, call.graph().add_constant(std::move(tensor))};
}

constexpr int64_t kGolden = static_cast<int64_t>(0x9E3779B97F4A7C15),
                  kFirst = static_cast<int64_t>(0xBF58476D1CE4E5B9),
                  kSecond = static_cast<int64_t>(0x94D049BB133111EB);

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
  return {call, reshaped(call, bits.value(), shape)};
}

}  // namespace ingot::core::aten
