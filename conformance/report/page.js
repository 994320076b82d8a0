"use strict";
const $ = id => document.getElementById(id);
const meta = JSON.parse($("meta").textContent);
const statusOf = Object.fromEntries(meta.statuses.map((s, i) => [s.name, { ...s, rank: i }]));
const SYMBOLS = { Pass: "✓", Fail: "✗", Flaky: "≈", NotSupported: "–", QualityWarning: "!", Mistrusted: "?",
  ResourceError: "▢", Timeout: "…", Crash: "✗", DeviceLost: "✗", InternalError: "?", Waiver: "w" };
const TONES = { Pass: "good", NotSupported: "none", QualityWarning: "warn", Waiver: "warn" };
const tone = status => TONES[status] || "bad";
const good = status => statusOf[status] ? statusOf[status].good : false;
// From best to worst, for "better" and "worse"; those between are equally bad.
const GRADES = { Pass: 0, QualityWarning: 1, NotSupported: 2, Waiver: 3, Mistrusted: 4 };
const grade = status => GRADES[status] ?? 5;
const number = new Intl.NumberFormat("en");

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value != null) made.setAttribute(name, value);
  }
  made.append(...children.filter(child => child != null));
  return made;
}
const tag = (status, text) =>
  element("span", { class: "tag " + tone(status), title: statusOf[status]?.meaning }, (SYMBOLS[status] || "") + " " + text);
const plural = (count, one, many = one + "s") => number.format(count) + " " + (count === 1 ? one : many);

// ---- runs ----

/** Reads the lines of a run; a last line that broke off is left out. */
function readRun(text) {
  const run = { fingerprint: null, cases: [], complete: false };
  const places = new Map();
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    let object;
    try { object = JSON.parse(line); } catch { continue; }
    if (object.kind === "run") run.fingerprint = object.fingerprint;
    else if (object.kind === "summary") run.complete = true;
    else if (object.kind === "case") {
      // JSON has no infinity.
      if (object.worst_error === null) object.worst_error = Infinity;
      object.lower = (object.name + " " + (object.detail || "")).toLowerCase();
      if (places.has(object.name)) run.cases[places.get(object.name)] = object;
      else { places.set(object.name, run.cases.length); run.cases.push(object); }
    }
  }
  return run;
}

const run = readRun($("run-lines").textContent);
let other = null;
let records = run.cases;  // of both runs, once there are two
const f = run.fingerprint;

const percent = share => !isFinite(share) ? "∞" : share === 0 ? "0" : share < 0.0005 ? "< 0.1 %" :
  share < 10 ? (100 * share).toFixed(1) + " %" : number.format(+share.toPrecision(3)) + " ×";
const seconds = s => s == null ? "" : s < 10 ? s.toFixed(2) : s.toFixed(0);
const titleOf = fp => [fp.driver_name || fp.device, fp.driver_info || fp.driver_version].filter(Boolean).join(", ") +
  (fp.limits ? " with " + fp.limits : "");

function reproCommand(name) {
  return "mulciber conform --repro " + name + " --output repro" + (f.limits ? " --limits " + f.limits : "") +
    (f.seed ? " --seed " + f.seed : "");
}
function copyButton(text) {
  const button = element("button", { type: "button", class: "copy", onclick: async () => {
    try { await navigator.clipboard.writeText(text); button.textContent = "Copied"; }
    catch { button.textContent = "Select the text to copy it"; }
  } }, "Copy");
  return button;
}
const countBy = (list, key) => {
  const counts = new Map();
  for (const item of list) counts.set(key(item), (counts.get(key(item)) || 0) + 1);
  return counts;
};

// ---- summaries ----

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
    ["Started", f.started], ["Runs of each case", f.repeats], ["Seed", f.seed], ["Validation layer", f.validated ? "on" : "off"],
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

// ---- comparison ----

