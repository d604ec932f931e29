# REIGEN_BUILD_TESTS, REIGEN_BUILD_EXAMPLES, REIGEN_BUILD_BENCH: on in a build of this project itself where what they
# need is found, so that each is optional to the others; asked for by name, what they need must be there.

function(reigen_option_programs name description)
  set(default ${PROJECT_IS_TOP_LEVEL})
  if(default AND NOT DEFINED REIGEN_BUILD_${name})
    foreach(package IN LISTS ARGN)
      find_package(${package} QUIET)
      if(NOT ${package}_FOUND)
        message(STATUS "reigen: no ${package}, so REIGEN_BUILD_${name} is off; set it ON once ${package} is installed")
        set(default OFF)
      endif()
    endforeach()
  endif()
  option(REIGEN_BUILD_${name} "${description}" ${default})
endfunction()

reigen_option_programs(TESTS "Build the tests" GTest)
reigen_option_programs(EXAMPLES "Build the examples" CLI11)
reigen_option_programs(BENCH "Build the benchmarks" benchmark)

# reigen_compile_together(TARGET [SOURCES AT A TIME]): all of a target's sources as one, or so many at a time. Most of what
# a source costs to compile is what all of a program share: the headers, and what they instantiate.
option(REIGEN_UNITY_BUILD "Compile the sources of a program together; off for whoever works on one at a time" ON)
function(reigen_compile_together target)
  set(at_a_time ${ARGN} 0) # 0: all
  list(GET at_a_time 0 at_a_time)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${REIGEN_UNITY_BUILD} UNITY_BUILD_BATCH_SIZE ${at_a_time})
endfunction()
