// SPDX-License-Identifier: Apache-2.0
#include "cli/cache_options.h"

#include <string>

namespace ingot::cli {
namespace {

// CLI11 reads -1 as the largest number.
std::string check_bytes(const std::string& text) {
  const bool good = text.find_first_not_of("0123456789") == std::string::npos;
  return good ? "" : "'" + text + "' is not a number of bytes";
}

}  // namespace

void add_cache(CLI::App& app, CacheCommand& command) {
  CLI::App* cache = app.add_subcommand("cache", "What builds keep on disk");
  cache->require_subcommand(1);
  const auto add = [&](const char* name, const char* summary, void (*run)(const CacheCommand&)) {
    CLI::App* sub = cache->add_subcommand(name, summary);
    sub->add_option("--folder", command.folder,
                    "where the entries are (default: INGOT_ENGINE_CACHE_DIR, or ~/.cache/ingot)")
        ->type_name("folder");
    sub->add_flag("--json", command.json, "print JSON");
    sub->callback([&command, run] { run(command); });
    return sub;
  };
  add("ls", "List the entries, the least recently used first", &cache_list);
  add("stats", "How much there is", &cache_stats);
  add("why", "What decides an entry", &cache_why)
      ->add_option("key", command.key, "as `ingot cache ls` prints it, or its first digits")
      ->type_name("")
      ->required();
  add("verify", "Check every byte, and remove damaged entries", &cache_verify);
  add("gc", "Remove the least recently used entries", &cache_collect)
      ->add_option("--size", command.bytes, "how much may stay (default: INGOT_ENGINE_CACHE_SIZE)")
      ->type_name("bytes")
      ->check(&check_bytes);
  add("clear", "Remove all entries", &cache_clear);
  add("bundle", "Write all entries to one file, for machines that build the same models", &cache_bundle)
      ->add_option("file", command.file, "bundle to write")
      ->type_name("FILE")
      ->required();
  add("keygen", "Write a new key that signs entries and engines: FILE, and FILE.pub for those who trust it",
      &cache_keygen)
      ->add_option("file", command.file, "file of the secret key")
      ->type_name("FILE")
      ->required();
  add("unbundle", "Check and add the entries of such a file", &cache_unbundle)
      ->add_option("file", command.file, "bundle to read")
      ->type_name("FILE")
      ->required();
}

}  // namespace ingot::cli
