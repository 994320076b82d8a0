#!/usr/bin/env bash
# One run of everything that a GPU is needed for: which device is there, the test suite, every
# kernel's achieved rate against its floor as JSON, and translation from text to text. Results go to
# ${OUT:-docs/results/DEVICE}. Ends with exit code 1 when a step failed, after trying every step.
#   tools/on_gpu.sh [--packages FOLDER] [--build FOLDER] [--device NAME] [--model FOLDER] [--quick]
#   --packages  .deb files (Vulkan loader, build tools, libraries) to unpack first, for machines that
#               have a GPU driver and no network; needs root
#   --build     where to build, or a finished build (default build-gpu)
#   --device    passed on to every command (default: the best device)
#   --quick     fewer kernels and no tests: a minute instead of ten
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
packages="" build=build-gpu device=() model=assets/en-de quick=0
while (($# > 0)); do
  case $1 in
    --packages) packages=$2; shift 2 ;;
    --build) build=$2; shift 2 ;;
    --device) device=(--device "$2"); shift 2 ;;
    --model) model=$2; shift 2 ;;
    --quick) quick=1; shift ;;
    *) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
  esac
done

failed=()
# step NAME COMMAND...: runs it with its time and output on record, and goes on when it fails.
step() {
  local name=$1 start=$SECONDS status=0
  shift
  echo "==> $name: $*"
  "$@" >"$results/$name.txt" 2>&1 </dev/null || status=$?
  tail -n 6 "$results/$name.txt"
  echo "    $name: exit $status after $((SECONDS - start)) s"
  ((status == 0)) || failed+=("$name")
  return 0
}

if [[ -n $packages ]]; then
  for package in "$packages"/*.deb; do dpkg-deb -x "$package" / || exit 1; done
  ldconfig
fi
# Containers mount NVIDIA's driver outside the folders that the loader searches.
if [[ -z ${VK_DRIVER_FILES:-} ]]; then
  for icd in /usr/share/vulkan/icd.d/nvidia_icd.json /etc/vulkan/icd.d/nvidia_icd.json \
    /usr/local/nvidia/share/vulkan/icd.d/nvidia_icd.json; do
    if [[ -e $icd ]]; then
      export VK_DRIVER_FILES=$icd VK_ICD_FILENAMES=$icd
      break
    fi
  done
fi
echo "ICD: ${VK_DRIVER_FILES:-whatever the loader finds}"
[[ $(ldconfig -p) == *libvulkan.so.1* ]] || { echo "on_gpu: there is no Vulkan loader"; exit 1; }

results=${OUT:-docs/results}
mkdir -p "$results"
if [[ ! -x $build/mulciber ]]; then
  step build bash -c "cmake -S . -B '$build' -G Ninja -DCMAKE_BUILD_TYPE=Release &&
    cmake --build '$build' -j $(nproc)"
fi
mulciber=$build/mulciber
[[ -x $mulciber ]] || { echo "on_gpu: no $mulciber"; exit 1; }

step devices "$mulciber" devices -v
if command -v nvidia-smi >/dev/null; then step nvidia-smi nvidia-smi; fi

if ((!quick)); then
  # Run without ctest, so that a finished build may come from another folder.
  for program in "$build"/tests/*_test; do
    [[ ! -x $program ]] || step "${program##*/}" "$program"
  done
fi

# save FILE COMMAND...: standard output goes to the file, standard error stays visible.
save() {
  local file=$1
  shift
  "$@" >"$file"
}
bench_json() {
  local name=$1
  shift
  step "bench-$name" save "$results/bench-$name.json" "$mulciber" bench "${device[@]}" --json "$@"
}
bench_json matmul-64x2048x768 --kernel 'matmul*' --shape 64,2048,768
if ((!quick)); then
  bench_json matmul-4096 --kernel 'matmul*' --shape 4096,4096,4096
  bench_json kernels --kernel '*'
fi

if [[ -e $model/config.json ]]; then
  step translate "$mulciber" translate "${device[@]}" -m "$model" --stats \
    "A dog runs through the snow." "Two children are playing football in the park."
  translate_lines() {
    for i in $(seq "$1"); do echo "A group of $i people is standing in front of a building."; done |
      "$mulciber" translate "${device[@]}" -m "$model" --beam 5 --stats
  }
  step translate-lines save "$results/translate-lines-output.txt" translate_lines \
    "$((quick ? 20 : 1000))"
  step profile "$mulciber" translate "${device[@]}" -m "$model" \
    --profile "$results/translate-trace.json" "A dog runs through the snow."
fi

if ((${#failed[@]} > 0)); then
  echo "on_gpu: failed: ${failed[*]} (logs in $results)"
  exit 1
fi
echo "on_gpu: all steps passed; results in $results"
