// The live table of runs.

import { ago, duration, el, phase, to } from './dom.js';
import { key } from './store.js';
import { table } from './table.js';

const PHASES = ['Pending', 'Running', 'Succeeded', 'Failed', 'Cancelled'];

/** Newest first; what has no time yet is newest of all. Times of the API compare as texts. */
function newest(one, other) {
  const [mine, theirs] = [one.createdAt ?? '~', other.createdAt ?? '~'];
  if (mine !== theirs) return mine < theirs ? 1 : -1;
  return key(one) < key(other) ? -1 : 1;
}

/** Whether every word is somewhere in the row. */
function matches(run, words) {
  if (!words.length) return true;
  const text = [run.name, run.namespace, run.phase, run.agent, run.runtime, run.reason, run.blocked, run.message].join(' ').toLowerCase();
  return words.every((word) => text.includes(word));
}

export function runsPage({ open }) {
  let state;
  let only;
  const search = el('input', { type: 'search', placeholder: 'Filter: name, agent, reason …', 'aria-label': 'Filter runs', oninput: () => draw(), onkeydown: entered });
  const chips = el('div', { class: 'chips', role: 'group', 'aria-label': 'Phases' });
  const buttons = PHASES.map((word) => {
    const count = el('b', {});
    const button = el('button', { type: 'button', class: 'chip', 'data-phase': word, onclick: () => { only = only === word ? undefined : word; draw(); } }, word, ' ', count);
    chips.append(button);
    return { word, count, button };
  });
  const note = el('p', { class: 'note', role: 'status' });
  const rows = table({
    label: 'Runs',
    key,
    open,
    empty: 'No run matches.',
    columns: [
      { title: 'Run', class: 'name', cell: (run) => el('a', { href: to(run), tabIndex: -1 }, run.name) },
      { title: 'Phase', class: 'phase-cell', cell: (run) => phase(run.phase) },
      { title: 'Since', class: 'since', cell: (run) => ago(run.since ?? run.createdAt) },
      { title: 'Why', class: 'why', cell: (run) => why(run) },
      { title: 'Agent', class: 'agent', cell: (run) => run.agent ?? '–' },
      { title: 'Runtime', class: 'runtime', cell: (run) => run.runtime ?? '–' },
      { title: 'Took', class: 'took', cell: (run) => duration(run), live: true },
    ],
  });

  /** From the filter down into what it found. */
  function entered(event) {
    if (event.key !== 'Enter' && event.key !== 'ArrowDown') return;
    event.preventDefault();
    rows.focus();
  }

  function draw() {
    if (!state) return;
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = [...state.runs.values()].filter((run) => matches(run, words));
    for (const { word, count, button } of buttons) {
      count.textContent = String(found.filter((run) => run.phase === word).length);
      button.setAttribute('aria-pressed', String(only === word));
    }
    const shown = found.filter((run) => !only || run.phase === only).sort(newest);
    rows.rows(shown, !state.loading);
    note.textContent = says(state, shown.length);
  }

  return {
    title: 'Runs',
    root: el('section', { class: 'runs' }, el('div', { class: 'bar' }, search, chips), note, rows.root),
    runs(next) { state = next; draw(); },
    tick: () => rows.grow(),
    search: () => search.focus(),
    focus: () => rows.focus(),
    leave: () => rows.leave(),
  };
}

function says(state, shown) {
  if (state.error && !state.runs.size) return [state.error.message, state.error.next].filter(Boolean).join('; ');
  if (state.loading && !state.runs.size) return 'Reading …';
  return [`${shown} of ${state.runs.size} runs${state.loading ? ' so far' : ''}`, state.trouble].filter(Boolean).join('; ');
}

/** What people ask first of a run that does not do what they want. */
export function why(run) {
  if (run.cancel && !run.finishedAt) return 'is being cancelled';
  return [run.reason, run.message].filter(Boolean).join(': ');
}
