# The library: mulciber::mulciber, shared, and mulciber::static, which is built where a target links it or
# MULCIBER_STATIC asks for it.
set(library_rooms ${MULCIBER_ROOM_TARGETS})
set(library_sources "")
if(NOT MULCIBER_SELF_TEST)
  list(REMOVE_ITEM library_rooms mulciber_conformance)
  set(library_sources ${PROJECT_SOURCE_DIR}/conformance/absent/self_test.cpp)
endif()
add_library(libmulciber SHARED ${library_sources})
target_link_libraries(libmulciber PRIVATE ${library_rooms})
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

add_library(libmulciber_static STATIC ${library_sources})
# Rooms are not installed: programs of this build link what rooms do, others what is named.
foreach(room ${library_rooms})
  target_sources(libmulciber_static PRIVATE $<TARGET_OBJECTS:${room}>)
  target_link_libraries(libmulciber_static INTERFACE $<BUILD_INTERFACE:$<LINK_ONLY:${room}>>)
endforeach()
foreach(flag ${MULCIBER_LINKED_LIBRARIES})
  target_link_libraries(libmulciber_static INTERFACE $<INSTALL_INTERFACE:${flag}>)
endforeach()
target_include_directories(libmulciber_static INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                           $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_features(libmulciber_static INTERFACE cxx_std_20)
set_target_properties(libmulciber_static PROPERTIES OUTPUT_NAME mulciber EXPORT_NAME static)
if(NOT MULCIBER_STATIC)
  set_target_properties(libmulciber_static PROPERTIES EXCLUDE_FROM_ALL TRUE)
endif()
add_library(mulciber::static ALIAS libmulciber_static)
