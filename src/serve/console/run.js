// One run: what happened when, how it stands, and what it says.

import { Refused, get, pause, pieces, post, query } from './api.js';
import { ago, duration, el, millis, phase, show, span } from './dom.js';
import { why } from './runs.js';

const TAIL = 500; // lines of the log that are asked for first
const MOST = 400_000; // characters of a log that are kept
const AGAIN = 3_000; // until a run is asked for again that could not be read
const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 15_000; // until a log is looked for again

/** Such as objects have; others could lead to another path. */
const NAME = /^[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?$/;

export function runPage({ namespace, name, back }) {
  if (!NAME.test(namespace) || !NAME.test(name)) return { title: 'Run', root: el('section', { class: 'run' }, problem(new Error('There is no such run: names have small letters, digits, dashes and dots.'))) };
  const path = `/v1/agent-runs/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
  const stop = new AbortController();
  const about = el('div', {});
  const gone = el('p', { class: 'problem', hidden: true }, 'This run was deleted. Below is how it was last.');
  const events = el('ol', { class: 'timeline' });
  let seen;
  const log = logView(path, stop.signal, () => Boolean(seen?.finishedAt));
  let last;

  async function load(isAgain) {
    if (isAgain) log.again();
    try {
      const [run, told] = await Promise.all([get(path, stop.signal), get(query(`${path}/events`, { limit: 200 }), stop.signal).catch(() => ({ items: [] }))]);
      seen = run;
      show(about, ...parts(run));
      show(events, timeline(run, told.items));
    } catch (error) {
      if (stop.signal.aborted) return;
      show(about, problem(error), seen && [el('p', { class: 'note' }, 'Below is how it was last.'), ...parts(seen)]);
      if (error instanceof Refused && error.status < 500 && error.status !== 429) return;
      await pause(AGAIN, stop.signal);
      if (!stop.signal.aborted) await load(false);
    }
  }

  const parts = (run) => [head(run), conditions(run), steps(run), custody(run)];

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

/** What admission and the queue decided; the end has a mark of its own. */
const isMark = (condition) => condition.status === 'True' && ['Accepted', 'Blocked'].includes(condition.type);
const said = ({ reason, message }) => [reason, message].filter(Boolean).join(': ');

/** Status and Events in one line of time. */
export function timeline(run, events) {
  const status = run.resource?.status ?? {};
  const marks = [
    { at: run.createdAt, title: 'Made', text: 'The API server stored it.' },
    ...(status.conditions ?? []).filter(isMark).map((one) => ({ at: one.lastTransitionTime, title: one.type, text: said(one), bad: one.type === 'Blocked' })),
    { at: run.startedAt, title: 'Began', text: status.jobRef?.name && `Job ${status.jobRef.name}` },
    { at: status.jobRef?.missing?.noticedAt, title: 'Job missing', text: status.jobRef?.missing?.class, bad: true },
    { at: run.finishedAt, title: run.phase, text: said(run), bad: run.phase === 'Failed' },
    ...events.map((event) => ({ at: event.lastTimestamp ?? event.eventTime ?? event.firstTimestamp, title: event.reason, text: event.message, bad: event.type === 'Warning', count: event.count })),
  ].filter((mark) => millis(mark.at) !== undefined);
  marks.sort((one, other) => millis(one.at) - millis(other.at));
  const first = millis(marks[0]?.at) ?? 0;
  return marks.map((mark) => el('li', { class: mark.bad ? 'bad' : '' },
    el('time', { dateTime: mark.at, title: mark.at }, `+${span(millis(mark.at) - first)}`), ' ', el('b', {}, mark.title),
    mark.count > 1 && ` ×${mark.count}`, ' ', el('span', {}, mark.text ?? '')));
}

/**
 * The log, read on for as long as the run goes on: after a loss, and when a retry brings a new pod. Each time it is told anew
 * from the last lines on, so nothing is there twice.
 */
function logView(path, signal, isOver) {
  const text = el('pre', { class: 'log', tabIndex: 0, 'aria-label': 'Log' });
  const note = el('p', { class: 'note', role: 'status' }, 'Reading …');
  let length = 0;
  let isReading = false;
  let rest = new AbortController();

  function add(piece, isFirst) {
    const from = text.scrollTop;
    const atEnd = from + text.clientHeight >= text.scrollHeight - 4;
    if (isFirst) {
      text.replaceChildren();
      length = 0;
    }
    text.append(piece);
    length += piece.length;
    while (length > MOST && text.childNodes.length > 1) {
      length -= text.firstChild.length;
      text.firstChild.remove();
    }
    text.scrollTop = atEnd ? text.scrollHeight : from;
    note.textContent = 'Live';
  }

  /** Reads to the end; whether more may come. */
  async function once(heard) {
    let isFirst = true;
    try {
      await pieces(query(`${path}/logs`, { follow: true, tail: TAIL }), signal, (piece) => {
        add(piece, isFirst);
        isFirst = false;
        heard();
      });
      note.textContent = length ? 'That was all.' : 'It said nothing.';
      return !isOver();
    } catch (error) {
      if (signal.aborted) return false;
      if (!(error instanceof Refused)) {
        note.textContent = 'The log was cut off; it is read on as soon as the control plane answers.';
        return true;
      }
      note.textContent = [error.message, error.next].filter(Boolean).join('; ');
      return error.status >= 500 || error.status === 429 || error.reason === 'NotStarted' && !isOver();
    }
  }

  async function start() {
    isReading = true;
    let wait = FIRST_WAIT;
    while (await once(() => { wait = FIRST_WAIT; })) {
      rest = new AbortController();
      await pause(wait, AbortSignal.any([signal, rest.signal]));
      if (signal.aborted) break;
      wait = Math.min(wait * 2, LONGEST_WAIT);
    }
    isReading = false;
  }

  // What had nothing to read may have begun since.
  const again = () => {
    rest.abort();
    if (!isReading && !length) start();
  };
  return { root: el('div', {}, note, text), start, again };
}

/** An error as people can use it. */
export function problem(error) {
  return el('div', { class: 'problem', role: 'alert' }, el('b', {}, error.message ?? String(error)), error.next && el('p', {}, error.next),
    (error.causes ?? []).length > 0 && el('ul', {}, error.causes.map((cause) => el('li', {}, el('code', {}, cause.field ?? ''), ' ', cause.message ?? ''))));
}
