# What GPUs choose, run without one, for test.sh to source: a Vulkan driver that computes on the CPU's cores with as
# many lanes as their subgroups have, and says that it is a discrete GPU. Rows, CPU code and tuner are then theirs.

gpu_icd='' gpu_cache='' gpu_order=0 gpu_env=()

# The driver that MULCIBER_WIDE_DRIVER names (an ICD file), or the one beside the checkout, unpacked.
find_wide_driver() {
  gpu_icd=${MULCIBER_WIDE_DRIVER:-}
  local beside=$root/../shared/drivers/wide
  if [[ -z $gpu_icd && -x $beside/unpack.sh ]]; then gpu_icd=$("$beside/unpack.sh" "$MULCIBER_DRIVERS/wide"); fi
  [[ -n $gpu_icd && -e $gpu_icd ]]
}

# gpu COMMAND...: as a discrete GPU of RADV's with subgroups of 32 lanes. Shared memory holds NaNs when a workgroup
# begins, and its subgroups run in the order gpu_order (1: descending). The self-test is off, because what it has not
# reached yet would keep rows from being timed; self_test_begins turns it on.
gpu() { gpu_environment && "${gpu_env[@]}" "$@"; }
gpu_environment() {
  gpu_env=(env VK_DRIVER_FILES="$gpu_icd" VK_ICD_FILENAMES="$gpu_icd" MESA_SHADER_CACHE_DISABLE=1 LP_DEVICE_TYPE=2
    LP_DRIVER_ID=3 LP_VENDOR_ID=4098 LP_NATIVE_VECTOR_WIDTH=1024 LP_SHARED_FILL=255 LP_SUBGROUP_ORDER="$gpu_order"
    MULCIBER_CACHE="$gpu_cache" MULCIBER_SELF_TEST=0)
}
gpu_mulciber() { gpu build/mulciber "$@"; }
# gpu_says WORDS ARGUMENT...: the command succeeds, and what it writes has the words.
gpu_says() {
  local words=$1 said
  shift
  said=$(gpu_mulciber "$@" 2>&1) || { echo "$said"; return 1; }
  echo "$said"
  grep -qF -- "$words" <<<"$said"
}

# gpu_tunes_quietly ARGUMENT...: the command succeeds, and no measurement of the tuner's failed on the way.
gpu_tunes_quietly() {
  local said
  said=$(gpu_mulciber "$@" 2>&1) || { echo "$said"; return 1; }
  echo "$said"
  ! grep -qE 'measurements failed|were not measured' <<<"$said"
}
# gpu_tuned SECONDS MODEL ARGUMENT...: what the tuner measures of a model, all of it without a failure.
gpu_tuned() {
  local seconds=$1 model=$2
  shift 2
  gpu_mulciber tune -m "$model" --context 64 --seconds "$seconds" --again --json "$@" |
    python3 -c 'import json, sys
report = json.load(sys.stdin)
print(json.dumps(report, indent=1))
assert report["problems"] and report["kept"] and not report["failed"]'
}
gpu_chats() {
  local template=$gpu_cache/chat.jinja
  echo '{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }} {% endfor %}[assistant]' >"$template"
  echo "the red hammer" |
    gpu_tunes_quietly chat -m tests/data/gemma3 --template "$template" -n 4 --stats | tee "$gpu_cache/chat" &&
    grep -qE '^\[[0-9]+ tokens.* held, ' "$gpu_cache/chat"
}

# gpu_values MODEL [ARGUMENT...]: a model's results against those that were computed elsewhere in float64.
gpu_values() { gpu_mulciber verify -m "$1" "${@:2}" "$1/expected.safetensors"; }

self_test_begins() {
  local cache=$gpu_cache/self-test
  mkdir -p "$cache"
  gpu env MULCIBER_SELF_TEST=1 MULCIBER_CACHE="$cache" build/mulciber translate -v -m assets/en-de "A dog." 2>&1 |
    tee "$cache/said"
  grep -qE 'self-test: [1-9][0-9]* rows passed, 0 failed' "$cache/said"
}

