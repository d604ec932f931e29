# Fails unless reigen.hpp, mpi.hpp and the headers that reigen.hpp names besides include every header of the library.
cmake_minimum_required(VERSION 3.25)

set(search -I${INCLUDE})
foreach(directory IN LISTS OTHER_INCLUDES)
  list(APPEND search -I${directory})
endforeach()

set(reached "")
foreach(header IN ITEMS reigen mpi comm/checked comm/faulty comm/threads comm/trace)
  execute_process(COMMAND ${COMPILER} -std=c++20 ${search} -M -x c++ ${INCLUDE}/reigen/${header}.hpp
    OUTPUT_VARIABLE dependencies COMMAND_ERROR_IS_FATAL ANY)
  string(APPEND reached " ${dependencies} ")
endforeach()
string(REGEX REPLACE "[ \\\n]+" ";" reached "${reached}")

file(GLOB_RECURSE headers ${INCLUDE}/reigen/*.hpp)
list(REMOVE_ITEM headers ${reached})
if(headers)
  list(JOIN headers "\n  " headers)
  message(FATAL_ERROR "neither reigen.hpp nor what it names includes\n  ${headers}")
endif()
