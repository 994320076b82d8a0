# Writes the functions of conformance/build_info.h to OUTPUT, only when they change, so that a commit recompiles one
# small source. SOURCE_DIR: the repository; SUITE_VERSION: set when the build was configured.
set(revision unknown)
find_program(GIT git)
if(GIT AND EXISTS ${SOURCE_DIR}/.git)  # not the repository of a project that contains a copy of this one
  execute_process(COMMAND ${GIT} -C ${SOURCE_DIR} describe --always --abbrev=12 --dirty --exclude=*
                  OUTPUT_VARIABLE described RESULT_VARIABLE failed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT failed)
    set(revision ${described})
  endif()
endif()
set(text "// Generated at build time.
#include \"conformance/build_info.h\"

namespace mulciber::conformance {
const char* suite_version() { return \"${SUITE_VERSION}\"; }
const char* git_revision() { return \"${revision}\"; }
}  // namespace mulciber::conformance
")
set(before "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
