// The choice of sentence, kind, layer, head and colours, which the page's address keeps.

function drawChoices(id, choices) {
  const set = byId(id), old = Array.from(set.querySelectorAll("input"), (input) => input.value);
  if (old.join() !== choices.map((choice) => choice.value).join())
    set.replaceChildren(set.firstElementChild, ...choices.map(({value, name}) => {
      const input = element("input", {type: "radio", name: id, value});
      input.addEventListener("change", () => select({[id]: id === "kind" ? value : +value}));
      return element("label", {}, input, element("span", {}, name));
    }));
  for (const input of set.querySelectorAll("input")) input.checked = input.value === String(state[id]);
}

// The address holds the choice, so that a view can be kept or passed on.
function readAddress() {
  const given = new URLSearchParams(location.hash.slice(1)), wanted = {};
  for (const name of ["sentence", "layer", "head"])
    if (given.has(name)) wanted[name] = Number(given.get(name)) - 1;
  for (const name of ["kind", "scale"]) if (given.has(name)) wanted[name] = given.get(name);
  return wanted;
}

function writeAddress() {
  const {sentence, kind, layer, head, scale} = state;
  const address = `#sentence=${sentence + 1}&kind=${kind}&layer=${layer + 1}&head=${head + 1}` +
                  `&scale=${scale}`;
  try {
    history.replaceState(null, "", address);
  } catch {
    // Some viewers give a page no address; everything else works there.
  }
}

// Takes the fields of `wanted` that fit; layers and heads that the kind does not have are clamped.
function select(wanted) {
  const before = `${state.sentence} ${state.kind} ${state.scale}`;
  Object.assign(state, wanted, {query: -1, key: -1});
  state.sentence = clamp(state.sentence | 0, sentences.length);
  const kinds = sentences[state.sentence].attention;
  const named = (name) => kinds.find((k) => k.kind === name);
  const kind = named(state.kind) || named("cross") || named("decoder") || kinds[0];
  state.kind = kind.kind;
  state.layer = state.layer < 0 ? kind.layers - 1 : clamp(state.layer | 0, kind.layers);
  state.head = kind.heads === 1 ? 0 : Math.max(-1, Math.min(state.head | 0, kind.heads - 1));
  const ranges = isAlone() ? ["rest", "max", "one", "root"] : ["max", "one", "root"];
  if (!ranges.includes(state.scale)) state.scale = ranges[0];
  render(before !== `${state.sentence} ${state.kind} ${state.scale}`);
  writeAddress();
}

function render(everything) {
  const sentence = sentences[state.sentence];
  const kind = sentence.attention.find((k) => k.kind === state.kind);
  const map = mapOf(kind, state.layer, state.head);
  const end = endOf(kind, map);
  Object.assign(current, {kind, map, end}, tokensOf(sentence, kind));

  byId("origin").textContent = [sentence.model, sentence.device].filter(Boolean).join(" \u00b7 ");
  byId("source-name").textContent = isAlone() ? "Prompt" : "Source";
  byId("target-name").textContent = isAlone() ? "Answer" : "Target";
  byId("scale-rest").hidden = !isAlone();
  byId("source-text").textContent = sentence.source.text;
  byId("target-text").textContent = sentence.target.text;
  const numbered = (count) => Array.from({length: count}, (_, i) => ({value: String(i), name: i + 1}));
  const shortNames = {encoder: "Encoder", decoder: isAlone() ? "Self" : "Decoder", cross: "Cross"};
  drawChoices("kind", sentence.attention.map((k) => (
    {value: k.kind, name: shortNames[baseOf(k)] + (isRollout(k) ? " rollout" : "")})));
  drawChoices("layer", numbered(kind.layers));
  drawChoices("head", kind.heads === 1 ? numbered(1)
                                       : [{value: "-1", name: "Mean"}, ...numbered(kind.heads)]);
  byId("sentence").value = state.sentence;
  byId("scale").value = state.scale;

  const {entropy, largest} = statisticsOf(map, kind.keys);
  byId("matrix-title").textContent = `${isAlone() ? "Self-attention" : kindNames[baseOf(kind)]}, ` + (isRollout(kind)
    ? `rollout through layer ${state.layer + 1}`
    : `layer ${state.layer + 1}, ` + (state.head < 0 ? `mean of ${kind.heads} heads` : headName(state.head)));
  byId("matrix-stats").textContent = `Entropy ${digits(entropy, 2)} of at most ` +
    `${Math.log2(kind.keys).toFixed(2)} bits; mean largest weight ${digits(largest, 3)}`;
  drawMatrix();
  drawKey();
  drawLines();
  if (everything) drawOverview();
  markOverview();
  clearHighlight();
}

byId("sentence").append(...sentences.map((s, i) => element(
  "option", {value: i}, `${i + 1}. ${Array.from(s.source.text).slice(0, 60).join("")}`)));
byId("sentence-pick").hidden = sentences.length < 2;
listen();
select(readAddress());
