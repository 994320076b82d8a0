// The overview: a small map for every layer and head.

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
      // There may be hundreds of maps of hundreds of tokens: each is painted when it comes into
      // view.
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
