// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/executable.h"
#include "runtime/host.h"

namespace ingot::core {

using ImageMap = std::map<std::string, std::unique_ptr<LoadedImages>, std::less<>>;

// Loads images of all backends that the programs name. UserError INGOT-U223 if this runtime lacks a backend,
// U22x from the backend.
ImageMap load_images(const EngineData& data, const EngineFile* file, const Host& host);
BackendLookup lookup_in(const ImageMap& images, const Host& host);

}  // namespace ingot::core
