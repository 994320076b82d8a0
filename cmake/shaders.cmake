# Rows of kernels.def to SPIR-V. The one rule by which shaders are compiled.

# mulciber_compile_row(ROW SOURCE NAME INCLUDES MODULE): compiles SOURCE as the row of kernels.def asks and
# checks it, to NAME.spv in the current binary folder. INCLUDES are folders searched before the others.
# MODULE becomes the path of that file, or "" when this shader compiler lacks what the row needs. SOURCE may be
# "": the row's own.
function(mulciber_compile_row row source name includes module_variable)
  if(NOT row MATCHES "^KERNEL\\(([a-z0-9_]+), *([A-Za-z]+), *([a-z0-9_]+)\\.comp, *TYPES\\(([^)]*)\\), *DEFINES\\(([^)]*)\\),")
    message(FATAL_ERROR "kernels.def: cannot read the row: ${row}")
  endif()
  set(row_source ${MULCIBER_SHADER_FOLDER}/${CMAKE_MATCH_3}.comp)
  set(row_types "${CMAKE_MATCH_4}")  # the next match overwrites these variables
  set(row_defines "${CMAKE_MATCH_5}")
  string(REGEX MATCHALL "[A-Z0-9_]+" types "${row_types}")
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
        set(${module_variable} "" PARENT_SCOPE)
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
  set(validate "")
  if(SPIRV_VAL)
    set(validate COMMAND ${SPIRV_VAL} --target-env ${environment} ${module})
  endif()
  add_custom_command(
    OUTPUT ${module}
    COMMAND ${GLSLANG_VALIDATOR} -V -g0 --quiet --target-env ${environment} ${flags}
            --depfile ${module}.d -o ${module} ${source}
    ${validate}
    DEPENDS ${source} ${ARGN}
    DEPFILE ${module}.d
    COMMENT "Shader ${name}"
    VERBATIM)
  set(${module_variable} ${module} PARENT_SCOPE)
endfunction()

# mulciber_archive_modules(NAME MODULE...): packs compiled modules into one compressed stream, since kernels
# that differ by a define share most of their words, and writes it for C++ to include: NAME_words.inc has the
# word count of each module in order, NAME_bytes.inc the stream (runtime/module_archive.h reads it).
function(mulciber_archive_modules name)
  set(archive ${CMAKE_CURRENT_BINARY_DIR}/${name})
  list(JOIN ARGN "\n" lines)
  file(CONFIGURE OUTPUT ${archive}.txt CONTENT "${lines}\n" @ONLY)
  add_custom_command(
    OUTPUT ${archive}_words.inc ${archive}_bytes.inc
    COMMAND ${CMAKE_COMMAND} -DARCHIVE=${archive} -DZSTD=${ZSTD} -P ${PROJECT_SOURCE_DIR}/cmake/archive_modules.cmake
    DEPENDS ${ARGN} ${archive}.txt ${PROJECT_SOURCE_DIR}/cmake/archive_modules.cmake
    COMMENT "Archive ${name}"
    VERBATIM)
endfunction()
