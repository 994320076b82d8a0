// Summaries of a run: failures, the table by operation, what was not supported, the largest errors.

function showTrouble() {
  const bad = run.cases.filter(c => !good(c.status));
  if (bad.length === 0) {
    $("trouble").append(element("p", {}, run.complete ? "None." : "None so far: the run was stopped before its end."));
    return;
  }
  const shown = bad.slice().sort((a, b) => b.worst_error - a.worst_error || a.name.localeCompare(b.name)).slice(0, 20);
  const list = element("ul", { class: "plain" });
  for (const c of shown) {
    list.append(element("li", {}, tag(c.status, c.status), " ", caseLink(c), element("br"),
      element("span", { class: "quiet" }, c.detail || ""), element("details", {},
        element("summary", {}, "Make a reproducer"), element("pre", {}, reproCommand(c.name)), copyButton(reproCommand(c.name)))));
  }
  $("trouble").append(list);
  if (bad.length > shown.length) {
    $("trouble").append(element("button", { type: "button", onclick: () => showOnly({ statuses: s => !good(s) }) },
      "List all " + number.format(bad.length) + " below"));
  }
}

function caseLink(c) {
  return element("button", { type: "button", class: "link name", onclick: () => { showOnly({ search: c.name }); select(0); } }, c.name);
}

function showMatrix() {
  const ops = [...new Set(run.cases.map(c => c.op))], types = [...new Set(run.cases.map(c => c.types))].sort();
  const groups = Map.groupBy ? Map.groupBy(run.cases, c => c.op + "|" + c.types) : (() => {
    const made = new Map();
    for (const c of run.cases) made.set(c.op + "|" + c.types, [...(made.get(c.op + "|" + c.types) || []), c]);
    return made;
  })();
  const cell = (op, type, list) => {
    if (!list || list.length === 0) return element("td");
    const counts = countBy(list, c => c.status);
    const tags = meta.statuses.filter(s => counts.has(s.name)).map(s => tag(s.name, number.format(counts.get(s.name))));
    const spoken = meta.statuses.filter(s => counts.has(s.name)).map(s => counts.get(s.name) + " " + s.name).join(", ");
    return element("td", {}, element("button", { type: "button", "aria-label": [op, type, spoken].filter(Boolean).join(": "),
      onclick: () => showOnly({ op, types: type }) }, ...tags));
  };
  const table = $("matrix");
  table.append(element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Operation"),
    ...types.map(t => element("th", { scope: "col" }, t)), element("th", { scope: "col" }, "all"))));
  const body = element("tbody");
  for (const op of ops) {
    body.append(element("tr", {}, element("th", { scope: "row" }, op, element("small", {}, meta.ops[op] || "")),
      ...types.map(t => cell(op, t, groups.get(op + "|" + t))), cell(op, "", run.cases.filter(c => c.op === op))));
  }
  table.append(body, element("tfoot", {}, element("tr", {}, element("th", { scope: "row" }, "all"),
    ...types.map(t => cell("", t, run.cases.filter(c => c.types === t))), cell("", "", run.cases))));
  const counts = countBy(run.cases, c => c.status);
  $("key").append(...meta.statuses.filter(s => counts.has(s.name)).map(s => tag(s.name, s.name)));
}

// "the device lacks 16-bit storage" of many rows is one group.
function showMissing() {
  const list = run.cases.filter(c => c.status === "NotSupported");
  if (list.length === 0) {
    $("missing").append(element("p", {}, "Nothing: the device ran every case."));
    return;
  }
  const groups = new Map();
  for (const c of list) {
    const key = (c.detail || "no reason given").replace(/\b\d[\d,.]*\b/g, "N");
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(c);
  }
  const items = element("ul", { class: "plain" });
  for (const [, cases] of [...groups].sort((a, b) => b[1].length - a[1].length)) {
    const ops = [...countBy(cases, c => c.op)].sort((a, b) => b[1] - a[1]).map(([op, n]) => op + " " + number.format(n));
    items.append(element("li", {}, element("button", { type: "button", class: "link",
      onclick: () => showOnly({ search: cases[0].detail || "", statuses: s => s === "NotSupported" }) }, cases[0].detail || "no reason given"),
      element("div", { class: "quiet" }, plural(cases.length, "case") + ": " + ops.join(", "))));
  }
  $("missing").append(items);
}

