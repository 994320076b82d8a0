// The lines: the tokens twice, joined by a line for each weight.

// There are two rows of tokens where they fit, or else two columns. `a` runs along a row of tokens,
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

  // Lines fainter than a fiftieth of the range could not be seen, and would cost most of the time.
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
