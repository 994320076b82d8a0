// The comparison with a second run, from the page itself or from a file that is dropped on it.

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
    "spirv_hash", "seed", "repeats", "shake"].filter(key => String(other.fingerprint[key] ?? "") !== String(f[key] ?? ""));
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
