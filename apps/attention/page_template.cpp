// The attention page: HTML, style and script in one, with a mark where to_html puts the maps. It is
// all one string; edit it as the HTML file that it is.
namespace mulciber::apps {

extern const char* const kAttentionPage;

const char* const kAttentionPage = R"page(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<!-- Nothing is fetched from anywhere, and nothing could be. -->
<meta http-equiv="Content-Security-Policy"
      content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:">
<link rel="icon" href="data:,">
<title>Attention maps</title>
<style>
:root {
  color-scheme: light dark;
  --page: #f4f6f7; --panel: #fff; --ink: #1b1f24; --quiet: #5a6470; --rule: #d5dade;
  --accent: #0b6e8f; --accent-ink: #fff; --line: #0d789f; --mark: #d6336c;
  --masked: #eceef1; --missing: #c9b8b0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #0f1115; --panel: #171a20; --ink: #e7eaee; --quiet: #9aa5b1; --rule: #2f353e;
    --accent: #4fc3c8; --accent-ink: #0b1417; --line: #56cd95; --mark: #ff7aa8;
    --masked: #0c0d11; --missing: #5f5550;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; padding: 1.2rem; max-width: 1500px; background: var(--page); color: var(--ink);
  font: 15px/1.45 system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
h1 { font-size: 1.35rem; margin: 0; }
h2 { font-size: 1.05rem; margin: 0; }
p { margin: .2rem 0; }
.quiet, footer, dt { color: var(--quiet); font-size: .87rem; }
section, .controls {
  background: var(--panel); border: 1px solid var(--rule); border-radius: 10px;
  padding: .9rem 1rem; margin-top: .9rem;
}
dl { display: grid; grid-template-columns: auto 1fr; gap: .15rem .8rem; margin: .6rem 0 0; }
dd { margin: 0; overflow-wrap: anywhere; unicode-bidi: plaintext; text-align: start; }
.controls { display: flex; flex-wrap: wrap; gap: .6rem 1.4rem; align-items: center; }
fieldset { border: 0; margin: 0; padding: 0; display: flex; flex-wrap: wrap; align-items: center; }
legend { float: left; padding: 0; margin-right: .5rem; }
legend, .controls label.pick { color: var(--quiet); font-size: .87rem; }
fieldset label { position: relative; margin: 0 -1px -1px 0; }
fieldset input { position: absolute; inset: 0; opacity: 0; margin: 0; cursor: pointer; }
fieldset span {
  display: block; min-width: 2.1em; padding: .22rem .6rem; text-align: center;
  border: 1px solid var(--rule); background: var(--page);
}
fieldset label:hover span { border-color: var(--accent); }
fieldset input:checked + span {
  background: var(--accent); border-color: var(--accent); color: var(--accent-ink);
}
fieldset input:focus-visible + span, .focusable:focus-visible, button:focus-visible,
select:focus-visible { outline: 3px solid var(--mark); outline-offset: 2px; z-index: 1; }
select {
  font: inherit; color: inherit; background: var(--page); border: 1px solid var(--rule);
  border-radius: 5px; padding: .2rem .4rem; max-width: 100%;
}
.views { display: flex; flex-wrap: wrap; gap: 0 .9rem; align-items: flex-start; }
.views section { min-width: 0; }
#matrix { flex: 0 1 auto; max-width: 100%; }
#lines { flex: 1 1 340px; }
#lines .scroll { max-height: 1100px; }
.scroll { overflow: auto; margin-top: .6rem; padding: 4px; }
.stage { position: relative; display: flex; width: max-content; }
#rows { position: sticky; left: -4px; background: var(--panel); z-index: 1; flex: none; }
#cells { position: absolute; image-rendering: pixelated; border-radius: 2px; }
#plot { position: relative; flex: none; }
svg { display: block; }
svg text { fill: var(--ink); font-family: inherit; }
svg .faint { fill: var(--quiet); }
svg .word { stroke: var(--quiet); stroke-width: 1.5; fill: none; }
svg .thin { visibility: hidden; }
svg .thin.on { visibility: visible; }
svg .prompt { stroke: var(--quiet); stroke-dasharray: 4 3; fill: none; }
svg .on text, svg text.on { font-weight: 700; fill: var(--mark); }
.frame { fill: none; stroke: var(--rule); }
.band { fill: none; stroke: var(--mark); stroke-opacity: .65; }
.cell { fill: none; stroke: var(--mark); stroke-width: 2.5; }
.key { display: flex; align-items: center; gap: .5rem; margin-top: .5rem; flex-wrap: wrap; }
.key canvas { width: 160px; height: 12px; border: 1px solid var(--rule); }
.key i { display: inline-block; width: 12px; height: 12px; border: 1px solid var(--rule);
  margin-left: .6rem; }
#links .link { fill: none; stroke: var(--line); stroke-width: 2; }
#links .token { cursor: pointer; }
#links .token rect { fill: var(--line); fill-opacity: 0; stroke: none; }
#links .token:hover rect, #links .token.on rect { stroke: var(--mark); }
#grid { display: grid; gap: .45rem; width: max-content; max-width: none; }
#grid button {
  font: inherit; color: inherit; background: none; border: 2px solid transparent; border-radius: 6px;
  padding: 3px; cursor: pointer; text-align: left; line-height: 1.2;
}
#grid button:hover { border-color: var(--rule); }
#grid button[aria-current=true] { border-color: var(--accent); }
#grid canvas { display: block; width: 100%; image-rendering: pixelated; border: 1px solid var(--rule); }
#grid small { display: block; color: var(--quiet); font-size: .72rem; margin-top: 2px;
  white-space: nowrap; }
