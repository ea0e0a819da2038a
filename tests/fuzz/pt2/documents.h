// SPDX-License-Identifier: Apache-2.0
// The other form of the .pt2 target's input: a JSON object whose members are the JSON documents of an archive
// by name, and "archive", which says whose other members (weights, markers) it gets. What it says is changed,
// and not its bytes.
#pragma once

#include <optional>
#include <random>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace ingot::core::fuzz {

using Json = nlohmann::json;

// The documents of a golden archive.
Json documents_of(const std::string& archive);

// None if the text is not such an object.
std::optional<std::string> archive_of(std::string_view text);

// Changes, removes or repeats one value somewhere.
void mutate(Json& documents, std::minstd_rand& random);

}  // namespace ingot::core::fuzz
