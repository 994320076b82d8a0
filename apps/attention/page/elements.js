// Makes elements of the page, SVG among them, and colours.

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

// One pixel per cell; the style sheet enlarges it without smoothing. Where a map has more than
// `most` rows or columns, a pixel shows the largest of some cells.
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
