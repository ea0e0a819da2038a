# SPDX-License-Identifier: Apache-2.0
# libingot_runtime opens and runs engines; libingot is the compiler and links it, so that a process has one Host.
function(ingot_shared_library name folders_property)
  get_property(folders GLOBAL PROPERTY ${folders_property})
  set(objects "")
  foreach(folder IN LISTS folders)
    list(APPEND objects $<TARGET_OBJECTS:${folder}>)
  endforeach()
  if(NOT objects)
    # Keeps a tree configurable while a library has no sources yet.
    file(WRITE ${CMAKE_BINARY_DIR}/generated/${name}_empty.cpp "")
    set(objects ${CMAKE_BINARY_DIR}/generated/${name}_empty.cpp)
  endif()
  add_library(${name} SHARED ${objects})
  set_target_properties(
    ${name}
    PROPERTIES SOVERSION ${PROJECT_VERSION_MAJOR}
               LINKER_LANGUAGE CXX
               INSTALL_RPATH $ORIGIN
               BUILD_RPATH_USE_ORIGIN ON
  )
  target_include_directories(
    ${name} PUBLIC $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  )
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_link_options(${name} PRIVATE -Wl,--gc-sections -Wl,--exclude-libs,ALL)
  if(NOT INGOT_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,--no-undefined)
  endif()
endfunction()

ingot_shared_library(ingot_runtime INGOT_RUNTIME_FOLDERS)
target_link_libraries(ingot_runtime PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
set_target_properties(ingot_runtime PROPERTIES EXPORT_NAME runtime)
add_library(ingot::runtime ALIAS ingot_runtime)

ingot_shared_library(ingot INGOT_COMPILER_FOLDERS)
target_link_libraries(ingot PUBLIC ingot_runtime)
if(INGOT_LLVM)
  target_link_libraries(ingot PRIVATE $<BUILD_INTERFACE:ingot_llvm>)
endif()
add_library(ingot::ingot ALIAS ingot)

# Only the table of linked backends asks whether the CPU compiler is there.
if(TARGET ingot_src_api_compiler)
  target_compile_definitions(ingot_src_api_compiler PRIVATE INGOT_HAS_LLVM=$<BOOL:${INGOT_LLVM}>)
endif()
foreach(folder ingot_src_api_runtime ingot_src_api_compiler ingot_src_compiler)
  if(TARGET ${folder})
    target_compile_definitions(${folder} PRIVATE INGOT_VERSION="${PROJECT_VERSION}")
  endif()
endforeach()
