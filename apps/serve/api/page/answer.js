// An answer on the page: its growing text, the probabilities of its tokens, its statistics, and its
// buttons.

const $ = id => document.getElementById(id);
const percentage = share => share > 0 && share < 0.0005 ? '< 0.1 %' : `${(100 * share).toFixed(1)} %`;
const visible = text => text.replace(/\n/g, '\u23ce').replace(/ /g, '\u2423');

// Tokens of a chunk as {text, logprob, others: [[text, logprob]]}, for either endpoint.
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

function showToken(at, token) {
  const others = token.others.some(([text]) => text === token.text) ? token.others : [...token.others, [token.text, token.logprob]];
  $('token').replaceChildren(...others.map(([text, logprob]) => {
    const row = element('div', text === token.text ? {className: 'chosen'} : {}, element('span', {}, visible(text)),
                        element('span', {}, percentage(Math.exp(logprob))));
    row.style.setProperty('--share', `${(100 * Math.exp(logprob)).toFixed(1)}%`);
    return row;
  }));
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
  span.tabIndex = -1;
  for (const event of ['pointerenter', 'click', 'focus']) span.addEventListener(event, () => showToken(span, token));
  for (const event of ['pointerleave', 'blur']) span.addEventListener(event, () => ($('token').hidden = true));
  return span;
}

// In a group of tokens one can be reached with Tab, and arrows go on from there.
function moveWithArrows(group) {
  group.addEventListener('keydown', event => {
    const at = event.target, next = {ArrowLeft: at.previousElementSibling, ArrowRight: at.nextElementSibling}[event.key];
    if (at.parentElement !== group || !next) return;
    event.preventDefault();
    at.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

function action(name, what, className = '') {
  const button = element('button', {type: 'button', className}, name);
  button.addEventListener('click', () => what(button));
  return button;
}

class AnswerView {
  // asked: the body of the answer's request.
  constructor(asked) {
    this.asked = asked;
    this.body = element('div', {className: 'text'});
    this.facts = element('div', {className: 'facts'});
    this.whole = element('div', {className: 'message assistant'}, this.body, this.facts);
    this.whole.setAttribute('aria-busy', 'true');  // read out once it is complete
    moveWithArrows(this.body);
    this.text = '';
    this.tokens = [];
    this.pieces = 0;
    this.begun = performance.now();
    $('log').append(this.whole);
    this.body.append(element('span', {className: 'waiting'}, '\u2026'));
  }

  add(text, tokens) {
    const low = $('chat').scrollHeight - $('chat').scrollTop - $('chat').clientHeight < 60;
    if (!this.first) this.body.replaceChildren();
    this.text += text;
    this.first ??= performance.now();
    this.last = performance.now();
    ++this.pieces;
    if (tokens.length) {
      this.tokens.push(...tokens);
      this.body.className = 'tokens';
      this.body.append(...tokens.map(tokenSpan));
      this.body.firstChild.tabIndex = 0;
    } else if (this.body.className === 'text' && !this.drawing) {
      // Draws once a frame: parts of an answer may come faster.
      this.drawing = requestAnimationFrame(() => this.draw());
    }
    if (low) $('chat').scrollTop = $('chat').scrollHeight;
  }

  draw() {
    this.drawing = null;
    this.body.className = 'text';
    this.body.replaceChildren(...markdown(this.text));
  }

  // Shows the answer as text, or as tokens.
  turn(button) {
    if (this.body.className === 'tokens') {
      this.draw();
    } else {
      this.body.className = 'tokens';
      this.body.replaceChildren(...this.tokens.map(tokenSpan));
      this.body.firstChild.tabIndex = 0;
    }
    button.textContent = this.body.className === 'tokens' ? 'Text' : 'Probabilities';
  }

  end(usage, words) {
    if (this.drawing) cancelAnimationFrame(this.drawing);
    if (this.body.className === 'text') this.draw();
    this.whole.removeAttribute('aria-busy');
    const seconds = (this.last - this.first) / 1000;
    const tokens = usage?.completion_tokens ?? this.pieces;
    const facts = [`${tokens} tokens`];
    if (seconds > 0 && tokens > 1) facts.push(`${((tokens - 1) / seconds).toFixed(1)} tokens per second`);
    if (this.first) facts.push(`the first after ${((this.first - this.begun) / 1000).toFixed(2)} s`);
    if (usage) facts.push(`${usage.prompt_tokens} of the prompt`);
    if (this.tokens.length) {
      const mean = this.tokens.reduce((sum, token) => sum + token.logprob, 0) / this.tokens.length;
      facts.push(`perplexity ${Math.exp(-mean).toFixed(2)}`);
    }
    if (words) facts.push(words);
    document.querySelectorAll('.again').forEach(button => button.remove());
    const actions = [action('Copy', button => copyText(this.text, button))];
    if (this.tokens.length) actions.push(action('Text', button => this.turn(button)));
    if (this.text) actions.push(action('Attention', () => showAttention(this.asked, this.text)));
    actions.push(action('Regenerate', regenerate, 'again'));
    this.facts.replaceChildren(...facts.map(fact => element('span', {}, fact)), element('span', {className: 'actions'}, ...actions));
    if ($('chat').scrollHeight - $('chat').scrollTop - $('chat').clientHeight < 120) $('chat').scrollTop = $('chat').scrollHeight;
  }

  fail(error) {
    if (!this.first) this.body.replaceChildren();
    this.facts.before(element('p', {className: 'error'}, error.message));
    this.end(null, '');
  }
}
