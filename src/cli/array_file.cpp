// SPDX-License-Identifier: Apache-2.0
#include "cli/array_file.h"

#include <fmt/core.h>

#include <array>

#include "cli/commands.h"
#include "cli/npy.h"
#include "cli/npz.h"
#include "cli/output_file.h"
#include "cli/read_file.h"
#include "cli/system.h"
#include "cli/tensor_file.h"

namespace ingot::cli {
namespace {

struct DTypeRow {
  int32_t dtype;
  const char* name;
  size_t bits;
};
constexpr std::array kDTypes = {
    DTypeRow{INGOT_BOOL, "bool", 8}, DTypeRow{INGOT_U8, "u8", 8},       DTypeRow{INGOT_I8, "i8", 8},
    DTypeRow{INGOT_I16, "i16", 16},  DTypeRow{INGOT_I32, "i32", 32},    DTypeRow{INGOT_I64, "i64", 64},
    DTypeRow{INGOT_F16, "f16", 16},  DTypeRow{INGOT_BF16, "bf16", 16},  DTypeRow{INGOT_F32, "f32", 32},
    DTypeRow{INGOT_F64, "f64", 64},  DTypeRow{INGOT_U16, "u16", 16},    DTypeRow{INGOT_U32, "u32", 32},
    DTypeRow{INGOT_U64, "u64", 64},  DTypeRow{INGOT_E4M3, "e4m3", 8},   DTypeRow{INGOT_E5M2, "e5m2", 8},
    DTypeRow{INGOT_C64, "c64", 64},  DTypeRow{INGOT_C128, "c128", 128},
};

const DTypeRow& row_of(int32_t dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) return row;
  }
  throw CommandError(fmt::format("dtype {} cannot be written to a file", dtype));
}

}  // namespace

size_t element_bits(int32_t dtype) { return row_of(dtype).bits; }
const char* dtype_name(int32_t dtype) { return row_of(dtype).name; }

std::vector<Array> read_arrays(const std::string& path) {
  const std::string extension = extension_of(path);
  if (extension != ".npz" && extension != ".npy" && extension != ".safetensors") {
    throw CommandError(fmt::format("'{}': only .npy, .npz and .safetensors files can be read", path), 2);
  }
  if (extension == ".npz") return read_npz(path);
  if (extension == ".npy") return {parse_npy(read_file(path), path)};
  return TensorFile(path).arrays();
}

void check_array_path(const std::string& path, size_t count) {
  const std::string extension = extension_of(path);
  if (extension == ".npz" || (extension == ".npy" && count == 1)) return;
  throw CommandError(fmt::format("'{}': {} written to an .npz file{}", path,
                                 count == 1 ? "the output is" : fmt::format("the {} outputs are", count),
                                 count == 1 ? " or an .npy file" : ""),
                     2);
}

void write_arrays(const std::string& path, const std::vector<Array>& arrays) {
  check_array_path(path, arrays.size());
  OutputFile file(path);
  if (extension_of(path) == ".npz") {
    write_npz(file, arrays);
  } else {
    file.write(print_npy(arrays[0]));
  }
  file.finish();
}

}  // namespace ingot::cli
