// The conversation, and the page around it.

const $ = id => document.getElementById(id);
const REMEMBERED = ['system', 'temperature', 'top_p', 'max_tokens', 'seed'];
let messages = [];  // {role, content}
let models = [];
let running = null;  // an AbortController while an answer grows

function remember() {
  try {
    for (const id of REMEMBERED) localStorage.setItem(`mulciber.${id}`, $(id).value);
  } catch {}  // where a browser keeps nothing
}

function recall() {
  try {
    for (const id of REMEMBERED) $(id).value = localStorage.getItem(`mulciber.${id}`) ?? '';
  } catch {}
}

const chosenModel = () => models.find(model => model.id === $('model').value);

function requestBody() {
  const body = {model: $('model').value, stream_options: {include_usage: true}};
  for (const id of ['temperature', 'top_p', 'max_tokens', 'seed'])
    if ($(id).value !== '') body[id] = Number($(id).value);
  if (chosenModel().chat) {
    const system = $('system').value.trim();
    body.messages = system ? [{role: 'system', content: system}, ...messages] : messages;
    if ($('probabilities').checked) Object.assign(body, {logprobs: true, top_logprobs: 5});
  } else {
    // A base model goes on with the text.
    body.prompt = messages.map(message => message.content).join('');
    body.max_tokens ??= 128;
    if ($('probabilities').checked) body.logprobs = 5;
  }
  return body;
}

// Tokens of a chunk as {text, logprob, others: [[text, logprob]]}, whichever endpoint it is of.
function tokensOf(choice) {
  const given = choice.logprobs;
  if (!given) return [];
  if (given.content)
    return given.content.map(token => ({
      text: token.token, logprob: token.logprob, others: token.top_logprobs.map(other => [other.token, other.logprob])
    }));
  return given.tokens.map((text, i) => ({
    text, logprob: given.token_logprobs[i], others: Object.entries(given.top_logprobs[i]).sort((a, b) => b[1] - a[1])
  }));
}

const percent = logprob => `${(100 * Math.exp(logprob)).toFixed(1)} %`;
const visible = text => text.replace(/\n/g, '\u23ce').replace(/ /g, '\u2423');

function showToken(at, token) {
  const others = token.others.some(([text]) => text === token.text) ? token.others : [[token.text, token.logprob], ...token.others];
  $('token').replaceChildren(...others.map(([text, logprob]) => element(
      'div', text === token.text ? {className: 'chosen'} : {}, element('span', {}, visible(text)), element('span', {}, percent(logprob)))));
  $('token').hidden = false;
  const place = at.getBoundingClientRect(), size = $('token').getBoundingClientRect();
  $('token').style.left = `${Math.max(4, Math.min(place.left, innerWidth - size.width - 4))}px`;
  const above = place.top - size.height - 4;
  $('token').style.top = `${above > 4 ? above : place.bottom + 4}px`;
}

// The less probable a token was, the redder.
function tokenSpan(token) {
  const span = element('span', {}, token.text);
  span.style.backgroundColor = `rgb(240 100 40 / ${(0.7 * (1 - Math.exp(token.logprob))).toFixed(3)})`;
  for (const event of ['pointerenter', 'click']) span.addEventListener(event, () => showToken(span, token));
  span.addEventListener('pointerleave', () => ($('token').hidden = true));
  return span;
}

