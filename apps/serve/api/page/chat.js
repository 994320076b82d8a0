// The conversation, and the page around it.

const SAMPLING = ['temperature', 'top_p', 'top_k', 'min_p', 'repetition_penalty', 'max_tokens', 'seed'];
const REMEMBERED = ['system', ...SAMPLING];
let messages = [];  // {role, content}
let models = [];
let running = null;  // an AbortController while an answer grows

function remember() {
  try {
    for (const id of REMEMBERED) localStorage.setItem(`mulciber.${id}`, $(id).value);
  } catch {}  // some browsers store nothing
}

function recall() {
  try {
    for (const id of REMEMBERED) $(id).value = localStorage.getItem(`mulciber.${id}`) ?? '';
  } catch {}
}

const chosenModel = () => models.find(model => model.id === $('model').value);

// A question without an answer is not sent: chat templates allow no two questions in a row.
const answered = () => messages.filter((message, i) => {
  const answer = message.role === 'assistant' ? message : messages[i + 1];
  return !answer || answer.content !== '';
});

function requestBody() {
  const body = {model: $('model').value, stream_options: {include_usage: true}};
  for (const id of SAMPLING)
    if ($(id).value !== '') body[id] = Number($(id).value);
  if (chosenModel().chat) {
    const system = $('system').value.trim();
    body.messages = system ? [{role: 'system', content: system}, ...answered()] : answered();
    if ($('probabilities').checked) Object.assign(body, {logprobs: true, top_logprobs: 5});
  } else {
    // A base model continues the text.
    body.prompt = answered().map(message => message.content).join('');
    body.max_tokens ??= 128;
    if ($('probabilities').checked) body.logprobs = 5;
  }
  return body;
}

async function answer() {
  running = new AbortController();
  $('send').hidden = true;
  $('stop').hidden = false;
  const asked = requestBody();
  const view = new AnswerView(asked), conversation = messages;  // "New chat" replaces `messages`
  $('chat').scrollTop = $('chat').scrollHeight;
  let usage = null, ended = '';
  try {
    await streamed(asked.messages ? 'v1/chat/completions' : 'v1/completions', $('key').value, asked, running.signal, object => {
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
    if (error.status === 401) askForKey();
  } finally {
    conversation.push({role: 'assistant', content: view.text});
    running = null;
    $('send').hidden = false;
    // The focus would vanish with the button; focus on a text field would open a phone's keyboard.
    if (document.activeElement === $('stop')) $('chat').focus({preventScroll: true});
    $('stop').hidden = true;
  }
}

function regenerate() {
  if (running || messages.at(-1)?.role !== 'assistant') return;
  messages.pop();
  $('log').lastElementChild.remove();
  answer();
  $('stop').focus();
}

// Takes a question back, with all messages after it, so that it can be edited.
function edit(question) {
  if (running) return;
  const views = [...$('log').querySelectorAll('.message')], at = views.indexOf(question);
  $('question').value = messages[at].content;
  messages.length = at;
  views.slice(at).forEach(view => view.remove());
  if (!at) greet();
  $('question').focus();
}

function send() {
  const content = $('question').value;
  $('token').hidden = true;
  if (!$('key-problem').hidden) return askForKey();
  if (running || !content.trim() || !chosenModel()) return;
  if (!messages.length) $('log').replaceChildren();
  messages.push({role: 'user', content});
  const view = element('div', {className: 'message user'}, element('div', {className: 'said'}, content));
  view.append(element('div', {className: 'facts'}, action('Edit', () => edit(view))));
  $('log').append(view);
  $('question').value = '';
  answer();
}

// The text that is shown before the first message.
function greet() {
  const model = chosenModel();
  if (!model) return;
  const facts = [model.chat ? 'a model for conversations' : 'a base model: it goes on with your text', `${model.context} tokens of context`,
                 `${model.layers} layers of ${model.heads} heads`];
  $('log').replaceChildren(element('div', {className: 'greeting'}, element('h2', {}, model.id), element('p', {}, facts.join(' \u00b7 ')),
                                   element('p', {}, 'Everything stays on this server.')));
}

function showSettings(open) {
  $('settings').hidden = !open;
  $('open-settings').setAttribute('aria-expanded', String(open));
}

// The server requires a key: shows the field for it, and what to do.
function askForKey() {
  const given = $('key').value;
  $('key-problem').textContent = given ? 'The server does not know this key. Check it, and enter it again.'
                                       : 'This server needs a key. Enter the one that you were given for it.';
  $('key-problem').hidden = $('use-key').hidden = false;
  $('key').setAttribute('aria-invalid', 'true');
  $('key').placeholder = 'needed';
  showSettings(true);
  $('settings').scrollTop = 0;
  $('key').focus();
  if (!messages.length) $('log').replaceChildren();
}

// The server has accepted a request.
function endAskingForKey() {
  if ($('key-problem').hidden) return;
  $('key-problem').hidden = $('use-key').hidden = true;
  $('key').removeAttribute('aria-invalid');
  showSettings(false);
  $('question').focus();
}

async function loadModels() {
  const list = await (await ask('v1/models', $('key').value)).json();
  endAskingForKey();
  models = list.data.filter(model => 'chat' in model);
  $('model').replaceChildren(...models.map(model => element('option', {value: model.id}, model.id)));
  if (!models.length) throw new ServerError('No model is served that continues text.');
  if (!messages.length) greet();
}

function start() {
  recall();
  $('settings').addEventListener('input', remember);
  $('open-settings').addEventListener('click', () => showSettings($('settings').hidden));
  const show = error => {
    if (error.status === 401) askForKey();
    else $('log').replaceChildren(element('p', {className: 'error'}, error.message));
  };
  $('settings').addEventListener('submit', event => {
    event.preventDefault();
    loadModels().catch(show);
  });
  $('key').addEventListener('change', () => $('key-problem').hidden && loadModels().catch(show));
  $('model').addEventListener('change', () => messages.length || greet());
  $('fresh').addEventListener('click', () => {
    running?.abort();
    messages = [];
    greet();
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
  // A tap anywhere closes the tip of a token.
  addEventListener('pointerdown', () => ($('token').hidden = true), true);
  $('chat').addEventListener('scroll', () => ($('token').hidden = true));
  addEventListener('keydown', event => event.key === 'Escape' && ($('token').hidden = true));
  listenToAttention();
  loadModels().catch(show);
}
start();
