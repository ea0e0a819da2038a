// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <curl/curl.h>

namespace ingot::core {

// libcurl, opened at run time: it would bring a dozen libraries along, for something that few use.
class CurlLibrary {
 public:
  CurlLibrary();  // ServerFailure if it is not installed

  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_perform) easy_perform;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_reset) easy_reset;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_strerror) easy_strerror;
};

}  // namespace ingot::core
