# Where the sources are, for tests (base/source_dir_for_test.h).
if(MUSTER_TESTS)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/source_dir.cc @ONLY CONTENT [[
#include "base/source_dir_for_test.h"
std::filesystem::path muster::SourceDir() { return "@CMAKE_SOURCE_DIR@"; }
]])
  add_library(muster_source_dir STATIC ${CMAKE_BINARY_DIR}/source_dir.cc)
  target_include_directories(muster_source_dir PUBLIC ${CMAKE_SOURCE_DIR}/src)
endif()

# muster_library(folder DEPS ...): the library muster_<folder> from src/<folder>/*.cc and, when tests are built, the
# program <folder>_test from its *_test.cc. Slashes in the folder become underscores.
function(muster_library folder)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  string(REPLACE "/" "_" name ${folder})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${folder}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|/main|/counted_new)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")

  if(sources)
    add_library(muster_${name} STATIC ${sources})
    target_include_directories(muster_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(muster_${name} PUBLIC ${ARG_DEPS})
  else()
    add_library(muster_${name} INTERFACE)
    target_include_directories(muster_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(muster_${name} INTERFACE ${ARG_DEPS})
  endif()

  if(MUSTER_TESTS AND tests)
    muster_test(${name}_test SOURCES ${tests} DEPS muster_${name})
  endif()
endfunction()

# muster_test(name SOURCES ... DEPS ...): a GoogleTest program, registered with ctest as one test.
function(muster_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} muster_source_dir GTest::gtest GTest::gtest_main rapidcheck)
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  add_test(NAME ${name} COMMAND ${name})
endfunction()
