#!/usr/bin/env bash
# From a fresh Debian or Ubuntu machine to a translated sentence: installs what is missing (asks
# before sudo), builds, lists the Vulkan devices, translates with the bundled English-German model,
# and draws its attention as attention.html and attention.svg in the current folder. Works from any
# folder, and again.
#   ./quickstart.sh [--yes]      --yes  do not ask before sudo
set -euo pipefail

here=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mulciber=$root/build/mulciber
model=$root/assets/en-de
sentences=("A dog runs through the snow."
  "Two children are playing football in the park."
  "A woman in a red coat is reading a book on a bench."
  "An old man is selling vegetables at the market.")

case ${1:-} in
  "" | --yes) ;;
  *) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 2 ;;
esac
step() { printf '\n==> %s\n' "$*"; }

step "1/5  Packages"
"$root/tools/install_dependencies.sh" "$@"

step "2/5  Build (a few minutes the first time)"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
start=$SECONDS
if ! { cmake -S "$root" -B "$root/build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DMULCIBER_TESTS=OFF &&
  cmake --build "$root/build" --target mulciber; } >"$log" 2>&1; then
  tail -n 30 "$log"
  echo "quickstart: the build failed; docs/internals/building.md says what it needs"
  exit 1
fi
echo "built $mulciber in $((SECONDS - start)) s"

step "3/5  Devices"
devices=$("$mulciber" devices)
echo "$devices"
if ! grep -qE '(discrete|integrated|virtual) GPU' <<<"$devices"; then
  echo "There is no GPU with a Vulkan driver here: a software driver, on the CPU, does the work."
fi

step "4/5  Translation, English to German"
"$mulciber" translate -m "$model" --stats "${sentences[@]}"

step "5/5  Attention"
for image in attention.html attention.svg; do
  "$mulciber" translate -m "$model" --attention "$here/$image" "${sentences[2]}" >/dev/null
done

cat <<END

Next:
  Open attention.html in a browser: choose layers, heads and tokens; attention.svg is one image.
  Translate more:   $mulciber translate -m $model "Your sentence."
  From a file:      $mulciber translate -m $model --beam 5 < lines.txt
  Other devices:    $mulciber devices --help
END
