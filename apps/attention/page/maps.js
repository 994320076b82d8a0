"use strict";
const byId = (id) => document.getElementById(id);
const sentences = JSON.parse(byId("data").textContent);

// The colours of the figure, and their counterparts for dark screens: even steps of OKLab lightness
// away from the background, so that a greater weight always stands out more.
const lightColours = ["#f6fcf8", "#b6ead7", "#7cd2c7", "#3db7be", "#0199b2", "#0d789f", "#05598e",
                      "#153a77", "#1a1c5a"];
const darkColours = ["#171923", "#1c304c", "#044c72", "#076b85", "#048b97", "#06ae9d", "#56cd95",
                     "#a5e58d", "#ebf990"];
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const kindNames = {encoder: "Encoder self-attention", decoder: "Decoder self-attention",
                   cross: "Cross-attention"};
const baseOf = (kind) => kind.kind.replace("_rollout", "");
const isRollout = (kind) => baseOf(kind) !== kind.kind;

// Layer -1 is the last, head -1 the mean over heads; query and key are the highlighted cell, -1 for
// none.
const state = {sentence: 0, kind: "", layer: -1, head: -1, scale: "", query: -1, key: -1};
const current = {};  // what `state` selects: sentence, kind, map, statistics, colour range

// A map of the kind; head -1: the mean of all heads.
function mapOf(kind, layer, head) {
  const keys = kind.keys, make = () => new Float32Array(kind.queries * keys);
  if (head >= 0 || kind.heads === 1) {
    const map = make();
    visitMap(kind, layer, Math.max(head, 0), (q, k, weight) => { map[q * keys + k] = weight; });
    return map;
  }
  kind.means ??= new Map();
  if (!kind.means.has(layer)) {
    const mean = make();
    for (let h = 0; h < kind.heads; ++h)
      visitMap(kind, layer, h, (q, k, weight) => { mean[q * keys + k] += weight / kind.heads; });
    kind.means.set(layer, mean);
  }
  return kind.means.get(layer);
}

// Means over the rows that have weights at all: entropy in bits, and the largest weight.
function statisticsOf(map, keys) {
  let rows = 0, entropy = 0, largest = 0;
  for (let at = 0; at < map.length; at += keys) {
    const row = map.subarray(at, at + keys), sum = row.reduce((a, b) => a + b, 0);
    if (!(sum > 0)) continue;
    ++rows;
    largest += Math.max(...row);
    for (const weight of row)
      if (weight > 0) entropy -= weight / sum * Math.log2(weight / sum);
  }
  return rows ? {entropy: entropy / rows, largest: largest / rows} : {entropy: NaN, largest: NaN};
}

// Language models attend to the first token where they need nothing, often more than to all others
// together, and the first rows have little else: the range "rest" leaves them out.
const counts = (q, k) => state.scale !== "rest" || k > 0 && q > 1;
function largestOf(kind, map) {
  let largest = 0;
  map.forEach((weight, i) => {
    if (weight > largest && counts(Math.floor(i / kind.keys), i % kind.keys)) largest = weight;
  });
  return largest;
}
// The upper end of the colours: for one map, or for all.
const toLargest = () => state.scale === "max" || state.scale === "rest";
const endOf = (kind, map) => toLargest() && largestOf(kind, map) || 1;
function endOfAll(kind) {
  let largest = 0;
  for (let layer = 0; toLargest() && layer < kind.layers; ++layer)
    for (let head = 0; head < kind.heads; ++head)
      visitMap(kind, layer, head, (q, k, weight) => { if (weight > largest && counts(q, k)) largest = weight; });
  return largest || 1;
}
// Whether a key is behind the query, or before the layer's window.
const isMasked = (kind, layer, q, k, weight) => weight === 0 && baseOf(kind) === "decoder" &&
  (k > q || kind.windows && kind.windows[layer] > 0 && k + kind.windows[layer] <= q);
// Whether the sentence is a language model's single text, prompt and answer.
const isAlone = () => sentences[state.sentence].prompt_tokens > 0;
const promptEnd = () => {
  const {prompt_tokens: count = 0, target} = sentences[state.sentence];
  return count < target.tokens.length ? count : 0;
};
const digits = (value, count) => Number.isNaN(value) ? "\u2013" : value.toFixed(count);
const headName = (head) => head < 0 ? "mean" : `head ${head + 1}`;

function tokensOf(sentence, kind) {
  const {source, target} = sentence;
  const read = target.decoder_input.length ? target.decoder_input : target.tokens;
  return {queries: baseOf(kind) === "encoder" ? source.tokens : target.tokens,
          keys: baseOf(kind) === "decoder" ? read : source.tokens};
}
