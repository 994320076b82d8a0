# How rooms are optimized, and which of their files are compiled as one.
option(MULCIBER_UNITY "Compile the files of a room eight at a time; off, a file that changed is compiled alone" ON)

# Sanitizers and debug builds have optimization flags of their own, and there size does not count.
set(MULCIBER_SIZE_FLAG "")
if(NOT MULCIBER_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  set(MULCIBER_SIZE_FLAG -Os)
endif()

# mulciber_optimize(TARGET speed|size [FILE...]): compiles a room for speed or for size, and FILEs the other way.
function(mulciber_optimize target goal)
  if(target IN_LIST MULCIBER_FUZZED)
    target_compile_options(${target} PRIVATE ${MULCIBER_FUZZED_FLAGS})
  elseif(goal STREQUAL "size")
    target_compile_options(${target} PRIVATE ${MULCIBER_SIZE_FLAG})
    if(MULCIBER_SIZE_FLAG)
      set(other_options -O3)
    endif()
  else()
    set(other_options ${MULCIBER_SIZE_FLAG})
  endif()
  # Whatever the build type, so that what compiles in one compiles in all (mulciber_unite below).
  set_property(SOURCE ${ARGN} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  if(ARGN AND other_options)
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
