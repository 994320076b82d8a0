#!/usr/bin/env bash
# `mulciber serve` with a model that sees images, and with one that does not: answers are those of `mulciber generate`,
# images that cannot be read end in one error each, and OpenAI's client (serve_images.py) is content where it can be had.
set -euo pipefail
. "$(dirname "$0")/server.bash"
openai_client || true  # serve_images.py says what it leaves out without
chat_model chat
data=$MULCIBER_SOURCE/tests/data/vision_language
for name in wide high small; do cp "$data/$name.png" .; done
for name in wide high; do
  "$MULCIBER" generate -m "$data/smolvlm" -p "What is this?" --image "$name.png" --ignore-end -n 8 --json >"asked_$name"
done
printf '/image wide.png\nWhat is this?\n/exit\n' | "$MULCIBER" chat -m "$data/smolvlm" -n 8 --temperature 0 --repeat-penalty 1 >said 2>notes ||
  fail "chat: $(cat notes)"
grep -q 'about this image' notes || fail "/image: $(cat notes)"
"$MULCIBER" generate -m "$data/smolvlm" -p "What is this?" --image wide.png -n 8 >once
cmp said once || fail "chat says another thing than generate: $(cat said) for $(cat once)"
"$MULCIBER" generate -m chat -p "What is this?" --image wide.png >answer 2>&1 && fail "a model without eyes was shown an image"
grep -q 'not one that answers about images' answer || fail "no reason: $(cat answer)"

MULCIBER_API_KEY=secret serve -m chat -m eyes="$data/smolvlm" --sequences 3
"$python" "$here/serve_images.py" "$url" || fail "images: $(tail -n 5 log)"
stop_server
