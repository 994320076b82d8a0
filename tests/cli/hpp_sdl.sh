#!/usr/bin/env bash
# A window of Vulkan-Hpp and SDL with a translation in its frames, on a display of its own. MULCIBER and EXAMPLES come
# from ctest.
set -euo pipefail
fail() { echo "FAILED: $*"; exit 1; }
skip() { echo "skipped: hpp_sdl: $*"; exit 77; }
[[ -x $EXAMPLES/hpp_sdl ]] || skip "the example was not built (libsdl2-dev)"
for tool in xvfb-run xauth; do
  command -v $tool >/dev/null || skip "there is no display (packages xvfb, xauth)"
done
case ${VK_DRIVER_FILES:-} in *swiftshader*) skip "SwiftShader presents by xcb alone, for which SDL wants libX11-xcb.so" ;; esac
export MULCIBER_SELF_TEST=0 SDL_VIDEODRIVER=x11
model=$MULCIBER_SOURCE/assets/en-de
text="The old house stands near the river."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

show() { xvfb-run -a "$EXAMPLES/hpp_sdl" "$model" "$text" 5 >"$work/out.txt" 2>"$work/err.txt"; }
show || fail "$(<"$work/out.txt") $(<"$work/err.txt")"
[[ $(<"$work/out.txt") == "$("$MULCIBER" translate -m "$model" "$text")" ]] || fail "another text: $(<"$work/out.txt")"
frames=$(sed -nE 's/^([0-9]+) frames$/\1/p' "$work/err.txt")
((frames > 10)) || fail "$frames frames"

# Under the validation layer, whose complaints go to standard output.
if [[ -f /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ]]; then
  VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_VALIDATE_SYNC=1 \
    VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT \
    show || fail "under the validation layer: $(<"$work/err.txt")"
  ! grep -E 'VUID|SYNC-|UNASSIGNED' "$work/out.txt" "$work/err.txt" || fail "the validation layer complains"
fi
echo "1 passed, 0 failed, 0 skipped"
