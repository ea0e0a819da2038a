// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/array.h"
#include "ingot/ingot.h"

namespace ingot::cli {

// The tensors of a .safetensors or .pt2 file. Throws CommandError.
class TensorFile {
 public:
  explicit TensorFile(const std::string& path);

  size_t count() const { return ingot_tensors_count(tensors_.get()); }
  const char* name(size_t index) const { return ingot_tensors_name(tensors_.get(), index); }
  const ingot_tensor& value(size_t index) const { return *ingot_tensors_value(tensors_.get(), index); }
  std::vector<Array> arrays() const;  // copies; of a .safetensors file, whose values are dense

 private:
  std::unique_ptr<ingot_tensors, decltype(&ingot_tensors_free)> tensors_{nullptr, &ingot_tensors_free};
};

// All files together have each weight once. Returns how many values were new.
size_t refit_from_files(ingot_engine* engine, const std::vector<std::string>& paths, bool partial);

}  // namespace ingot::cli
