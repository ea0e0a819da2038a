// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sizes and numbers, and assertions. What is not known now is left open: only who asks for it
// is refused.
#include <cmath>
#include <limits>

#include "importers/aten/building.h"
#include "importers/aten/rows.h"

namespace ingot::core::aten {
namespace {

// Assertions on metadata hold by construction; comparisons of sizes only feed assertions.
void nothing(Call&) {}

void size_of(Call& call) {
  const core::Value* x = call.tensor("self");
  call.give(extent(call, x, call.axis("dim", x->type.rank())));
}
void element_count_of(Call& call) { call.give(element_count(call.tensor("self")->type)); }

// Python's operators name no operands: positions do.
using OfSizes = Dim (*)(const Dim&, const Dim&);
template <OfSizes kOfSizes, double (*kOfReals)(double, double)>
void arithmetic(Call& call) {
  const auto a = call.size_at(0), b = call.size_at(1);
  if (a && b) return call.give(kOfSizes(*a, *b));
  const auto x = call.number_at(0), y = call.number_at(1);
  if (x && y) call.give_number(kOfReals(*x, *y));
}
template <double (*kOfReals)(double, double)>
void real(Call& call) {
  const auto x = call.number_at(0), y = call.number_at(1);
  if (x && y) call.give_number(kOfReals(*x, *y));
}
template <double (*kFunction)(double)>
void to_size(Call& call) {
  if (const auto size = call.size_at(0)) return call.give(*size);
  const auto x = call.number_at(0);
  if (!x) return;
  call.require(std::abs(*x) < 0x1p63, "a size of more than 63 bits");
  call.give(Dim(static_cast<int64_t>(kFunction(*x))));
}
void to_real(Call& call) {
  if (const auto x = call.number_at(0)) call.give_number(*x);
}
void square_root(Call& call) {
  if (const auto x = call.number_at(0)) call.give_number(std::sqrt(*x));
}
void negated(Call& call) {
  if (const auto size = call.size_at(0)) return call.give(Dim(0) - *size);
  if (const auto x = call.number_at(0)) call.give_number(-*x);
}

Dim sum(const Dim& a, const Dim& b) { return a + b; }
Dim difference(const Dim& a, const Dim& b) { return a - b; }
Dim times(const Dim& a, const Dim& b) { return a * b; }
double sum(double a, double b) { return a + b; }
double difference(double a, double b) { return a - b; }
double times(double a, double b) { return a * b; }
double quotient(double a, double b) { return a / b; }
double whole_quotient(double a, double b) { return std::floor(a / b); }
double rest(double a, double b) { return a - b * std::floor(a / b); }
double larger(double a, double b) { return std::max(a, b); }
double lesser(double a, double b) { return std::min(a, b); }
double power(double a, double b) { return std::pow(a, b); }

constexpr Row kRows[] = {
    {"_operator.add", arithmetic<sum, sum>},
    {"_operator.eq", nothing},
    {"_operator.floordiv", arithmetic<floor_divide, whole_quotient>},
    {"_operator.ge", nothing},
    {"_operator.gt", nothing},
    {"_operator.le", nothing},
    {"_operator.lt", nothing},
    {"_operator.mod", arithmetic<modulo, rest>},
    {"_operator.mul", arithmetic<times, times>},
    {"_operator.ne", nothing},
    {"_operator.neg", negated},
    {"_operator.pow", real<power>},
    {"_operator.sub", arithmetic<difference, difference>},
    {"_operator.truediv", real<quotient>},
    {"aten._assert_async.default", nothing},
    {"aten._assert_async.msg", nothing},
    {"aten._assert_scalar.default", nothing},
    {"aten._assert_tensor_metadata.default", nothing},
    {"aten.sym_constrain_range.default", nothing},
    {"aten.sym_constrain_range_for_size.default", nothing},
    {"aten.sym_numel.default", element_count_of},
    {"aten.sym_size.int", size_of},
    {"math.ceil", to_size<std::ceil>},
    {"math.floor", to_size<std::floor>},
    {"math.sqrt", square_root},
    {"math.trunc", to_size<std::trunc>},
    {"torch.sym_float", to_real},
    {"torch.sym_int", to_size<std::trunc>},
    {"torch.sym_max", arithmetic<maximum, larger>},
    {"torch.sym_min", arithmetic<minimum, lesser>},
    {"torch.sym_not", nothing},
    {"torch._sym_sqrt", square_root},
};

}  // namespace

std::span<const Row> symbol_rows() { return kRows; }

}  // namespace ingot::core::aten
