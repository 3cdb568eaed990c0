// Where it begins: signing in, pages by the part of the address after #, keys, and how fresh everything is.

import { Refused, get, pause, token } from './api.js';
import { age, el, show, span, to } from './dom.js';
import { jobsPage } from './jobs.js';
import { queuePage } from './queue.js';
import { refusalsPage } from './refusals.js';
import { problem, runPage } from './run.js';
import { runsPage } from './runs.js';
import { store } from './store.js';

const PAGES = [['runs', 'Runs'], ['queue', 'Queue'], ['refusals', 'Refusals'], ['jobs', 'Jobs']];
const STALE = 20_000; // the stream says something every 15 s
const AGAIN = 2_000;
const byId = (id) => document.getElementById(id);
const content = byId('content');

let page;
let source;
let link = { word: 'connecting', since: Date.now() };
let namespace = '';
let usual = '*';

function signIn(message) {
  leave();
  byId('top').hidden = true;
  const field = el('textarea', { id: 'token', rows: 4, required: true, autocomplete: 'off', spellcheck: false, 'aria-describedby': 'how' });
  const said = el('p', { class: 'problem', role: 'alert', hidden: !message }, message ?? '');
  const enter = async (event) => {
    event.preventDefault();
    const given = field.value.trim().replace(/^Bearer /, '');
    try {
      if (!/^[\x21-\x7e]+$/.test(given)) throw new Error('That is no token: it has letters that no token has.');
      token.set(given);
      await start();
    } catch (error) {
      token.forget();
      said.hidden = false;
      show(said, problem(error));
    }
  };
  show(content, el('form', { class: 'sign-in', onsubmit: enter }, el('h1', {}, 'agents'), said,
    el('label', { htmlFor: 'token' }, 'Token'), field,
    el('p', { id: 'how', class: 'note' }, 'A token of your cluster, for example from ', el('code', {}, 'kubectl create token NAME'), '. It is kept for this tab only. What you see is what its owner may see.'),
    el('button', { type: 'submit', class: 'main' }, 'Sign in')));
  field.focus();
}

async function start() {
  const who = await get('/v1/whoami');
  byId('top').hidden = false;
  byId('leave').title = `Signed in as ${who.user}`;
  byId('namespaces').replaceChildren(...who.namespaces.map((name) => el('option', { value: name })));
  const wanted = new URLSearchParams(location.search).get('namespace');
  usual = who.defaultNamespace;
  choose(wanted ?? usual);
}

/** Goes on with the token of this tab; a control plane that is away is waited for. */
async function goOn() {
  show(content, el('p', { class: 'note', role: 'status' }, 'Connecting …'));
  for (;;) {
    try {
      return await start();
    } catch (error) {
      if (error instanceof Refused && error.status < 500 && error.status !== 429) return error.status === 401 ? undefined : signIn(error.message);
      show(content, el('div', { class: 'sign-in' }, problem(error), el('p', { class: 'note' }, 'Trying again …')));
    }
    await pause(AGAIN);
    if (!token.get()) return undefined;
  }
}

/** Reads the runs of another namespace. */
function choose(next) {
  namespace = next;
  byId('namespace').value = next;
  source?.stop();
  link = { word: 'connecting', since: Date.now() };
  source = store(next, (state) => {
    link = { word: state.link, since: state.heard, error: state.error, trouble: state.trouble };
    page?.runs?.(state);
    fresh();
  });
  route();
}

function leave() {
  page?.leave?.();
  page = undefined;
  source?.stop();
  source = undefined;
}

function route() {
  if (!source) return;
  page?.leave?.();
  const [, name = 'runs', of = '', run = ''] = location.hash.split('/').map(decoded);
  const open = (chosen) => { location.hash = to(chosen); };
  const pages = {
    queue: queuePage,
    refusals: () => refusalsPage({ namespace: namespace === '*' ? usual : namespace }),
    jobs: jobsPage,
    run: () => runPage({ namespace: of, name: run, back: '#/runs' }),
  };
  page = (Object.hasOwn(pages, name) ? pages[name] : () => runsPage({ open }))();
  document.title = `${page.title} · agents`;
  byId('nav').replaceChildren(...PAGES.map(([id, title]) => el('a', { href: `#/${id}`, 'aria-current': id === name || id === 'runs' && name === 'run' ? 'page' : undefined }, title)));
  show(content, page.root);
  page.runs?.(source.state);
  page.focus?.();
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Says honestly how old what is shown may be: a state and a sentence. */
function freshness() {
  const silent = link.since && Date.now() - link.since;
  if (link.error) return ['lost', `not live: ${link.error.message}`];
  if (link.word === 'connecting') return ['connecting', 'connecting …'];
  if (link.word === 'lost') return ['lost', `not live: last heard ${link.since ? `${span(silent)} ago` : 'never'}, trying again`];
  if (silent > STALE) return ['lost', `silent for ${span(silent)}`];
  if (link.trouble) return ['stale', 'stale: the control plane cannot read the cluster'];
  return ['live', 'live'];
}

function fresh() {
  const [state, words] = freshness();
  const output = byId('link');
  output.dataset.state = state;
  output.title = link.trouble ?? '';
  if (output.textContent !== words) output.textContent = words;
}

function keyed(event) {
  if (byId('help').open) return;
  if (event.ctrlKey || event.metaKey || event.altKey || /^(input|textarea|select)$/i.test(event.target.tagName)) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  const keys = { '/': () => page?.search?.(), '?': help, Escape: () => { if (location.hash.startsWith('#/run/')) location.hash = '#/runs'; } };
  PAGES.forEach(([id], at) => { keys[at + 1] = () => { location.hash = `#/${id}`; }; });
  if (!keys[event.key] || !source) return;
  event.preventDefault();
  keys[event.key]();
}

function help() {
  const rows = [['1 – 4', 'the pages'], ['/', 'filter'], ['↑ ↓ or k j', 'choose a run'], ['Enter', 'open it'], ['Esc', 'back'], ['?', 'this']];
  const dialog = byId('help');
  show(dialog, el('h2', { id: 'help-title' }, 'Keys'), el('dl', { class: 'facts' }, rows.map(([key, does]) => el('div', {}, el('dt', {}, el('kbd', {}, key)), el('dd', {}, does)))),
    el('button', { type: 'button', class: 'main', onclick: () => dialog.close() }, 'Close'));
  dialog.showModal();
}

document.addEventListener('signed-out', (event) => { token.forget(); signIn(event.detail ?? 'The token is no longer good.'); });
document.addEventListener('keydown', keyed);
window.addEventListener('hashchange', route);
byId('leave').addEventListener('click', () => { token.forget(); signIn(); });
byId('keys').addEventListener('click', help);
byId('namespace').addEventListener('change', (event) => choose(event.target.value.trim() || usual));
setInterval(() => { if (source && !document.hidden) { fresh(); age(content); page?.tick?.(); } }, 1_000);

if (token.get()) goOn();
else signIn();
