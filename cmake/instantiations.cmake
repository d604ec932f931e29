# reigen_kernels: the heavy kernels, compiled once for the tests, examples and benchmarks of this project. A user of the
# headers needs nothing of it.
#
# A kernel header lists what it offers as `REIGEN_KERNEL_INSTANTIATION template ...;` where that macro is defined. It is
# empty in the library's own files, one a header, which therefore define the kernels, and `extern` in all that link it.

file(GLOB reigen_instantiations CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/instantiations/*.cpp)
add_library(reigen_kernels STATIC ${reigen_instantiations})
target_link_libraries(reigen_kernels PUBLIC reigen::reigen)
target_compile_definitions(reigen_kernels
  PRIVATE REIGEN_KERNEL_INSTANTIATION=
  INTERFACE REIGEN_KERNEL_INSTANTIATION=extern)
