// Requests to the server from which the page came.

class ServerError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

async function ask(path, key, options = {}) {
  // A header takes no other characters, and keys have none.
  if (/[^\x21-\x7e]/.test(key)) throw new ServerError('A key has no blanks and no letters beyond ASCII.', 401);
  const headers = {'Content-Type': 'application/json'};
  if (key) headers.Authorization = `Bearer ${key}`;
  const response = await fetch(path, {...options, headers});
  if (response.ok) return response;
  const text = await response.text();
  let message = `${response.status} ${response.statusText}`;
  try {
    message = JSON.parse(text).error.message;
  } catch {}  // the error is not the server's own, but a proxy's, for example
  throw new ServerError(message, response.status);
}

// Calls `take` with the object of each event of a streamed answer.
async function streamed(path, key, body, signal, take) {
  const response = await ask(path, key, {method: 'POST', body: JSON.stringify({...body, stream: true}), signal});
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const {value, done} = await reader.read();
    if (done) return;
    const events = (rest + value).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      const data = event.replace(/^data: /, '');
      if (data === '[DONE]') return;
      const object = JSON.parse(data);
      if (object.error) throw new ServerError(object.error.message);
      take(object);
    }
  }
}
