// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/pt2/documents.h"

#include <vector>

#include "tests/fuzz/pt2/calls.h"
#include "tests/importers/pt2_archives.h"

namespace ingot::core::fuzz {
namespace {

using pt2::test::Members;

const Members& golden(const std::string& name) {
  static const std::map<std::string, Members> all = [] {
    std::map<std::string, Members> read;
    for (const std::string& archive : pt2::test::golden_names())
      read[archive] = pt2::test::golden_members(archive);
    return read;
  }();
  const auto found = all.find(name);
  return found == all.end() ? all.begin()->second : found->second;
}

std::string text_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

void collect(Json& json, std::vector<Json*>& all) {
  all.push_back(&json);
  if (!json.is_structured()) return;
  for (Json& inner : json) collect(inner, all);
}

class Mutator {
 public:
  Mutator(Json& documents, std::minstd_rand& random) : random_(random) { collect(documents, all_); }

  void run() {
    Json& chosen = any();
    if (chosen.is_object() && below(2) == 0) return change_member(chosen);
    if (chosen.is_array() && below(2) == 0) return change_item(chosen);
    if (chosen.is_number_integer()) {
      chosen = number(chosen.get<int64_t>());
    } else if (chosen.is_string() && below(3) == 0) {
      change_text(chosen);
    } else {
      chosen = Json(any_like(chosen));
    }
  }

 private:
  size_t below(size_t count) { return count == 0 ? 0 : random_() % count; }
  Json& any() { return *all_[below(all_.size())]; }

  // Mostly a value of the same kind.
  const Json& any_like(const Json& json) {
    for (int i = 0; i < 64; ++i) {
      const Json& other = any();
      if (other.type() == json.type()) return other;
    }
    return any();
  }

  int64_t number(int64_t old) {
    static constexpr int64_t kNumbers[] = {0, 1, 2, 3, 7, -1, 1 << 20, INT32_MAX, INT64_MAX, INT64_MIN};
    const size_t way = below(4);
    if (way == 0) return old == INT64_MAX ? 0 : old + 1;
    return way == 1 && old > INT64_MIN ? old - 1 : kNumbers[below(std::size(kNumbers))];
  }

  void change_member(Json& object) {
    if (object.empty()) return;
    const auto member = std::next(object.begin(), static_cast<long>(below(object.size())));
    const Json value = *member, other = any();  // the pointers may dangle
    object.erase(member);
    if (below(2) == 0) object["renamed"] = value;
    if (other.is_object() && !other.empty() && below(2) == 0) object[other.begin().key()] = value;
  }

  void change_item(Json& list) {
    if (list.empty()) return;
    const size_t at = below(list.size());
    const Json item = list[at];
    if (below(2) == 0) {
      list.erase(at);
    } else {
      list.insert(list.begin() + static_cast<long>(at), item);
    }
  }

  void change_text(Json& json) {
    static constexpr std::string_view kPieces[] = {"s0",   "(",          ")", "*",  "//", "FloorDiv(", ",",
                                                   "Max(", "9999999999", "-", "**", ".",  "%",         " + "};
    std::string text = json.get<std::string>();
    const size_t at = below(text.size() + 1);
    if (below(2) == 0 && at < text.size()) {
      text.erase(at, 1 + below(4));
    } else {
      text.insert(at, kPieces[below(std::size(kPieces))]);
    }
    json = text;
  }

  std::minstd_rand& random_;
  std::vector<Json*> all_;
};

}  // namespace

Json documents_of(const std::string& archive) {
  Json documents = {{"archive", archive}};
  for (const auto& [name, text] : golden(archive)) {
    if (name.ends_with(".json")) documents[name] = Json::parse(text);
  }
  return documents;
}

std::optional<std::string> archive_of(std::string_view text) {
  const Json documents = Json::parse(text, nullptr, false);
  if (!documents.is_object()) return std::nullopt;
  Members members = golden(documents.contains("archive") && documents["archive"].is_string()
                               ? documents["archive"].get<std::string>()
                               : "");
  for (const auto& [name, document] : documents.items()) {
    if (name.ends_with(".json")) members[name] = text_of(document);
  }
  return pt2::test::write_zip(members);
}

void mutate(Json& documents, std::minstd_rand& random) {
  if (random() % 2 == 0) return Mutator(documents, random).run();
  try {
    change_call(documents, random);
  } catch (const Json::exception&) {  // the documents are those of no program any more
    Mutator(documents, random).run();
  }
}

}  // namespace ingot::core::fuzz
