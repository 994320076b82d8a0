#!/usr/bin/env bash
# A newcomer's proof: installs what is missing, sets up the software Vulkan drivers, builds the command and a selection
# of the tests, and runs it on lavapipe and SwiftShader, with a short run of the conformance suite. What it leaves out is
# named at the end. Works twice, from any folder. The last line is "N passed, N failed, N skipped".
#   ./test.sh [--change | --all] [--yes] [--only PART[,PART...]] [--minutes N]
#   --change  the proof of a change (.ci/run): every test once on lavapipe, what differs from the commit of .ci/base
#             elsewhere too, and one part of --all by the day
#   --all     everything: every test on both drivers, with capability masks, under the validation layer, under
#             sanitizers, fuzz targets, an installed library, the form of the source
#   --only    the named parts, and the build (`--only scripts` needs none)        --yes   do not ask before sudo
#   --minutes no part begins after so many: those that are left are skipped by name
set -euo pipefail

root=$(cd "$(dirname "$0")" && pwd)
cd "$root"
# Where time is short, what is quick and what other parts do not show comes first.
all_parts=(scripts install lavapipe gpu swiftshader conformance validation sanitizers fuzz tidy compilers android-2021
  storage-1M debian-testing distributions)
change_parts=(scripts install lavapipe gpu distributions touched turn)
more_parts=(touched turn threads)  # that --all does not run
parts=(lavapipe gpu swiftshader conformance)
size=proof
yes=()
minutes=0  # no limit
while (($# > 0)); do
  case $1 in
    --yes) yes=(--yes) ;;
    --change) size=change parts=("${change_parts[@]}") ;;
    --all) size=all parts=("${all_parts[@]}") ;;
    --only) IFS=, read -r -a parts <<<"${2:-}"; size=all; shift ;;
    --minutes) minutes=${2:?}; shift ;;
    *) sed -n '2,12s/^# \{0,1\}//p' "$0"; echo "Parts: ${all_parts[*]}, and ${more_parts[*]}"; exit 2 ;;
  esac
  shift
done

export MULCIBER_DRIVERS=${MULCIBER_DRIVERS:-$HOME/.cache/vulkan-drivers}
if [[ -z ${MULCIBER_FIXTURES:-} && -d ../shared/fixtures ]]; then
  MULCIBER_FIXTURES=$(realpath ../shared/fixtures)
  export MULCIBER_FIXTURES
fi
jobs=$(nproc)
logs=$root/build/test-logs
mkdir -p "$logs"
source tests/parts/report.bash
source tests/parts/build.bash
source tests/parts/ctest.bash
source tests/parts/drivers.bash
source tests/parts/gpu.bash
source tests/parts/conformance.bash
source tests/parts/sanitizers.bash
source tests/parts/install.bash
source tests/parts/scripts.bash
source tests/parts/tidy.bash
source tests/parts/compilers.bash
source tests/parts/distributions.bash
source tests/parts/change.bash

# These read the source alone.
if [[ ${parts[*]} == scripts ]]; then
  part scripts run_scripts || true
  summary
  exit
fi

echo "==> packages and drivers"
if ! tools/install_dependencies.sh --tests "${yes[@]}"; then
  # The build says what it misses; only what the tests alone use is skipped by name.
  tools/install_dependencies.sh "${yes[@]}"
fi
tools/drivers/software.sh
timings+=("$(printf '%5d s  packages and drivers' "$SECONDS")")

if [[ -n ${MULCIBER_FIXTURES:-} ]]; then
  echo "fixtures: $MULCIBER_FIXTURES"
else
  skip "tests that need the reference models: there is no ../shared/fixtures"
fi
build_failed=0
part build run_build || build_failed=1
if ((!build_failed)); then
  for name in "${all_parts[@]}" "${more_parts[@]}"; do
    function=${name,,}
    part "$name" "run_${function//-/_}" || true
  done
fi
if [[ $size == proof ]]; then
  for name in "${all_parts[@]}"; do
    [[ " ${parts[*]} " == *" $name "* ]] || leave_out "$name"
  done
fi
summary
