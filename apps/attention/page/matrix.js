// The matrix: one map as a heat map, with its labels and the key of its colours.

const plan = {};  // geometry of the matrix, for the pointer and the highlight

function drawMatrix() {
  const {kind, map, queries, keys} = current;
  const room = document.querySelector("main").clientWidth - 60;
  const widest = (tokens, size) => Math.max(...tokens.map((t) => widthOf(labelOf(t), size)));
  const rowRoom = Math.min(widest(queries, 13), 130) + 18;
  const across = room > 900 ? room - rowRoom - 400 : room - rowRoom;  // wide: the lines stand beside
  // In long texts only some tokens are labelled; the pointer shows the others.
  const long = Math.max(keys.length, queries.length), longText = long > 100;
  let cell = Math.floor(Math.min(across / keys.length, (longText ? 1100 : 760) / long));
  cell = Math.max(longText ? 3 : 12, Math.min(46, cell));
  const font = Math.max(9.5, Math.min(13, cell * .78)), step = Math.ceil(font / cell);
  const thin = (i) => i % step ? {class: "thin"} : {};
  const keyWidth = widest(keys, font), rowWidth = widest(queries, font) + 16;
  // Key labels lie flat where they fit, slope where cells are wide, and stand upright elsewhere.
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
