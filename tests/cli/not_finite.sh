#!/usr/bin/env bash
# Weights with NaN or infinity, and activations too large for 16 bits: every command that chooses or scores tokens says
# which weight or layer it is, and exits with 2. MULCIBER and MULCIBER_SOURCE come from ctest.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$work"
. "$here/exits.bash"

# spoil FROM TO TENSOR VALUE: a copy of a model, all of one row of a tensor being the value.
spoil() {
  cp -r "$MULCIBER_SOURCE/tests/data/$1" "$2"
  python3 - "$2/model.safetensors" "$3" "$4" <<'PY'
import json, struct, sys
path, name, value = sys.argv[1], sys.argv[2], float(sys.argv[3])
with open(path, "r+b") as file:
    size = struct.unpack("<Q", file.read(8))[0]
    tensor = json.loads(file.read(size))[name]
    kind = {"F16": "e", "F32": "f"}.get(tensor["dtype"])
    file.seek(8 + size + tensor["data_offsets"][0])
    columns = tensor["shape"][-1]
    file.write(b"".join(struct.pack("<" + kind, value) for _ in range(columns)) if kind else
               struct.pack("<f", value)[2:] * columns)
PY
}
# refused WORDS COMMAND...: exit code 2, nothing on standard output, at most two lines with the words.
refused() {
  local words=$1
  shift
  exits 2 "$@"
  [[ ! -s out ]] || fail "text although its logits are not finite: $(cat out)"
  grep -qF -- "$words" err || fail "no '$words' in: $(cat err)"
  grep -q 'logits .* not finite' err || fail "no word of logits: $(cat err)"
  (($(grep -vc '^\[' err) <= 2)) || fail "more than two lines of error: $(cat err)"
}

weight=model.layers.1.mlp.down_proj.weight
python3 -c 'print("the red hammer and the green one " * 60)' >text.txt
for value in nan inf -inf; do
  spoil gemma3 "decoder$value" $weight $value
  refused "the weight \`$weight\` holds NaN or infinity" "$MULCIBER" generate -m "decoder$value" -p 'The red hammer' -n 5
done
refused "$weight" "$MULCIBER" generate -m decodernan -p 'The red hammer' -n 5 --temperature 1 --seed 3
refused "$weight" "$MULCIBER" perplexity -m decodernan --context 32 text.txt
echo 'The red hammer' >lines
# The context of so small a model has no room for a chat template.
echo '{{ messages[-1].content }}' >plain.jinja
refused "$weight" "$MULCIBER" chat -m decodernan --template plain.jinja -n 5 <lines
exits 0 "$MULCIBER" generate -m "$MULCIBER_SOURCE/tests/data/gemma3" -p 'The red hammer' -n 5

# A product's rows may come from several tensors: the message names the tensor that is not finite.
spoil gemma3 values model.layers.0.self_attn.v_proj.weight nan
refused "\`model.layers.0.self_attn.v_proj.weight\`" "$MULCIBER" generate -m values -p 'The red hammer' -n 5

# Finite weights whose activations are not.
spoil gemma3 large $weight 1e30
refused 'the output of layer 1 holds' "$MULCIBER" generate -m large -p 'The red hammer' -n 5 --half-activations

tensor=model.decoder.layers.1.fc1.weight
for value in nan inf; do
  spoil marian "translator$value" $tensor $value
  refused "the weight \`$tensor\` holds NaN or infinity" "$MULCIBER" translate -m "translator$value" 'a dog runs .'
  refused "$tensor" "$MULCIBER" translate -m "translator$value" --beam 1 'a dog runs .'
done

# Encoders have hidden states that are not finite.
# states WORDS COMMAND...: as refused().
states() {
  local words=$1
  shift
  exits 2 "$@"
  [[ ! -s out ]] || fail "results although states are not finite: $(cat out)"
  grep -qF "states of a text: are not finite" err || fail "no word of states: $(cat err)"
  grep -qF -- "$words" err || fail "no '$words' in: $(cat err)"
}
tensor=roberta.encoder.layer.1.output.dense.weight
for value in nan inf; do
  spoil roberta_cls "encoder$value" $tensor $value
  states "the weight \`$tensor\` holds NaN or infinity" "$MULCIBER" embed -m "encoder$value" lines
  states "$tensor" "$MULCIBER" classify -m "encoder$value" lines
done
spoil roberta_cls overflow $tensor 1e30
states "the output of layer 1 holds" "$MULCIBER" embed -m overflow --half-activations lines
exits 0 "$MULCIBER" embed -m "$MULCIBER_SOURCE/tests/data/roberta_cls" lines
