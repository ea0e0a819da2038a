// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>

#include "tests/backends/cpu/compile/run_kernel.h"
#include "tests/backends/cpu/compile/special_values.h"
#include "tests/loops/kernels.h"

namespace ingot::core::cpu {
namespace {

using loops::Access;
using loops::Binary;
using loops::Combine;
using loops::Expr;
using loops::Kernel;
using loops::Store;
using loops::Unary;
using loops::test::buffer;
using loops::test::symbol;
using test::expect_same;

const int64_t kSizes[] = {0, 1, 2, 15, 16, 17, 63, 64, 65, 100, 1000, 3000};

constexpr DType kFloats[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kE4M3, DType::kE5M2};
constexpr DType kIntegers[] = {DType::kU8,  DType::kI8,  DType::kI16, DType::kI32,
                               DType::kI64, DType::kU16, DType::kU32, DType::kU64};

// z[i] = op(x[i], y[i])
Kernel binary_kernel(Binary op, DType dtype) {
  const Dim i = symbol("i"), n = symbol("N");
  Kernel kernel{.name = "binary", .parallel = {{"i", n}}};
  const Expr value = binary(op, loops::load(0, dtype, {i}), loops::load(1, dtype, {i}));
  kernel.buffers = {buffer("x", dtype, {n}), buffer("y", dtype, {n}),
                    buffer("z", value->dtype == DType::kBool ? DType::kBool : dtype, {n}, Access::kWrite)};
  kernel.stages = {{.name = "z", .value = value, .store = Store{2, {i}}}};
  return kernel;
}

TEST(EmitKernel, EverySize) {
  for (const int64_t n : kSizes) {
    expect_same(binary_kernel(Binary::kAdd, DType::kF32), {{"N", n}});
    expect_same(binary_kernel(Binary::kMultiply, DType::kF16), {{"N", n}});
  }
}

TEST(EmitKernel, FloatingOperations) {
  const Binary ops[] = {Binary::kAdd,         Binary::kSubtract, Binary::kMultiply,    Binary::kDivide,
                        Binary::kFloorDivide, Binary::kModulo,   Binary::kRemainder,   Binary::kMaximum,
                        Binary::kMinimum,     Binary::kPower,    Binary::kAtan2,       Binary::kLess,
                        Binary::kEqual,       Binary::kNotEqual, Binary::kGreaterEqual};
  for (const DType dtype : kFloats) {
    for (const Binary op : ops) expect_same(binary_kernel(op, dtype), {{"N", 200}}, {.relative = 2e-6});
  }
}

TEST(EmitKernel, IntegerOperations) {
  const Binary ops[] = {Binary::kAdd,         Binary::kSubtract, Binary::kMultiply,  Binary::kDivide,
                        Binary::kFloorDivide, Binary::kModulo,   Binary::kRemainder, Binary::kMaximum,
                        Binary::kMinimum,     Binary::kPower,    Binary::kAnd,       Binary::kOr,
                        Binary::kXor,         Binary::kLess,     Binary::kEqual,     Binary::kGreaterEqual};
  for (const DType dtype : kIntegers) {
    for (const Binary op : ops)
      expect_same(binary_kernel(op, dtype), {{"N", 150}}, {.low = is_signed(dtype) ? -7.0 : 0.0, .high = 7});
    for (const Binary op : {Binary::kShiftLeft, Binary::kShiftRight})
      expect_same(binary_kernel(op, dtype), {{"N", 150}}, {.low = 0, .high = 7});
  }
  for (const Binary op : {Binary::kAnd, Binary::kOr, Binary::kXor, Binary::kEqual})
    expect_same(binary_kernel(op, DType::kBool), {{"N", 150}});
}

// Elements of a few planes next to each other: lanes are stored with a stride.
TEST(EmitKernel, StridedStores) {
  const Dim i = symbol("i"), plane = symbol("c"), n = symbol("N");
  const auto planes_of = [&](int64_t planes, DType dtype) {
    Kernel kernel{.name = "planes", .parallel = {{"c", planes}, {"i", n}}};
    kernel.buffers = {buffer("x", dtype, {planes, n}), buffer("z", dtype, {n, planes}, Access::kWrite)};
    kernel.stages = {
        {.name = "z", .value = loops::load(0, dtype, {plane, i}), .store = Store{1, {i, plane}}}};
    return kernel;
  };
  for (const auto& dtypes : {std::span<const DType>(kFloats), std::span<const DType>(kIntegers)}) {
    for (const DType dtype : dtypes) {
      for (const int64_t planes : {2, 3, 4, 5}) {
        for (const int64_t size : {1, 33, 64, 150}) expect_same(planes_of(planes, dtype), {{"N", size}});
      }
    }
  }
}

// Limits within the integers and beyond, one of which may hide the other, by extremes and by choices.
TEST(EmitKernel, ConversionsOfLimitedNumbers) {
  const Dim i = symbol("i"), n = symbol("N");
  const auto limited = [&](double low, double high, bool keeps_nan, DType to) {
    const Expr x = loops::load(0, DType::kF32, {i});
    const auto bounded = [&](Binary extremum, Binary beyond, const Expr& value, double end) {
      const Expr limit = loops::constant(DType::kF32, end);
      return keeps_nan ? binary(extremum, value, limit)
                       : loops::select(binary(beyond, value, limit), value, limit);
    };
    const Expr raised = bounded(Binary::kMaximum, Binary::kGreater, x, low);
    const Expr whole = unary(Unary::kRoundEven, bounded(Binary::kMinimum, Binary::kLess, raised, high));
    Kernel kernel{.name = "limited", .parallel = {{"i", n}}};
    kernel.buffers = {buffer("x", DType::kF32, {n}), buffer("z", to, {n}, Access::kWrite)};
    kernel.stages = {{.name = "z", .value = loops::convert(to, whole), .store = Store{1, {i}}}};
    return kernel;
  };
  constexpr std::pair<double, double> kLimits[] = {{-128, 127}, {0, 255}, {-7.5, 9.5}, {-3e9, 3e9}, {5, -5}};
  for (const auto& [low, high] : kLimits) {
    for (const bool keeps_nan : {false, true}) {
      for (const DType to : {DType::kI32, DType::kI64, DType::kU8, DType::kU32}) {
        expect_same(limited(low, high, keeps_nan, to), {{"N", 150}}, {.low = -300, .high = 300});
        expect_same(limited(low, high, keeps_nan, to), {{"N", 150}}, {.low = -6e9, .high = 6e9});
      }
    }
  }
}

// Bytes as quantization makes them: the ends of the range are those of the dtype, or not.
Kernel quantizing_kernel(DType to, double low, double high, int64_t offset) {
  const Dim i = symbol("i"), n = symbol("N");
  const auto limit = [](double end) { return loops::constant(DType::kF32, end); };
  const Expr x = loops::load(0, DType::kF32, {i});
  const Expr raised = loops::select(binary(Binary::kGreater, x, limit(low)), x, limit(low));
  const Expr limited = loops::select(binary(Binary::kLess, raised, limit(high)), raised, limit(high));
  Expr whole = loops::convert(DType::kI32, unary(Unary::kRoundEven, limited));
  if (offset != 0) whole = binary(Binary::kAdd, whole, loops::integer_constant(DType::kI32, offset));
  Kernel kernel{.name = "quantizing", .parallel = {{"i", n}}};
  kernel.buffers = {buffer("x", DType::kF32, {n}), buffer("z", to, {n}, Access::kWrite)};
  kernel.stages = {{.name = "z", .value = loops::convert(to, whole), .store = Store{1, {i}}}};
  return kernel;
}

TEST(EmitKernel, QuantizedBytes) {
  for (const DType to : {DType::kU8, DType::kI8}) {
    const int64_t smallest = is_signed(to) ? -128 : 0;
    for (const int64_t offset : {0, 1, 7, 100, -100, 255}) {
      for (const int64_t above : {0, 1}) {
        for (const int64_t below : {0, 5}) {
          const auto low = static_cast<double>(smallest + above - offset);
          const auto high = static_cast<double>(smallest + 255 - below - offset);
          const Kernel kernel = quantizing_kernel(to, low, high, offset);
          for (const int64_t size : {31, 64, 150})
            expect_same(kernel, {{"N", size}}, {.low = -300, .high = 300});
          expect_same(kernel, {{"N", 150}}, {.low = -6e9, .high = 6e9});
          const int64_t specials = test::special_pairs(DType::kF32);
          expect_same(kernel, {{"N", specials}}, {}, {test::special_tensor(DType::kF32, {specials}, 0)});
        }
      }
    }
  }
}

TEST(EmitKernel, UnaryOperationsAndFunctions) {
  for (const DType dtype : {DType::kF32, DType::kF64, DType::kBF16}) {
    for (const Unary op : {Unary::kNegate, Unary::kAbsolute, Unary::kSquareRoot, Unary::kFloor, Unary::kCeil,
                           Unary::kTruncate, Unary::kRoundEven})
      expect_same(loops::test::unary_kernel(op, dtype, {symbol("N")}), {{"N", 130}}, {.relative = 2e-6});
    for (const loops::Function* function : loops::all_functions()) {
      expect_same(loops::test::function_kernel(*function, dtype, {symbol("N")}), {{"N", 130}},
                  {.relative = 2e-6});
    }
  }
  for (const DType dtype : kIntegers) {
    for (const Unary op : {Unary::kNegate, Unary::kAbsolute, Unary::kNot}) {
      expect_same(loops::test::unary_kernel(op, dtype, {symbol("N")}), {{"N", 70}},
                  {.low = is_signed(dtype) ? -100.0 : 0.0, .high = 100});
    }
  }
}

Kernel convert_kernel(DType from, DType to) {
  const Dim i = symbol("i"), n = symbol("N");
  Kernel kernel{.name = "convert", .parallel = {{"i", n}}};
  kernel.buffers = {buffer("x", from, {n}), buffer("y", to, {n}, Access::kWrite)};
  kernel.stages = {{.name = "y", .value = convert(to, loops::load(0, from, {i})), .store = Store{1, {i}}}};
  return kernel;
}

TEST(EmitKernel, Conversions) {
  const DType all[] = {DType::kBool, DType::kU8,   DType::kI8,   DType::kI16, DType::kI32, DType::kI64,
                       DType::kF16,  DType::kBF16, DType::kF32,  DType::kF64, DType::kU16, DType::kU32,
                       DType::kU64,  DType::kE4M3, DType::kE5M2, DType::kI4,  DType::kU4};
  for (const DType from : all) {
    for (const DType to : all) {
      const bool from_floating = is_floating(from);
      expect_same(convert_kernel(from, to), {{"N", 77}},
                  {.relative = 0, .low = from_floating || is_signed(from) ? -100.0 : 0.0, .high = 100});
    }
  }
}

// Ties, what is rounded up to infinity, denormals, and NaN whose upper half is that of infinity or all ones.
TEST(EmitKernel, NarrowsToBFloat16) {
  std::vector<float> values;
  for (uint32_t upper = 0; upper < 0x10000; upper += upper % 0x80 == 0x7f ? 1 : 9) {
    for (const uint32_t lower : {0u, 1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
  }
  const auto count = static_cast<int64_t>(values.size());
  expect_same(convert_kernel(DType::kF32, DType::kBF16), {{"N", count}}, {.relative = 0},
              {loops::test::tensor_of(values, {count})});
}

TEST(EmitKernel, SoftmaxAlongRows) {
  for (const int64_t columns : {0, 1, 5, 16, 77, 128, 1000}) {
    expect_same(loops::test::softmax_kernel(symbol("B"), symbol("C")), {{"B", 7}, {"C", columns}});
    expect_same(loops::test::softmax_kernel(symbol("B"), columns), {{"B", 7}});
  }
  expect_same(loops::test::softmax_kernel(symbol("B"), 5000, DType::kBF16), {{"B", 3}});
  expect_same(loops::test::softmax_kernel(symbol("B"), 300, DType::kF64), {{"B", 3}});
}

// Softmax over dim 0 of x: f32[C, N]: lanes are points.
TEST(EmitKernel, SoftmaxAcrossRows) {
  Kernel kernel = loops::test::softmax_kernel(symbol("N"), symbol("C"));
  const int order[] = {1, 0};
  for (auto& buffer : kernel.buffers) buffer.type.layout = Layout::permutation(order);
  for (const int64_t n : {1, 17, 64, 200}) expect_same(kernel, {{"N", n}, {"C", 9}});
}

// y[...] = sum over the last or first dim.
Kernel sum_kernel(bool along_rows, Combine combine, DType dtype) {
  const Dim i = symbol("i"), k = symbol("k"), n = symbol("N"), m = symbol("K");
  Kernel kernel{.name = "sum", .parallel = {{"i", n}}};
  const std::vector<Dim> index = along_rows ? std::vector<Dim>{i, k} : std::vector<Dim>{k, i};
  kernel.buffers = {buffer("x", dtype, along_rows ? Shape{n, m} : Shape{m, n}),
                    buffer("y", dtype, {n}, Access::kWrite)};
  kernel.stages = {{.name = "y",
                    .reduce = {{"k", m}},
                    .combine = combine,
                    .value = loops::load(0, dtype, index),
                    .store = Store{1, {i}}}};
  return kernel;
}

TEST(EmitKernel, Reductions) {
  for (const bool along_rows : {true, false}) {
    for (const int64_t k : {0, 1, 3, 40, 500}) {
      expect_same(sum_kernel(along_rows, Combine::kAdd, DType::kF32), {{"N", 33}, {"K", k}},
                  {.relative = 1e-5});
      expect_same(sum_kernel(along_rows, Combine::kMaximum, DType::kF16), {{"N", 33}, {"K", k}});
      expect_same(sum_kernel(along_rows, Combine::kMinimum, DType::kI64), {{"N", 33}, {"K", k}},
                  {.low = -50, .high = 50});
      expect_same(sum_kernel(along_rows, Combine::kMultiply, DType::kF64), {{"N", 33}, {"K", k}},
                  {.low = 0.9, .high = 1.1});
      expect_same(sum_kernel(along_rows, Combine::kAnd, DType::kBool), {{"N", 33}, {"K", k}});
      expect_same(sum_kernel(along_rows, Combine::kOr, DType::kBool), {{"N", 33}, {"K", k}});
    }
  }
}

TEST(EmitKernel, ReductionsOverSeveralLoops) {
  const Dim i = symbol("i"), h = symbol("h"), w = symbol("w");
  Kernel kernel{.name = "mean", .parallel = {{"i", symbol("C")}}};
  kernel.buffers = {buffer("x", DType::kF32, {symbol("C"), 7, 9}),
                    buffer("y", DType::kF32, {symbol("C")}, Access::kWrite)};
  kernel.stages = {
      {.name = "t",
       .reduce = {{"h", 7}, {"w", 9}},
       .combine = Combine::kAdd,
       .value = loops::load(0, DType::kF32, {i, h, w})},
      {.name = "y",
       .value = binary(Binary::kDivide, loops::local(0, DType::kF32), loops::constant(DType::kF32, 63)),
       .store = Store{1, {i}}}};
  expect_same(kernel, {{"C", 21}});
}

TEST(EmitKernel, LooksUpRowsAndElements) {
  const Dim i = symbol("i"), j = symbol("j"), row = symbol("row");
  for (const bool by_element : {false, true}) {
    Kernel kernel{.name = "lookup", .parallel = {{"i", symbol("N")}, {"j", symbol("D")}}};
    kernel.buffers = {buffer("table", DType::kF32, {12, symbol("D")}),
                      buffer("ids", DType::kI64, {symbol("N"), symbol("D")}),
                      buffer("y", DType::kF32, {symbol("N"), symbol("D")}, Access::kWrite)};
    kernel.stages = {{.name = "y",
                      .bindings = {{"row", loops::load(1, DType::kI64, {i, by_element ? j : Dim(0)}), 12}},
                      .value = loops::load(0, DType::kF32, {row, j}),
                      .store = Store{2, {i, j}}}};
    expect_same(kernel, {{"N", 9}, {"D", 50}}, {.low = 0, .high = 11});
    expect_same(kernel, {{"N", 9}, {"D", 50}}, {.low = -1, .high = 20});  // reported, and nothing is touched
  }
}

// y = x with `before` zeros before and after: loads are guarded.
TEST(EmitKernel, GuardsLoads) {
  const Dim i = symbol("i"), n = symbol("N");
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kI8, DType::kI64}) {
    Kernel kernel{.name = "pad", .parallel = {{"r", 3}, {"i", n + Dim(10)}}};
    kernel.buffers = {buffer("x", dtype, {3, n}), buffer("y", dtype, {3, n + Dim(10)}, Access::kWrite)};
    const Expr index = loops::index_value(i - Dim(5));
    const Expr inside =
        binary(Binary::kAnd, binary(Binary::kGreaterEqual, index, loops::integer_constant(DType::kI64, 0)),
               binary(Binary::kLess, index, loops::index_value(n)));
    kernel.stages = {
        {.name = "y",
         .value = select(inside, loops::load(0, dtype, {symbol("r"), i - Dim(5)}), loops::constant(dtype, 7)),
         .store = Store{1, {symbol("r"), i}}}};
    for (const int64_t size : {0, 1, 30, 100}) expect_same(kernel, {{"N", size}}, {.low = 0, .high = 5});
  }
}

TEST(EmitKernel, BroadcastsStridesAndLayouts) {
  const Dim i = symbol("i"), j = symbol("j"), n = symbol("N");
  const int order[] = {0, 2, 1};
  Kernel kernel{.name = "mixed", .parallel = {{"b", 2}, {"i", n}, {"j", 20}}};
  kernel.buffers = {buffer("x", DType::kF32, {2, n, 20}), buffer("bias", DType::kF32, {20}),
                    buffer("column", DType::kF32, {n, 1}), buffer("turned", DType::kF32, {20, n}),
                    buffer("y", DType::kF32, {2, n, 20}, Access::kWrite)};
  kernel.buffers[0].type.layout = Layout::permutation(order);
  const Expr sum = binary(Binary::kAdd, loops::load(0, DType::kF32, {symbol("b"), i, j}),
                          loops::load(1, DType::kF32, {j}));
  const Expr product = binary(Binary::kMultiply, sum, loops::load(2, DType::kF32, {i, 0}));
  const Expr flipped = loops::load(3, DType::kF32, {Dim(19) - j, i});
  kernel.stages = {{.name = "y",
                    .value = binary(Binary::kSubtract, product, flipped),
                    .store = Store{4, {symbol("b"), i, j}}}};
  for (const int64_t size : {1, 6, 33}) expect_same(kernel, {{"N", size}});
}

TEST(EmitKernel, BlockedLayoutsAndReshapes) {
  const Dim i = symbol("i"), c = symbol("c");
  const int order[] = {0, 1};
  Kernel kernel{.name = "blocked", .parallel = {{"i", symbol("N")}, {"c", 40}}};
  kernel.buffers = {buffer("x", DType::kF32, {symbol("N") * Dim(40)}),
                    buffer("y", DType::kF32, {symbol("N"), 40}, Access::kWrite)};
  kernel.buffers[1].type.layout = Layout::blocked(order, 1, 16);
  kernel.stages = {{.name = "y",
                    .value = loops::load(0, DType::kF32,
                                         {floor_divide(i * Dim(40) + c, 8) * Dim(8) + modulo(c + Dim(3), 8)}),
                    .store = Store{1, {i, c}}}};
  expect_same(kernel, {{"N", 5}});
}

// Windows of 3 by 3 with a stride of 2 and padding: small reductions are unrolled, and every second element
// is loaded.
TEST(EmitKernel, Windows) {
  const Dim c = symbol("c"), h = symbol("h"), w = symbol("w"), a = symbol("a"), b = symbol("b");
  const Dim row = h * Dim(2) + a - Dim(1), column = w * Dim(2) + b - Dim(1);
  const auto inside = [](const Dim& place, const Dim& size) {
    return binary(
        Binary::kAnd,
        binary(Binary::kGreaterEqual, loops::index_value(place), loops::integer_constant(DType::kI64, 0)),
        binary(Binary::kLess, loops::index_value(place), loops::index_value(size)));
  };
  const int blocks[] = {0, 1, 2};
  for (const bool padded : {false, true}) {
    for (const bool blocked : {false, true}) {
      const Dim shift = padded ? Dim(0) : Dim(1);
      Kernel kernel{.name = "pool", .parallel = {{"c", 32}, {"h", 9}, {"w", symbol("W")}}};
      kernel.buffers = {buffer("x", DType::kF32, {32, 20, symbol("W") * Dim(2) + Dim(2)}),
                        buffer("y", DType::kF32, {32, 9, symbol("W")}, Access::kWrite)};
      if (blocked)
        kernel.buffers[0].type.layout = kernel.buffers[1].type.layout = Layout::blocked(blocks, 0, 16);
      Expr value = loops::load(0, DType::kF32, {c, row + shift, column + shift});
      if (padded) {
        value = select(binary(Binary::kAnd, inside(row, 20), inside(column, symbol("W") * Dim(2) + Dim(2))),
                       value, loops::constant(DType::kF32, -100));
      }
      kernel.stages = {{.name = "y",
                        .reduce = {{"a", 3}, {"b", 3}},
                        .combine = Combine::kMaximum,
                        .value = value,
                        .store = Store{1, {c, h, w}}}};
      for (const int64_t size : {1, 9, 40}) expect_same(kernel, {{"W", size}});
    }
  }
}

TEST(EmitKernel, FourBitElements) {
  const Dim i = symbol("i"), j = symbol("j");
  for (const DType dtype : {DType::kI4, DType::kU4}) {
    Kernel kernel{.name = "packed", .parallel = {{"i", 5}, {"j", symbol("N")}}};
    kernel.buffers = {buffer("x", dtype, {5, symbol("N")}),
                      buffer("y", dtype, {5, symbol("N")}, Access::kWrite),
                      buffer("z", DType::kF32, {5, symbol("N")}, Access::kWrite)};
    const Expr x = loops::load(0, dtype, {i, j});
    kernel.stages = {{.name = "y", .value = unary(Unary::kNot, x), .store = Store{1, {i, j}}},
                     {.name = "z", .value = convert(DType::kF32, x), .store = Store{2, {i, j}}}};
    for (const int64_t n : {1, 7, 64, 65}) expect_same(kernel, {{"N", n}});
  }
}

}  // namespace
}  // namespace ingot::core::cpu