function compareWith(text, from) {
  const loaded = readRun(text);
  $("compare").replaceChildren();
  if (!loaded.fingerprint) {
    $("compare").append(element("p", { class: "tag bad" }, from + " is no run of mulciber conform: its first line is not a fingerprint."));
    return;
  }
  other = loaded;
  const before = new Map(other.cases.map(c => [c.name, c]));
  records = run.cases.map(c => c);
  for (const c of records) {
    c.before = before.get(c.name) || null;
    c.change = !c.before ? "one" : c.before.status === c.status ? "" : grade(c.status) > grade(c.before.status) ? "worse" :
      grade(c.status) < grade(c.before.status) ? "better" : "other";
    before.delete(c.name);
  }
  for (const c of before.values()) {
    records.push({ ...c, before: c, status: "absent", change: "one", worst_error: 0, detail: "not in this run" });
  }
  $("compare-section").classList.add("loaded");
  $("table").classList.add("compared");
  $("changed-pick").hidden = false;
  const counts = countBy(records, c => c.change), get = key => counts.get(key) || 0;
  const changes = countBy(records.filter(c => c.change && c.change !== "one"), c => c.before.status + " → " + c.status);
  const changedKeys = ["driver_name", "driver_info", "driver_version", "device", "limits", "api_version", "suite_version", "git_revision",
    "spirv_hash", "seed", "repeats"].filter(key => String(other.fingerprint[key] ?? "") !== String(f[key] ?? ""));
  const show = (key, text, status) => get(key) ? element("button", { type: "button", onclick: () => showOnly({ changed: key }) },
    tag(status, text(get(key)))) : null;
  $("compare").append(
    element("p", {}, "Before: ", element("strong", {}, titleOf(other.fingerprint)), " (" + (other.fingerprint.started || "no date") + "). Now: ",
      element("strong", {}, titleOf(f)), " (" + (f.started || "no date") + ")."),
    element("p", {}, show("worse", n => plural(n, "case") + " worse", "Fail"), " ", show("better", n => plural(n, "case") + " better", "Pass"), " ",
      show("other", n => plural(n, "case") + " fail otherwise", "Fail"), " ", show("one", n => plural(n, "case") + " in one run only", "NotSupported"), " ",
      get("") === records.length ? "Every case has the same status in both." : number.format(get("")) + " unchanged."));
  if (changes.size) {
    $("compare").append(element("ul", {}, ...[...changes].sort((a, b) => b[1] - a[1]).map(([change, n]) => element("li", {}, change + ": " + number.format(n)))));
  }
  $("compare").append(element("p", { class: "quiet" }, changedKeys.length ? "What differs between them: " + changedKeys.map(k =>
    k.replaceAll("_", " ") + (k === "spirv_hash" ? "" : " (" + (other.fingerprint[k] ?? "none") + " → " + (f[k] ?? "none") + ")")).join(", ") + "." :
    "Both come from the same driver and suite."));
  fillHead();
  fillFilters();
  update();
}

function readFile(file) {
  if (!file) return;
  file.text().then(text => compareWith(text, file.name));
}
$("file").addEventListener("change", event => readFile(event.target.files[0]));
let dragDepth = 0;
addEventListener("dragenter", event => { event.preventDefault(); ++dragDepth; document.body.classList.add("dropping"); });
addEventListener("dragleave", () => { if (--dragDepth <= 0) document.body.classList.remove("dropping"); });
addEventListener("dragover", event => event.preventDefault());
addEventListener("drop", event => {
  event.preventDefault();
  dragDepth = 0;
  document.body.classList.remove("dropping");
  readFile(event.dataTransfer.files[0]);
  $("compare-section").scrollIntoView();
});

// ---- the table: only the rows in sight are in the document ----

let view = [], selected = -1, sort = { key: "status", up: false };
const badness = c => c.status === "absent" ? -1 : good(c.status) ? ["Pass", "NotSupported", "Waiver", "QualityWarning"].indexOf(c.status) : 10;
const COLUMNS = {
  status: { title: "Status", value: c => badness(c) },
  before: { title: "Before", value: c => c.before ? badness(c.before) : -2 },
  name: { title: "Case", value: c => c.name },
  types: { title: "Types", value: c => c.types },
  error: { title: "Error", value: c => c.worst_error, number: true, help: "largest error, as a share of its bound" },
  seconds: { title: "Seconds", value: c => c.seconds, number: true },
};
const columns = () => Object.entries(COLUMNS).filter(([key]) => key !== "before" || other);

