# How rooms are optimized, and the headers that are parsed once for all of them.
option(MULCIBER_PRECOMPILE "Precompile the standard library's headers and fmt, once for all rooms" ON)

option(MULCIBER_UNITY "Compile the files of a room eight at a time; off, a file that changed is compiled alone" ON)

# A precompiled header serves only what is compiled with its own flags, so there are two: for speed, as the build
# type says, and for size. Sanitizers and debug builds have flags of their own, and there size does not count.
set(MULCIBER_SIZE_FLAG "")
if(NOT MULCIBER_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  set(MULCIBER_SIZE_FLAG -Os)
endif()

# What most files include; in angle brackets, so that the text is the same in every checkout and a compiler cache
# serves them all. JSON and CLI11 are not here: their inline functions would be compiled in every file.
set(MULCIBER_PRECOMPILED_HEADERS
  <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <cstddef> <cstdint> <cstdio> <cstring> <filesystem>
  <fstream> <functional> <limits> <map> <memory> <mutex> <numeric> <optional> <set> <span> <string> <string_view>
  <thread> <unordered_map> <utility> <vector> <fmt/format.h>)

if(MULCIBER_PRECOMPILE)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Else it holds when each header was changed, and a compiler cache gives one that clang then refuses.
    add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
  endif()
  set(nothing ${PROJECT_BINARY_DIR}/precompiled.cpp)
  file(CONFIGURE OUTPUT ${nothing} CONTENT "// Precompiled headers belong to a target, and a target has a source.\n")
  set(goals speed size)
  if(MULCIBER_FUZZ)
    list(APPEND goals fuzzed)
  endif()
  foreach(goal ${goals})
    add_library(mulciber_precompiled_${goal} OBJECT ${nothing})
    target_link_libraries(mulciber_precompiled_${goal} PRIVATE fmt::fmt)
    target_precompile_headers(mulciber_precompiled_${goal} PRIVATE ${MULCIBER_PRECOMPILED_HEADERS})
  endforeach()
  target_compile_options(mulciber_precompiled_size PRIVATE ${MULCIBER_SIZE_FLAG})
  if(MULCIBER_FUZZ)
    target_compile_options(mulciber_precompiled_fuzzed PRIVATE ${MULCIBER_FUZZED_FLAGS})
  endif()
endif()

# mulciber_optimize(TARGET speed|size [FILE...]): compiles a room for speed or for size, and FILEs the other way.
function(mulciber_optimize target goal)
  if(target IN_LIST MULCIBER_FUZZED)
    set(goal fuzzed)
    target_compile_options(${target} PRIVATE ${MULCIBER_FUZZED_FLAGS})
  elseif(goal STREQUAL "size")
    set(other speed)
    target_compile_options(${target} PRIVATE ${MULCIBER_SIZE_FLAG})
    if(MULCIBER_SIZE_FLAG)
      set(other_options -O3)
    endif()
  else()
    set(other size)
    set(other_options ${MULCIBER_SIZE_FLAG})
  endif()
  if(MULCIBER_PRECOMPILE)
    target_precompile_headers(${target} REUSE_FROM mulciber_precompiled_${goal})
  endif()
  # Whatever the build type, so that what compiles in one compiles in all (mulciber_unite below).
  set_property(SOURCE ${ARGN} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  if(ARGN AND other_options)
    if(MULCIBER_PRECOMPILE)
      # CMake knows one precompiled header per target; compilers find the other beside its source.
      set(header ${PROJECT_BINARY_DIR}/CMakeFiles/mulciber_precompiled_${other}.dir/cmake_pch.hxx)
      list(APPEND other_options -include ${header})
      add_dependencies(${target} mulciber_precompiled_${other})
      set_source_files_properties(${ARGN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${other_options})
  endif()
endfunction()

# mulciber_unite(TARGET [FILE...]): the compiler reads several files of a room as one, which saves it a third of its
# time: what they include is parsed, and templates are instantiated, once. FILEs have names of their own for private
# things (struct Variant) that others have too, and stay alone; so do files with options of their own.
function(mulciber_unite target)
  if(MULCIBER_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
    set_property(SOURCE ${ARGN} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
