#!/usr/bin/env bash
# Frames with a translation beside them: the picture, the text, and on lavapipe how long they take, which the example
# compares in turns. MULCIBER and EXAMPLES come from ctest.
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
draw() { frames --image "$work/frame.ppm" "$@"; }
case ${VK_DRIVER_FILES:-} in
  *lvp*)
    # Where others want more than the processors there are, a hundredth of the frames waits for them, not for us.
    limit=(--frames 200 --budget 4000 --at-most 6)
    if ! draw "${limit[@]}" && ! draw "${limit[@]}" && ! draw "${limit[@]}"; then
      awk -v cores="$(nproc)" '{ exit $1 <= cores }' /proc/loadavg || fail "$(<"$work/out.txt") $(<"$work/err.txt")"
      echo "the machine is overloaded ($(</proc/loadavg)): the median is looked at"
      draw "${limit[@]}" --percentile 50 || fail "$(<"$work/out.txt") $(<"$work/err.txt")"
    fi ;;
  *) draw --frames 40 --budget 20000 || fail "$(<"$work/err.txt")" ;;
esac
cat "$work/out.txt"
[[ $(tail -n 1 "$work/out.txt") == "$expected" ]] || fail "the text is not '$expected'"
[[ $(head -n 2 "$work/frame.ppm" | tr '\n' ' ') == "P6 640 360 " ]] || fail "no image"
# Many cubes, each of a color of its own, lit from one side.
colors=$(tail -c $((640 * 360 * 3)) "$work/frame.ppm" | od -An -v -tx1 -w3 | sort -u | wc -l)
((colors > 200)) || fail "$colors colors in the image"

frames --frames 0 && fail "no frames at all pass"
frames --frames 20 --budget 20000 --at-most 0.000001 && fail "a translation takes no time at all"
grep -q 'percentile 99 is' "$work/err.txt" || fail "no word about it: $(<"$work/err.txt")"

# Under the validation layer, whose complaints go to standard output.
if [[ -f /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ]]; then
  VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_VALIDATE_SYNC=1 \
    VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT \
    frames --frames 20 --budget 20000 || fail "under the validation layer: $(<"$work/err.txt")"
  ! grep -E 'VUID|SYNC-|UNASSIGNED' "$work/out.txt" "$work/err.txt" || fail "the validation layer complains"
fi
echo "1 passed, 0 failed, 0 skipped"
