// Elements and times. Text only ever becomes text: nothing here reads markup, so no name or message can bring any.

/** An element with properties and children; `class`, `data-*`, `aria-*` and `role` are attributes, `on*` listeners. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name in element && !name.includes('-') && name !== 'list' && name !== 'role') element[name] = value;
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  return fill(element, children);
}

/** An element of a drawing. */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  return fill(element, children);
}

function fill(element, children) {
  const kept = children.flat(Infinity).filter((child) => child !== undefined && child !== null && child !== false);
  element.append(...kept.map((child) => (child instanceof Node ? child : String(child))));
  return element;
}

export function show(parent, ...children) {
  parent.replaceChildren();
  return fill(parent, children);
}

/** Milliseconds of a time as the API writes it; none if there is none. */
export function millis(text) {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? undefined : time;
}

/** A span of time in at most two units, as kubectl writes ages. */
export function span(ms) {
  const all = Math.max(0, Math.floor(ms / 1000));
  const units = [['d', 86400], ['h', 3600], ['m', 60], ['s', 1]];
  const first = units.findIndex(([, size]) => all >= size);
  if (first < 0) return '0s';
  const [unit, size] = units[first];
  const next = units[first + 1];
  const rest = next ? Math.floor((all % size) / next[1]) : 0;
  return `${Math.floor(all / size)}${unit}${rest && all < 10 * size ? `${rest}${next[0]}` : ''}`;
}

/** How long ago, with the exact time on hover. */
export function ago(text, now = Date.now()) {
  const time = millis(text);
  if (time === undefined) return el('span', { class: 'none' }, '–');
  return el('time', { class: 'ago', dateTime: text, title: new Date(time).toISOString() }, span(now - time));
}

/** Lets all of them grow older. */
export function age(root, now = Date.now()) {
  for (const time of root.querySelectorAll('time.ago')) time.textContent = span(now - millis(time.dateTime));
}

/** How long a run worked so far, or worked in all. */
export function duration(run, now = Date.now()) {
  const from = millis(run.startedAt);
  if (from === undefined) return '–';
  return span((millis(run.finishedAt) ?? now) - from);
}

/** The address of a run's page. */
export function to(run) {
  return `#/run/${encodeURIComponent(run.namespace)}/${encodeURIComponent(run.name)}`;
}

export function phase(word) {
  return el('span', { class: 'phase', 'data-phase': word }, word);
}
