// SPDX-License-Identifier: Apache-2.0
#include "cli/system.h"

#include <minizip/unzip.h>

namespace ingot::cli {

char** own_arguments(int&, char** argv) { return argv; }

void* open_zip(const std::string& path) { return unzOpen64(path.c_str()); }

}  // namespace ingot::cli
