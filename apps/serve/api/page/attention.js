// Attention maps of a finished answer: the server computes them, the dialog shows them.

const SHADES = 255;
const quoted = token => `\u201c${visible(token.replace(/^\u2581/, ' '))}\u201d`;

// One array per map, layer after layer.
function unpacked(kind) {
  const n = kind.keys, maps = [];
  if (fixedOf(kind).length !== kind.layers * kind.heads * sizeOfMap(kind)) throw new ServerError('The server sent maps of another size.');
  for (let map = 0; map < kind.layers * kind.heads; ++map) {
    const weights = new Float32Array(n * n);
    visitMap(kind, 0, map, (row, key, weight) => { weights[row * n + key] = weight; });
    maps.push(weights);
  }
  return maps;
}

class AttentionView {
  // asked: the fields of the answer's request, {model, messages} or {model, prompt}.
  constructor(asked, answer) {
    this.asked = asked.messages ? {model: asked.model, messages: [...asked.messages, {role: 'assistant', content: answer}]} :
                                  {model: asked.model, prompt: asked.prompt, completion: answer};
    this.heads = new Map();  // by layer, once requested
    this.loading = new AbortController();
  }

  async get(more) {
    $('attention-state').textContent = 'Reading the text once more \u2026';
    try {
      const response = await ask('attention', $('key').value,
                                 {method: 'POST', body: JSON.stringify({...this.asked, ...more}), signal: this.loading.signal});
      return await (more.format === 'html' ? response.blob() : response.json());
    } finally {
      $('attention-state').textContent = '';
    }
  }

  async open() {
    $('views').hidden = true;
    $('reading').textContent = '';
    $('layer').replaceChildren();
    $('head').replaceChildren();
    $('attention').showModal();
    const [text] = (await this.get({format: 'packed'})).sentences;
    this.tokens = text.target.tokens;
    this.prompt = text.prompt_tokens;
    const [decoder, rollout] = text.attention;
    this.means = unpacked(decoder);
    this.rollout = unpacked(rollout).at(-1);
    this.layers = decoder.layers;
    // The mean over the layers is shown as well: a rollout through many layers is little but the
    // first token's weight.
    this.all = this.means[0].map((_, i) => this.means.reduce((sum, map) => sum + map[i], 0) / this.layers);
    $('layer').append(element('option', {value: 'mean'}, 'mean'), element('option', {value: 'rollout'}, 'rollout'),
                      ...this.means.map((_, i) => element('option', {value: i}, i + 1)));
    const {heads} = models.find(model => model.id === this.asked.model);
    $('head').append(element('option', {value: 'mean'}, 'mean'),
                     ...Array.from({length: heads}, (_, i) => element('option', {value: i}, i + 1)));
    this.spans = this.tokens.map((token, i) => {
      const span = element('span', {tabIndex: -1, className: i < this.prompt ? 'prompt' : ''}, token.replace(/^\u2581/, ' '));
      span.addEventListener('click', () => this.choose(i));
      span.addEventListener('focus', () => this.choose(i));
      return span;
    });
    $('map-tokens').replaceChildren(...this.spans);
    $('views').hidden = false;
    this.chosen = Math.min(this.prompt, this.tokens.length - 1);
    await this.change();
    this.spans[this.chosen].scrollIntoView({block: 'nearest'});
  }

  // Shows another layer, head or direction.
  async change() {
    const layer = $('layer').value, whole = {mean: this.all, rollout: this.rollout}[layer];
    $('head').disabled = Boolean(whole);
    if (whole) $('head').value = 'mean';
    const map = whole ?? this.means[Number(layer)];
    if ($('head').value !== 'mean' && !this.heads.has(layer)) {
      const [text] = (await this.get({format: 'packed', heads: 'each', layer: Number(layer)})).sentences;
      this.heads.set(layer, unpacked(text.attention[0]));
    }
    this.map = $('head').value === 'mean' ? map : this.heads.get(layer)[Number($('head').value)];
    this.draw();
    this.choose(this.chosen);
  }

  // Language models attend to the first token where they need nothing: the colours end at the
  // largest of the other weights.
  largest() {
    const n = this.tokens.length;
    let most = 0;
    for (let row = 2; row < n; ++row)
      for (let key = 1; key <= row; ++key) most = Math.max(most, this.map[row * n + key]);
    return most || 1;
  }

