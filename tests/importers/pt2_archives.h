// SPDX-License-Identifier: Apache-2.0
// The golden archives of tests/data/pt2, whole and with changed members.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "importers/aten/program/aten_graph.h"
#include "importers/pt2/read_pt2.h"

namespace ingot::core::pt2::test {

std::vector<std::string> golden_names();
std::string golden_path(const std::string& name);
std::string read_bytes(const std::string& path);

// Members by name, without the root folder.
using Members = std::map<std::string, std::string>;
Members golden_members(const std::string& name);
std::string write_zip(const Members& members);  // stored, with right checksums, payloads at multiples of 64

void replace(std::string& text, const std::string& from,
             const std::string& to);  // the first; throws if there is none

aten::Program read(const std::string& archive, bool verify_checksums = true);
std::string error_of(const std::string& archive);  // its code and text, or "" if it reads

}  // namespace ingot::core::pt2::test
