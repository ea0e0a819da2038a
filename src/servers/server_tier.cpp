// SPDX-License-Identifier: Apache-2.0
#include "servers/server_tier.h"

#include <thread>

#include <fmt/core.h>

#include "servers/manifest.h"
#include "servers/server_lease.h"

namespace ingot::core {
namespace {

constexpr std::chrono::milliseconds kLookPause{50};  // between looks at another's lease

}  // namespace

template <typename Call>
bool ServerTier::ask(std::string_view what, const ReportProblem& report, Call&& call) {
  if (Clock::now().time_since_epoch().count() < silent_until_.load()) return false;
  try {
    call(Deadline(options_.deadline));
    return true;
  } catch (const std::exception& failure) {  // a ServerFailure, or a lack of memory
    silent_until_ = (Clock::now() + options_.pause).time_since_epoch().count();
    report(fmt::format("cache: cannot {} {}: {}; it is left alone for {} s", what, name(), failure.what(),
                       std::chrono::ceil<std::chrono::seconds>(options_.pause).count()));
    return false;
  }
}

Blob ServerTier::find(const Digest& key, const ReportProblem& report) {
  Blob found;
  ask("read from", report, [&](const Deadline& deadline) { found = read(key, deadline, report); });
  return found;
}

Blob ServerTier::read(const Digest& key, const Deadline& deadline, const ReportProblem& report) {
  const auto text = server_->read_manifest(key, kMostManifestBytes, deadline);
  if (!text) return nullptr;
  const auto refuse = [&](const std::string& why) {
    report(fmt::format("cache: cannot use entry {} of {}: {}", hex(key), name(), why));
    return nullptr;
  };
  const auto opened = open_manifest(*text, key, options_.trusted);
  if (const auto* problem = std::get_if<std::string>(&opened)) return refuse(*problem);
  const auto& manifest = std::get<Manifest>(opened);
  if (manifest.length > options_.largest) return refuse("it is larger than entries may be");
  auto content = server_->read_content(manifest.content, manifest.length, deadline);
  if (!content) return nullptr;  // evicted
  if (digest(*content) != manifest.content) return refuse("its bytes are not those that were signed");
  return std::make_shared<const std::vector<std::byte>>(std::move(*content));
}

// The manifest last: what it names is there.
void ServerTier::put(const Digest& key, Bytes sealed, const ReportProblem& report) {
  if (!options_.signing_key) return;
  ask("write to", report, [&](const Deadline& deadline) {
    const Manifest manifest{sealed.size(), digest(sealed)};
    server_->write_content(manifest.content, sealed, deadline);
    server_->write_manifest(key, sign_manifest(key, manifest, *options_.signing_key), deadline);
  });
}

EntryTier::Waited ServerTier::lease(const Digest& key, std::chrono::milliseconds patience,
                                    const std::function<void()>& wait, const ReportProblem& report) {
  if (!options_.signing_key || !server_->has_leases()) return {};
  Waited waited;
  const std::string token = hex(make_secret_key());
  const Clock::time_point end = Clock::now() + patience;
  for (;;) {
    bool is_mine = false, is_made = false;
    const bool has_answered = ask("wait for", report, [&](const Deadline& deadline) {
      is_mine = server_->take_lease(key, token, options_.lease, deadline);
      is_made = !is_mine && server_->read_manifest(key, kMostManifestBytes, deadline).has_value();
    });
    if (is_mine) waited.lease = std::make_unique<ServerLease>(*server_, key, token, options_.lease);
    if (!has_answered || is_mine || is_made || Clock::now() >= end) return waited;
    waited.has_waited = true;
    if (wait) wait();
    std::this_thread::sleep_for(kLookPause);
  }
}

}  // namespace ingot::core
