# muster_version(target): links the generated file that says which build this is into one program.
#
# The file is made anew at every build and written only when its text changes, so a commit costs one small compilation.
# Outside a git checkout the commit is "unknown".
function(muster_version target)
  set(out ${CMAKE_BINARY_DIR}/version.cc)
  add_custom_target(
    ${target}_version
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DSOURCE_DIR=${CMAKE_SOURCE_DIR} -DVERSION=${PROJECT_VERSION}
            "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}" -DBUILD_TYPE=${CMAKE_BUILD_TYPE}
            -P ${CMAKE_SOURCE_DIR}/cmake/write_version.cmake
    BYPRODUCTS ${out}
    COMMENT "Looking at the commit"
    VERBATIM)
  add_dependencies(${target} ${target}_version)
  target_sources(${target} PRIVATE ${out})
endfunction()