// An answer's element: text that grows, then facts about it.
class AnswerView {
  constructor() {
    this.body = element('div', {className: 'text'});
    this.facts = element('div', {className: 'facts'});
    this.whole = element('div', {className: 'message assistant'}, this.body, this.facts);
    this.text = '';
    this.tokens = [];
    this.pieces = 0;
    $('chat').append(this.whole);
  }
  add(text, tokens) {
    const low = $('chat').scrollHeight - $('chat').scrollTop - $('chat').clientHeight < 60;
    this.text += text;
    this.first ??= performance.now();
    this.last = performance.now();
    ++this.pieces;
    if (tokens.length) {
      this.body.className = 'tokens';
      this.body.append(...tokens.map(tokenSpan));
    } else if (this.body.className === 'text' && !this.drawing) {
      // Once a frame: answers may come faster.
      this.drawing = requestAnimationFrame(() => this.draw());
    }
    if (low) $('chat').scrollTop = $('chat').scrollHeight;
  }
  draw() {
    this.drawing = null;
    this.body.replaceChildren(...markdown(this.text));
  }
  end(usage, words) {
    if (this.drawing) cancelAnimationFrame(this.drawing);
    if (this.body.className === 'text') this.draw();
    const seconds = (this.last - this.first) / 1000;
    const tokens = usage?.completion_tokens ?? this.pieces;
    const facts = [`${tokens} tokens`];
    if (seconds > 0 && tokens > 1) facts.push(`${((tokens - 1) / seconds).toFixed(1)} tokens per second`);
    if (words) facts.push(words);
    const again = element('button', {type: 'button', className: 'again'}, 'Regenerate');
    again.addEventListener('click', regenerate);
    document.querySelectorAll('.again').forEach(button => button.remove());
    this.facts.replaceChildren(...facts.map(fact => element('span', {}, fact)), again);
  }
  fail(error) {
    this.facts.before(element('p', {className: 'error'}, error.message));
    this.end(null, '');
  }
}

async function answer() {
  running = new AbortController();
  $('send').hidden = true;
  $('stop').hidden = false;
  const view = new AnswerView(), conversation = messages;  // which "New chat" replaces
  let usage = null, ended = '';
  try {
    const path = chosenModel().chat ? 'v1/chat/completions' : 'v1/completions';
    await streamed(path, $('key').value, requestBody(), running.signal, object => {
      usage = object.usage ?? usage;
      for (const choice of object.choices) {
        const text = choice.delta ? choice.delta.content ?? '' : choice.text;
        if (text || choice.logprobs) view.add(text, tokensOf(choice));
        if (choice.finish_reason === 'length') ended = 'cut at the limit of tokens';
      }
    });
    view.end(usage, ended);
  } catch (error) {
    if (error.name === 'AbortError') view.end(usage, 'stopped');
    else view.fail(error);
  }
  conversation.push({role: 'assistant', content: view.text});
  running = null;
  $('send').hidden = false;
  $('stop').hidden = true;
}

function regenerate() {
  if (running || messages.at(-1)?.role !== 'assistant') return;
  messages.pop();
  $('chat').lastElementChild.remove();
  answer();
}

function send() {
  const content = $('question').value;
  if (running || !content.trim() || !chosenModel()) return;
  messages.push({role: 'user', content});
  $('chat').append(element('div', {className: 'message user'}, content));
  $('chat').scrollTop = $('chat').scrollHeight;
  $('question').value = '';
  answer();
}

async function loadModels() {
  const list = await (await ask('v1/models', $('key').value)).json();
  models = list.data.filter(model => 'chat' in model);
  $('model').replaceChildren(...models.map(model => element('option', {value: model.id}, model.id)));
  if (!models.length) throw new ServerError('No model is served that continues text.');
}

function start() {
  recall();
  $('settings').addEventListener('input', remember);
  $('settings').addEventListener('submit', event => event.preventDefault());
  $('open-settings').addEventListener('click', () => {
    $('settings').hidden = !$('settings').hidden;
    $('open-settings').setAttribute('aria-expanded', String(!$('settings').hidden));
  });
  const show = error => $('chat').replaceChildren(element('p', {className: 'error'}, error.message));
  $('key').addEventListener('change', () => loadModels().then(() => $('chat').replaceChildren(), show));
  $('fresh').addEventListener('click', () => {
    running?.abort();
    messages = [];
    $('chat').replaceChildren();
    $('question').focus();
  });
  $('stop').addEventListener('click', () => running?.abort());
  $('ask').addEventListener('submit', event => {
    event.preventDefault();
    send();
  });
  $('question').addEventListener('keydown', event => {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    send();
  });
  loadModels().catch(show);
}
start();
