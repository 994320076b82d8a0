# Libraries that Mulciber builds on, by Debian package name:
#   libvulkan-dev libfmt-dev nlohmann-json3-dev libcli11-dev libpcre2-dev libutf8proc-dev
#   libzstd-dev catch2
# to serve HTTP (only for the command, not for the library):
#   libcpp-httplib-dev pkg-config
# to compile shaders, which may be left out (MULCIBER_SHADERS):
#   glslang-tools spirv-tools zstd
# to read images, each of which may be left out (MULCIBER_IMAGES):
#   libpng-dev libjpeg-dev libwebp-dev
# for `mulciber pull`, which may be left out:
#   libcurl4-openssl-dev nettle-dev (SHA-256)
# and for sound files, which may be left out (MULCIBER_AUDIO):
#   libsndfile1-dev libsamplerate0-dev, and zlib1g-dev to find texts that repeat themselves
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

# Headers only: functions are looked up by name in the loader (runtime/vulkan.h).
find_path(VULKAN_INCLUDE_DIR vulkan/vulkan.h REQUIRED)
add_library(mulciber_vulkan INTERFACE)
target_include_directories(mulciber_vulkan SYSTEM INTERFACE ${VULKAN_INCLUDE_DIR})
target_compile_definitions(mulciber_vulkan INTERFACE VK_NO_PROTOTYPES)
target_link_libraries(mulciber_vulkan INTERFACE ${CMAKE_DL_LIBS})

find_path(PCRE2_INCLUDE_DIR pcre2.h REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)

find_program(GLSLANG_VALIDATOR NAMES glslangValidator glslang)
find_program(SPIRV_VAL spirv-val)
find_program(ZSTD zstd)
find_path(ZSTD_INCLUDE_DIR zstd.h REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)

# What programs link beside libmulciber.a, for mulciber::static and `pkg-config --static`.
set(MULCIBER_LINKED_LIBRARIES -lfmt -lpcre2-8 -lutf8proc -lzstd)

set(MULCIBER_IMAGE_FILES OFF)  # whether files of one format are read at least
if(MULCIBER_IMAGES)
  find_package(PNG QUIET)
  find_package(JPEG QUIET)
  find_path(WEBP_INCLUDE_DIR webp/decode.h)
  find_library(WEBP_LIBRARY webp)
  if(WEBP_INCLUDE_DIR AND WEBP_LIBRARY)
    add_library(mulciber_webp INTERFACE)
    target_include_directories(mulciber_webp SYSTEM INTERFACE ${WEBP_INCLUDE_DIR})
    target_link_libraries(mulciber_webp INTERFACE ${WEBP_LIBRARY})
  endif()
  foreach(format PNG::PNG JPEG::JPEG mulciber_webp)
    if(TARGET ${format})
      set(MULCIBER_IMAGE_FILES ON)
      string(REGEX REPLACE ".*[:_]" "" name ${format})
      string(TOLOWER ${name} name)
      list(APPEND MULCIBER_LINKED_LIBRARIES -l${name})
    endif()
  endforeach()
endif()

find_package(CURL QUIET)
find_path(NETTLE_INCLUDE_DIR nettle/sha2.h)
find_library(NETTLE_LIBRARY nettle)

set(MULCIBER_SOUND_FILES OFF)  # whether they are read
if(MULCIBER_AUDIO)
  find_path(SNDFILE_INCLUDE_DIR sndfile.h)
  find_library(SNDFILE_LIBRARY sndfile)
  find_path(SAMPLERATE_INCLUDE_DIR samplerate.h)
  find_library(SAMPLERATE_LIBRARY samplerate)
  if(SNDFILE_LIBRARY AND SNDFILE_INCLUDE_DIR AND SAMPLERATE_LIBRARY AND SAMPLERATE_INCLUDE_DIR)
    set(MULCIBER_SOUND_FILES ON)
    list(APPEND MULCIBER_LINKED_LIBRARIES -lsndfile -lsamplerate)
  endif()
endif()
find_package(ZLIB QUIET)
if(ZLIB_FOUND)
  list(APPEND MULCIBER_LINKED_LIBRARIES -lz)
endif()
list(APPEND MULCIBER_LINKED_LIBRARIES -lstdc++ -lm -pthread -ldl)

# cpp-httplib is either headers only or a library; its pkg-config file says how it was built. Tests without our programs
# use it as well. Its header has inline functions that call OpenSSL if the library was built with it, so we link what
# the file names for static linking too; the linker uses only the parts that are called.
if(MULCIBER_PROGRAMS OR MULCIBER_TESTS)
  find_package(PkgConfig REQUIRED)
  pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
  add_library(mulciber_httplib INTERFACE)
  target_link_libraries(mulciber_httplib INTERFACE PkgConfig::HTTPLIB)
  target_link_directories(mulciber_httplib INTERFACE ${HTTPLIB_STATIC_LIBRARY_DIRS})
  set(called ${HTTPLIB_STATIC_LIBRARIES})
  list(REMOVE_ITEM called ${HTTPLIB_LIBRARIES})
  list(REMOVE_DUPLICATES called)
  if(called AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
    list(TRANSFORM called PREPEND -l)
    list(JOIN called "," called)
    target_link_libraries(mulciber_httplib INTERFACE -Wl,--push-state,--as-needed,${called},--pop-state)
  else()
    target_link_libraries(mulciber_httplib INTERFACE ${called})
  endif()
endif()
