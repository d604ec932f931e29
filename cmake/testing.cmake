# reigen_add_tests(NAME SOURCES a.test.cpp ... [COMMUNICATES] [NUMERIC])
#
# Compiles the sources once, all together: what a source names stands in a namespace of its own. NAME runs them with
# ranks as threads; with COMMUNICATES, NAME.mpi.1 ... NAME.mpi.4 run the same objects under mpirun. In a Release build
# only NUMERIC ones are optimised as a user's program is, with -O3, and share no precompiled headers; the others have
# -O1, which halves their compilation, and the kernels they call -O3 all the same (reigen_kernels).
#
# reigen_add_mpi_test(NAME RANKS COMMAND ARGUMENT...)
#
# NAME runs the command on so many ranks under mpirun.

# For another machine than this one GoogleTest is built from Debian's copy of its source.
if(CMAKE_CROSSCOMPILING)
  add_subdirectory(/usr/src/googletest ${PROJECT_BINARY_DIR}/googletest EXCLUDE_FROM_ALL)
else()
  find_package(GTest REQUIRED)
endif()
find_package(nlohmann_json 3 REQUIRED)

set(REIGEN_MPI_TEST_RANKS 1 2 3 4)

# Open MPI refuses root, and more ranks than cores, unless told; 4.x and 5.x look for different names.
set(REIGEN_MPI_ENVIRONMENT
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe)

function(reigen_add_mpi_test name ranks)
  add_test(NAME ${name} COMMAND ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${ARGN})
  set_tests_properties(${name} PROPERTIES
    LABELS mpi TIMEOUT 300 PROCESSORS 2 ENVIRONMENT "${REIGEN_MPI_ENVIRONMENT}")
endfunction()

function(reigen_add_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "COMMUNICATES;NUMERIC" "" "SOURCES")
  add_library(test_${name}_objects OBJECT ${arg_SOURCES})
  target_link_libraries(test_${name}_objects PUBLIC reigen_test_support)
  reigen_compile_together(test_${name}_objects)
  if(NOT arg_NUMERIC)
    target_compile_options(test_${name}_objects PRIVATE $<$<CONFIG:Release>:-O1>)
    target_precompile_headers(test_${name}_objects REUSE_FROM reigen_test_support)
  endif()

  add_executable(test_${name})
  target_link_libraries(test_${name} PRIVATE test_${name}_objects reigen_test_threads_main)
  add_test(NAME ${name} COMMAND test_${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES LABELS threads TIMEOUT 300 PROCESSORS 2)

  if(arg_COMMUNICATES AND TARGET reigen::mpi)
    add_executable(test_${name}_mpi)
    target_link_libraries(test_${name}_mpi PRIVATE test_${name}_objects reigen_test_mpi_main)
    foreach(ranks IN LISTS REIGEN_MPI_TEST_RANKS)
      reigen_add_mpi_test(${name}.mpi.${ranks} ${ranks} $<TARGET_FILE:test_${name}_mpi> --gtest_brief=1)
    endforeach()
  endif()
endfunction()
