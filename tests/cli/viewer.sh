#!/usr/bin/env bash
# The viewer's images show what the library computed: arcs, maps, steps; and its window loads what is dropped on it.
# MULCIBER and VIEWER come from ctest.
set -euo pipefail
# shellcheck source=tests/cli/exits.bash
. "$MULCIBER_SOURCE/tests/cli/exits.bash"
[[ -x ${VIEWER:-} ]] || { echo "skipped: viewer: it was not built (libglfw3-dev, libimgui-dev)"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: viewer: no python3"; exit 77; }
export MULCIBER_SELF_TEST=0
model=$MULCIBER_SOURCE/assets/en-de
text="The old house stands near the river."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

"$MULCIBER" translate -m "$model" --beam 4 --attention maps.json "$text" >text.txt 2>/dev/null
# draw OPTION...: an image without a window. look CHECK: what is wrong with it.
draw() {
  "$VIEWER" --headless --width 800 --height 560 --text "$text" --screenshot screenshot.png --report report.json "$@" \
    >out.txt 2>err.txt || fail "$*: $(<out.txt) $(<err.txt)"
}
look() {
  python3 "$MULCIBER_SOURCE/tests/cli/viewer.py" "$1" screenshot.png report.json maps.json "$MULCIBER_SOURCE" \
    >seen.txt 2>&1 || fail "$1: $(tail -n 1 seen.txt)"
}
draw --layer 2 --head 4
look map
look arcs
grep -qF "\"text\": \"$(<text.txt)\"" report.json || fail "another text: $(grep '"text"' report.json)"
grep -q '"beams": 4' report.json || fail "not four hypotheses at the last step"
draw --layer 2 --head 4 --step 5 --threshold 1.1 --theme light
look map
look bare
grep -q '"rows": 6' report.json || fail "step 5 has other rows: $(grep rows report.json)"

# A language model, under the validation layer, whose complaints go to standard output.
layer=()
if [[ -f /usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json ]]; then
  layer=(env VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation VK_LAYER_VALIDATE_SYNC=1
    VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT)
fi
silent() { ! grep -E 'VUID|SYNC-|UNASSIGNED' "$@" || fail "the validation layer complains"; }
small=$MULCIBER_SOURCE/tests/data/gguf_families/gpt2.gguf
"${layer[@]}" "$VIEWER" --headless --width 400 --height 300 -m "$small" --text "the red hammer" --tokens 6 \
  --screenshot screenshot.png --report report.json >out.txt 2>err.txt || fail "a language model: $(<out.txt) $(<err.txt)"
silent out.txt err.txt
grep -q '"steps": 6' report.json || fail "other steps: $(grep steps report.json)"
says 2 "nowhere.gguf" "$VIEWER" --headless -m nowhere.gguf

# A window, which becomes another size, and on which a file is dropped.
shown() {
  xvfb-run -a -s "-screen 0 1280x1024x24" "${layer[@]}" "$VIEWER" -m "$small" --width 400 --height 300 --tokens 4 \
    --frames 3 --resized-width 480 --resized-height 360 --drop "${small/gpt2/qwen2}" --budget 100 \
    --screenshot screenshot.png --report report.json >out.txt 2>err.txt
}
windows="there is no display (packages xvfb, xauth)"
if command -v xvfb-run >/dev/null && command -v xauth >/dev/null; then
  windows=looked
  if ! shown; then
    # SwiftShader presents by xcb alone, for which GLFW wants libX11-xcb.
    if [[ ${VK_DRIVER_FILES:-} != *swiftshader* ]] || ! grep -q "the window" err.txt; then
      fail "a window: $(<out.txt) $(<err.txt)"
    fi
    windows="SwiftShader presents to no window here"
  fi
fi
if [[ $windows == looked ]]; then
  silent out.txt err.txt
  grep -q '"model": "qwen2.gguf"' report.json || fail "the dropped model was not loaded"
  [[ $(python3 -c 'import struct; print(*struct.unpack(">II", open("screenshot.png", "rb").read()[16:24]))') == "480 360" ]] ||
    fail "the window was not resized"
  echo "1 passed, 0 failed, 0 skipped"
else
  echo "skipped: viewer: its window: $windows"
  echo "1 passed, 0 failed, 1 skipped"
fi
