// Whether outcomes of Jobs are safe: what the sidecar counts, runs whose Job went missing, and the streams that it follows.

import { get } from './api.js';
import { ago, el, phase, show, span, to } from './dom.js';
import { plain, problem } from './run.js';

const PERIOD = 10_000;

export function jobsPage() {
  const stop = new AbortController();
  const [counts, missing, sources] = [el('div', {}), el('div', {}), el('div', {})];

  async function load() {
    try {
      const seen = await get('/v1/sidecar', stop.signal);
      show(counts, custody(seen));
      show(sources, followed(seen));
    } catch (error) {
      if (stop.signal.aborted) return;
      show(counts, problem(error));
      show(sources);
    }
  }

  const timer = setInterval(load, PERIOD);
  load();
  return {
    title: 'Jobs',
    root: el('section', { class: 'jobs' }, counts, missing, sources),
    runs: (state) => show(missing, lost(state)),
    leave: () => { clearInterval(timer); stop.abort(); },
  };
}

function custody({ pod, at, jobs }) {
  const card = (title, value, bad) => el('div', { class: bad ? 'card bad' : 'card' }, el('b', {}, title), el('output', {}, String(value)));
  const rows = Object.entries({ ...jobs.prematureDeletions, ...jobs.hazards });
  return [
    el('div', { class: 'cards' },
      card('Running', jobs.known.running ?? 0), card('Outcome not stored yet', jobs.unrecorded, jobs.oldestUnrecordedSeconds > 60),
      card('For longest', jobs.unrecorded ? span(jobs.oldestUnrecordedSeconds * 1000) : '–'), card('Pods without a Job', jobs.orphanedPods, jobs.orphanedPods > 0)),
    el('p', { class: 'note' }, `As the sidecar of ${pod} sees it; its watch of Jobs is ${jobs.watch ?? 'not known'}; read `, ago(at), ' ago.'),
    rows.length > 0 && [el('h2', {}, 'Gone or in danger before the outcome was stored'), plain(['What', 'Times'], rows.map(([name, count]) => el('tr', {}, el('td', {}, name), el('td', {}, String(count)))))],
  ];
}

function lost(state) {
  const runs = [...state.runs.values()].filter((run) => run.jobMissing);
  if (!runs.length) return el('p', { class: 'note' }, state.loading ? 'Reading …' : 'No Job of these runs went missing: every outcome was stored before its Job went.');
  const classes = new Map();
  for (const { jobMissing } of runs) classes.set(jobMissing.class, (classes.get(jobMissing.class) ?? 0) + 1);
  return [
    el('h2', {}, 'Missing Jobs, by class'),
    plain(['Class', 'Runs'], [...classes].map(([name, count]) => el('tr', {}, el('td', {}, name), el('td', {}, String(count))))),
    el('h2', {}, 'Runs whose Job went missing'),
    plain(['Run', 'Phase', 'Class', 'Outcome found', 'Deleted by', 'Noticed'], runs.map((run) => el('tr', {},
      el('td', {}, el('a', { href: to(run) }, run.name)),
      el('td', {}, phase(run.phase)), el('td', {}, run.jobMissing.class ?? ''), el('td', {}, run.jobMissing.recovered ?? 'no'),
      el('td', {}, run.jobMissing.actor ?? 'nobody knows'), el('td', {}, ago(run.jobMissing.noticedAt))))),
  ];
}

function followed({ sources }) {
  const row = (one) => el('tr', {}, el('td', {}, one.name), el('td', {}, stands(one)),
    el('td', {}, one.lastEventAgeSeconds === undefined ? '–' : `${span(one.lastEventAgeSeconds * 1000)} ago`),
    el('td', {}, String(one.connections)), el('td', {}, String(one.disconnects)), el('td', {}, String(one.dropped + one.gaps)));
  return [el('h2', {}, 'Sources of the sidecar'), sources.length
    ? plain(['Source', 'Now', 'Last event', 'Opened', 'Lost', 'Gaps'], sources.map(row))
    : el('p', { class: 'note' }, 'It follows no stream.')];
}

function stands(one) {
  if (one.stopped) return 'nothing to follow';
  if (!one.up) return el('span', { class: 'phase', 'data-phase': 'Failed' }, 'not followed');
  return one.leader === false ? 'followed, a standby' : 'followed';
}
