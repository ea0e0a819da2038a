// SPDX-License-Identifier: Apache-2.0
// A rank that compiles or loads for long says so: the others' deadline is for a rank of which nothing is
// heard.
#pragma once

#include <memory>

#include "routines/communicator.h"

namespace ingot::core {

// While this exists, a thread says several times within each deadline that the rank is alive.
class SignsOfLife {
 public:
  explicit SignsOfLife(std::shared_ptr<Communicator> group);
  SignsOfLife(const SignsOfLife&) = delete;
  SignsOfLife& operator=(const SignsOfLife&) = delete;
  ~SignsOfLife();

 private:
  struct Speaker;
  Speaker* speaker_;  // a forked child has none, and leaves its memory alone
};

}  // namespace ingot::core
