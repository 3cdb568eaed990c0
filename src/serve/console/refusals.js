// What was refused lately, and why: the Warning Events of admission. Each reason is asked for by itself, since among all
// Events of a busy namespace refusals are few.

import { get, query } from './api.js';
import { ago, el, millis, show } from './dom.js';
import { problem } from './run.js';

const REASONS = ['InvalidSpec', 'PolicyDenied', 'StatusContractViolated', 'SpecImmutableViolation', 'UnsupportedRuntime', 'JobDeleteRefused'];
const PERIOD = 15_000;
const MOST = 200; // entries that are shown

export function refusalsPage({ namespace }) {
  const stop = new AbortController();
  const list = el('ol', { class: 'refusals' });
  const note = el('p', { class: 'note', role: 'status' }, 'Reading …');
  async function load() {
    try {
      const about = (reason) => get(query('/v1/events', { namespace, limit: MOST, type: 'Warning', reason }), stop.signal);
      const told = [];
      for (const reason of REASONS) told.push(await about(reason)); // one after the other: a browser has few connections
      const refused = told.flatMap(({ items }) => items).sort((one, other) => at(other) - at(one)).slice(0, MOST);
      show(list, refused.map(item));
      show(note, told.some(({ partial }) => partial) ? `Refused in ${namespace}; there are too many Events to look at all of them, so some refusals are missing here.`
        : refused.length ? `Refused in ${namespace}, the latest first.`
          : `Nothing was refused in ${namespace} as long as Events are kept, which is usually an hour.`);
    } catch (error) {
      if (!stop.signal.aborted) show(note, problem(error));
    }
  }
  const timer = setInterval(load, PERIOD);
  load();
  return {
    title: 'Refusals',
    root: el('section', {}, note, list),
    leave: () => { clearInterval(timer); stop.abort(); },
  };
}

const at = (event) => millis(event.lastTimestamp ?? event.eventTime) ?? 0;

/** The causes in the note of an Event: one alone, or all of a list. */
function causes(message) {
  return message.replace(/^\d+ faults: \* /, '').split(/ \* (?=[^ ]+: |and \d+ more$)/);
}

function item(event) {
  const about = event.involvedObject ?? {};
  return el('li', {}, el('b', {}, `${about.kind ?? ''} ${about.name ?? ''}`), ' ', el('span', { class: 'phase', 'data-phase': 'Failed' }, event.reason), ' ',
    ago(event.lastTimestamp ?? event.eventTime), ' ago', event.count > 1 && ` ×${event.count}`,
    el('ul', {}, causes(event.message ?? '').map((cause) => el('li', {}, cause))));
}
