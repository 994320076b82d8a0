#!/usr/bin/env bash
# Frames with a translation beside them: the image and the text. How long they take is for a quiet machine and a person
# (docs/guide/embedding.md). MULCIBER and EXAMPLES come from ctest.
set -euo pipefail
fail() { echo "FAILED: $*"; exit 1; }
[[ -x $EXAMPLES/frame_budget ]] || { echo "skipped: frame_budget: the example was not built"; exit 77; }
export MULCIBER_SELF_TEST=0
model=$MULCIBER_SOURCE/assets/en-de
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
text="The old house stands near the river, and nobody has lived there for years."
expected=$("$MULCIBER" translate -m "$model" "$text")

frames() { "$EXAMPLES/frame_budget" "$model" "$@" >"$work/out.txt" 2>"$work/err.txt"; }
frames --frames 40 --budget 20000 --image "$work/frame.ppm" || fail "$(<"$work/err.txt")"
cat "$work/out.txt"
[[ $(tail -n 1 "$work/out.txt") == "$expected" ]] || fail "the text is not '$expected'"
[[ $(head -n 2 "$work/frame.ppm" | tr '\n' ' ') == "P6 640 360 " ]] || fail "no image"
# Many cubes, each of a color of its own, lit from one side.
colors=$(tail -c $((640 * 360 * 3)) "$work/frame.ppm" | od -An -v -tx1 -w3 | sort -u | wc -l)
((colors > 200)) || fail "$colors colors in the image"

frames --frames 0 && fail "no frames at all pass"
# A slice holds what its budget does, and one dispatch where that is nothing.
frames --frames 20 --budget 0.001 || fail "with hardly any budget: $(<"$work/err.txt")"
for kind in 'step()' 'record()'; do
  [[ $(awk -v kind="$kind" '$1 == kind { print $8 }' "$work/out.txt") == 1.0 ]] || fail "$kind: $(<"$work/out.txt")"
done

# Under the validation layer, whose complaints go to standard output.
if [[ -f /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ]]; then
  VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_VALIDATE_SYNC=1 \
    VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT \
    frames --frames 20 --budget 20000 || fail "under the validation layer: $(<"$work/err.txt")"
  ! grep -E 'VUID|SYNC-|UNASSIGNED' "$work/out.txt" "$work/err.txt" || fail "the validation layer complains"
fi
echo "1 passed, 0 failed, 0 skipped"
