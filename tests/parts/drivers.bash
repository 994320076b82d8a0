# The tests on software Vulkan drivers, whole or with something taken away, for test.sh to source.

# MULCIBER_CASE_STEP=N takes every N-th case of each kernel row, since each case compiles pipelines of its own, and a
# software driver takes seconds for one. What a step leaves out is run by the suite's lists (conformance.bash) or not at
# all here; without the variable, as in `ctest --test-dir build`, every case runs. MULCIBER_SHARE=I,N takes the I-th
# setting, and every N-th behind it, of tests that go through many: lavapipe runs all, the other parts share them.

# Tests of the CPU side alone say nothing new under another mask or layer; nor do mutants, barriers taken out and
# recorded vectors, which run in full without.
beside_devices="attention_page|barriers|chat|config|inspect|layering|mutants|safetensors|token|vectors"
device_tests=(-L unit -E "^($beside_devices)")
# Failing calls, draft tokens and preemption are the same under masks: with validation they say something new.
masked_tests=(-L unit -E "^($beside_devices|faults|speculation|batch_preemption|batch_drafts)")
# The part of the proof that SwiftShader runs: the device, programs, layers, sampling, a translation.
proof_on_swiftshader="^(device_test|program_test|layers_test|sampling_test|marian_test)$"

# tests_of ARGUMENT...: how many tests ctest finds.
tests_of() { ctest --test-dir build -N "$@" 2>/dev/null | sed -n 's/^Total Tests: //p'; }

run_lavapipe() {
  if [[ $size == proof ]]; then
    MULCIBER_CASE_STEP=32 on_driver lvp run_ctest lavapipe build -L proof
    leave_out "lavapipe: $(($(tests_of) - $(tests_of -L proof))) of $(tests_of) test programs and scripts, among them \
every kernel row over its cases, the mutants and the recorded vectors"
    return
  fi
  if [[ $size == change ]]; then
    MULCIBER_CASE_STEP=32 MULCIBER_SHARE=0,3 on_driver lvp run_ctest lavapipe build
    return
  fi
  MULCIBER_CASE_STEP=32 on_driver lvp run_ctest lavapipe build
}
# Mutants, recorded vectors, failing calls, draft tokens, files of adapters, the server, the options of commands and what an
# application does around a network are slow on SwiftShader, and were seen on lavapipe; kernel rows are run there by the suite's list.
slow_tests="attention_restart batch_pages batch_preemption batch_drafts batch_search c_attention c_interface c_model embedding faults"
slow_tests+=" folded_appends application_outputs lora_families lora_formats lora_requests model_loader mutants self_test speculation"
slow_tests+=" task_grammar threads vectors conformance_attention conformance_block conformance_matmul conformance_rowwise"
slow_scripts="attention_page attention_texture chat checkpoints compare_server compiler_cache conform dialogue encoders"
slow_scripts+=" frame_budget generate images kernels languages lora memory not_finite padded_vocabulary page pinned_shaders pull real_models score"
slow_scripts+=" serve serve_client serve_loss serve_page serve_images serve_schemas serve_soak serve_speculation serve_translations"
slow_scripts+=" transcribe translate tune verify viewer"
slow_on_swiftshader="^((${slow_tests// /|})_test|cli_(${slow_scripts// /|}))$"
run_swiftshader() {
  if [[ $size == proof ]]; then
    MULCIBER_CASE_STEP=48 on_driver swiftshader run_ctest swiftshader build -L proof -R "$proof_on_swiftshader"
    leave_out "SwiftShader: $(($(tests_of) - $(tests_of -L proof -R "$proof_on_swiftshader"))) of $(tests_of)"
    return
  fi
  MULCIBER_CASE_STEP=32 MULCIBER_SHARE=0,3 on_driver swiftshader run_ctest swiftshader build \
    -E "$slow_on_swiftshader"
}
# Here it is the paths that differ, and every 32nd case takes them. Each of the two takes every other test.
run_android_2021() {
  if ((${#ctest_slice[@]} == 0)); then local ctest_slice=(-I 1,,2); fi
  MULCIBER_CASE_STEP=32 MULCIBER_SHARE=1,3 MULCIBER_LIMITS=android-2021 \
    on_driver lvp run_ctest android-2021 build "${masked_tests[@]}"
}
run_storage_1m() {
  if ((${#ctest_slice[@]} == 0)); then local ctest_slice=(-I 2,,2); fi
  MULCIBER_CASE_STEP=32 MULCIBER_SHARE=2,3 MULCIBER_LIMITS=storage=1M \
    on_driver lvp run_ctest storage-1M build "${masked_tests[@]}"
}
run_validation() {
  if [[ -z $(find /usr/share/vulkan /etc/vulkan -name 'VkLayer_khronos_validation.json' \
    2>/dev/null) ]]; then
    skip "validation: the package vulkan-validationlayers is not installed"
    return
  fi
  MULCIBER_CASE_STEP=32 MULCIBER_SHARE=1,3 MULCIBER_VALIDATE=1 on_driver lvp run_ctest validation build "${device_tests[@]}"
  if [[ -e $logs/validation.log.xml ]] &&
    ! grep -q 'synchronization validation was active' "$logs/validation.log.xml"; then
    fail "validation: no device had synchronization validation"
  fi
}

# Mesa 26.1 with cooperative matrices, when asked for: the folder takes minutes to set up and build.
run_debian_testing() {
  if [[ ${MULCIBER_TESTING:-} != 1 ]]; then
    skip "debian-testing: Mesa 26.1, asked for with MULCIBER_TESTING=1"
    return
  fi
  if ! tools/drivers/debian-testing.sh; then
    skip "debian-testing: the folder cannot be set up here"
    return
  fi
  ctest_prefix=(tools/drivers/in_debian_testing.sh)
  if [[ -n ${MULCIBER_FIXTURES:-} ]]; then
    ctest_prefix+=(env MULCIBER_FIXTURES=/shared/fixtures)
  fi
  check "debian-testing build" "${ctest_prefix[@]}" bash -c \
    "cmake -S . -B build-testing -G Ninja && cmake --build build-testing -j $jobs"
  ctest_root=/mulciber
  run_ctest debian-testing build-testing -L unit
  ctest_prefix=() ctest_root=$root
}
