// What was refused lately, and why: the Warning Events of admission.

import { get, query } from './api.js';
import { ago, el, show } from './dom.js';
import { problem } from './run.js';

const REASONS = ['InvalidSpec', 'PolicyDenied', 'StatusContractViolated', 'SpecImmutableViolation', 'UnsupportedRuntime', 'JobDeleteRefused'];
const PERIOD = 15_000;

export function refusalsPage({ namespace }) {
  const stop = new AbortController();
  const list = el('ol', { class: 'refusals' });
  const note = el('p', { class: 'note', role: 'status' }, 'Reading …');
  async function load() {
    try {
      const { items } = await get(query('/v1/events', { namespace, limit: 200 }), stop.signal);
      const refused = items.filter((event) => REASONS.includes(event.reason));
      show(list, refused.map(item));
      show(note, refused.length ? `Refused in ${namespace}, the latest first.` : `Nothing was refused in ${namespace} as long as Events are kept, which is usually an hour.`);
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
