// The runs of a namespace, as they are now: the stream tells all there are, then what becomes of them.

import { follow, query } from './api.js';

const TOGETHER = 150; // changes that come close together are shown at once, in milliseconds
const KIND = 'AgentRun';

/** Calls `changed(state)` whenever there is something new to show. */
export function store(namespace, changed) {
  const stop = new AbortController();
  const state = { runs: new Map(), link: 'connecting', heard: undefined, loading: true, error: undefined, trouble: undefined };
  let fresh = new Map();
  let waiting;

  const tell = () => {
    waiting ??= setTimeout(() => {
      waiting = undefined;
      if (!stop.signal.aborted) changed(state);
    }, TOGETHER);
  };

  function event(name, data) {
    const told = JSON.parse(data);
    // A stream that begins anew tells everything before `ready`; what it does not tell is gone.
    const runs = state.loading ? fresh : state.runs;
    if (name === 'resource' && told.kind === KIND) {
      if (told.action === 'DELETED') runs.delete(key(told));
      else if (told.summary) runs.set(key(told), told.summary);
      // The first time there is nothing better to show than what came so far.
      if (state.loading && state.runs.size <= fresh.size) state.runs = fresh;
    }
    if (name === 'ready') {
      // Told once more when the control plane can read the cluster again.
      if (!state.loading) state.trouble = undefined;
      state.runs = runs;
      state.loading = false;
    }
    if (name === 'status') state.trouble = unread(told.status) ? state.trouble ?? 'The API server cannot be read now.' : undefined;
    if (name === 'error') state.trouble = told.message;
    tell();
  }

  function linked(word, begun) {
    if (begun) {
      fresh = new Map();
      state.loading = true;
    }
    if (word === 'live') state.heard = Date.now();
    // Trying again is not being back.
    if (word !== 'connecting' || state.link !== 'lost') state.link = word;
    tell();
  }

  follow(query('/v1/control-plane/stream', { namespace, kind: KIND, brief: true }), stop.signal, { event, state: linked }).catch((error) => {
    if (stop.signal.aborted) return;
    state.error = error;
    state.loading = false;
    tell();
  });
  return { state, stop: () => stop.abort() };
}

function unread(status) {
  return (status?.watch_reliability?.unread ?? []).includes(KIND);
}

export function key(run) {
  return `${run.namespace}/${run.name}`;
}