gpu_device() { gpu_says "subgroup 32" devices && gpu_says "discrete GPU" devices; }

gpu_translates() { gpu_says "Ein Hund rennt durch den Schnee." translate -m assets/en-de "A dog runs through the snow."; }
gpu_classifies() { gpu_says "5 0." classify -m assets/vit-digits assets/vit-digits/digit.png; }
gpu_reads() { gpu_says 31977 read -m assets/digit-strings assets/digit-strings/string.png; }

# The program that embeds the library says what the command says.
gpu_application_task() {
  cmake --build build -j "$jobs" --target embed_minimal graph_attention &&
    [[ $(gpu build/examples/embed_minimal assets/en-de "A dog runs through the snow.") == \
      "Ein Hund rennt durch den Schnee." ]] &&
    gpu build/examples/graph_attention examples/karate | tee "$gpu_cache/karate" &&
    grep -q '^33 of 34 members' "$gpu_cache/karate"
}

# A model is served to a client. The environment stands before the command, for the signal to reach it.
gpu_server() {
  local log=$gpu_cache/server.log url='' server status=0
  gpu_environment
  "${gpu_env[@]}" build/mulciber serve --port 0 -m tests/data/gemma3 --context 64 2>"$log" &
  server=$!
  for ((i = 0; i < 1200; ++i)); do
    url=$(sed -n 's/.*listening on \(http:[^ "]*\).*/\1/p' "$log")
    if [[ -n $url ]] || ! kill -0 "$server" 2>/dev/null; then break; fi
    sleep 0.1
  done
  curl -sS --max-time 120 -H 'Content-Type: application/json' "$url/v1/completions" \
    -d '{"model": "gemma3", "prompt": "The red hammer", "max_tokens": 4, "temperature": 0}' |
    tee "$gpu_cache/answer" || status=1
  kill -TERM "$server"
  wait "$server" || status=1
  cat "$log"
  grep -q '"completion_tokens":4' "$gpu_cache/answer" || status=1
  ! grep -qE 'measurements failed|were not measured' "$log" || status=1
  return "$status"
}

