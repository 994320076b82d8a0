# Rows of kernels.def to SPIR-V. The one rule by which shaders are compiled.

# mulciber_compile_row(ROW SOURCE NAME INCLUDES WORDS): compiles SOURCE as the row of kernels.def asks, checks
# it, and writes its words for C++ to include, to NAME.inc in the current binary folder. INCLUDES are folders
# searched before the others. WORDS becomes the path of that file, or "" when this shader compiler lacks what
# the row needs. SOURCE may be "": the row's own.
function(mulciber_compile_row row source name includes words_variable)
  if(NOT row MATCHES "^KERNEL\\(([a-z0-9_]+), *([A-Za-z]+), *([a-z0-9_]+)\\.comp, *TYPES\\(([^)]*)\\), *DEFINES\\(([^)]*)\\),")
    message(FATAL_ERROR "kernels.def: cannot read the row: ${row}")
  endif()
  set(row_source ${MULCIBER_SHADER_FOLDER}/${CMAKE_MATCH_3}.comp)
  set(row_types "${CMAKE_MATCH_4}")  # the next match overwrites these variables
  set(row_defines "${CMAKE_MATCH_5}")
  string(REGEX MATCHALL "[A-Z0-9]+" types "${row_types}")
  string(REGEX MATCHALL "[A-Za-z0-9_=]+" defines "${row_defines}")
  if(NOT source)
    set(source ${row_source})
  endif()

  set(flags "")
  set(environment vulkan1.1)
  foreach(define ${defines})
    if(define MATCHES "^GLSLANG_")
      set(environment vulkan1.3)  # devices with such features are newer than the baseline
      if(NOT define IN_LIST GLSLANG_FEATURES)
        set(${words_variable} "" PARENT_SCOPE)
        return()
      endif()
    endif()
    list(APPEND flags -D${define})
  endforeach()
  list(GET types 0 activation)
  list(GET types -1 weight)
  list(APPEND flags -DACTIVATION_${activation} -DWEIGHT_${weight})
  foreach(folder ${includes} ${MULCIBER_SHADER_FOLDER}/include ${MULCIBER_SHADER_FOLDER})
    list(APPEND flags -I${folder})
  endforeach()

  set(module ${CMAKE_CURRENT_BINARY_DIR}/${name}.spv)
  set(words ${CMAKE_CURRENT_BINARY_DIR}/${name}.inc)
  set(validate "")
  if(SPIRV_VAL)
    set(validate COMMAND ${SPIRV_VAL} --target-env ${environment} ${module})
  endif()
  add_custom_command(
    OUTPUT ${module} ${words}
    COMMAND ${GLSLANG_VALIDATOR} -V -g0 --quiet --target-env ${environment} ${flags}
            --depfile ${module}.d -o ${module} ${source}
    ${validate}
    COMMAND ${CMAKE_COMMAND} -DMODULE=${module} -DOUTPUT=${words}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_spirv.cmake
    DEPENDS ${source} ${ARGN} ${PROJECT_SOURCE_DIR}/cmake/embed_spirv.cmake
    DEPFILE ${module}.d
    COMMENT "Shader ${name}"
    VERBATIM)
  set(${words_variable} ${words} PARENT_SCOPE)
endfunction()
