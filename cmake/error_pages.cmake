# SPDX-License-Identifier: Apache-2.0
# docs/errors.md becomes the table that ingot_explain reads.
set(pages ${CMAKE_BINARY_DIR}/generated/api/runtime/error_pages.inc)
set(script ${CMAKE_SOURCE_DIR}/cmake/write_error_pages.cmake)
add_custom_command(
  OUTPUT ${pages}
  COMMAND ${CMAKE_COMMAND} -D INPUT=${CMAKE_SOURCE_DIR}/docs/errors.md -D OUTPUT=${pages} -P ${script}
  DEPENDS ${CMAKE_SOURCE_DIR}/docs/errors.md ${script}
  VERBATIM
)
add_custom_target(ingot_error_pages DEPENDS ${pages})
if(TARGET ingot_src_api_runtime)
  add_dependencies(ingot_src_api_runtime ingot_error_pages)
endif()
