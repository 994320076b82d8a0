# Optimization of rooms, and unity builds of their files.
option(MULCIBER_UNITY "Compile the files of a room eight at a time; off, a file that changed is compiled alone" ON)

# Sanitizers and debug builds have optimization flags of their own; size does not matter there.
set(MULCIBER_SIZE_FLAG "")
if(NOT MULCIBER_SANITIZE AND CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
  set(MULCIBER_SIZE_FLAG -Os)
endif()

# mulciber_optimize(TARGET speed|size [FILE...]): compiles a room for speed or for size, and FILEs for the other.
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
  # This holds for all build types, so that a file that compiles in one compiles in all (mulciber_unite below).
  set_property(SOURCE ${ARGN} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  if(ARGN AND other_options)
    set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS ${other_options})
  endif()
endfunction()

# mulciber_unite(TARGET [FILE...]): lets the compiler read eight files of a room as one, which saves a third of its
# time: includes are parsed, and templates are instantiated, once. FILEs are compiled alone, because names in their
# unnamed namespaces also occur in other files (struct Variant), or because their includes must not reach other files;
# files with options of their own are too. Call it last. CMake's own unity builds name files by whole paths, which end
# up in __FILE__: a compiler cache then finds nothing in another checkout.
function(mulciber_unite target)
  if(NOT MULCIBER_UNITY)
    return()
  endif()
  set_property(SOURCE ${ARGN} PROPERTY SKIP_UNITY_BUILD_INCLUSION ON)
  get_target_property(sources ${target} SOURCES)
  set(together "")
  foreach(source ${sources})
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${source} alone)  # files that the build writes
    foreach(property SKIP_UNITY_BUILD_INCLUSION COMPILE_OPTIONS COMPILE_DEFINITIONS)
      get_property(value SOURCE ${source} PROPERTY ${property})
      if(value)
        set(alone ON)
      endif()
    endforeach()
    if(NOT alone)
      list(APPEND together ${source})
    endif()
  endforeach()
  set(number 0)
  while(together)
    list(SUBLIST together 0 8 some)
    list(REMOVE_ITEM together ${some})
    set(text "")
    foreach(source ${some})
      file(RELATIVE_PATH name ${PROJECT_SOURCE_DIR} ${source})
      string(APPEND text "#include \"${name}\"\n")
    endforeach()
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/${target}_${number}.cpp)
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)
    set_property(SOURCE ${some} PROPERTY HEADER_FILE_ONLY ON)
    target_sources(${target} PRIVATE ${unit})
    math(EXPR number "${number} + 1")
  endwhile()
endfunction()