function fillHead() {
  $("head").replaceChildren(...columns().map(([key, column]) => element("div", { role: "columnheader",
    class: column.number ? "number" : "", "aria-sort": sort.key === key ? (sort.up ? "ascending" : "descending") : "none" },
    element("button", { type: "button", title: column.help, onclick: () => {
      sort = { key, up: sort.key === key ? !sort.up : key === "name" || key === "types" };
      fillHead();
      update();
      $("head").querySelector("[aria-sort=ascending] button, [aria-sort=descending] button").focus();
    } }, column.title + (sort.key === key ? (sort.up ? " ▲" : " ▼") : "")))));
}

function fillFilters() {
  const fill = (id, values) => {
    const kept = $(id).value;
    $(id).replaceChildren(element("option", { value: "" }, "all"), ...values.map(v => element("option", { value: v }, v)));
    $(id).value = kept;
  };
  fill("op", [...new Set(records.map(c => c.op))]);
  fill("types", [...new Set(records.map(c => c.types))].sort());
  const counts = countBy(run.cases, c => c.status);
  const off = new Set([...document.querySelectorAll("#statuses input:not(:checked)")].map(input => input.value));
  $("statuses").replaceChildren($("statuses").querySelector("legend"), ...meta.statuses.filter(s => counts.has(s.name)).map(s =>
    element("label", {}, element("input", { type: "checkbox", checked: !off.has(s.name), value: s.name, onchange: update }),
      tag(s.name, s.name + " " + number.format(counts.get(s.name))))));
}

/** Words that must all occur; a word with * or ? is a glob over the whole name. */
function matcher(text) {
  const tests = text.toLowerCase().split(/\s+/).filter(Boolean).map(word => {
    if (!/[*?]/.test(word)) return c => c.lower.includes(word);
    const glob = new RegExp("^" + word.replace(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".") + "$");
    return c => glob.test(c.name);
  });
  return c => tests.every(test => test(c));
}

function update() {
  const match = matcher($("search").value), op = $("op").value, types = $("types").value, changed = $("changed").value;
  const off = new Set([...document.querySelectorAll("#statuses input:not(:checked)")].map(input => input.value));
  view = records.filter(c => !off.has(c.status) && (!op || c.op === op) && (!types || c.types === types) &&
    (!changed || (changed === "any" ? c.change : c.change === changed)) && match(c));
  const value = COLUMNS[sort.key].value, sign = sort.up ? 1 : -1;
  const keyed = view.map((c, i) => [value(c), i, c]);
  keyed.sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : a[1] - b[1]));
  view = keyed.map(k => k[2]);
  selected = -1;
  $("detail").replaceChildren();
  $("shown").textContent = plural(view.length, "case") + " of " + number.format(records.length) +
    (view.length ? "; choose one for its numbers." : ". Nothing matches: “Show all” takes every filter away.");
  $("table").setAttribute("aria-rowcount", view.length + 1);
  $("body").scrollTop = 0;
  draw();
}

const rowHeight = () => parseFloat(getComputedStyle(document.documentElement).getPropertyValue("--row")) *
  parseFloat(getComputedStyle(document.documentElement).fontSize);

function makeRow(c, index, height) {
  const cells = { status: () => tag(c.status, c.status), before: () => c.before ? tag(c.before.status, c.before.status) : "",
    name: () => c.name.replace(/^mulciber\./, ""), types: () => c.types,
    error: () => c.status === "NotSupported" || c.status === "absent" ? "" : percent(c.worst_error), seconds: () => seconds(c.seconds) };
  const row = element("div", { role: "row", class: "row", id: "row-" + index, "aria-rowindex": index + 2, "aria-selected": index === selected ? "true" : "false",
    onclick: () => select(index) }, ...columns().map(([key, column]) => element("div", { role: "gridcell", title: key === "name" ? c.name : null,
    class: key + (column.number ? " number" : "") }, cells[key]())));
  row.style.top = index * height + "px";
  return row;
}

