'use strict';

// Maps are laid over the image patch by patch: the warmer and less transparent, the more weight.

const data = JSON.parse(document.getElementById('data').textContent);
const element = (id) => document.getElementById(id);

function bytesOf(base64) {
  return Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
}
function floatsOf(base64) {
  return new Float32Array(bytesOf(base64).buffer);
}

const images = data.images.map((image) => ({
  ...image, rgb: bytesOf(image.rgb), maps: floatsOf(image.maps), rollout: floatsOf(image.rollout)
}));

// For a model that reads text: the token whose maps are shown.
let token = 0;

// The mean of `count` maps of heads from `first` on.
function meanOf(image, first, count) {
  const cells = image.rows * image.columns, mean = new Float32Array(cells);
  const tokens = Math.max(image.tokens.length, 1);
  for (let head = first; head < first + count; ++head)
    for (let i = 0; i < cells; ++i) mean[i] += image.maps[(head * tokens + token) * cells + i] / count;
  return mean;
}

function chosenMap(image) {
  if (element('layer').value === 'rollout') return image.rollout;
  if (element('layer').value === 'all') return meanOf(image, 0, image.layers * image.heads);
  const first = Number(element('layer').value) * image.heads;
  const head = element('head').value;
  return head === 'mean' ? meanOf(image, first, image.heads) : meanOf(image, first + Number(head), 1);
}

// From dark blue over red to yellow: lightness is monotonic, so that maps can be read without
// colours.
function colourOf(share) {
  const stops = [[20, 24, 82], [150, 24, 90], [240, 100, 30], [255, 236, 90]];
  const at = Math.min(share, 0.9999) * (stops.length - 1), from = stops[Math.floor(at)], to = stops[Math.floor(at) + 1];
  return from.map((value, i) => value + (to[i] - value) * (at % 1));
}

function draw() {
  const image = images[Number(element('image').value)], map = chosenMap(image);
  const canvas = element('view');
  // Small images are drawn larger, pixel by pixel, so that patches have edges.
  const zoom = Math.max(1, Math.floor(640 / Math.max(image.width, image.height)));
  canvas.width = image.width * zoom;
  canvas.height = image.height * zoom;
  const context = canvas.getContext('2d'), pixels = context.createImageData(canvas.width, canvas.height);
  const largest = map.reduce((a, b) => Math.max(a, b), 0), strength = element('opacity').value / 100;
  for (let y = 0; y < canvas.height; ++y) {
    for (let x = 0; x < canvas.width; ++x) {
      const px = Math.floor(x / zoom), py = Math.floor(y / zoom);
      const row = Math.floor(py * image.rows / image.height);
      const column = Math.floor(px * image.columns / image.width);
      const share = largest > 0 ? map[row * image.columns + column] / largest : 0;
      const colour = colourOf(share), from = (py * image.width + px) * 3, to = (y * canvas.width + x) * 4;
      for (let c = 0; c < 3; ++c)
        pixels.data[to + c] = image.rgb[from + c] * (1 - strength) + colour[c] * strength;
      pixels.data[to + 3] = 255;
    }
  }
  context.putImageData(pixels, 0, 0);
  const rolled = element('layer').value === 'rollout';
  element('head').disabled = rolled || element('layer').value === 'all';
  [...element('tokens').children].forEach((button, i) => button.setAttribute('aria-pressed', String(i === token)));
  const total = map.reduce((a, b) => a + b, 0);
  element('caption').textContent =
    `${image.name}, ${image.width} by ${image.height} pixels as the model reads it, ` +
    `${image.columns} by ${image.rows} patches. ` +
    (rolled ? 'Rollout: what of each patch reached the answer through all layers.'
            : image.tokens.length > 0 ? `What the decoder attends to as it writes “${image.tokens[token]}”.`
            : 'What the token that answers attends to in this layer.') +
    ` The warmest patch has ${(100 * largest).toFixed(2)} % of all weight, ` +
    `the patches together ${(100 * total).toFixed(1)} %.`;
  canvas.setAttribute('aria-label', `Attention over ${image.name}`);
}

function choices(select, entries) {
  select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
}

// The tokens of an image's text, a button each; arrows go from one to the next.
function openImage() {
  const image = images[Number(element('image').value)];
  token = 0;
  element('tokens').hidden = image.tokens.length === 0;
  element('tokens').replaceChildren(...image.tokens.map((text, i) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = text;
    const choose = () => {
      token = i;
      draw();
    };
    for (const event of ['click', 'focus', 'mouseenter']) button.addEventListener(event, choose);
    return button;
  }));
  draw();
}
element('tokens').addEventListener('keydown', (event) => {
  const next = element('tokens').children[token + ({ArrowRight: 1, ArrowLeft: -1}[event.key] || 0)];
  if (next) next.focus();
});

element('origin').textContent = data.model;
choices(element('image'), images.map((image, i) => [i, image.name]));
element('image-pick').hidden = images.length < 2;
const shape = images[0];
const reads = images.some((image) => image.tokens.length > 0);
choices(element('layer'), [reads ? ['all', 'Mean of all layers'] : ['rollout', 'Rollout of all layers']].concat(
  Array.from({length: shape.layers}, (_, i) => [i, `Layer ${i + 1}`])));
choices(element('head'), [['mean', 'Mean of all']].concat(
  Array.from({length: shape.heads}, (_, i) => [i, `Head ${i + 1}`])));
for (const id of ['layer', 'head', 'opacity']) element(id).addEventListener('input', draw);
element('image').addEventListener('input', openImage);
openImage();
