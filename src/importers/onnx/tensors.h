// SPDX-License-Identifier: Apache-2.0
// Values of initializers and constants: from the model's file, or from files beside it.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "importers/onnx/model.h"
#include "support/file.h"
#include "types/tensor.h"

namespace ingot::core::onnx {

// Of TensorProto.DataType; nullopt for strings and what Ingot does not compute with.
std::optional<DType> dtype_of(int64_t data_type);
std::string data_type_name(int64_t data_type);  // "float16", "string", or its number

// i4 as i8, and u4 as u8; other dtypes stay.
DType widened(DType dtype);
Tensor widened(const Tensor& tensor);  // of i4 or u4

class TensorReader {
 public:
  // No folder: values in other files are an error.
  explicit TensorReader(std::optional<std::filesystem::path> folder) : folder_(std::move(folder)) {}

  // A copy: files give values no alignment, and may change later. UserError INGOT-U541 (sizes that contradict
  // the values), INGOT-U542 (external files); UnsupportedError INGOT-N540 (the dtype).
  Tensor read(const TensorDef& tensor);

 private:
  Tensor read_nibbles(const TensorDef& tensor, DType dtype);
  Bytes external_bytes(const TensorDef& tensor);
  const std::shared_ptr<const MappedFile>& file(const std::string& location, const std::string& name);

  std::optional<std::filesystem::path> folder_;
  std::map<std::string, std::shared_ptr<const MappedFile>> files_;  // by location
};

}  // namespace ingot::core::onnx
