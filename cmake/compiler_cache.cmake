# Uses ccache, where it is installed, to share objects between checkouts.
#
# Names of files in this checkout are hashed relative to the build folder (CCACHE_BASEDIR), and the build folder itself
# is left out of the hash (CCACHE_NOHASHDIR): a second clone in another folder compiles nothing that the first one
# compiled, as long as its build folder has the same place in the checkout. tests/cli/compiler_cache.sh counts the hits.
find_program(CCACHE ccache)
if(CCACHE)
  set(MULCIBER_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MULCIBER_COMPILER_LAUNCHER})
  set(CMAKE_C_COMPILER_LAUNCHER ${MULCIBER_COMPILER_LAUNCHER})
endif()
