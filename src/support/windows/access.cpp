// SPDX-License-Identifier: Apache-2.0
#include "support/windows/access.h"

#include <aclapi.h>
#include <sddl.h>

#include <cerrno>
#include <cstddef>
#include <string>
#include <vector>

#include "support/windows/text.h"

namespace ingot::core {
namespace {

// The user of this process; empty if the system does not say.
std::vector<std::byte> current_user_token() {
  HANDLE token = nullptr;
  if (::OpenProcessToken(::GetCurrentProcess(), TOKEN_QUERY, &token) == 0) return {};
  DWORD size = 0;
  ::GetTokenInformation(token, TokenUser, nullptr, 0, &size);
  std::vector<std::byte> user(size);
  if (::GetTokenInformation(token, TokenUser, user.data(), size, &size) == 0) user.clear();
  ::CloseHandle(token);
  return user;
}

PSID sid_of(const std::vector<std::byte>& user) {
  return reinterpret_cast<const TOKEN_USER*>(user.data())->User.Sid;
}

bool is_trusted(PSID who, const std::vector<std::byte>& user) {
  return (!user.empty() && ::EqualSid(who, sid_of(user)) != 0) ||
         ::IsWellKnownSid(who, WinBuiltinAdministratorsSid) != 0 ||
         ::IsWellKnownSid(who, WinLocalSystemSid) != 0 || ::IsWellKnownSid(who, WinCreatorOwnerSid) != 0;
}

bool lists_others(PACL list, const std::vector<std::byte>& user) {
  if (list == nullptr) return true;  // no list: everyone may do everything
  for (DWORD i = 0; i < list->AceCount; ++i) {
    void* entry = nullptr;
    if (::GetAce(list, i, &entry) == 0) return true;
    const auto* allowed = static_cast<const ACCESS_ALLOWED_ACE*>(entry);
    if (allowed->Header.AceType == ACCESS_DENIED_ACE_TYPE || allowed->Mask == 0) continue;
    if (allowed->Header.AceType != ACCESS_ALLOWED_ACE_TYPE) return true;  // of a kind that we do not read
    if (!is_trusted(const_cast<DWORD*>(&allowed->SidStart), user)) return true;
  }
  return false;
}

}  // namespace

FileAccess access_of(HANDLE file) {
  constexpr uint32_t kForUser = 0700, kForAll = 0777;
  constexpr SECURITY_INFORMATION kWanted = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
  PSID owner = nullptr;
  PACL list = nullptr;
  PSECURITY_DESCRIPTOR descriptor = nullptr;
  if (::GetSecurityInfo(file, SE_FILE_OBJECT, kWanted, &owner, nullptr, &list, nullptr, &descriptor) != 0)
    return {1, kForAll};  // file systems without access lists
  const std::vector<std::byte> user = current_user_token();
  const FileAccess access{owner != nullptr && is_trusted(owner, user) ? 0U : 1U,
                          lists_others(list, user) ? kForAll : kForUser};
  ::LocalFree(descriptor);
  return access;
}

PrivateAccess::PrivateAccess() {
  attributes_.nLength = sizeof(attributes_);
  const std::vector<std::byte> user = current_user_token();
  wchar_t* name = nullptr;
  if (user.empty() || ::ConvertSidToStringSidW(sid_of(user), &name) == 0) {
    fail_with_last_error();
    return;
  }
  // Nothing is inherited; full access for three, which what is created inside inherits.
  const std::wstring text = L"D:P(A;OICI;FA;;;" + std::wstring(name) + L")(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";
  ::LocalFree(name);
  if (::ConvertStringSecurityDescriptorToSecurityDescriptorW(text.c_str(), SDDL_REVISION_1,
                                                             &attributes_.lpSecurityDescriptor, nullptr) == 0)
    fail_with_last_error();
}

PrivateAccess::~PrivateAccess() { ::LocalFree(attributes_.lpSecurityDescriptor); }

}  // namespace ingot::core
