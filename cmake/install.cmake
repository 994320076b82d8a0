# Installs the command, the shared library with its public headers and CMake package
# (find_package(mulciber), then link mulciber::mulciber), and the bundled model.
include(CMakePackageConfigHelpers)

add_library(libmulciber SHARED)
target_link_libraries(libmulciber PRIVATE ${MULCIBER_ROOM_TARGETS})
target_include_directories(libmulciber INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                           $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_features(libmulciber INTERFACE cxx_std_20)
set_target_properties(libmulciber PROPERTIES
  OUTPUT_NAME mulciber EXPORT_NAME mulciber
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
# Our own symbols are hidden where they are compiled. The linker's script hides those of others: what the standard
# library's templates became here.
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(exports ${PROJECT_SOURCE_DIR}/cmake/exports.map)
  target_link_options(libmulciber PRIVATE -Wl,--version-script=${exports} -Wl,--gc-sections)
  set_target_properties(libmulciber PROPERTIES LINK_DEPENDS ${exports})
endif()
add_library(mulciber::mulciber ALIAS libmulciber)

set(MULCIBER_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/mulciber)
install(TARGETS mulciber RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS libmulciber EXPORT mulciber-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/mulciber DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
# The recurrent models beside it are for comparison (docs/recurrence.md): they stay in the checkout.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/assets/en-de DESTINATION ${CMAKE_INSTALL_DATADIR}/mulciber)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT mulciber-targets NAMESPACE mulciber:: DESTINATION ${MULCIBER_PACKAGE_DIR})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/mulciber-config.cmake.in
  ${PROJECT_BINARY_DIR}/mulciber-config.cmake
  INSTALL_DESTINATION ${MULCIBER_PACKAGE_DIR} PATH_VARS CMAKE_INSTALL_DATADIR)
# Before 1.0 a new minor version may break programs, so only the same one counts as compatible.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mulciber-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mulciber-config.cmake
              ${PROJECT_BINARY_DIR}/mulciber-config-version.cmake
        DESTINATION ${MULCIBER_PACKAGE_DIR})
configure_file(${CMAKE_CURRENT_LIST_DIR}/mulciber.pc.in ${PROJECT_BINARY_DIR}/mulciber.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mulciber.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
