# SPDX-License-Identifier: Apache-2.0
# The template and the style of report pages become C++ string literals.
if(NOT TARGET ingot_src_report)
  return()
endif()
set(script ${CMAKE_SOURCE_DIR}/cmake/write_literal.cmake)
set(literals "")
foreach(name page.html page.css)
  set(literal ${CMAKE_BINARY_DIR}/generated/report/${name}.inc)
  set(source ${CMAKE_SOURCE_DIR}/src/report/${name})
  add_custom_command(
    OUTPUT ${literal}
    COMMAND ${CMAKE_COMMAND} -D INPUT=${source} -D OUTPUT=${literal} -P ${script}
    DEPENDS ${source} ${script}
    VERBATIM
  )
  list(APPEND literals ${literal})
endforeach()
add_custom_target(ingot_report_template DEPENDS ${literals})
add_dependencies(ingot_src_report ingot_report_template)
