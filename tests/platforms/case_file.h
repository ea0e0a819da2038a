// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of a run in a file, for runs on other systems. Uses the public headers alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "ingot/tensor.h"

namespace ingot::core::test {

struct Case {
  std::vector<ingot::Tensor> inputs, outputs;
};

inline size_t bytes_of(const ingot::Tensor& tensor) {
  return (static_cast<size_t>(tensor.elements()) * static_cast<size_t>(bit_width(tensor.dtype())) + 7) / 8;
}

// For each list its length; for each tensor dtype, rank, sizes and dense elements.
inline void write_case(const std::string& path, const std::vector<ingot::Tensor>& inputs,
                       const std::vector<ingot::Tensor>& outputs) {
  std::ofstream file(path, std::ios::binary);
  const auto put = [&](int64_t number) {
    file.write(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  for (const auto* tensors : {&inputs, &outputs}) {
    put(static_cast<int64_t>(tensors->size()));
    for (const ingot::Tensor& tensor : *tensors) {
      put(static_cast<int64_t>(tensor.dtype()));
      put(static_cast<int64_t>(tensor.shape().size()));
      for (const int64_t size : tensor.shape()) put(size);
      file.write(static_cast<const char*>(tensor.data()), static_cast<std::streamsize>(bytes_of(tensor)));
    }
  }
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

template <typename Path>
Case read_case(const Path& path) {
  std::ifstream file(path, std::ios::binary);
  const auto get = [&] {
    int64_t number = 0;
    if (!file.read(reinterpret_cast<char*>(&number), sizeof(number)))
      throw std::runtime_error("a case is cut off");
    return number;
  };
  Case result;
  for (auto* tensors : {&result.inputs, &result.outputs}) {
    tensors->resize(static_cast<size_t>(get()));
    for (ingot::Tensor& tensor : *tensors) {
      const auto dtype = static_cast<ingot::DType>(get());
      std::vector<int64_t> shape(static_cast<size_t>(get()));
      for (int64_t& size : shape) size = get();
      tensor = ingot::Tensor::empty(dtype, shape);
      file.read(static_cast<char*>(tensor.data()), static_cast<std::streamsize>(bytes_of(tensor)));
    }
  }
  return result;
}

}  // namespace ingot::core::test
