#!/usr/bin/env bash
# pkg_config.sh STAGE WORK: moves an installed library into the folder WORK, which is made anew, and builds a program with
# what pkg-config says of it there.
set -euo pipefail
fail() { echo "FAILED: $*"; exit 1; }

stage=$(cd "$1" && pwd) work=$2
rm -rf "$work"
mkdir -p "$work/moved"
work=$(cd "$work" && pwd)
cp -a "$stage"/{include,lib*} "$work/moved/"
file=$(find "$work/moved" -name mulciber.pc)
[[ -f $file ]] || fail "no mulciber.pc in $stage"
! grep -F "$stage" "$file" || fail "mulciber.pc names the folder of the installation"
PKG_CONFIG_PATH=$(dirname "$file")
export PKG_CONFIG_PATH

# The stage still exists, so each folder is checked to be the moved one.
for name in prefix libdir includedir; do
  folder=$(realpath "$(pkg-config --variable="$name" mulciber)")
  [[ $folder == "$work/moved"* ]] || fail "$name is $folder, not in $work/moved"
done
[[ $(realpath "$(pkg-config --variable=prefix mulciber)") == "$work/moved" ]] || fail "prefix is another folder"

cat >"$work/version.c" <<'END'
#include <stdio.h>

#include <mulciber/mulciber_c.h>

int main(void) { return puts(mulciber_version()) < 0; }
END
read -ra flags <<<"$(pkg-config --cflags --libs mulciber)"
cc -std=c11 "$work/version.c" "${flags[@]}" -Wl,-rpath,"$(pkg-config --variable=libdir mulciber)" -o "$work/version"
said=$("$work/version")
[[ $said == "$(pkg-config --modversion mulciber)" ]] || fail "the program says version '$said'"
