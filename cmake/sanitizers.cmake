# Instrumented builds: MULCIBER_SANITIZE, and MULCIBER_FUZZ for libFuzzer targets of the same objects.
if(NOT MULCIBER_SANITIZE)
  if(MULCIBER_FUZZ)
    message(FATAL_ERROR "Fuzz targets link what sanitizers look at: configure with -DMULCIBER_SANITIZE=ON")
  endif()
  return()
endif()

# -O0: compiling instrumented code takes longer than running it, and twice as long with -O1; code that computes much
# sets a higher level (conformance/).
set(sanitizers -fsanitize=address,undefined -fno-sanitize-recover=undefined)
if(MULCIBER_SANITIZE STREQUAL "thread")
  set(sanitizers -fsanitize=thread)
endif()
# Assertions are checked too, in every build type.
add_compile_options(-O0 -g1 -UNDEBUG ${sanitizers} -fno-omit-frame-pointer)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-maybe-uninitialized)  # reports uses in its own instrumentation
endif()
add_compile_definitions(MULCIBER_SANITIZED)
add_link_options(${sanitizers})
# Rooms that read foreign files or calls of C (tests/fuzz) count executed edges, and are compiled for speed: both decide
# how much a fuzz target finds in its time. Programs without libFuzzer ignore the counts.
if(MULCIBER_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang" OR MULCIBER_SANITIZE STREQUAL "thread")
    message(FATAL_ERROR "libFuzzer comes with clang, beside its address sanitizer: configure with "
      "-DCMAKE_CXX_COMPILER=clang++ -DCMAKE_C_COMPILER=clang -DMULCIBER_SANITIZE=ON")
  endif()
  set(MULCIBER_FUZZED mulciber_base mulciber_checkpoints mulciber_text mulciber_audio mulciber_images mulciber_capi
      mulciber_fuzzed)
  set(MULCIBER_FUZZED_FLAGS -O1 -fsanitize=fuzzer-no-link)
endif()
