# mulciber_embed_text(FILE): writes FILE as a C++ string literal to FILE.inc in the build folder, to be
# included where a string is wanted. Made when CMake runs, which happens again when FILE changes.
function(mulciber_embed_text file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  file(READ ${CMAKE_CURRENT_SOURCE_DIR}/${file} text)
  # Compilers bound the length of one literal; adjacent ones are joined.
  string(LENGTH "${text}" length)
  set(literals "")
  foreach(at RANGE 0 ${length} 12000)
    string(SUBSTRING "${text}" ${at} 12000 piece)
    string(APPEND literals "R\"~~~(${piece})~~~\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${file}.inc CONTENT "@literals@" @ONLY)
endfunction()
