// The table of all cases. Only the rows in sight are in the document.

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
    ["Runs compared bit by bit", c.repeats || null], ["In other orders too", (c.orders || []).join(", ")], ["Normalized mean square error", c.nmse == null ? "∞" : c.repeats ? c.nmse.toExponential(2) : null]];
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
