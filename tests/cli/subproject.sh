#!/usr/bin/env bash
# Inside of somebody else's project the library is all that is built, shared or static, and nothing is installed.
# Planned alone: building it is what every other test does.
set -euo pipefail
# shellcheck source=tests/cli/exits.bash
. "$MULCIBER_SOURCE/tests/cli/exits.bash"
command -v ninja >/dev/null || { echo "skipped: subproject: no ninja"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >CMakeLists.txt <<END
cmake_minimum_required(VERSION 3.22)
project(application LANGUAGES C CXX)
include(FetchContent)
FetchContent_Declare(mulciber SOURCE_DIR $MULCIBER_SOURCE)
FetchContent_MakeAvailable(mulciber)
foreach(kind mulciber static)
  add_executable(application_\${kind} main.c)
  target_link_libraries(application_\${kind} mulciber::\${kind})
endforeach()
END
echo '#include <mulciber/mulciber_c.h>
int main(void) { return mulciber_version()[0] == 0; }' >main.c
cmake -S . -B build -G Ninja >out.txt 2>&1 || fail "cmake: $(tail -n 5 out.txt)"
ninja -C build -t targets all >targets.txt
for wanted in libmulciber.so libmulciber_static application_static; do
  grep -q "$wanted" targets.txt || fail "there is no $wanted"
done
for other in models_tests mulciber_apps mulciber-viewer embed_minimal; do
  ! grep -q "$other" targets.txt || fail "there is a $other, which is no part of the library"
done
ninja -C build -t commands application_static >plan.txt
grep -q 'libmulciber\.a' plan.txt || fail "the static library is not linked"
! grep -q 'libmulciber\.so' plan.txt || fail "a program with the static library links the shared one"
! grep -rq 'file(INSTALL' build --include=cmake_install.cmake || fail "the application's installation has something of ours"
echo "1 passed, 0 failed, 0 skipped"
