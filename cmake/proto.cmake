# Everything generated, and nothing compiled: what lint needs to read the files that include it.
add_custom_target(generated)

# muster_proto(name FILES ...): the library muster_proto_<name> with the messages and services of the given files, named
# by their path under proto/. Include them as "<path>.pb.h" and "<path>.grpc.pb.h", in src/rpc only.
function(muster_proto name)
  cmake_parse_arguments(ARG "" "" "FILES" ${ARGN})
  set(root ${CMAKE_SOURCE_DIR}/proto)
  set(out ${CMAKE_BINARY_DIR}/proto)
  file(MAKE_DIRECTORY ${out})
  set(generated "")
  set(messages "")
  set(services "")
  foreach(file ${ARG_FILES})
    string(REGEX REPLACE "\\.proto$" "" stem ${file})
    set(outputs ${out}/${stem}.pb.cc ${out}/${stem}.pb.h ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
    add_custom_command(
      OUTPUT ${outputs}
      COMMAND protobuf::protoc --proto_path=${root} --cpp_out=${out} --grpc_out=${out}
              --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin> ${file}
      DEPENDS ${root}/${file}
      COMMENT "Generating ${file}"
      VERBATIM)
    list(APPEND generated ${outputs})
    list(APPEND messages ${out}/${stem}.pb.cc)
    string(APPEND services "#include \"${stem}.grpc.pb.cc\"\n")
  endforeach()
  add_custom_target(muster_proto_${name}_files DEPENDS ${generated})
  add_dependencies(generated muster_proto_${name}_files)
  # The services are compiled together: their headers cost more than their text.
  file(CONFIGURE OUTPUT ${out}/${name}_services.cc CONTENT "${services}" @ONLY)
  add_library(muster_proto_${name} STATIC ${messages} ${out}/${name}_services.cc)
  add_dependencies(muster_proto_${name} muster_proto_${name}_files)
  target_include_directories(muster_proto_${name} SYSTEM PUBLIC ${out})
  target_link_libraries(muster_proto_${name} PUBLIC protobuf::libprotobuf gRPC::grpc++)
  # Generated code is not held to our warnings.
  target_compile_options(muster_proto_${name} PRIVATE -w $<$<CONFIG:Debug>:-O1>)
endfunction()

# muster_descriptors(target FILES ...): the given files compiled to one descriptor set, proto/<target>.descriptors below the build
# directory.
function(muster_descriptors target)
  cmake_parse_arguments(ARG "" "" "FILES" ${ARGN})
  set(root ${CMAKE_SOURCE_DIR}/proto)
  set(out ${CMAKE_BINARY_DIR}/proto/${target}.descriptors)
  set(inputs ${ARG_FILES})
  list(TRANSFORM inputs PREPEND ${root}/)
  add_custom_command(
    OUTPUT ${out}
    COMMAND protobuf::protoc --proto_path=${root} --include_imports --descriptor_set_out=${out} ${ARG_FILES}
    DEPENDS ${inputs}
    COMMENT "Compiling the descriptors for ${target}"
    VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
