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
