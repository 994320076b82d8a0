// The highlighted query and key, which the matrix and the lines share, and input by pointer and
// keyboard.

// query or key may be -1. `at` is the element or point beside which the tip appears; without it the
// tip is hidden.
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
  // A finger lifts right after a tap: its choice stays.
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
