#!/usr/bin/env bash
# Many clients at once, some of whom leave, send nonsense or read slowly, and a device that is lost meanwhile
# (bench/soak_server.py). SOAK_REQUESTS says how many requests, 60 unless it is set. MULCIBER, MULCIBER_SOURCE and
# DEVICE_LOSS_LAYER come from ctest.
set -euo pipefail
. "$(dirname "$0")/server.bash"
chat_model chat
export VK_LAYER_PATH=$DEVICE_LOSS_LAYER VK_INSTANCE_LAYERS=VK_LAYER_MULCIBER_device_loss DEVICE_LOSS=$work/device
serve -m chat --sequences 4 --queue 16
python3 "$MULCIBER_SOURCE/bench/soak_server.py" "$url" --model chat --requests "${SOAK_REQUESTS:-60}" --lose device.lose >result ||
  fail "the soak: $(cat result; tail -n 5 log)"
cat result
stop_server