#tip {
  position: fixed; pointer-events: none; z-index: 5; max-width: 17rem; padding: .3rem .55rem;
  border-radius: 6px; background: var(--ink); color: var(--panel); font-size: .87rem;
  overflow-wrap: anywhere;
}
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
footer { margin: 1rem .2rem; max-width: 75ch; }
@media (max-width: 600px) {
  body { padding: .6rem; }
  section, .controls { padding: .6rem; }
}
</style>
</head>
<body>
<header>
  <h1>Attention maps</h1>
  <p class="quiet" id="origin"></p>
  <dl>
    <dt id="source-name">Source</dt><dd id="source-text" dir="auto"></dd>
    <dt id="target-name">Target</dt><dd id="target-text" dir="auto"></dd>
  </dl>
</header>
<main>
  <form class="controls" aria-label="What to show">
    <label class="pick" id="sentence-pick" hidden>Sentence <select id="sentence"></select></label>
    <fieldset id="kind"><legend>Attention</legend></fieldset>
    <fieldset id="layer"><legend>Layer</legend></fieldset>
    <fieldset id="head"><legend>Head</legend></fieldset>
    <label class="pick">Colours <select id="scale">
      <option value="rest" id="scale-rest" hidden>0 to the largest beside the first token's</option>
      <option value="max">0 to the largest weight</option>
      <option value="one">0 to 1</option>
      <option value="root">0 to 1, square root</option>
    </select></label>
  </form>
  <div class="views">
    <section id="matrix" aria-labelledby="matrix-title">
      <h2 id="matrix-title"></h2>
      <p class="quiet" id="matrix-stats"></p>
      <div class="scroll"><div class="stage">
        <svg id="rows" aria-hidden="true"></svg>
        <canvas id="cells" aria-hidden="true"></canvas>
        <svg id="plot" class="focusable" tabindex="0" role="application"
             aria-label="Heat map: arrow keys move from cell to cell"></svg>
      </div></div>
      <div class="key quiet" id="key"></div>
    </section>
    <section id="lines" aria-labelledby="lines-title">
      <h2 id="lines-title">Where each token looks</h2>
      <p class="quiet" id="lines-note"></p>
      <div class="scroll"><svg id="links" class="focusable" tabindex="0" role="application"
           aria-label="Tokens joined by lines: arrow keys move from token to token"></svg></div>
    </section>
  </div>
  <section aria-labelledby="overview-title">
    <h2 id="overview-title">All layers and heads</h2>
    <p class="quiet" id="overview-note"></p>
    <div class="scroll"><div id="grid" role="group" aria-labelledby="overview-title"></div></div>
  </section>
</main>
<footer>
  <p>Each row of a map holds the weights with which one token (the query) reads the others (the
  keys); a row adds up to 1. Entropy says how widely a row spreads: 0 bits when all its weight lies
  on one token, log<sub>2</sub> n bits when it lies evenly on n. Pieces of one word are joined by a
  bar. Weights show where a head reads, which need not be why the model chose a word.</p>
  <p>Keyboard: Tab moves between the parts; arrow keys choose layer and head (in the row of buttons
  or among the small maps), a cell of the map, or a token of the lines; Escape clears.</p>
