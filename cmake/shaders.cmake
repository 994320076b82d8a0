# Compiles rows of kernels.def to SPIR-V, and embeds SPIR-V in C++. All shaders are compiled by this one rule.
include(${CMAKE_CURRENT_LIST_DIR}/shader_rows.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/pinned_modules.cmake)

# mulciber_compile_row(ROW SOURCE NAME INCLUDES MODULE): compiles SOURCE as the row of kernels.def asks and
# checks it, to NAME.spv in the current binary folder. INCLUDES are folders searched before the others.
# MODULE becomes the path of that file, or "" when this shader compiler lacks what the row needs. SOURCE may be
# "": the row's own.
function(mulciber_compile_row row source name includes module_variable)
  mulciber_read_row("${row}")
  foreach(feature ${row_features})
    if(NOT feature IN_LIST GLSLANG_FEATURES)
      set(${module_variable} "" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(NOT source)
    set(source ${MULCIBER_SHADER_FOLDER}/${row_shader})
  endif()
  set(flags ${row_flags})
  foreach(folder ${includes} ${MULCIBER_SHADER_FOLDER}/include ${MULCIBER_SHADER_FOLDER})
    list(APPEND flags -I${folder})
  endforeach()

  set(module ${CMAKE_CURRENT_BINARY_DIR}/${name}.spv)
  set(validate "")
  if(SPIRV_VAL)
    set(validate COMMAND ${SPIRV_VAL} --target-env ${row_environment} ${module})
  endif()
  add_custom_command(
    OUTPUT ${module}
    COMMAND ${GLSLANG_VALIDATOR} ${MULCIBER_GLSLANG_OPTIONS} --quiet --target-env ${row_environment} ${flags}
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
  if(NOT ZSTD)
    message(FATAL_ERROR "zstd is missing: install the package zstd")
  endif()
  set(archive ${CMAKE_CURRENT_BINARY_DIR}/${name})
  list(JOIN ARGN "\n" lines)
  file(CONFIGURE OUTPUT ${archive}.txt CONTENT "${lines}\n" @ONLY)
  add_custom_command(
    OUTPUT ${archive}_words.inc ${archive}_bytes.inc
    COMMAND ${CMAKE_COMMAND} -DARCHIVE=${archive} -DZSTD=${ZSTD} -P ${PROJECT_SOURCE_DIR}/cmake/archive_modules.cmake
    DEPENDS ${ARGN} ${archive}.txt ${PROJECT_SOURCE_DIR}/cmake/archive_modules.cmake
            ${PROJECT_SOURCE_DIR}/cmake/write_bytes.cmake
    COMMENT "Archive ${name}"
    VERBATIM)
endfunction()

# mulciber_embed_pinned(NAME MODULES ROW...): writes the same files for the pinned modules of ROWs, without a
# compressor: it copies the frames of their shaders. MODULES becomes the rows of all modules in those frames, in order.
function(mulciber_embed_pinned name modules_variable)
  set(modules "")
  set(words "")
  set(ranges "")
  foreach(shader ${PINNED_SHADERS})
    set(wanted FALSE)
    set(rows "")
    set(counts "")
    set(rest ${PINNED_MODULES_${shader}})
    while(rest)
      list(POP_FRONT rest row count)
      list(APPEND rows ${row})
      list(APPEND counts ${count})
      if(row IN_LIST ARGN)
        set(wanted TRUE)
      endif()
    endwhile()
    if(wanted)
      list(APPEND modules ${rows})
      list(JOIN counts "," text)
      string(APPEND words "${text},\n")
      list(APPEND ranges ${PINNED_FRAME_${shader}})
    endif()
  endforeach()
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${name})
  file(CONFIGURE OUTPUT ${output}_words.inc CONTENT "${words}" @ONLY)
  list(JOIN ranges " " ranges)
  set(script ${PROJECT_SOURCE_DIR}/cmake/write_bytes.cmake)
  add_custom_command(
    OUTPUT ${output}_bytes.inc
    COMMAND ${CMAKE_COMMAND} -DFILE=${MULCIBER_PINNED_FOLDER}/modules.zst "-DRANGES=${ranges}"
            -DOUTPUT=${output}_bytes.inc -P ${script}
    # The ranges are part of build.ninja, so that other ranges make another command.
    DEPENDS ${MULCIBER_PINNED_FOLDER}/modules.zst ${script}
    COMMENT "Pinned modules"
    VERBATIM)
  set(${modules_variable} ${modules} PARENT_SCOPE)
endfunction()