  draw() {
    const n = this.tokens.length, canvas = $('map').querySelector('canvas');
    canvas.width = canvas.height = n;
    const image = canvas.getContext('2d').createImageData(n, n);
    const end = this.largest();
    const [red, green, blue] = getComputedStyle($('map')).color.match(/\d+/g).map(Number);
    for (let i = 0; i < n * n; ++i)
      image.data.set([red, green, blue, SHADES * Math.min(1, this.map[i] / end) ** 0.7], 4 * i);
    canvas.getContext('2d').putImageData(image, 0, 0);
    const share = `${100 * this.prompt / n}%`;
    $('map').querySelector('.end-row').style.top = share;
    $('map').querySelector('.end-column').style.left = share;
    $('map').nextElementSibling.textContent =
        `A row for each token: what it reads to find the one behind it. The lines show where the prompt ends. The strongest color is ${percentage(end)}.`;
  }

  weight(other) {
    const n = this.tokens.length;
    return $('direction').value === 'reads' ? this.map[this.chosen * n + other] : this.map[other * n + this.chosen];
  }

  choose(index) {
    this.chosen = index;
    const n = this.tokens.length, reads = $('direction').value === 'reads';
    const weights = this.tokens.map((_, i) => this.weight(i));
    // The first token, and the chosen one itself, would outshine all others.
    const end = Math.max(0, ...weights.filter((_, i) => i > 0 && i !== index)) || 1;
    this.spans.forEach((span, i) => {
      const share = Math.min(1, weights[i] / end);
      span.style.setProperty('--weight', `${(60 * share).toFixed(1)}%`);
      span.classList.toggle('much', share > 0.4);
      span.title = percentage(weights[i]);
      span.classList.toggle('chosen', i === index);
      span.tabIndex = i === index ? 0 : -1;
    });
    const row = $('map').querySelector('.row'), column = $('map').querySelector('.column');
    Object.assign(row.style, {top: `${100 * index / n}%`, height: `${100 / n}%`});
    Object.assign(column.style, {left: `${100 * index / n}%`, width: `${100 / n}%`});
    row.hidden = !reads;
    column.hidden = reads;
    const most = weights.map((weight, i) => [weight, i]).sort((a, b) => b[0] - a[0]).slice(0, 5).filter(([weight]) => weight >= 0.001);
    $('reading').replaceChildren(element('b', {}, quoted(this.tokens[index])), reads ? ' reads ' : ' is read by ',
                                 ...(most.length ? most.flatMap(([weight, i], at) => [at ? ', ' : '', quoted(this.tokens[i]), ` ${percentage(weight)}`]) :
                                                   ['nothing']));
  }

  async save() {
    const page = await this.get({format: 'html', heads: 'each'});
    const link = element('a', {href: URL.createObjectURL(page), download: 'attention.html'});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  // Runs a call to the server, and shows its error.
  async attempt(what) {
    try {
      await what;
    } catch (error) {
      if (error.name !== 'AbortError') $('attention-state').replaceChildren(element('span', {className: 'error'}, error.message));
    }
  }
}

let shownAttention = null;

function showAttention(asked, answer) {
  shownAttention = new AttentionView(asked, answer);
  return shownAttention.attempt(shownAttention.open());
}

function listenToAttention() {
  for (const id of ['layer', 'head', 'direction'])
    $(id).addEventListener('change', () => shownAttention.attempt(shownAttention.change()));
  $('save-maps').addEventListener('click', () => shownAttention.attempt(shownAttention.save()));
  $('close-attention').addEventListener('click', () => $('attention').close());
  // A request that is no longer needed is cancelled.
  $('attention').addEventListener('close', () => shownAttention.loading.abort());
  $('map').addEventListener('click', event => {
    const place = $('map').getBoundingClientRect(), n = shownAttention.tokens.length;
    const share = $('direction').value === 'reads' ? (event.clientY - place.top) / place.height : (event.clientX - place.left) / place.width;
    shownAttention.choose(Math.max(0, Math.min(n - 1, Math.floor(share * n))));
    shownAttention.spans[shownAttention.chosen].scrollIntoView({block: 'nearest'});
  });
  moveWithArrows($('map-tokens'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => shownAttention?.map && shownAttention.draw());
}
