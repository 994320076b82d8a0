# The library: mulciber::mulciber, shared, and mulciber::static, which is built where a target links it or
# MULCIBER_STATIC asks for it.
add_library(libmulciber SHARED)
target_link_libraries(libmulciber PRIVATE ${MULCIBER_ROOM_TARGETS})
target_include_directories(libmulciber INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                           $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_features(libmulciber INTERFACE cxx_std_20)
set_target_properties(libmulciber PROPERTIES
  OUTPUT_NAME mulciber EXPORT_NAME mulciber
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
# Our own symbols are hidden by the compiler. The linker's script also hides others: instances of the standard library's
# templates.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_link_options(libmulciber PRIVATE -Wl,--version-script=${exports} -Wl,--gc-sections)
  set_target_properties(libmulciber PROPERTIES LINK_DEPENDS ${exports})
endif()
add_library(mulciber::mulciber ALIAS libmulciber)

add_library(libmulciber_static STATIC)
target_link_libraries(libmulciber_static PRIVATE ${MULCIBER_ROOM_TARGETS})
target_include_directories(libmulciber_static INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_compile_features(libmulciber_static INTERFACE cxx_std_20)
set_target_properties(libmulciber_static PROPERTIES OUTPUT_NAME mulciber)
if(NOT MULCIBER_STATIC)
  set_target_properties(libmulciber_static PROPERTIES EXCLUDE_FROM_ALL TRUE)
endif()
add_library(mulciber::static ALIAS libmulciber_static)
