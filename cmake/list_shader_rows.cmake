# cmake -DSHADERS=FOLDER -DOUTPUT=FILE -P list_shader_rows.cmake: writes a line for each row of FOLDER/kernels.def: its
# id, its shader, and the hash of all inputs of its module. tools/pin_shaders.py reads it.
cmake_minimum_required(VERSION 3.22)
set(MULCIBER_SHADER_FOLDER ${SHADERS})
include(${CMAKE_CURRENT_LIST_DIR}/shader_rows.cmake)
file(STRINGS ${MULCIBER_SHADER_FOLDER}/kernels.def rows REGEX "^KERNEL\\(")
set(lines "")
foreach(row IN LISTS rows)
  mulciber_read_row("${row}")
  mulciber_hash_row(hash files)
  string(APPEND lines "${row_id} ${row_shader} ${hash}\n")
endforeach()
file(WRITE ${OUTPUT} "${lines}")
