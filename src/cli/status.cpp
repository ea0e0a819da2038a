// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

namespace ingot::cli {

void check(ingot_status* status) {
  if (status == nullptr) return;
  const std::string text = ingot_status_text(status);
  ingot_status_free(status);
  throw CommandError(text);
}

std::string take_text(ingot_text* text) {
  std::string copy(ingot_text_data(text), ingot_text_size(text));
  ingot_text_free(text);
  return copy;
}

}  // namespace ingot::cli
