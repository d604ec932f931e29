# The same two programs for every way to get at the targets.
enable_testing()

set(sources ${CMAKE_CURRENT_LIST_DIR})

add_executable(consumer_threads ${sources}/threads.cpp)
target_link_libraries(consumer_threads PRIVATE reigen::reigen)
add_test(NAME threads COMMAND consumer_threads)

# The targets carry include paths, C++20 and the alignment, and nothing that changes how other code is compiled.
get_target_property(flags reigen::reigen INTERFACE_COMPILE_OPTIONS)
get_target_property(definitions reigen::reigen INTERFACE_COMPILE_DEFINITIONS)
if(flags OR NOT definitions STREQUAL "EIGEN_MAX_ALIGN_BYTES=64")
  message(FATAL_ERROR "reigen::reigen carries '${flags}' and '${definitions}'")
endif()

function(add_mpi_consumer)
  add_executable(consumer_mpi ${sources}/mpi.cpp)
  target_link_libraries(consumer_mpi PRIVATE reigen::mpi)
  add_test(NAME mpi COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} 2 $<TARGET_FILE:consumer_mpi>)
endfunction()
