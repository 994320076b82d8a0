#!/usr/bin/env bash
# Builds and tests this checkout where people run it: in bare folders of Debian 12, 13 and testing, each with a clone of
# the last commit, it runs ./quickstart.sh --yes and ./test.sh --yes and prints the table of docs/internals/building.md.
# Needs root and a Debian mirror; exits 77 where it cannot make a folder. For later runs it keeps bare folders and
# objects in ${MULCIBER_DISTRIBUTIONS:-~/.cache/mulciber-distributions}, logs in build/distributions.
#   tools/distributions.sh [--build-only | --compilers] [--keep] [debian-12] [debian-13] [debian-testing]
#   --build-only  compile and link the command alone, in a folder that is kept with its packages
#   --compilers   compile everything with GCC 13 and clang 19 (Ubuntu 24.04's and 26.04's), in the folder of Debian 13
#   --keep        do not remove a folder after its tests: chroot or tools/debian_folder.bash leads into it
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tools/debian_folder.bash
source "$root/tools/debian_folder.bash"
cache=${MULCIBER_DISTRIBUTIONS:-$HOME/.cache/mulciber-distributions}
logs=$root/build/distributions
declare -A suites=([debian-12]=bookworm [debian-13]=trixie [debian-testing]=testing)
declare -A titles=([debian-12]="Debian 12" [debian-13]="Debian 13" [debian-testing]="Debian testing")
mode=tests keep=0 names=()
while (($# > 0)); do
  case $1 in
    --build-only | --compilers) mode=${1#--} ;;
    --keep) keep=1 ;;
    *)
      if [[ -z ${suites[$1]:-} ]]; then sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 2; fi
      names+=("$1") ;;
  esac
  shift
