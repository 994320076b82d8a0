#!/usr/bin/env bash
# One run of everything that a GPU is needed for, the most important first: the conformance suite,
# the models' recorded results, the rates of the kernels and models that matter, the tuner,
# llama.cpp's Vulkan backend beside ours, then the rest of the suite, every kernel's rate, the tests.
# Results go to ${OUT:-docs/internals/results/DEVICE}, with date, driver and commands. Steps for
# which there is no time are named. Run again, it goes on where it stopped. Exit code 1: a step
# failed, after all others were tried.
#   tools/on_gpu.sh [--minutes N] [--device NAME] [--build FOLDER] [--gguf FILE]...
#                   [--llama-bench COMMAND] [--packages FOLDER] [--pack FILE] [--steps GLOB] [--again]
#   --minutes      stop after so many (default: when all is done)
#   --device       passed on to every command (default: the best device)
#   --build        where to build, or a finished build (default build-gpu)
#   --gguf         a language model to measure and tune; may come several times
#   --llama-bench  llama.cpp's llama-bench with a Vulkan backend, to measure beside ours
#   --packages     .deb files (Vulkan loader, build tools, libraries) to unpack first, for machines
#                  that have a GPU driver and no network; needs root
#   --pack         put all results into one archive at the end: lent machines give few files back
#   --steps        only the steps whose names match
#   --again        do the steps again that were done before
# MULCIBER_FIXTURES: a folder of reference models, whose recorded results are met too.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
usage() { sed -n '2,22s/^# \{0,1\}//p' "$0"; exit 2; }
packages="" build=build-gpu device=() ggufs=() llama="" minutes=0 pack="" steps='*' again=0
while (($# > 0)); do
  [[ $1 == --again || $# -gt 1 ]] || usage
  case $1 in
    --packages) packages=$2 ;;
    --build) build=$2 ;;
    --device) device=(--device "$2") ;;
    --gguf) ggufs+=("$2") ;;
    --llama-bench) llama=$2 ;;
    --minutes) minutes=$2 ;;
    --pack) pack=$2 ;;
    --steps) steps=$2 ;;
    --again) again=1; shift; continue ;;
    *) usage ;;
  esac
  shift 2
done

failed=() left_out=()
# Seconds left; the last ten are reserved for packing.
seconds_left() {
  local left=$((minutes * 60 - SECONDS - 10))
  ((minutes == 0)) && left=86400
  echo $((left > 1 ? left : 1)) # timeout takes 0 as no bound
}
# step NAME COMMAND...: runs a command, records its time and output, and continues when it fails. A finished step is not
# run again.
step() {
  local name=$1 start=$SECONDS status=0 seconds
  shift
  # A glob, as the caller gave it.
  # shellcheck disable=SC2053
  [[ $name == $steps ]] || return 0
  if ((!again)) && grep -qsx "$name" "$results/done"; then return 0; fi
  seconds=$(seconds_left)
  if ((seconds < 20)); then left_out+=("$name"); return 0; fi
  echo "==> $name: $*"
  echo "$(date -u +%FT%TZ) $name: $*" >>"$results/commands.txt"
  # Functions of this script run in this shell; their commands have time limits of their own.
  if [[ $(type -t "$1") == function ]]; then
    "$@" >"$results/$name.txt" 2>&1 </dev/null || status=$?
  else
    timeout --kill-after=5 "$seconds" "$@" >"$results/$name.txt" 2>&1 </dev/null || status=$?
  fi
  tail -n 4 "$results/$name.txt" | cut -c1-200
  echo "    $name: exit $status after $((SECONDS - start)) s"
  if ((status == 0)); then echo "$name" >>"$results/done"
  elif ((status == 124 || status == 137)); then left_out+=("$name (cut off)")
  else failed+=("$name"); fi
  return 0
}
# save FILE COMMAND...: standard output goes to the file, standard error stays visible.
save() {
  local file=$1
  shift
  timeout --kill-after=5 "$(seconds_left)" "$@" >"$file"
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

mulciber=$build/mulciber
# The device compiles while the processor computes the reference of a case.
jobs=$(nproc) && jobs=$((jobs < 12 ? jobs : 12))
if [[ ! -x $mulciber ]]; then
  echo "==> build: $build"
  { cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMULCIBER_TESTS=ON &&
    cmake --build "$build" -j "$(nproc)" --target mulciber; } >"$build.txt" 2>&1 ||
    { tail -n 20 "$build.txt"; echo "on_gpu: the build failed"; exit 1; }
fi
named=$("$mulciber" devices "${device[@]}" 2>/dev/null | sed -n 's/^[0-9]*: //p' | head -n 1)
[[ -n $named ]] || { "$mulciber" devices "${device[@]}"; echo "on_gpu: no device"; exit 1; }
results=${OUT:-docs/internals/results/$(tr -cs '[:alnum:]' - <<<"${named,,}" | sed 's/^-*//; s/-*$//')}
mkdir -p "$results"
echo "$named; results in $results"

step devices "$mulciber" devices -v "${device[@]}"
if command -v nvidia-smi >/dev/null; then step nvidia-smi nvidia-smi; fi

# Cases with a result are kept, so a suite that was cut off is continued.
conform() {
  local record=$results/$1.jsonl page=$results/$1.html resume=()
  shift
  [[ ! -s $record ]] || resume=(--resume)
  timeout --kill-after=5 "$(seconds_left)" "$mulciber" conform "${device[@]}" --jobs "$jobs" \
    ${resume[@]+"${resume[@]}"} --output "$record" --html "$page" "$@"
}
step conform-short conform conform-short --mustpass

# verify_one EXPECTED ARGUMENT...
verify_one() {
  timeout --kill-after=5 "$(seconds_left)" "$mulciber" verify "${device[@]}" -m "$(dirname "$1")" "$@" | tail -n 1
  # Bad input (2): a model that is not supported yet. Nothing compared (3) is not a failure either.
  case ${PIPESTATUS[0]} in 0 | 2 | 3) ;; *) return 1 ;; esac
}
verify() {
  local expected status=0 found=0
  while read -r expected; do
    echo "== $expected"
    # Matrix units round activations to 16 bits, beyond the tolerances of f32.
    if ! verify_one "$expected"; then
      echo "without matrix units:"
      verify_one "$expected" --limits no-coopmat || { status=1 && echo "FAILED: $expected"; }
    fi
    found=1
  done < <(find tests/data ${MULCIBER_FIXTURES:+"$MULCIBER_FIXTURES"} -name expected.safetensors | sort)
  return $((status || !found))
}
step verify verify

