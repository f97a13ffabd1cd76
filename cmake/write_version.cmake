# Run at build time by version.cmake.
set(COMMIT "unknown")
# A .git of our own only: an unpacked archive may lie inside someone else's checkout.
if(EXISTS ${SOURCE_DIR}/.git)
  execute_process(
    COMMAND git -C ${SOURCE_DIR} rev-parse --short=12 HEAD
    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(COMMIT ${head})
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/version.cc.in ${OUT} @ONLY)