done
((${#names[@]} > 0)) || names=(debian-12 debian-13 debian-testing)
[[ $mode != compilers ]] || names=(debian-13)
why_not=$(debian_why_not)
if [[ -z $why_not ]] && ! git -C "$root" rev-parse HEAD >/dev/null 2>&1; then why_not="this is not a git checkout"; fi
if [[ -n $why_not ]]; then echo "distributions: $why_not"; exit 77; fi
mkdir -p "$cache/ccache" "$logs"

# inside COMMAND...: runs it in the clone in the folder, as root with an empty environment.
inside() {
  debian_run "$folder" "$cache/ccache:/srv/newcomer/.cache/ccache" -- \
    env HOME=/srv/newcomer bash -c 'cd ~/mulciber && exec "$@"' - "$@"
}

# prepare NAME: makes $folder with a clone of the last commit in it.
prepare() {
  local bare=$cache/bare/$1
  mkdir -p "$cache/bare"
  # Another checkout may be using it.
  exec {lock}>"$cache/$1.lock"
  flock "$lock"
  if ! debian_unpack "${suites[$1]}" "$bare"; then
    echo "distributions: ${titles[$1]} cannot be unpacked (log: $bare.log)"
    exit 77
  fi
  folder=$cache/$1-$mode
  if [[ $mode == tests ]]; then rm -rf "$folder"; fi
  if [[ ! -d $folder ]]; then
    rm -rf "$folder.part"  # an earlier try was cut off
    cp -a "$bare" "$folder.part"
    mv "$folder.part" "$folder"
  fi
  rm -rf "$folder/srv/newcomer/mulciber"
  mkdir -p "$folder/srv/newcomer"
  git clone --quiet "$root" "$folder/srv/newcomer/mulciber"
}

# logged LOG COMMAND...: shows the last lines of a failure and names its log.
failures=()
logged() {
  local log=$logs/$1 status=0
  shift
  "$@" >"$log" 2>&1 </dev/null || status=$?
  ((status == 0)) || { tail -n 12 "$log"; failures+=("$log"); }
  return "$status"
}

# packages NAME ARGUMENT...: installs those of install_dependencies.sh in a folder that is kept. Without a network the
# distribution cannot be judged.
packages() {
  local name=$1
  shift
  # Debian testing changes, so its folder is updated.
  if [[ -z $(find "$folder.updated" -mtime -7 2>/dev/null) ]]; then
    if ! inside apt-get -o APT::Update::Error-Mode=any update >"$logs/$name.packages.log" 2>&1; then
      tail -n 3 "$logs/$name.packages.log"
      echo "distributions: ${titles[$name]} has no packages to fetch"
      exit 77
    fi
    logged "$name.upgrade.log" inside env DEBIAN_FRONTEND=noninteractive apt-get -y dist-upgrade &&
      touch "$folder.updated"
  fi
  logged "$name.packages.log" inside tools/install_dependencies.sh --yes "$@"
}

# compile LOG FOLDER TARGET ARGUMENT...: a warning is a failure.
compile() {
  local log=$1
  shift
  # shellcheck disable=SC2016 # expands inside
  logged "$log" inside bash -euc 'folder=$1 target=$2
    shift 2
    cmake -S . -B "$folder" -G Ninja -DCMAKE_BUILD_TYPE=Release "$@"
    cmake --build "$folder" -j "$(nproc)" --target "$target"' - "$@" || return 1
  if grep 'warning:' "$logs/$log" | sort -u | head -n 20 | grep .; then
    failures+=("$logs/$log")
    return 1
  fi
}

gcc() { echo "GCC $(inside g++ -dumpfullversion 2>&1)"; }
# shellcheck disable=SC2016 # dpkg-query expands its own fields
version() { inside dpkg-query -W -f='${Version}' "$1" | sed 's/^[0-9]*://; s/[-+~].*//'; }
libraries() {
  echo "Mesa $(version mesa-vulkan-drivers), glslang $(version glslang-tools), cpp-httplib $(version libcpp-httplib-dev)"
}
minutes() { awk -v seconds="$1" 'BEGIN { printf "%.1f", seconds / 60 }'; }
rows=()
# row NAME COMPILER MINUTES PASSED FAILED
row() { rows+=("| ${titles[$1]} | $2 | $(libraries) | $3 | $4 | $5 |"); }

run_build_only() {
  local start=$SECONDS failed=0
  packages "$1" && compile "$1.build.log" build mulciber -DMULCIBER_TESTS=OFF &&
    logged "$1.starts.log" inside build/mulciber --version || failed=1
  row "$1" "$(gcc)" "$(minutes $((SECONDS - start)))" $((1 - failed)) "$failed"
}

# compiler NAME TITLE C_COMPILER C++_COMPILER: everything, with clang the fuzz targets too.
compiler() {
  local name=$1 title=$2 start=$SECONDS failed=0
  local with=(-DCMAKE_C_COMPILER="$3" -DCMAKE_CXX_COMPILER="$4")
  inside rm -rf build
  compile "$name.$3.log" build all "${with[@]}" -DMULCIBER_TESTS=ON || failed=1
  if [[ $title == clang ]]; then
    compile "$name.$3-fuzz.log" build-fuzz mulciber_fuzz "${with[@]}" -DMULCIBER_TESTS=OFF -DMULCIBER_SANITIZE=ON \
      -DMULCIBER_FUZZ=ON || failed=1
  fi
  row "$name" "$title $(inside "$4" -dumpversion)" "$(minutes $((SECONDS - start)))" $((1 - failed)) "$failed"
}
run_compilers() {
  packages "$1" --tests || return 0
  if ! logged "$1.compilers.log" debian_install "$folder" g++-13 clang-19; then return; fi
  compiler "$1" GCC gcc-13 g++-13
  compiler "$1" clang clang-19 clang++-19
}

run_tests() {
  local start=$SECONDS quickstart counts
  if ! logged "$1.quickstart.log" inside ./quickstart.sh --yes; then
    row "$1" "$(gcc)" "$(minutes $((SECONDS - start)))" 0 1
    return
  fi
  quickstart=$(minutes $((SECONDS - start)))
  start=$SECONDS
  logged "$1.test.log" inside ./test.sh --yes || true
  counts=$(sed -nE '$s/^([0-9]+) passed, ([0-9]+) failed.*/\1 \2/p' "$logs/$1.test.log")
  # shellcheck disable=SC2086 # two numbers
  row "$1" "$(gcc)" "$quickstart + $(minutes $((SECONDS - start)))" ${counts:-0 1}
}

# A function, because bash reads a script while it runs, and this one may be edited meanwhile.
main() {
  local name
  for name in "${names[@]}"; do
    echo "distributions: ${titles[$name]}"
    prepare "$name"
    case $mode in
      build-only) run_build_only "$name" ;;
      compilers) run_compilers "$name" ;;
      tests) run_tests "$name" ;;
    esac
    if [[ $mode == tests ]] && ((!keep)); then rm -rf "$folder"; fi
  done
  echo "| distribution | compiler | libraries | minutes | passed | failed |"
  echo "| --- | --- | --- | ---: | ---: | ---: |"
  printf '%s\n' "${rows[@]}"
  ((${#failures[@]} > 0)) || return 0
  echo "distributions: failed, with logs in"
  printf '  %s\n' "${failures[@]}"
  return 1
}
main
