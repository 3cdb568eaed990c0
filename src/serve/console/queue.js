// How the queue stands, by scope, with a small chart of the last minutes.

import { follow } from './api.js';
import { chart } from './chart.js';
import { ago, el, show } from './dom.js';
import { plain, problem } from './run.js';

const WINDOW = 5 * 60_000;
const SERIES = [['Waiting', (load) => load.waiting], ['Running', (load) => load.running], ['Held back', (load) => held(load)]];

function held(load) {
  return Object.values(load.blocked ?? {}).reduce((sum, count) => sum + count, 0);
}

export function queuePage() {
  const stop = new AbortController();
  const history = SERIES.map(() => []);
  const note = el('p', { class: 'note', role: 'status' }, 'Asking the controller that leads …');
  const body = el('div', {});
  let last;
  let isLost = false;

  function event(name, data) {
    const told = JSON.parse(data);
    if (!('leader' in told)) return;
    last = told;
    if (told.queue) {
      SERIES.forEach(([, of], at) => {
        history[at].push([Date.now(), of(told.queue.cluster)]);
        while (history[at].length > 1 && history[at][1][0] < Date.now() - WINDOW) history[at].shift();
      });
    }
    draw();
  }

  function draw() {
    if (!last) {
      if (isLost) note.textContent = 'Not live: the control plane does not say how the queue stands; it is asked again.';
      return;
    }
    note.textContent = isLost ? 'Not live: the stream of the queue is lost and tried again. This is how it stood last.' : '';
    if (!last.queue) return show(body, el('p', { class: 'problem' }, el('b', {}, 'Nobody says how the queue stands: '), last.message ?? 'no controller holds the lease', '. Runs wait until one does.'));
    const { cluster, namespaces, agents, repositories } = last.queue;
    show(body,
      el('div', { class: 'cards' }, SERIES.map(([title, of], at) => el('div', { class: 'card' }, el('b', {}, title), el('output', {}, String(of(cluster))), chart(history[at], WINDOW, title)))),
      el('p', {}, 'Waiting for longest: ', cluster.oldestWaitingSince ? ago(cluster.oldestWaitingSince) : 'nobody'),
      reasons(cluster),
      scopes('Namespaces', namespaces), scopes('Agents', agents), scopes('Repositories', repositories));
  }

  function state(word) {
    if (word !== 'connecting') isLost = word === 'lost';
    draw();
  }

  follow('/v1/queue/stream', stop.signal, { event, state }).catch((error) => {
    if (stop.signal.aborted) return;
    note.textContent = '';
    show(body, problem(error));
  });
  return { title: 'Queue', root: el('section', { class: 'queue' }, note, body), tick: draw, leave: () => stop.abort() };
}

function reasons(load) {
  const rows = Object.entries(load.blocked ?? {}).filter(([, count]) => count > 0);
  if (!rows.length) return undefined;
  return [el('h2', {}, 'Held back, by reason'), plain(['Reason', 'Runs'], rows.map(([reason, count]) => el('tr', {}, el('td', {}, reason), el('td', {}, String(count)))))];
}

function scopes(title, ranked) {
  if (!ranked?.top?.length) return undefined;
  const row = (one) => el('tr', {}, el('td', {}, [one.namespace, one.name].filter(Boolean).join('/')), el('td', {}, String(one.waiting)),
    el('td', {}, String(one.running)), el('td', {}, String(held(one))), el('td', {}, ago(one.oldestWaitingSince)));
  return [el('h2', {}, title), plain([title, 'Waiting', 'Running', 'Held back', 'Oldest'], ranked.top.map(row))];
}
