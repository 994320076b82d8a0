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

const pictures = data.pictures.map((picture) => ({
  ...picture, rgb: bytesOf(picture.rgb), maps: floatsOf(picture.maps), rollout: floatsOf(picture.rollout)
}));

// For a model that reads text: the token whose maps are shown.
let token = 0;

// The mean of `count` maps of heads from `first` on.
function meanOf(picture, first, count) {
  const cells = picture.rows * picture.columns, mean = new Float32Array(cells);
  const tokens = Math.max(picture.tokens.length, 1);
  for (let head = first; head < first + count; ++head)
    for (let i = 0; i < cells; ++i) mean[i] += picture.maps[(head * tokens + token) * cells + i] / count;
  return mean;
}

function chosenMap(picture) {
  if (element('layer').value === 'rollout') return picture.rollout;
  if (element('layer').value === 'all') return meanOf(picture, 0, picture.layers * picture.heads);
  const first = Number(element('layer').value) * picture.heads;
  const head = element('head').value;
  return head === 'mean' ? meanOf(picture, first, picture.heads) : meanOf(picture, first + Number(head), 1);
}

// From dark blue over red to yellow: lightness is monotonic, so that maps can be read without
// colours.
function colourOf(share) {
  const stops = [[20, 24, 82], [150, 24, 90], [240, 100, 30], [255, 236, 90]];
  const at = Math.min(share, 0.9999) * (stops.length - 1), from = stops[Math.floor(at)], to = stops[Math.floor(at) + 1];
  return from.map((value, i) => value + (to[i] - value) * (at % 1));
}

function draw() {
  const picture = pictures[Number(element('picture').value)], map = chosenMap(picture);
  const canvas = element('view');
  // Small images are drawn larger, pixel by pixel, so that patches have edges.
  const zoom = Math.max(1, Math.floor(640 / Math.max(picture.width, picture.height)));
  canvas.width = picture.width * zoom;
  canvas.height = picture.height * zoom;
  const context = canvas.getContext('2d'), image = context.createImageData(canvas.width, canvas.height);
  const largest = map.reduce((a, b) => Math.max(a, b), 0), strength = element('opacity').value / 100;
  for (let y = 0; y < canvas.height; ++y) {
    for (let x = 0; x < canvas.width; ++x) {
      const px = Math.floor(x / zoom), py = Math.floor(y / zoom);
      const row = Math.floor(py * picture.rows / picture.height);
      const column = Math.floor(px * picture.columns / picture.width);
      const share = largest > 0 ? map[row * picture.columns + column] / largest : 0;
      const colour = colourOf(share), from = (py * picture.width + px) * 3, to = (y * canvas.width + x) * 4;
      for (let c = 0; c < 3; ++c)
        image.data[to + c] = picture.rgb[from + c] * (1 - strength) + colour[c] * strength;
      image.data[to + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  const rolled = element('layer').value === 'rollout';
  element('head').disabled = rolled || element('layer').value === 'all';
  [...element('tokens').children].forEach((button, i) => button.setAttribute('aria-pressed', String(i === token)));
  const total = map.reduce((a, b) => a + b, 0);
  element('caption').textContent =
    `${picture.name}, ${picture.width} by ${picture.height} pixels as the model reads it, ` +
    `${picture.columns} by ${picture.rows} patches. ` +
    (rolled ? 'Rollout: what of each patch reached the answer through all layers.'
            : picture.tokens.length > 0 ? `What the decoder attends to as it writes “${picture.tokens[token]}”.`
            : 'What the token that answers attends to in this layer.') +
    ` The warmest patch has ${(100 * largest).toFixed(2)} % of all weight, ` +
    `the patches together ${(100 * total).toFixed(1)} %.`;
  canvas.setAttribute('aria-label', `Attention over ${picture.name}`);
}

function choices(select, entries) {
  select.replaceChildren(...entries.map(([value, text]) => new Option(text, value)));
}

// The tokens of an image's text, a button each; arrows go from one to the next.
function openPicture() {
  const picture = pictures[Number(element('picture').value)];
  token = 0;
  element('tokens').hidden = picture.tokens.length === 0;
  element('tokens').replaceChildren(...picture.tokens.map((text, i) => {
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
choices(element('picture'), pictures.map((picture, i) => [i, picture.name]));
element('picture-pick').hidden = pictures.length < 2;
const shape = pictures[0];
const reads = pictures.some((picture) => picture.tokens.length > 0);
choices(element('layer'), [reads ? ['all', 'Mean of all layers'] : ['rollout', 'Rollout of all layers']].concat(
  Array.from({length: shape.layers}, (_, i) => [i, `Layer ${i + 1}`])));
choices(element('head'), [['mean', 'Mean of all']].concat(
  Array.from({length: shape.heads}, (_, i) => [i, `Head ${i + 1}`])));
for (const id of ['layer', 'head', 'opacity']) element(id).addEventListener('input', draw);
element('picture').addEventListener('input', openPicture);
openPicture();
