// SPDX-License-Identifier: Apache-2.0
#include "cli/commands.h"

#include <nlohmann/json.hpp>

namespace ingot::cli {

std::string json_of(const CommandError& error) {
  nlohmann::json described = error.details;
  if (!described.contains("message")) described = {{"message", error.what()}};
  described["status"] = error.status;
  return nlohmann::json{{"error", described}}.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
         "\n";
}

void check(ingot_status* status) {
  if (status == nullptr) return;
  CommandError error(ingot_status_text(status));
  error.details = {{"code", ingot_status_code(status)},
                   {"message", ingot_status_message(status)},
                   {"node", ingot_status_node(status)},
                   {"source", ingot_status_source(status)},
                   {"advice", ingot_status_advice(status)}};
  std::erase_if(error.details, [](const auto& detail) { return detail.second.empty(); });
  ingot_status_free(status);
  throw error;
}

std::string take_text(ingot_text* text) {
  std::string copy(ingot_text_data(text), ingot_text_size(text));
  ingot_text_free(text);
  return copy;
}

}  // namespace ingot::cli
