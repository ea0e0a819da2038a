# SPDX-License-Identifier: Apache-2.0
# INPUT: a file with one source per line, below ROOT. OUTPUT: a header with the digest of their names and contents.
file(STRINGS ${INPUT} sources)
set(text "")
foreach(source IN LISTS sources)
  file(SHA256 ${source} digest)
  cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${ROOT})
  string(APPEND text "${source} ${digest}\n")
endforeach()
string(SHA256 digest "${text}")
string(SUBSTRING ${digest} 0 32 digest)
file(
  WRITE ${OUTPUT}
  "// Made by cmake/write_fingerprint.cmake.\n#pragma once\n\nnamespace ${NAMESPACE} {\n\n"
  "constexpr char kFingerprint[] = \"${digest}\";  // of the sources that decide what is made\n\n"
  "}  // namespace ${NAMESPACE}\n"
)
