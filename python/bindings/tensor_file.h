// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nanobind/nanobind.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ingot/build.h"

namespace ingot::python {

namespace nb = nanobind;

// The tensors of a .safetensors or .pt2 file.
class TensorFile {
 public:
  explicit TensorFile(const std::filesystem::path& path);

  size_t count() const { return ingot_tensors_count(tensors_.get()); }
  const char* name(size_t index) const { return ingot_tensors_name(tensors_.get(), index); }
  const ingot_tensor& value(size_t index) const { return *ingot_tensors_value(tensors_.get(), index); }
  std::vector<std::string> names() const;
  // As an array of the framework of `like`.
  nb::object copy(const std::string& name, nb::handle like) const;

 private:
  struct Free {
    void operator()(ingot_tensors* tensors) const { ingot_tensors_free(tensors); }
  };
  std::unique_ptr<ingot_tensors, Free> tensors_;
};

}  // namespace ingot::python
