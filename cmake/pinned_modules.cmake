# SPIR-V in the repository, for rows that the installed glslang cannot compile: shaders/pinned/modules.zst has a zstd
# frame for each shader, with the modules of its rows one after the other, and one for its plain forms of rows on matrix
# units. manifest.txt says what is in it. tools/pin_shaders.py writes both. Lines of the manifest:
#   glslang VERSION                    as glslang says it
#   archive BYTES SHA256
#   shader NAME.comp[.plain] BYTES     the next frame
#   module ROW WORDS SOURCES SPIRV     the next module of it; hashes of what it is made from (shader_rows.cmake) and of
#                                      its bytes (FNV-1a, as `mulciber conform` writes it of every row)
set(MULCIBER_PINNED_FOLDER ${MULCIBER_SHADER_FOLDER}/pinned)
set(MULCIBER_PIN_COMMAND "tools/pin_shaders.py")

# mulciber_read_manifest(): sets PINNED_GLSLANG, PINNED_ROWS, PINNED_SHADERS, PINNED_SOURCES_row, PINNED_FRAME_shader
# (OFFSET BYTES) and PINNED_MODULES_shader (ROW WORDS ...) in the caller's scope. Fails if the archive does not match.
function(mulciber_read_manifest)
  set(manifest ${MULCIBER_PINNED_FOLDER}/manifest.txt)
  file(STRINGS ${manifest} lines REGEX "^(glslang|archive|shader|module) ")
  set(offset 0)
  set(rows "")
  set(shaders "")
  foreach(line ${lines})
    string(REPLACE " " ";" words "${line}")
    list(POP_FRONT words kind name first second)
    if(kind STREQUAL "glslang")
      set(PINNED_GLSLANG ${name} PARENT_SCOPE)
    elseif(kind STREQUAL "archive")
      file(SHA256 ${MULCIBER_PINNED_FOLDER}/modules.zst hash)
      if(NOT hash STREQUAL first)
        message(FATAL_ERROR "shaders/pinned/modules.zst is not the archive that shaders/pinned/manifest.txt describes: "
                            "take both from one commit, or run ${MULCIBER_PIN_COMMAND}")
      endif()
    elseif(kind STREQUAL "shader")
      set(shader ${name})
      set(modules_of_${shader} "")
      list(APPEND shaders ${shader})
      set(PINNED_FRAME_${shader} ${offset} ${first} PARENT_SCOPE)
      math(EXPR offset "${offset} + ${first}")
    else()
      list(APPEND rows ${name})
      list(APPEND modules_of_${shader} ${name} ${first})
      set(PINNED_SOURCES_${name} ${second} PARENT_SCOPE)
    endif()
  endforeach()
  foreach(shader ${shaders})
    set(PINNED_MODULES_${shader} ${modules_of_${shader}} PARENT_SCOPE)
  endforeach()
  set(PINNED_ROWS ${rows} PARENT_SCOPE)
  set(PINNED_SHADERS ${shaders} PARENT_SCOPE)
endfunction()
