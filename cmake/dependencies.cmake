# Libraries that Mulciber builds on, by Debian package name:
#   libvulkan-dev libvulkan-volk-dev glslang-tools spirv-tools libfmt-dev nlohmann-json3-dev
#   libcli11-dev libpcre2-dev libutf8proc-dev catch2
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)

find_path(VULKAN_INCLUDE_DIR vulkan/vulkan.h REQUIRED)
find_path(VOLK_INCLUDE_DIR volk.h REQUIRED)
find_library(VOLK_LIBRARY volk REQUIRED)

find_path(PCRE2_INCLUDE_DIR pcre2.h REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)
find_path(UTF8PROC_INCLUDE_DIR utf8proc.h REQUIRED)
find_library(UTF8PROC_LIBRARY utf8proc REQUIRED)

find_program(GLSLANG_VALIDATOR NAMES glslangValidator glslang REQUIRED)
find_program(SPIRV_VAL spirv-val)
