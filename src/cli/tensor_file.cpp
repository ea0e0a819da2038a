// SPDX-License-Identifier: Apache-2.0
#include "cli/tensor_file.h"

#include <fmt/core.h>

#include <map>

#include "cli/commands.h"
#include "cli/open_tensors.h"

namespace ingot::cli {

TensorFile::TensorFile(const std::string& path) { tensors_.reset(open_tensors(path)); }

std::vector<Array> TensorFile::arrays() const {
  std::vector<Array> arrays;
  for (size_t i = 0; i < count(); ++i) {
    const ingot_tensor& tensor = value(i);
    Array& array = arrays.emplace_back(Array{.name = name(i),
                                             .dtype = tensor.dtype,
                                             .shape = {tensor.shape, tensor.shape + tensor.rank},
                                             .data = {}});
    size_t bytes = element_bits(tensor.dtype) / 8;
    for (const int64_t size : array.shape) bytes *= static_cast<size_t>(size);
    const char* first = static_cast<const char*>(tensor.data);
    if (bytes > 0) array.data.assign(first, first + bytes);
  }
  return arrays;
}

size_t refit_from_files(ingot_engine* engine, const std::vector<std::string>& paths, bool partial) {
  std::vector<TensorFile> files;
  std::map<std::string, std::string> origins;
  std::vector<const char*> names;
  std::vector<ingot_tensor> values;
  for (const std::string& path : paths) {
    const TensorFile& file = files.emplace_back(path);
    for (size_t i = 0; i < file.count(); ++i) {
      const auto [other, is_new] = origins.emplace(file.name(i), path);
      if (!is_new)
        throw CommandError(
            fmt::format("'{}' and '{}' both have the weight '{}'", other->second, path, file.name(i)));
      names.push_back(file.name(i));
      values.push_back(file.value(i));
    }
  }
  const ingot_refit_options options{
      .struct_size = sizeof(options), .partial = partial ? 1 : 0, .release = nullptr, .owner = nullptr};
  check(ingot_engine_refit(engine, names.size(), names.data(), values.data(), &options));
  return names.size();
}

}  // namespace ingot::cli
