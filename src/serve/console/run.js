// One run: what happened when, how it stands, and what it says.

import { Refused, get, pieces, post, query } from './api.js';
import { ago, duration, el, millis, phase, show, span } from './dom.js';
import { why } from './runs.js';

const TAIL = 500; // lines of the log that are asked for first
const MOST = 400_000; // characters of a log that are kept

/** Such as objects have; others could lead to another path. */
const NAME = /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/;

export function runPage({ namespace, name, back }) {
  if (!NAME.test(namespace) || !NAME.test(name)) return { title: 'Run', root: el('section', { class: 'run' }, problem(new Error('There is no such run: names have small letters, digits, dashes and dots.'))) };
  const path = `/v1/agent-runs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const stop = new AbortController();
  const about = el('div', {});
  const gone = el('p', { class: 'problem', hidden: true }, 'This run was deleted. Below is how it was last.');
  const events = el('ol', { class: 'timeline' });
  const log = logView(path, stop.signal);
  let seen;
  let last;

  async function load(isAgain) {
    if (isAgain) log.again();
    try {
      const [run, told] = await Promise.all([get(path, stop.signal), get(query(`${path}/events`, { limit: 200 }), stop.signal).catch(() => ({ items: [] }))]);
      seen = run;
      show(about, head(run), conditions(run), steps(run), custody(run));
      show(events, timeline(run, told.items));
    } catch (error) {
      if (stop.signal.aborted) return;
      show(about, problem(error));
    }
  }

  function head(run) {
    const ended = Boolean(run.finishedAt);
    const cancel = el('button', { type: 'button', class: 'danger', hidden: ended || run.cancel, onclick: () => ask(run) }, 'Cancel …');
    return [
      el('h1', {}, phase(run.phase), ' ', run.name, ' ', cancel),
      el('p', { class: 'why' }, why(run)),
      facts([
        ['Namespace', run.namespace], ['Agent', run.agent], ['Runtime', run.runtime], ['Made', ago(run.createdAt)],
        ['Began', ago(run.startedAt)], ['Ended', ago(run.finishedAt)], ['Took', duration(run)], ['Trace', run.traceId], ['Uid', run.uid],
      ]),
    ];
  }

  async function ask(run) {
    if (!window.confirm(`Cancel ${run.namespace}/${run.name}? Its record stays.`)) return;
    try {
      await post(`${path}/cancel`);
      await load(true);
    } catch (error) {
      show(about, problem(error), head(run));
    }
  }

  load(false);
  log.start();
  return {
    title: name,
    root: el('section', { class: 'run' }, el('p', {}, el('a', { href: back }, '← Runs')), gone, about,
      el('h2', {}, 'What happened'), events, el('h2', {}, 'Log'), log.root),
    runs(state) {
      const now = state.runs.get(`${namespace}/${name}`);
      gone.hidden = Boolean(now) || !last || state.loading;
      if (!now || now === last) return;
      const isNews = last || seen && now.phase !== seen.phase;
      last = now;
      if (isNews) load(true);
    },
    leave: () => stop.abort(),
  };
}

function facts(rows) {
  return el('dl', { class: 'facts' }, rows.filter(([, value]) => value).map(([term, value]) => el('div', {}, el('dt', {}, term), el('dd', {}, value))));
}

function conditions(run) {
  const list = run.resource?.status?.conditions ?? [];
  if (!list.length) return undefined;
  const row = (one) => el('tr', { 'data-status': one.status },
    el('td', {}, one.type), el('td', {}, one.status), el('td', {}, one.reason ?? ''), el('td', {}, one.message ?? ''), el('td', {}, ago(one.lastTransitionTime)));
  return [el('h2', {}, 'Conditions'), plain(['Type', 'Status', 'Reason', 'Message', 'Since'], list.map(row))];
}

function steps(run) {
  const list = run.resource?.status?.workflow?.steps ?? [];
  if (!list.length) return undefined;
  const row = (step) => el('tr', {},
    el('td', {}, step.name ?? ''), el('td', {}, phase(step.phase ?? 'Pending')), el('td', {}, String(step.attempt ?? '')), el('td', {}, duration(step)), el('td', {}, step.message ?? ''));
  return [el('h2', {}, 'Steps'), plain(['Step', 'Phase', 'Try', 'Took', 'Message'], list.map(row))];
}

function custody(run) {
  const missing = run.resource?.status?.jobRef?.missing;
  if (!missing) return undefined;
  return [el('h2', {}, 'The Job is missing'), facts([
    ['Class', missing.class], ['Certainty', missing.certainty], ['Outcome found', missing.recovered], ['Deleted by', missing.actor], ['Noticed', ago(missing.noticedAt)],
  ])];
}

export function plain(titles, rows) {
  return el('div', { class: 'wide' }, el('table', {}, el('thead', {}, el('tr', {}, titles.map((title) => el('th', { scope: 'col' }, title)))), el('tbody', {}, rows)));
}

/** Status and Events in one line of time. */
export function timeline(run, events) {
  const status = run.resource?.status ?? {};
  const marks = [
    { at: run.createdAt, title: 'Made', text: 'The API server stored it.' },
    { at: run.startedAt, title: 'Began', text: status.jobRef?.name && `Job ${status.jobRef.name}` },
    { at: status.jobRef?.missing?.noticedAt, title: 'Job missing', text: status.jobRef?.missing?.class, bad: true },
    { at: run.finishedAt, title: run.phase, text: [run.reason, run.message].filter(Boolean).join(': '), bad: run.phase === 'Failed' },
    ...events.map((event) => ({ at: event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp, title: event.reason, text: event.message, bad: event.type === 'Warning', count: event.count })),
  ].filter((mark) => millis(mark.at) !== undefined);
  marks.sort((one, other) => millis(one.at) - millis(other.at));
  const first = millis(marks[0]?.at) ?? 0;
  return marks.map((mark) => el('li', { class: mark.bad ? 'bad' : '' },
    el('time', { dateTime: mark.at, title: mark.at }, `+${span(millis(mark.at) - first)}`), ' ', el('b', {}, mark.title),
    mark.count > 1 && ` ×${mark.count}`, ' ', el('span', {}, mark.text ?? '')));
}

function logView(path, signal) {
  const text = el('pre', { class: 'log', tabIndex: 0, 'aria-label': 'Log' });
  const note = el('p', { class: 'note', role: 'status' }, 'Reading …');
  let length = 0;
  let isReading = false;

  function add(piece) {
    const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 4;
    text.append(piece);
    length += piece.length;
    while (length > MOST && text.childNodes.length > 1) {
      length -= text.firstChild.length;
      text.firstChild.remove();
    }
    if (atEnd) text.scrollTop = text.scrollHeight;
    note.textContent = 'Live';
  }

  async function start() {
    isReading = true;
    try {
      await pieces(query(`${path}/logs`, { follow: true, tail: TAIL }), signal, add);
      note.textContent = length ? 'That was all.' : 'It said nothing.';
    } catch (error) {
      if (!signal.aborted) note.textContent = error instanceof Refused ? [error.message, error.next].filter(Boolean).join('; ') : 'The log was cut off; open the page again to go on.';
    }
    isReading = false;
  }

  // What had nothing to read may have begun since.
  const again = () => { if (!isReading && !length) start(); };
  return { root: el('div', {}, note, text), start, again };
}

/** An error as people can use it. */
export function problem(error) {
  return el('div', { class: 'problem', role: 'alert' }, el('b', {}, error.message ?? String(error)), error.next && el('p', {}, error.next),
    (error.causes ?? []).length > 0 && el('ul', {}, error.causes.map((cause) => el('li', {}, el('code', {}, cause.field ?? ''), ' ', cause.message ?? ''))));
}
