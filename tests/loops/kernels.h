// SPDX-License-Identifier: Apache-2.0
// Kernels that several tests use, and a short way to run the interpreter.
#pragma once

#include <string>
#include <vector>

#include "loops/functions.h"
#include "loops/interpreter.h"
#include "loops/kernel.h"

namespace ingot::core::loops::test {

inline Dim symbol(const std::string& name) { return Dim::symbol(name); }

inline Buffer buffer(std::string name, DType dtype, Shape shape, Access access = Access::kRead) {
  return {std::move(name), {dtype, std::move(shape), {}}, access};
}

// y[i, j] = op(x[i, j])
template <typename Operation>
Kernel elementwise_kernel(const Operation& op, DType dtype, Shape shape) {
  Kernel kernel{.name = "unary"};
  kernel.buffers = {buffer("x", dtype, shape), buffer("y", dtype, shape, Access::kWrite)};
  std::vector<Dim> index;
  for (size_t i = 0; i < shape.size(); ++i) {
    const std::string variable = "i" + std::to_string(i);
    kernel.parallel.push_back({variable, shape[i]});
    index.push_back(symbol(variable));
  }
  kernel.stages = {{.name = "y", .value = op(load(0, dtype, index)), .store = Store{1, index}}};
  return kernel;
}
inline Kernel unary_kernel(Unary op, DType dtype, Shape shape) {
  return elementwise_kernel([op](const Expr& x) { return unary(op, x); }, dtype, std::move(shape));
}
inline Kernel function_kernel(const Function& function, DType dtype, Shape shape) {
  return elementwise_kernel([&](const Expr& x) { return call(function, x); }, dtype, std::move(shape));
}

// Softmax over the last axis of x: f32[rows, columns].
inline Kernel softmax_kernel(const Dim& rows, const Dim& columns, DType dtype = DType::kF32) {
  const Dim i = symbol("i"), j = symbol("j");
  const DType real = arithmetic_dtype(dtype);
  Kernel kernel{.name = "softmax"};
  kernel.buffers = {buffer("x", dtype, {rows, columns}), buffer("y", dtype, {rows, columns}, Access::kWrite)};
  kernel.parallel = {{"i", rows}};
  const Loop row{"j", columns};
  const Expr x = load(0, dtype, {i, j});
  kernel.stages = {
      {.name = "m", .reduce = {row}, .combine = Combine::kMaximum, .value = x},
      {.name = "e",
       .loops = {row},
       .value = call(functions::exp, binary(Binary::kSubtract, x, local(0, real)))},
      {.name = "t", .reduce = {row}, .combine = Combine::kAdd, .value = local(1, real, {j})},
      {.name = "y",
       .loops = {row},
       .value = binary(Binary::kDivide, local(1, real, {j}), local(2, real)),
       .store = Store{1, {i, j}}},
  };
  return kernel;
}

inline KernelStatus run(const Kernel& kernel, std::vector<Tensor>& tensors,
                        const SymbolValues& symbols = {}) {
  std::vector<TensorView> views;
  for (const Tensor& tensor : tensors) views.push_back(tensor.view());
  return interpret(kernel, views, symbols);
}

inline Tensor tensor_of(const std::vector<float>& values, std::vector<int64_t> shape) {
  Tensor tensor = make_tensor(DType::kF32, std::move(shape));
  for (size_t i = 0; i < values.size(); ++i) reinterpret_cast<float*>(tensor.data.get())[i] = values[i];
  return tensor;
}

}  // namespace ingot::core::loops::test