function draw() {
  const body = $("body"), height = rowHeight();
  body.style.height = Math.min(24 * 16, Math.max(3, view.length) * height + 1) + "px";
  const first = Math.max(0, Math.floor(body.scrollTop / height) - 5);
  const last = Math.min(view.length, Math.ceil((body.scrollTop + body.clientHeight) / height) + 5);
  const rows = element("div", { id: "rows", role: "presentation" });
  rows.style.height = view.length * height + "px";
  for (let i = first; i < last; ++i) rows.append(makeRow(view[i], i, height));
  body.replaceChildren(rows);
  if (selected >= 0) body.setAttribute("aria-activedescendant", "row-" + selected);
  else body.removeAttribute("aria-activedescendant");
}

function select(index) {
  if (view.length === 0) return;
  selected = Math.max(0, Math.min(view.length - 1, index));
  const body = $("body"), height = rowHeight(), top = selected * height;
  if (top < body.scrollTop) body.scrollTop = top;
  if (top + height > body.scrollTop + body.clientHeight) body.scrollTop = top + height - body.clientHeight;
  draw();
  const c = view[selected], facts = [["Case", element("span", { class: "name" }, c.name)], ["Operation", meta.ops[c.op] ? c.op + ": " + meta.ops[c.op] : c.op],
    ["Kernel row", c.row], ["Status", statusOf[c.status] ? element("span", {}, tag(c.status, c.status), statusOf[c.status].meaning) : c.status],
    ["Detail", c.detail], ["Waiver", c.waived && c.waived + " (" + c.waived_from + ")"],
    ["Runs compared bit by bit", c.repeats || null], ["Normalized mean square error", c.nmse == null ? "∞" : c.repeats ? c.nmse.toExponential(2) : null]];
  if (c.before) facts.push(["Before", element("span", {}, tag(c.before.status, c.before.status), c.before.detail || "")]);
  const list = element("dl");
  for (const [name, value] of facts) if (value != null && value !== "") list.append(element("dt", {}, name), element("dd", {}, value));
  $("detail").replaceChildren(list, element("pre", {}, reproCommand(c.name)), copyButton(reproCommand(c.name)));
}

$("body").addEventListener("scroll", draw, { passive: true });
addEventListener("resize", draw);
$("body").addEventListener("keydown", event => {
  const page = Math.max(1, Math.floor($("body").clientHeight / rowHeight()) - 1);
  const to = { ArrowDown: selected + 1, ArrowUp: Math.max(0, selected - 1), PageDown: selected + page, PageUp: Math.max(0, selected - page), Home: 0,
    End: view.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  select(to);
});

/** Sets the filters to these alone, and goes to the table. */
function showOnly({ search = "", op = "", types = "", changed = "", statuses = () => true }) {
  $("search").value = search;
  $("op").value = op;
  $("types").value = types;
  $("changed").value = changed;
  for (const input of document.querySelectorAll("#statuses input")) input.checked = statuses(input.value);
  update();
  $("cases-section").scrollIntoView();
  $("body").focus({ preventScroll: true });
}

let typing;
$("search").addEventListener("input", () => { clearTimeout(typing); typing = setTimeout(update, 80); });
for (const id of ["op", "types", "changed"]) $(id).addEventListener("change", update);
$("controls").addEventListener("submit", event => event.preventDefault());
$("controls").addEventListener("reset", event => {
  event.preventDefault();
  showOnly({});
});

showTrouble();
showMatrix();
showMissing();
showWorst();
showFacts();
fillHead();
fillFilters();
update();
if ($("other-lines").textContent.trim()) compareWith($("other-lines").textContent, "the other run");