</footer>
<div id="tip" hidden></div>
<div id="live" class="unseen" role="status" aria-live="polite"></div>
<script type="application/json" id="data">[/*maps*/]</script>
<script>
"use strict";
const byId = (id) => document.getElementById(id);
const sentences = JSON.parse(byId("data").textContent);

// The same colours as the figure, and their counterpart for dark screens: even steps of OKLab
// lightness away from the background, so that more weight always stands out more.
const lightColours = ["#f6fcf8", "#b6ead7", "#7cd2c7", "#3db7be", "#0199b2", "#0d789f", "#05598e",
                      "#153a77", "#1a1c5a"];
const darkColours = ["#171923", "#1c304c", "#044c72", "#076b85", "#048b97", "#06ae9d", "#56cd95",
                     "#a5e58d", "#ebf990"];
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const kindNames = {encoder: "Encoder self-attention", decoder: "Decoder self-attention",
                   cross: "Cross-attention"};
const baseOf = (kind) => kind.kind.replace("_rollout", "");
const isRollout = (kind) => baseOf(kind) !== kind.kind;

// Layer -1 is the last, head -1 the mean over heads; query and key are the highlighted cell, -1 for none.
const state = {sentence: 0, kind: "", layer: -1, head: -1, scale: "", query: -1, key: -1};
const current = {};  // what `state` selects: sentence, kind, map, statistics, colour range

// ---- Data -------------------------------------------------------------------------------------

// Weights come as little-endian 16-bit fixed point: 65534 is 1, 65535 is missing. Row i of a triangle has i + 1.
function fixedOf(kind) {
  if (!kind.fixed) {
    const bytes = atob(kind.packed);
    kind.fixed = new Uint16Array(bytes.length / 2);
    for (let i = 0; i < kind.fixed.length; ++i)
      kind.fixed[i] = bytes.charCodeAt(2 * i) | bytes.charCodeAt(2 * i + 1) << 8;
    kind.packed = "";
    kind.means = new Map();
  }
  return kind.fixed;
}

// Calls visit(row, key, weight) for every weight that a map has.
function visitMap(kind, layer, head, visit) {
  const fixed = fixedOf(kind), n = kind.keys;
  const size = kind.triangle ? n * (n + 1) / 2 : n * kind.queries;
  let at = (layer * kind.heads + head) * size;
  for (let q = 0; q < kind.queries; ++q)
    for (let k = 0, end = kind.triangle ? q + 1 : n; k < end; ++k, ++at)
      visit(q, k, fixed[at] === 65535 ? NaN : fixed[at] / 65534);
}

