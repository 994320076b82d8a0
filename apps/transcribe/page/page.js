'use strict';

// A window of sound: its spectrogram with the attention of one token below it, and all tokens as a matrix over time.

const data = JSON.parse(document.getElementById('data').textContent);
const element = (id) => document.getElementById(id);
const bytesOf = (base64) => Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));

// Weights are bytes; 255 stands for a token's greatest weight, whose probability is in `largest`.
const windows = data.windows.map((window) => ({
  ...window, weights: bytesOf(window.weights), sound: bytesOf(window.sound)
}));
let token = 0;

const chosenWindow = () => windows[Number(element('window').value)];

// From dark blue over red to yellow: lightness is monotonic, so that maps can be read without
// colours.
function colourOf(share) {
  const stops = [[20, 24, 82], [150, 24, 90], [240, 100, 30], [255, 236, 90]];
  const at = Math.min(share, 0.9999) * (stops.length - 1), from = stops[Math.floor(at)], to = stops[Math.floor(at) + 1];
  return from.map((value, i) => value + (to[i] - value) * (at % 1));
}

// The row `row` of the chosen map.
function rowOf(window, row) {
  const first = (Number(element('map').value) * window.tokens.length + row) * window.positions;
  return window.weights.subarray(first, first + window.positions);
}

const largestOf = (window, row) => window.largest[Number(element('map').value) * window.tokens.length + row];

function paint(canvas, width, height, colourAt) {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d'), image = context.createImageData(width, height);
  for (let y = 0; y < height; ++y)
    for (let x = 0; x < width; ++x) image.data.set([...colourAt(x, y), 255], (y * width + x) * 4);
  context.putImageData(image, 0, 0);
  return context;
}

const kWidth = 1000, kBand = 36;

function drawSound(window) {
  const tall = window.mels * Math.max(1, Math.floor(200 / window.mels)), row = rowOf(window, token);
  const context = paint(element('sound'), kWidth, tall + kBand, (x, y) => {
    if (y >= tall) return colourOf(row[Math.floor(x * window.positions / kWidth)] / 255);
    const frame = Math.floor(x * window.frames / kWidth);
    const mel = Math.floor((tall - 1 - y) * window.mels / tall);  // low tones below
    const grey = window.sound[frame * window.mels + mel];
    return [grey, grey, grey];
  });
  // The attention of the token is drawn over the spectrogram as well.
  const best = row.indexOf(255), x = (best + 0.5) * kWidth / window.positions;
  context.fillStyle = '#f06428';
  context.fillRect(x - 1, 0, 2, tall);
}

function drawMatrix(window) {
  const rows = window.tokens.length, tall = Math.max(2, Math.min(14, Math.floor(400 / rows)));
  const context = paint(element('matrix'), kWidth, rows * tall, (x, y) => {
    return colourOf(rowOf(window, Math.floor(y / tall))[Math.floor(x * window.positions / kWidth)] / 255);
  });
  context.strokeStyle = '#fff';
  context.strokeRect(0.5, token * tall + 0.5, kWidth - 1, tall - 1);
}

function draw() {
  const window = chosenWindow();
  [...element('tokens').children].forEach((button, i) => button.setAttribute('aria-pressed', String(i === token)));
  drawSound(window);
  drawMatrix(window);
  const best = rowOf(window, token).indexOf(255), second = (at) => (window.start + at * window.positionSeconds).toFixed(2);
  const name = window.tokens[token].trim() || window.tokens[token];
  element('caption').textContent =
    `“${name}” attends most to ${second(best)} s, with ${(100 * largestOf(window, token)).toFixed(1)} % of its weight ` +
    `on that ${(1000 * window.positionSeconds).toFixed(0)} ms. Above: the log-mel spectrogram from ${second(0)} to ` +
    `${second(window.positions)} s, low tones below, and under it this token's attention. Below: all tokens, a row each.`;
  element('sound').setAttribute('aria-label', `Spectrogram, and the attention of ${name} over time`);
  element('matrix').setAttribute('aria-label', 'Attention of all tokens over time');
}

function choose(next) {
  token = Math.max(0, Math.min(next, chosenWindow().tokens.length - 1));
  draw();
}

function openWindow() {
  const window = chosenWindow(), map = element('map').value;
  element('map').replaceChildren(...window.maps.map((name, i) => new Option(name, i)));
  if (map) element('map').value = map;
  element('tokens').replaceChildren(...window.tokens.map((text, i) => {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = text;
    if (/^<\|.*\|>$/.test(text)) button.className = 'time';
    button.addEventListener('click', () => choose(i));
    button.addEventListener('mouseenter', () => choose(i));
    return button;
  }));
  const first = window.tokens.findIndex((text) => !/^<\|.*\|>$/.test(text));
  choose(Math.max(first, 0));
}

element('origin').textContent = data.model + ', ' + data.sound;
element('window').replaceChildren(...windows.map(
  (window, i) => new Option(`${window.start.toFixed(2)} to ${(window.start + window.seconds).toFixed(2)} s`, i)));
element('window-pick').hidden = windows.length < 2;
element('window').addEventListener('input', openWindow);
element('map').addEventListener('input', draw);
element('tokens').addEventListener('keydown', (event) => {
  const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
  if (!step) return;
  choose(token + step);
  element('tokens').children[token].focus();
  event.preventDefault();
});
// A click selects the token whose attention is greatest there: in the matrix the token of the row,
// above it any token.
element('matrix').addEventListener('click', (event) => {
  choose(Math.floor(event.offsetY / element('matrix').clientHeight * chosenWindow().tokens.length));
});
element('sound').addEventListener('click', (event) => {
  const window = chosenWindow();
  const position = Math.floor(event.offsetX / element('sound').clientWidth * window.positions);
  const share = (row) => rowOf(window, row)[position] * largestOf(window, row);
  const rows = window.tokens.map((text, i) => i).filter((i) => !/^<\|.*\|>$/.test(window.tokens[i]));
  if (rows.length > 0) choose(rows.reduce((best, row) => (share(row) > share(best) ? row : best), rows[0]));
});
openWindow();
