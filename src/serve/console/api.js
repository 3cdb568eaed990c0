// The way to the API: a token in every request, and streams that come back by themselves.
//
// The token is kept for this tab only and goes out in a header that no other site can have a browser send: there is no
// cookie, so there is nothing to forge a request with.

const KEPT = 'agents-token';
const SILENCE = 45_000; // A stream that says nothing for so long is dead: the server says something every 15 s.
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;

/** What the API said instead of an answer. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem?.message ?? `The control plane answered ${status}.`);
    this.status = status;
    this.reason = problem?.reason;
    this.next = problem?.nextStep;
    this.causes = problem?.causes ?? [];
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEPT),
  set: (value) => sessionStorage.setItem(KEPT, value),
  forget: () => sessionStorage.removeItem(KEPT),
};

async function ask(path, options = {}) {
  const headers = { accept: 'application/json', ...options.headers, authorization: `Bearer ${token.get() ?? ''}` };
  const answer = await fetch(path, { ...options, headers, credentials: 'omit', cache: 'no-store', redirect: 'error' });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => undefined);
  if (answer.status === 401) document.dispatchEvent(new CustomEvent('signed-out', { detail: problem?.message }));
  throw new Refused(answer.status, problem);
}

export function query(path, pairs) {
  const kept = Object.entries(pairs).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(kept).toString();
  return text ? `${path}?${text}` : path;
}

export async function get(path, signal) {
  return (await ask(path, { signal })).json();
}

export async function post(path, body = {}) {
  const options = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  return (await ask(path, options)).json();
}

/** A text as it comes, piece by piece. */
export async function pieces(path, signal, each) {
  const answer = await ask(path, { signal, headers: { accept: 'text/plain' } });
  await read(answer, each);
}

async function read(answer, each) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    each(value);
  }
}

/**
 * Follows a stream of events until the signal says stop. `on.event(name, data)` gets each; `on.state(word, begun)` is told
 * `connecting`, `live` or `lost`, and whether the stream just began. Comes back after a loss, later each time, and begins
 * anew: it is then told everything, so nothing that happened meanwhile is missed.
 */
export async function follow(path, signal, on) {
  let wait = FIRST_WAIT;
  while (!signal.aborted) {
    on.state('connecting');
    try {
      await stream(path, signal, (event) => {
        wait = FIRST_WAIT;
        on.state('live', event.begun);
        if (event.data !== undefined) on.event(event.name, event.data);
      });
    } catch (error) {
      if (signal.aborted || error instanceof Refused && error.status < 500 && error.status !== 429) {
        on.state('lost');
        if (signal.aborted) return;
        throw error;
      }
    }
    if (signal.aborted) return;
    on.state('lost');
    await pause(wait * (0.5 + Math.random() / 2), signal);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

async function stream(path, signal, each) {
  const ended = new AbortController();
  const stop = () => ended.abort();
  signal.addEventListener('abort', stop);
  let watch;
  const heard = () => {
    clearTimeout(watch);
    watch = setTimeout(stop, SILENCE);
  };
  try {
    heard();
    const answer = await ask(path, { signal: ended.signal, headers: { accept: 'text/event-stream' } });
    each({ begun: true });
    const parse = parser(each);
    await read(answer, (text) => {
      heard();
      parse(text);
    });
  } finally {
    clearTimeout(watch);
    signal.removeEventListener('abort', stop);
    stop();
  }
}

/** Reads event streams as browsers do, from pieces of any size. */
export function parser(each) {
  let rest = '';
  let event = { name: 'message', data: [] };
  const line = (text) => {
    if (text === '') {
      if (event.data.length) each({ name: event.name, data: event.data.join('\n') });
      event = { name: 'message', data: [] };
      return;
    }
    if (text.startsWith(':')) return each({});
    const at = text.indexOf(':');
    const field = at < 0 ? text : text.slice(0, at);
    const value = at < 0 ? '' : text.slice(at + 1).replace(/^ /, '');
    if (field === 'event') event.name = value;
    if (field === 'data') event.data.push(value);
  };
  return (text) => {
    const lines = (rest + text).split(/\r\n|\n|\r(?!$)/);
    rest = lines.pop();
    lines.forEach(line);
  };
}

export function pause(ms, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, ms);
    signal?.addEventListener('abort', () => { clearTimeout(timer); done(); }, { once: true });
  });
}
