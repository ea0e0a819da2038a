// SPDX-License-Identifier: Apache-2.0
// From the data of a report to what page.html shows: texts alone, which the template escapes.
#pragma once

#include <kainjow/mustache.hpp>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::core::report {

using Json = nlohmann::json;
using Data = kainjow::mustache::data;
using Codes = std::set<std::string>;  // error codes that the page names

inline Data empty_list() { return Data(Data::type::list); }

// Fields of an object: empty if they are missing. Throw Json::exception if they are of another kind.
std::string text_of(const Json& object, const char* name);
double number_of(const Json& object, const char* name);
int64_t integer_of(const Json& value);  // one that is none is a UserError too
const Json& array_of(const Json& object, const char* name);
const Json& object_of(const Json& object, const char* name);

std::string readable_bytes(double bytes);       // "1.50 MiB"
std::string readable_count(double count);       // "12345"; "" if it is unreasonable
std::string short_line(std::string_view line);  // of the model, without the folders that say nothing

// Codes in a text ("INGOT-N520"), as {code}; they are added to `codes`.
Data codes_in(std::string_view text, Codes& codes);

// The segments of a report; of a single engine that has none, its nodes.
Json segments_of(const Json& report);
Data segment_data(const Json& segments, Codes& codes);
std::string totals_of(const Json& segments);

// These add their fields to the data of an engine.
void add_passes(Data& engine, const Json& build);
void add_kernels(Data& engine, const Json& inspect);
void add_memory(Data& engine, const Json& inspect);
void add_times(Data& engine, const Json& build, const Json& profile);

// main, init and their nested programs, with titles; UserError INGOT-U039 if they nest too deeply.
struct TitledProgram {
  std::string title;
  const Json* program;
};
std::vector<TitledProgram> programs_of(const Json& inspect);

}  // namespace ingot::core::report
