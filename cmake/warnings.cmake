# Warnings for what is built here; nothing of this reaches a user of the library.
if(REIGEN_WARNINGS)
  add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
endif()
