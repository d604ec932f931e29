# Warnings for what is built here; nothing of this reaches a user of the library.
if(REIGEN_WARNINGS)
  add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
  # g++ 12 takes the undefined operands inside its own AVX-512 intrinsics for mistakes (GCC bug 105593), ours and Eigen's.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    add_compile_options(-Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
endif()
