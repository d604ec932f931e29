# The two targets people link: reigen::reigen (Eigen and threads only) and reigen::mpi. They carry include paths, C++20
# and the alignment definition, which must be the same in every file of a program; no compiler flag.

# No version in the call: Eigen's package files before 3.4.1 accept no range that spans 3.4 and 5.
find_package(Eigen3 REQUIRED NO_MODULE)
if(Eigen3_VERSION VERSION_LESS 3.4)
  message(FATAL_ERROR "reigen: Eigen 3.4 or newer is needed, found ${Eigen3_VERSION} in ${Eigen3_DIR}")
endif()
find_package(Threads REQUIRED)

set(reigen_include ${PROJECT_SOURCE_DIR}/include)
file(GLOB_RECURSE reigen_headers CONFIGURE_DEPENDS ${reigen_include}/reigen/*.hpp)
set(reigen_mpi_headers ${reigen_headers})
list(FILTER reigen_mpi_headers INCLUDE REGEX "/reigen/(comm/mpi(/[^/]*)?|mpi)\\.hpp$")
list(FILTER reigen_headers EXCLUDE REGEX "/reigen/(comm/mpi(/[^/]*)?|mpi)\\.hpp$")

add_library(reigen INTERFACE)
add_library(reigen::reigen ALIAS reigen)
target_compile_features(reigen INTERFACE cxx_std_20)
target_compile_definitions(reigen INTERFACE EIGEN_MAX_ALIGN_BYTES=64)
target_link_libraries(reigen INTERFACE Eigen3::Eigen Threads::Threads)
target_sources(reigen INTERFACE FILE_SET HEADERS BASE_DIRS ${reigen_include} FILES ${reigen_headers})

if(REIGEN_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI COMPONENTS CXX)
endif()
if(REIGEN_MPI AND MPI_CXX_FOUND)
  add_library(reigen_mpi INTERFACE)
  add_library(reigen::mpi ALIAS reigen_mpi)
  set_target_properties(reigen_mpi PROPERTIES EXPORT_NAME mpi)
  target_link_libraries(reigen_mpi INTERFACE reigen MPI::MPI_CXX)
  target_sources(reigen_mpi INTERFACE FILE_SET HEADERS BASE_DIRS ${reigen_include} FILES ${reigen_mpi_headers})
elseif(PROJECT_IS_TOP_LEVEL AND REIGEN_MPI)
  message(STATUS "reigen: no MPI found, reigen::mpi is not built")
endif()