# gpu_rows ORDER FIRST STEP WHICH: one case of every STEP-th row for hardware from the FIRST on, the first or the last
# of its short list (head, tail), with the subgroups of a workgroup in that order.
gpu_rows() {
  local gpu_order=$1 first=$2 step=$3 which=$4 filters=()
  mapfile -t filters < <(build/mulciber devices --kernels | awk -F'|' '
    /^## / { op = substr($0, 4) }
    NF > 8 && $8 ~ /hardware/ { gsub(/ /, "", $2); sub("^" op "_", "", $2); print "--filter=mulciber." op "." $2 ".*" }')
  ((${#filters[@]} > 0)) || return 1
  build/mulciber conform --list --mustpass "${filters[@]}" | awk -F. -v which="$which" '
    { row = $1 "." $2 "." $3; if (!(row in name)) rows[++count] = row; if (which == "tail" || !(row in name)) name[row] = $0 }
    END { for (i = 1; i <= count; ++i) print name[rows[i]] }' |
    # The tiles of latent attention take this compiler 20 seconds each: --all has them.
    if [[ $size != all ]]; then grep -v '^mulciber\.latent_attention\.tiled'; else cat; fi |
    awk -v first="$first" -v step="$step" 'NR % step == first' >"$gpu_cache/cases"
  gpu_mulciber conform --caselist "$gpu_cache/cases" --repeat 1 --no-shake --timeout 300 --jobs "$jobs"
}

# Whole models of the kinds that the repository has, and those of the fixtures.
gpu_models() {
  local fixtures=${MULCIBER_FIXTURES:-}
  begin "gpu: a language model begins, tuned" gpu_tunes_quietly generate -v -m tests/data/gemma3 --context 64 \
    --ignore-end -p "The red hammer" -n 4
  begin "gpu: values of a language model" gpu_values tests/data/gemma3
  begin "gpu: values of a translator" gpu_values tests/data/marian
  begin "gpu: values of an encoder" gpu_values tests/data/roberta_cls
  begin "gpu: values of a vision model" gpu_values tests/data/deit
  begin "gpu: a translator translates" gpu_translates
  begin "gpu: an image is classified" gpu_classifies
  begin "gpu: a line is read" gpu_reads
  if [[ -z $fixtures ]]; then
    skip "gpu: language models in blocks, speech: there are no fixtures"
    return
  fi
  begin "gpu: a language model in blocks begins, tuned" gpu_tunes_quietly generate -v \
    -m "$fixtures/gguf/tiny-Q4_0.gguf" --context 64 --raw --ignore-end -p "The red hammer" -n 4
  begin "gpu: values of a speech model" gpu_values "$fixtures/models/whisper"
}

gpu_more_models() {
  local fixtures=${MULCIBER_FIXTURES:-} name
  printf 'The red hammer and the %d blue nails are here. ' {1..12} >"$gpu_cache/text"
  begin "gpu: the tuner's measurements, f32" gpu_tuned 20 tests/data/gemma3
  begin "gpu: the tuner's measurements, f16" gpu_tuned 20 tests/data/gemma3 --half
  begin "gpu: the tuner over every op" gpu build/tests/conformance_tests --filenames-as-tags '[#tune_test]'
  echo 'the red hammer and the blue nails' >"$gpu_cache/line"
  begin "gpu: scores" gpu_tunes_quietly score -m tests/data/gemma3 "$gpu_cache/line"
  begin "gpu: perplexity" gpu_tunes_quietly perplexity -m tests/data/gemma3 --context 64 "$gpu_cache/text"
  begin "gpu: a question of a chat" gpu_chats
  for name in bahdanau luong dinov2 image_text_reader; do
    begin "gpu: values of $name" gpu_values "tests/data/$name"
  done
  [[ -n $fixtures ]] || return 0
  begin "gpu: the tuner's measurements, blocks" gpu_tuned 20 "$fixtures/gguf/tiny-Q4_0.gguf"
  for name in bert gpt2 llama qwen3 t5 vit clip; do
    begin "gpu: values of $name" gpu_values "$fixtures/models/$name"
  done
  # Their weights have 16 bits, and matrix units round activations to f16: without those units the tolerance is that of
  # every other model.
  for name in llama_realistic marian_realistic; do
    begin "gpu: values of $name" gpu_values "$fixtures/models/$name" --tolerance 5e-2
    begin "gpu: values of $name without matrix units" gpu_values "$fixtures/models/$name" --limits no-coopmat
  done
}

run_gpu() {
  if ! find_wide_driver; then
    skip "gpu: no driver of wide subgroups: MULCIBER_WIDE_DRIVER names none, and there is no ../shared/drivers/wide"
    return
  fi
  gpu_cache=$(mktemp -d) gpu_order=0
  check "gpu: a discrete GPU of 32 lanes" gpu_device
  begin "gpu: the self-test begins" self_test_begins
  gpu_models
  begin "gpu: the server" gpu_server
  begin "gpu: an application's task" gpu_application_task
  if [[ $size == all ]]; then gpu_more_models; fi
  settle
  # These take all cores themselves.
  if [[ $size != all ]]; then
    check "gpu: an eighth of the rows" gpu_rows 0 0 8 head
    check "gpu: another eighth, subgroups descending" gpu_rows 1 4 8 tail
    leave_out "gpu: more models, the tuner whole, three quarters of the rows"
  else
    check "gpu: every row" gpu_rows 0 0 1 head
    check "gpu: every row, subgroups descending" gpu_rows 1 0 1 tail
  fi
  rm -rf "$gpu_cache"
}
