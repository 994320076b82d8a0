#!/usr/bin/env bash
# shaders/pinned: it was made from the sources of this tree; and a change of sources is noticed, by the tool and by a
# build that needs the module, wherever the checkout stands. Compiles nothing.
set -euo pipefail
command -v python3 >/dev/null || { echo "python3 is not installed"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
fail() { echo "FAILED: $*"; exit 1; }
tool=$MULCIBER_SOURCE/tools/pin_shaders.py

"$tool" --quick || fail "shaders/pinned is not of this tree"

# The tree again, elsewhere, with shaders of its own.
mkdir tree
ln -s "$MULCIBER_SOURCE"/* tree/
rm tree/shaders
cp -r "$MULCIBER_SOURCE/shaders" fresh
renew() { rm -rf tree/shaders && cp -r fresh tree/shaders; }
# expect WORDS: both refuse the tree with these words, and name the tool.
expect() {
  "$tool" --quick --shaders "$PWD/tree/shaders" >out 2>&1 && fail "--quick does not see: $*"
  grep -qF -- "$1" out || fail "--quick says no '$1': $(cat out)"
  grep -q "Run tools/pin_shaders.py" out || fail "--quick names no tool: $(cat out)"
  rm -rf build
  cmake -S tree -B build -DMULCIBER_SHADERS=pinned -DMULCIBER_TESTS=OFF >out 2>&1 && fail "CMake does not see: $*"
  tr -s ' \n' ' ' <out >line
  grep -q "tools/pin_shaders.py" line || fail "CMake names no tool: $(cat out)"
  if (($# > 1)); then grep -qF -- "$2" line || fail "CMake does not say '$2': $(cat out)"; fi
}

renew
"$tool" --quick --shaders "$PWD/tree/shaders" || fail "the hashes depend on the folder"
# What the compiler does not read is no change.
sed -i 's|^#version 450|// A comment.\n&  // and another|' tree/shaders/matmul_coopmat.comp
"$tool" --quick --shaders "$PWD/tree/shaders" || fail "a comment is a change"

sed -i 's|^#version 450|&\n#define NEW 1|' tree/shaders/matmul_coopmat.comp
expect "matmul_coopmat_128_f32_bf16 was made from other sources" matmul_coopmat_64_f16
grep -q "rope_append" out && fail "a row of another shader is called stale"
# An included file, by which all rows change.
renew
echo "#define NEW 1" >>tree/shaders/include/interface.h
rows=$(grep -c "^KERNEL(" fresh/kernels.def)
expect "$rows differences"
# A define of one row.
renew
sed -i '/^KERNEL(elementwise_f32,/s/DEFINES()/DEFINES(NEW)/' tree/shaders/kernels.def
expect "1 differences" elementwise_f32.
renew
sed -i 's/^KERNEL(elementwise_f32,/KERNEL(elementwise_new,/' tree/shaders/kernels.def
expect "elementwise_f32 is no row" elementwise_new.
renew
printf x >>tree/shaders/pinned/modules.zst
expect "not the archive that manifest.txt describes" "not the archive"
