// SPDX-License-Identifier: Apache-2.0
#include "servers/curl_library.h"

#include <dlfcn.h>

#include "servers/deadline.h"

namespace ingot::core {
namespace {

void* open_curl() {
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    if (void* library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  throw ServerFailure("HTTP needs libcurl.so.4, which is not installed (Debian: libcurl4)");
}

template <typename Function>
void find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw ServerFailure("the installed libcurl is too old");
}

}  // namespace

CurlLibrary::CurlLibrary() {
  void* const library = open_curl();  // stays open: libcurl cannot be closed safely
  decltype(&curl_global_init) global_init = nullptr;
  find_function(library, "curl_global_init", global_init);
  find_function(library, "curl_easy_init", easy_init);
  find_function(library, "curl_easy_setopt", easy_setopt);
  find_function(library, "curl_easy_perform", easy_perform);
  find_function(library, "curl_easy_getinfo", easy_getinfo);
  find_function(library, "curl_easy_reset", easy_reset);
  find_function(library, "curl_easy_cleanup", easy_cleanup);
  find_function(library, "curl_easy_strerror", easy_strerror);
  if (global_init(CURL_GLOBAL_ALL) != CURLE_OK) throw ServerFailure("libcurl does not start");
}

}  // namespace ingot::core
