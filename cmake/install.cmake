# Installs the command, the shared library with its public headers and CMake package
# (find_package(mulciber), then link mulciber::mulciber, or mulciber::static where MULCIBER_STATIC was
# on), and the bundled models.
include(CMakePackageConfigHelpers)

set(MULCIBER_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/mulciber)
if(TARGET mulciber)
  install(TARGETS mulciber RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
if(MULCIBER_STATIC)
  install(TARGETS libmulciber_static EXPORT mulciber-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS libmulciber EXPORT mulciber-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/mulciber DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
# The recurrent models beside it serve comparisons (docs/guide/recurrence.md) and are not installed.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/assets/en-de ${PROJECT_SOURCE_DIR}/assets/vit-digits
        DESTINATION ${CMAKE_INSTALL_DATADIR}/mulciber)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

install(EXPORT mulciber-targets NAMESPACE mulciber:: DESTINATION ${MULCIBER_PACKAGE_DIR})
configure_package_config_file(
  ${CMAKE_CURRENT_LIST_DIR}/mulciber-config.cmake.in
  ${PROJECT_BINARY_DIR}/mulciber-config.cmake
  INSTALL_DESTINATION ${MULCIBER_PACKAGE_DIR} PATH_VARS CMAKE_INSTALL_DATADIR)
# Before 1.0 a new minor version may break programs, so only equal minor versions count as compatible.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mulciber-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mulciber-config.cmake
              ${PROJECT_BINARY_DIR}/mulciber-config-version.cmake
        DESTINATION ${MULCIBER_PACKAGE_DIR})
list(JOIN MULCIBER_LINKED_LIBRARIES " " MULCIBER_PRIVATE_LIBRARIES)  # for `pkg-config --static`
# The prefix is what lies above the file: `cmake --install --prefix` and packages choose another than the configure step.
set(MULCIBER_PC_PREFIX ${CMAKE_INSTALL_PREFIX})
if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH up "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /prefix)
  string(REGEX REPLACE "/+$" "" up "${up}")
  set(MULCIBER_PC_PREFIX "\${pcfiledir}/${up}")
endif()
foreach(place LIBDIR INCLUDEDIR)
  set(MULCIBER_PC_${place} "${CMAKE_INSTALL_${place}}")
  if(NOT IS_ABSOLUTE "${CMAKE_INSTALL_${place}}")
    set(MULCIBER_PC_${place} "\${prefix}/${CMAKE_INSTALL_${place}}")
  endif()
endforeach()
configure_file(${CMAKE_CURRENT_LIST_DIR}/mulciber.pc.in ${PROJECT_BINARY_DIR}/mulciber.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/mulciber.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