// head -1: the mean of all.
function mapOf(kind, layer, head) {
  const keys = kind.keys, make = () => new Float32Array(kind.queries * keys);
  if (head >= 0 || kind.heads === 1) {
    const map = make();
    visitMap(kind, layer, Math.max(head, 0), (q, k, weight) => { map[q * keys + k] = weight; });
    return map;
  }
  fixedOf(kind);
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

// Language models weigh the first token where they need nothing, often more than all others together, and the first
// rows have little else: the range "rest" leaves them out.
const counts = (q, k) => state.scale !== "rest" || k > 0 && q > 1;
function largestOf(kind, map) {
  let largest = 0;
  map.forEach((weight, i) => {
    if (weight > largest && counts(Math.floor(i / kind.keys), i % kind.keys)) largest = weight;
  });
  return largest;
}
// The upper end of the colours: of one map, or of all.
const toLargest = () => state.scale === "max" || state.scale === "rest";
const endOf = (kind, map) => toLargest() && largestOf(kind, map) || 1;
function endOfAll(kind) {
  let largest = 0;
  for (let layer = 0; toLargest() && layer < kind.layers; ++layer)
    for (let head = 0; head < kind.heads; ++head)
      visitMap(kind, layer, head, (q, k, weight) => { if (weight > largest && counts(q, k)) largest = weight; });
  return largest || 1;
}
// Behind the query, or before the layer's window.
const isMasked = (kind, layer, q, k, weight) => weight === 0 && baseOf(kind) === "decoder" &&
  (k > q || kind.windows && kind.windows[layer] > 0 && k + kind.windows[layer] <= q);
// A language model's text alone: its prompt and its answer.
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

// ---- Tokens as labels -------------------------------------------------------------------------

const wordMark = "\u2581";

// The mark of a word's start is dropped (words are shown by bars), other spaces become visible, and
// what has no shape, or would turn the text round, is named by its code point.
function labelOf(token, longest = 16) {
  const text = token.length > 1 && token.startsWith(wordMark) ? token.slice(1) : token;
  const shown = text.replace(/\n/g, "\u21b5").replace(/[\u2581\s]/g, "\u2423")
    .replace(/^\u200d$|[\0-\x1f\x7f-\x9f\u200b\u200c\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g,
             (c) => "U+" + c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0"));
  const letters = Array.from(shown || "\u2423");
  return letters.length > longest ? letters.slice(0, longest - 1).join("") + "\u2026"
                                  : letters.join("");
}

// [first, end) of every word that has two or more pieces; punctuation and <...> are not part of it.
function wordsOf(tokens) {
  const words = [];
  const inside = (token) => !token.startsWith(wordMark) && !/^(<.+>|[\p{P}\p{S}\s]+)$/u.test(token);
  for (let first = 0; first < tokens.length; ++first) {
    if (!tokens[first].startsWith(wordMark)) continue;
    let end = first + 1;
    while (end < tokens.length && inside(tokens[end])) ++end;
    if (end - first > 1) words.push([first, end]);
    first = end - 1;
  }
  return words;
}

const pen = document.createElement("canvas").getContext("2d");
function widthOf(label, size) {
  pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
  return pen.measureText(label).width;
}

// ---- Elements ---------------------------------------------------------------------------------

function element(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "text", "rect", "path", "title"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name)
                   : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function labelNode(token, attributes, longest) {
  return element("text", attributes, labelOf(token, longest), element("title", {}, token));
}

function setSize(svg, width, height) {
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
}

// ---- Colour -----------------------------------------------------------------------------------

const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const channels = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

function colourTable() {
  const stops = (prefersDark.matches ? darkColours : lightColours).map(channels);
  return Array.from({length: 256}, (_, i) => {
    const at = i / 255 * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    return stops[low].map((c, j) => Math.round(c + (stops[low + 1][j] - c) * (at - low)));
  });
}

// A weight as a share of the colour range whose upper end is `end`.
function shareOf(weight, end) {
  return Math.min(1, state.scale === "root" ? Math.sqrt(weight) : weight / end);
}

// One pixel per cell; the style sheet enlarges it without smoothing. Of a map of more than `most` rows or columns a
// pixel shows the largest of some cells.
function paint(canvas, kind, layer, map, end, most = Infinity) {
  const step = Math.ceil(Math.max(kind.keys, kind.queries) / most) || 1;
  canvas.width = Math.ceil(kind.keys / step);
  canvas.height = Math.ceil(kind.queries / step);
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  const maskedValue = -1, missingValue = 2, shown = new Float32Array(canvas.width * canvas.height).fill(maskedValue);
  for (let q = 0, i = 0; q < kind.queries; ++q)
    for (let k = 0; k < kind.keys; ++k, ++i) {
      const weight = map[i], at = Math.floor(q / step) * canvas.width + Math.floor(k / step);
      const value = Number.isNaN(weight) ? missingValue : isMasked(kind, layer, q, k, weight) ? maskedValue : weight;
      if (value > shown[at]) shown[at] = value;
    }
  const word = ([r, g, b]) => (255 << 24 | b << 16 | g << 8 | r) >>> 0;
  const table = colourTable().map(word), pixels = new Uint32Array(image.data.buffer);
  const masked = word(channels(variable("--masked"))), missing = word(channels(variable("--missing")));
  shown.forEach((value, i) => {
    pixels[i] = value === maskedValue ? masked : value === missingValue ? missing : table[Math.round(255 * shareOf(value, end))];
  });
  context.putImageData(image, 0, 0);
}

// ---- The matrix -------------------------------------------------------------------------------

const plan = {};  // geometry of the matrix, for the pointer and the highlight

function drawMatrix() {
  const {kind, map, queries, keys} = current;
  const room = document.querySelector("main").clientWidth - 60;
  const widest = (tokens, size) => Math.max(...tokens.map((t) => widthOf(labelOf(t), size)));
  const rowRoom = Math.min(widest(queries, 13), 130) + 18;
  const across = room > 900 ? room - rowRoom - 400 : room - rowRoom;  // wide: the lines stand beside
  // Of long texts some tokens alone are named, and pointed at the others.
  const long = Math.max(keys.length, queries.length), longText = long > 100;
  let cell = Math.floor(Math.min(across / keys.length, (longText ? 1100 : 760) / long));
  cell = Math.max(longText ? 3 : 12, Math.min(46, cell));
  const font = Math.max(9.5, Math.min(13, cell * .78)), step = Math.ceil(font / cell);
  const thin = (i) => i % step ? {class: "thin"} : {};
  const keyWidth = widest(keys, font), rowWidth = widest(queries, font) + 16;
  // Key labels lie flat where they fit, slope where cells are wide, and stand where they are not.
  const angle = keyWidth <= cell - 4 ? 0 : cell >= 20 ? 45 : 90;
  const radians = angle * Math.PI / 180;
  const top = Math.ceil(keyWidth * Math.sin(radians) + font + 12);
  const overhang = angle === 45 ? Math.max(0, keyWidth * Math.cos(radians) - cell / 2) : 0;
  const width = cell * keys.length, height = cell * queries.length;
  Object.assign(plan, {cell, top});

  const rows = byId("rows"), plot = byId("plot"), cells = byId("cells");
  setSize(rows, Math.ceil(rowWidth), top + height + 2);
  plan.rowLabels = queries.map((token, q) => labelNode(
    token, {x: rowWidth - 10, y: top + (q + .5) * cell + font * .35, "text-anchor": "end",
            "font-size": font, ...thin(q)}));
  rows.replaceChildren(...plan.rowLabels, ...wordsOf(queries).map(([first, end]) => element(
    "path", {class: "word", d: `M${rowWidth - 5} ${top + first * cell + 3}V${top + end * cell - 3}`})));

  setSize(plot, Math.ceil(width + overhang + 4), top + height + 2);
  plan.keyLabels = keys.map((token, k) => {
    const x = (k + .5) * cell;
    return labelNode(token, angle === 0
      ? {x, y: top - 10, "text-anchor": "middle", "font-size": font, ...thin(k)}
      : {transform: `translate(${x + font * .35} ${top - 10}) rotate(-${angle})`, "font-size": font, ...thin(k)});
  });
  plan.row = element("rect", {class: "band", x: 0, width, height: cell});
  plan.column = element("rect", {class: "band", y: top, width: cell, height});
  plan.mark = element("rect", {class: "cell", width: cell, height: cell});
  plot.replaceChildren(
    ...plan.keyLabels,
    ...wordsOf(keys).map(([first, end]) => element(
      "path", {class: "word", d: `M${first * cell + 3} ${top - 5}H${end * cell - 3}`})),
    element("rect", {class: "frame", x: 0, y: top, width, height}),
    ...promptEnd() ? [element("path", {class: "prompt", d:
      `M0 ${top + promptEnd() * cell}H${width}M${promptEnd() * cell} ${top}V${top + height}`})] : [],
    plan.row, plan.column, plan.mark);

  cells.style.cssText = `left:${Math.ceil(rowWidth)}px;top:${top}px;width:${width}px;height:${height}px`;
  paint(cells, kind, state.layer, map, current.end);
}

function drawKey() {
  const {kind, map, end} = current;
  const bar = element("canvas", {width: 256, height: 1, "aria-hidden": "true"});
  const context = bar.getContext("2d");
  colourTable().forEach((colour, i) => {
    context.fillStyle = `rgb(${colour})`;
    context.fillRect(i, 0, 1, 1);
  });
  const middle = state.scale === "root" ? "0 \u2026 0.25 \u2026 1 (square root)" : "";
  const over = map.some((weight) => weight > end * 1.0001) ? "\u2265 " : "";
  const parts = middle ? [bar, `weight ${middle}`] : ["0", bar, `${over}${end.toPrecision(3)} weight`];
  const swatch = (name) => element("i", {style: `background:var(--${name})`});
  if (baseOf(kind) === "decoder" && kind.keys > 1) parts.push(swatch("masked"), "masked");
  if (map.some(Number.isNaN)) parts.push(swatch("missing"), "missing");
  if (promptEnd()) parts.push("\u00a0 dashed: the prompt ends");
  byId("key").replaceChildren(...parts);
}

// ---- The lines --------------------------------------------------------------------------------

// Two rows of tokens where they fit, two columns where they do not. `a` runs along a row of tokens,
// `b` from the keys to the queries.
function drawLines() {
  const {kind, map, queries, keys, end} = current;
  const svg = byId("links"), font = 13;
  const room = Math.max(byId("lines").clientWidth - 42, 240);
  const widths = (tokens) => tokens.map((t) => widthOf(labelOf(t), font) + 12);
  const keyWidths = widths(keys), queryWidths = widths(queries);
  const sum = (list) => list.reduce((x, y) => x + y, 0);
  const flat = Math.max(sum(keyWidths), sum(queryWidths)) <= room;

  const longest = Math.max(keys.length, queries.length);
  const slots = (sizes, length) => {
    const spare = flat ? Math.min((length - sum(sizes)) / sizes.length, 40) : 0;
    const pitch = Math.min(21 * longest / sizes.length, 40);  // columns end level, if nearly as long
    let at = flat ? (length - sum(sizes) - spare * sizes.length) / 2 : 0;
    return sizes.map((size) => {
      const extent = flat ? size + spare : pitch;
      at += extent;
      return at - extent / 2;
    });
  };
  const keyAt = slots(keyWidths, room), queryAt = slots(queryWidths, room);
  const keyEdge = flat ? 40 : Math.max(...keyWidths) + 8;
  const queryEdge = flat ? 200 : Math.max(
    keyEdge + 90, Math.min(room - Math.max(...queryWidths) - 8, keyEdge + 320));
  setSize(svg, room, flat ? 240 : 21 * longest + 2);

  const nodes = (tokens, at, sizes, edge, side) => tokens.map((token, i) => {
    const box = flat ? {x: at[i] - sizes[i] / 2, y: side < 0 ? edge - 26 : edge, width: sizes[i]}
                     : {x: side < 0 ? edge - sizes[i] : edge, y: at[i] - 10, width: sizes[i]};
    const height = flat ? 26 : 20;
    const node = element("g", {class: "token"},
      element("rect", {...box, height, rx: 4}),
      labelNode(token, {x: box.x + box.width / 2, y: box.y + height / 2 + font * .35,
                        "text-anchor": "middle", "font-size": font}));
    const chosen = side < 0 ? {query: -1, key: i} : {query: i, key: -1};
    node.addEventListener("pointerenter", () => highlight({...chosen, at: node}));
    return node;
  });
  const bars = (tokens, at, sizes, edge, side) => wordsOf(tokens).map(([first, last]) => {
    const from = at[first] - (flat ? sizes[first] / 2 - 5 : 7);
    const to = at[last - 1] + (flat ? sizes[last - 1] / 2 - 5 : 7);
    return element("path", {class: "word", d: flat ? `M${from} ${edge + side * 29}H${to}`
                                                   : `M${edge - side * 3} ${from}V${to}`});
  });
  plan.keyNodes = nodes(keys, keyAt, keyWidths, keyEdge, -1);
  plan.queryNodes = nodes(queries, queryAt, queryWidths, queryEdge, 1);

  // Fainter lines than a fiftieth of the range could not be seen, and cost most of the time.
  const kept = [], most = 2000;
  const middle = (keyEdge + queryEdge) / 2;
  const bend = flat ? (k, q) => `M${keyAt[k]} ${keyEdge + 2}C${keyAt[k]} ${middle} ${queryAt[q]} ${middle} ${queryAt[q]} ${queryEdge - 2}`
                    : (k, q) => `M${keyEdge + 5} ${keyAt[k]}C${middle} ${keyAt[k]} ${middle} ${queryAt[q]} ${queryEdge - 5} ${queryAt[q]}`;
  map.forEach((weight, i) => {
    const query = Math.floor(i / kind.keys), key = i % kind.keys;
    if (weight / end >= .02 && counts(query, key)) kept.push({weight, query, key});
  });
  const all = kept.length;
  if (all > most) kept.sort((a, b) => b.weight - a.weight).length = most;
  plan.links = kept.map(({weight, query, key}) => ({query, key, path: element(
    "path", {class: "link", d: bend(key, query), "stroke-opacity": shareOf(weight, end).toFixed(3)})}));
  svg.replaceChildren(
    ...plan.links.map((link) => link.path), ...bars(keys, keyAt, keyWidths, keyEdge, -1),
    ...bars(queries, queryAt, queryWidths, queryEdge, 1), ...plan.keyNodes, ...plan.queryNodes);
  const [keySide, querySide] = flat ? ["Above", "below"] : ["Left", "right"];
  byId("lines-note").textContent = `${keySide}: the tokens read (keys); ${querySide}: the tokens ` +
    "that read them (queries). Point at a token to see only its lines." +
    (state.scale === "rest" ? " Lines to the first token are left out." : "") +
    (all > most ? ` The ${most} heaviest of ${all} lines are drawn.` : "");
}

// ---- The overview -----------------------------------------------------------------------------

function drawOverview() {
  const {kind} = current;
  const end = endOfAll(kind);
  const heads = kind.heads === 1 ? [0] : [-1, ...Array(kind.heads).keys()];
  const room = document.querySelector("main").clientWidth - 50;
  const side = Math.max(78, Math.min(170, Math.floor(room / heads.length) - 10));
  const grid = byId("grid"), buttons = [];
  grid.style.gridTemplateColumns = `repeat(${heads.length}, ${side}px)`;
  plan.seen?.disconnect();
  plan.paintLater = new Map();
  for (let layer = 0; layer < kind.layers; ++layer) {
    for (const head of heads) {
      const canvas = element("canvas", {"aria-hidden": "true"}), measures = element("small", {}, "\u2013");
      canvas.style.aspectRatio = `${kind.keys} / ${kind.queries}`;
      const name = `Layer ${layer + 1}, ${headName(head)}`;
      const button = element("button", {type: "button", "aria-label": name}, canvas,
        element("small", {}, `L${layer + 1} ${headName(head)}`), measures);
      // Hundreds of maps of hundreds of tokens: each is painted when it comes into view.
      plan.paintLater.set(button, () => {
        const map = mapOf(kind, layer, head), {entropy, largest} = statisticsOf(map, kind.keys);
        paint(canvas, kind, layer, map, end, 2 * side);
        measures.textContent = `${digits(entropy, 2)} b \u00b7 ${digits(largest, 2)}`;
        button.setAttribute("aria-label", `${name}: entropy ${digits(entropy, 2)} bits, ` +
                            `mean largest weight ${digits(largest, 2)}`);
      });
      button.addEventListener("click", () => {
        select({layer, head});
        byId("matrix").scrollIntoView({block: "nearest"});
      });
      buttons.push({button, layer, head});
    }
  }
  grid.replaceChildren(...buttons.map((b) => b.button));
  plan.seen = new IntersectionObserver((entries) => {
    for (const {target, isIntersecting} of entries) {
      if (!isIntersecting) continue;
      plan.paintLater.get(target)?.();
      plan.paintLater.delete(target);
    }
  }, {rootMargin: "400px"});
  for (const {button} of buttons) plan.seen.observe(button);
  grid.onkeydown = (event) => {
    const step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -heads.length,
                  ArrowDown: heads.length}[event.key];
    if (!step) return;
    event.preventDefault();
    const at = buttons.findIndex((b) => b.button === document.activeElement);
    const next = buttons[at + step];
    if (at < 0 || !next || Math.abs(step) === 1 && next.layer !== buttons[at].layer) return;
    select({layer: next.layer, head: next.head});
    next.button.focus();
  };
  plan.overview = buttons;
  byId("overview-note").textContent =
    `Rows: layers; columns: heads${kind.heads > 1 ? ", after their mean" : ""}. Below each map: ` +
    "mean entropy in bits and mean largest weight of its rows. " +
    (toLargest() ? `One colour range for all: 0 to ${end.toPrecision(3)}.`
                           : "One colour range for all.");
}

function markOverview() {
  for (const {button, layer, head} of plan.overview) {
    const chosen = layer === state.layer && head === state.head;
    button.setAttribute("aria-current", chosen);
    button.tabIndex = chosen ? 0 : -1;
  }
}

// ---- Highlight, shared by the matrix and the lines --------------------------------------------

// query or key may be -1; `at` is the element or point beside which the tip appears, none hides it.
function highlight({query = -1, key = -1, at = null, aloud = false}) {
  Object.assign(state, {query, key});
  const {kind, map, queries, keys} = current, both = query >= 0 && key >= 0;
  const {cell, top} = plan;
  const place = (node, on, attribute, value) => {
    node.setAttribute("visibility", on ? "visible" : "hidden");
    if (on) node.setAttribute(attribute, value);
  };
  place(plan.row, query >= 0, "y", top + query * cell);
  place(plan.column, key >= 0, "x", key * cell);
  place(plan.mark, both, "x", key * cell);
  plan.mark.setAttribute("y", top + query * cell);
  [[plan.rowLabels, query], [plan.queryNodes, query], [plan.keyLabels, key], [plan.keyNodes, key]]
    .forEach(([nodes, chosen]) => nodes.forEach((n, i) => n.classList.toggle("on", i === chosen)));

  for (const link of plan.links)
    link.path.style.display = (query < 0 || link.query === query) &&
      (key < 0 || query >= 0 || link.key === key) ? "" : "none";
  const shade = (node, weight) => {
    node.firstChild.style.fillOpacity = weight > 0 ? .55 * shareOf(weight, current.end) : 0;
  };
  plan.keyNodes.forEach((n, k) => shade(n, query >= 0 ? map[query * kind.keys + k] : 0));
  plan.queryNodes.forEach((n, q) =>
    shade(n, query < 0 && key >= 0 ? map[q * kind.keys + key] : 0));

  const tip = byId("tip"), quoted = (token) => element("bdi", {}, `\u201c${labelOf(token, 60)}\u201d`);
  tip.replaceChildren();
  if (both) {
    const weight = map[query * kind.keys + key];
    const value = isMasked(kind, state.layer, query, key, weight) ? "masked"
      : Number.isNaN(weight) ? "missing" : digits(weight, 3);
    tip.append(quoted(queries[query]), " reads ", quoted(keys[key]), ": ", element("b", {}, value));
  } else if (query >= 0 || key >= 0) {
    const row = query >= 0;
    const ranked = (row ? keys : queries)
      .map((token, i) => ({token, weight: row ? map[query * kind.keys + i] : map[i * kind.keys + key]}))
      .filter((item) => item.weight >= .0005).sort((a, b) => b.weight - a.weight).slice(0, 4);
    tip.append(quoted(row ? queries[query] : keys[key]), row ? " reads" : " is read by");
    if (!ranked.length) tip.append(" nothing");
    ranked.forEach((item, i) => tip.append(i ? ", " : " ", quoted(item.token), " ",
                                           element("b", {}, digits(item.weight, 3))));
  }
  tip.hidden = !tip.textContent || !at;
  byId("live").textContent = aloud ? tip.textContent : "";
  if (tip.hidden) return;
  const box = at.getBoundingClientRect ? at.getBoundingClientRect()
                                       : {left: at.x, right: at.x, top: at.y, bottom: at.y};
  const fits = box.bottom + 12 + tip.offsetHeight < innerHeight;
  tip.style.left = `${Math.max(4, Math.min(box.right + 8, innerWidth - tip.offsetWidth - 4))}px`;
  tip.style.top = `${fits ? box.bottom + 8 : Math.max(4, box.top - tip.offsetHeight - 8)}px`;
}

const clearHighlight = () => highlight({});
const clamp = (value, count) => Math.max(0, Math.min(count - 1, value));

function listen() {
  const plot = byId("plot"), links = byId("links");
  const point = (event) => {
    const box = plot.getBoundingClientRect(), {kind} = current;
    const key = Math.floor((event.clientX - box.left) / plan.cell);
    const query = Math.floor((event.clientY - box.top - plan.top) / plan.cell);
    if (key < 0 || key >= kind.keys || query >= kind.queries) clearHighlight();
    else highlight({query: query < 0 ? -1 : query, key, at: {x: event.clientX, y: event.clientY}});
  };
  plot.addEventListener("pointermove", point);
  plot.addEventListener("pointerdown", point);
  // A finger lifts right after a tap: what it chose stays.
  for (const svg of [plot, links])
    svg.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") clearHighlight(); });
  plot.addEventListener("keydown", (event) => {
    const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0],
                  ArrowDown: [1, 0]}[event.key];
    if (!step) return;
    event.preventDefault();
    highlight({query: clamp(state.query + step[0], current.kind.queries),
               key: clamp(state.key + step[1], current.kind.keys), at: plan.mark, aloud: true});
  });
  links.addEventListener("keydown", (event) => {
    const step = {ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1}[event.key];
    if (!step) return;
    event.preventDefault();
    const query = clamp(state.query + step, current.kind.queries);
    highlight({query, at: plan.queryNodes[query], aloud: true});
  });
  for (const svg of [plot, links]) svg.addEventListener("blur", clearHighlight);
  document.addEventListener("keydown", (e) => { if (e.key === "Escape") clearHighlight(); });
  byId("sentence").addEventListener("change", (e) => select({sentence: +e.target.value}));
  byId("scale").addEventListener("change", (e) => select({scale: e.target.value}));
  prefersDark.addEventListener("change", () => render(true));
  let width = innerWidth;  // phones fire resize for their address bar, which changes only the height
  addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; render(true); } });
  addEventListener("hashchange", () => select(readAddress()));
}

// ---- Choosing ---------------------------------------------------------------------------------

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

// The choice stands in the address, so that a view can be kept or passed on.
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
    // Some viewers give a page no address of its own; everything else works there.
  }
}

// Takes what fits of `wanted`; layers and heads that the kind does not have are clamped.
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
</script>
</body>
</html>
)page";

}  // namespace mulciber::apps