bench() {
  local name=$1
  shift
  step "bench-$name" save "$results/bench-$name.json" "$mulciber" bench "${device[@]}" --json "$@"
}
bench products --kernel 'matmul*' --weight f16 --shape 4096,4096,4096 --shape 512,4096,4096 \
  --shape 1,4096,4096 --seconds 0.2
bench products-q4 --kernel 'matmul*' --weight 'q4_[0k]' --shape 512,4096,4096 \
  --shape 1,4096,4096 --seconds 0.2
bench split --kernel 'matmul*' --weight f16 --shape 16,1024,4096 --shape 64,512,8192 --seconds 0.2
bench attention --kernel attention --weight f16 --shape 1,512,4096,32,128,8 \
  --shape 1,1,4096,32,128,8 --shape 1,16,4096,32,128,8 --seconds 0.2
for gguf in ${ggufs[@]+"${ggufs[@]}"}; do
  name=$(basename "$gguf" .gguf)
  bench "$name-before" -m "$gguf" -p 512 -n 128
  step "tune-$name" "$mulciber" tune "${device[@]}" -m "$gguf"
  bench "$name-tuned" -m "$gguf" -p 512 -n 128
done
bench translation -m assets/en-de
step translate "$mulciber" translate "${device[@]}" -m assets/en-de --stats \
  "A dog runs through the snow." "Two children are playing football in the park."
if [[ -n $llama && ${#ggufs[@]} -gt 0 ]]; then
  step llama-cpp bench/compare_llama_cpp.py --mulciber "$mulciber" --llama-bench "$llama" \
    --prompt 512 --new 128 --no-cpu "${ggufs[@]}"
fi

bench rows --kernel '*' --seconds 0.05
step conform-all conform conform-all
# Runs without ctest, so that a finished build may come from another folder.
for program in "$build"/tests/*_tests; do
  [[ ! -x $program ]] || step "${program##*/}" "$program"
done

[[ -z $pack ]] || tar -C "$results" -caf "$pack" .
((${#left_out[@]} == 0)) || echo "on_gpu: no time was left for: ${left_out[*]}"
if ((${#failed[@]} > 0)); then
  echo "on_gpu: failed: ${failed[*]} (logs in $results)"
  exit 1
fi
echo "on_gpu: every step that ran has passed; results in $results"
