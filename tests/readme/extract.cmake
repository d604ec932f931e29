include(${CMAKE_CURRENT_LIST_DIR}/blocks.cmake)

# The parameters in the last line before a block: <!-- given: PARAMETERS -->.
function(parameters_before text parameters)
  string(REGEX MATCH "<!-- given: ([^\n]*) -->[ \n]*$" found "${text}")
  set(${parameters} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# The includes of a block go to the top of the file, the rest into a function.
function(wrap_body block parameters number source)
  string(REGEX MATCHALL "#include [^\n]*\n" includes "${block}")
  string(REGEX REPLACE "#include [^\n]*\n" "" body "${block}")
  string(REPLACE ";" "" includes "${includes}")
  set(${source} "#include <reigen/reigen.hpp>\n${includes}\nvoid readme_${number}(${parameters});\n
void readme_${number}(${parameters}) {\n${body}}\n" PARENT_SCOPE)
endfunction()

# Writes every ```cpp block of the file into a source of its own and lists the sources.
function(extract_code_blocks file folder programs bodies)
  file(READ ${file} text)
  set(number 0)
  set(program_files "")
  set(body_files "")
  next_block(text cpp block before text)
  while(NOT block STREQUAL "")
    math(EXPR number "${number} + 1")
    set(source ${folder}/block_${number}.cpp)
    if(block MATCHES "int main\\(")
      list(APPEND program_files ${source})
      set(content "${block}")
    else()
      list(APPEND body_files ${source})
      parameters_before("${before}" parameters)
      wrap_body("${block}" "${parameters}" ${number} content)
    endif()
    file(WRITE ${source}.new "${content}")
    file(COPY_FILE ${source}.new ${source} ONLY_IF_DIFFERENT) # what has not changed is not compiled again
    next_block(text cpp block before text)
  endwhile()
  set(${programs} "${program_files}" PARENT_SCOPE)
  set(${bodies} "${body_files}" PARENT_SCOPE)
endfunction()
