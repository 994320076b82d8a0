#!/usr/bin/env bash
# An attention map in a texture is the map that the library gives. MULCIBER and EXAMPLES come from ctest.
set -euo pipefail
fail() { echo "FAILED: $*"; exit 1; }
[[ -x $EXAMPLES/attention_texture ]] || { echo "skipped: attention_texture: the example was not built"; exit 77; }
export MULCIBER_SELF_TEST=0
model=$MULCIBER_SOURCE/assets/en-de
text="The old house stands near the river."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

show() { "$EXAMPLES/attention_texture" "$model" "$@" >"$work/out.txt" 2>"$work/err.txt"; }
show "$text" --image "$work/map.ppm" || fail "$(<"$work/out.txt") $(<"$work/err.txt")"
[[ $(head -n 1 "$work/out.txt") == "$("$MULCIBER" translate -m "$model" "$text")" ]] || fail "another text"
[[ $(head -n 2 "$work/map.ppm" | tr '\n' ' ') == "P6 144 192 " ]] || fail "no image of 9 keys and 12 queries"
# The example compares; a map that is black everywhere would not show that it was drawn.
for map in "cross 2 5" "encoder 0 1" "decoder 1 3"; do
  read -r kind layer head <<<"$map"
  show "$text" --kind "$kind" --layer "$layer" --head "$head" || fail "$map: $(<"$work/out.txt") $(<"$work/err.txt")"
  grep -qE 'largest weight (0\.[1-9]|1\.00)' "$work/out.txt" || fail "$map: nothing but small weights"
done
! show "$text" --layer 99 || fail "a layer that is not there passes"
grep -q 'layer 99' "$work/err.txt" || fail "the error names no layer: $(<"$work/err.txt")"

# Under the validation layer, whose complaints go to standard output.
if [[ -f /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ]]; then
  VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_VALIDATE_SYNC=1 \
    VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT \
    show "$text" || fail "under the validation layer: $(<"$work/err.txt")"
  ! grep -E 'VUID|SYNC-|UNASSIGNED' "$work/out.txt" "$work/err.txt" || fail "the validation layer complains"
fi
echo "1 passed, 0 failed, 0 skipped"