// A line for each operation and pair of types: one bad kernel should not fill the list.
function showWorst() {
  const groups = new Map();
  for (const c of run.cases) {
    if (!good(c.status) || c.status === "NotSupported") continue;
    const key = c.op + "|" + c.types;
    if (!groups.has(key)) groups.set(key, { op: c.op, types: c.types, share: c, nmse: c });
    const group = groups.get(key);
    if (isFinite(c.worst_error) && c.worst_error > group.share.worst_error) group.share = c;
    if ((c.nmse || 0) > (group.nmse.nmse || 0)) group.nmse = c;
  }
  const list = [...groups.values()].filter(g => g.share.worst_error > 0).sort((a, b) => b.share.worst_error - a.share.worst_error ||
    b.nmse.nmse - a.nmse.nmse);
  const exact = [...groups.values()].filter(g => !(g.share.worst_error > 0)).map(g => g.op + " " + g.types);
  const body = element("tbody");
  const open = c => () => { showOnly({ search: c.name }); select(0); };
  for (const g of list) {
    const fill = element("i");
    fill.style.width = Math.min(100, 100 * g.share.worst_error) + "%";
    body.append(element("tr", {}, element("th", { scope: "row" }, g.op), element("td", {}, g.types),
      element("td", {}, element("button", { type: "button", class: "link", title: g.share.name, onclick: open(g.share) },
        element("span", { class: "bar", "aria-hidden": "true" }, fill), percent(g.share.worst_error))),
      element("td", {}, element("button", { type: "button", class: "link", title: g.nmse.name, onclick: open(g.nmse) },
        (g.nmse.nmse || 0).toExponential(1)))));
  }
  if (list.length) {
    $("worst").append(element("table", {}, element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "Operation"),
      element("th", { scope: "col" }, "Types"), element("th", { scope: "col" }, "Of the bound"),
      element("th", { scope: "col", title: "normalized mean square error, over all results of a case" }, "NMSE"))), body));
  }
  if (exact.length) $("worst").append(element("p", { class: "quiet" }, "Exact in every case: " + exact.join(", ") + "."));
}

function showFacts() {
  const rows = [["Device", f.device], ["Driver", [f.driver_name, f.driver_info, f.driver_id && "(" + f.driver_id + ")"].filter(Boolean).join(" ")],
    ["Driver version", f.driver_version], ["Vulkan", f.api_version], ["Claims Vulkan CTS", f.conformance_version],
    ["Masks (features taken away)", f.limits], ["Features used", (f.features || []).join(", ")],
    ["Second queue", f.second_queue], ["Host", f.host],
    ["Started", f.started], ["Runs of each case", f.repeats],
    ["Other orders", { some: "every fifth case", all: "each case in three" }[f.shake] || "none"], ["Seed", f.seed], ["Validation layer", f.validated ? "on" : "off"],
    ["Mulciber", [f.suite_version, f.git_revision].filter(Boolean).join(", revision ")],
    ["Shader compiler", f.glslang_version && "glslang " + f.glslang_version], ["SPIR-V hash", f.spirv_hash]];
  for (const [name, value] of rows) {
    if (value === "" || value == null) continue;
    $("device").append(element("dt", {}, name), element("dd", {}, String(value)));
  }
  for (const [name, value] of Object.entries(f.device_limits || {})) {
    $("limits").append(element("dt", {}, name), element("dd", {}, /^\d+$/.test(value) ? number.format(value) : value));
  }
  for (const s of meta.statuses) $("meanings").append(element("dt", {}, tag(s.name, s.name)), element("dd", {}, s.meaning));
  const example = run.cases.find(c => !good(c.status)) || run.cases.find(c => c.status === "Pass") || run.cases[0];
  $("repro").textContent = reproCommand(example ? example.name : "CASE") + "\ncmake -S repro -B repro/build && cmake --build repro/build\nrepro/build/repro";
}
