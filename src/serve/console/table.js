// A table of any length: only the rows that can be seen are there.

import { el, show } from './dom.js';

const SPARE = 8; // rows above and below what can be seen

/**
 * `columns` are `{ title, cell(row), class, live }`, `open(row)` is called for Enter and a click. The rows are set by
 * `rows(list, isWhole)`; the place and the chosen row stay, by `key(row)`.
 */
export function table({ label, columns, key, open, empty }) {
  let all = [];
  let chosen;
  let drawn = new Map(); // rows that are there, by key; one that did not change stays the same element
  const height = () => parseInt(getComputedStyle(root).getPropertyValue('--row'), 10) || 36;
  const head = el('div', { class: 'row head', role: 'row' },
    columns.map((column) => el('span', { role: 'columnheader', class: column.class }, column.title)));
  const body = el('div', { class: 'body', role: 'rowgroup', onclick: clicked });
  const scroller = el('div', { class: 'scroller', tabIndex: 0, onscroll: () => draw(), onkeydown: keyed }, body);
  const none = el('p', { class: 'empty', hidden: true }, empty);
  const root = el('div', { class: 'table', role: 'grid', 'aria-label': label }, head, scroller, none);

  function draw() {
    const row = height();
    const first = Math.max(0, Math.floor(scroller.scrollTop / row) - SPARE);
    const count = Math.ceil(scroller.clientHeight / row) + 2 * SPARE;
    body.style.height = `${all.length * row}px`;
    const next = new Map();
    all.slice(first, first + count).forEach((item, offset) => {
      const [at, name] = [first + offset, key(item)];
      const selected = name === chosen;
      const before = drawn.get(name);
      const stays = before && before.item === item && before.at === at && before.row === row && before.selected === selected;
      next.set(name, stays ? before : { item, at, row, selected, element: line(item, at, row, selected) });
    });
    drawn = next;
    const elements = [...next.values()].map(({ element }) => element);
    const same = elements.length === body.children.length && elements.every((element, at) => element === body.children[at]);
    if (!same) body.replaceChildren(...elements);
  }

  /** Lets cells grow that do so without anything happening. */
  function grow() {
    for (const { item, element } of drawn.values()) {
      columns.forEach(({ cell, live }, at) => { if (live) show(element.children[at], cell(item)); });
    }
  }

  function line(item, at, row, selected) {
    return el('div', {
      class: 'row', role: 'row', 'aria-rowindex': at + 2, 'aria-selected': String(selected), id: `row-${at}`,
      style: `transform: translateY(${at * row}px)`,
    }, columns.map((column) => el('span', { role: 'gridcell', class: column.class, 'data-title': column.title }, column.cell(item))));
  }

  /** By its place and not by its element, which may be drawn anew between press and release. */
  function clicked(event) {
    const item = all[Math.floor((event.clientY - body.getBoundingClientRect().top) / height())];
    if (!item || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    chosen = key(item);
    open(item);
  }

  function keyed(event) {
    const at = all.findIndex((item) => key(item) === chosen);
    const page = Math.max(1, Math.floor(scroller.clientHeight / height()) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, j: 1, k: -1 };
    if (event.key === 'Enter' && at >= 0) return open(all[at]);
    let to;
    if (event.key in steps) to = (at < 0 ? -1 : at) + steps[event.key];
    if (event.key === 'Home') to = 0;
    if (event.key === 'End') to = all.length - 1;
    if (to === undefined || !all.length || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    to = Math.min(all.length - 1, Math.max(0, to));
    chosen = key(all[to]);
    const [top, row] = [to * height(), height()];
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    if (top + row > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = top + row - scroller.clientHeight;
    draw();
    scroller.setAttribute('aria-activedescendant', `row-${to}`);
  }

  const resized = new ResizeObserver(() => draw());
  resized.observe(scroller);
  return {
    root,
    focus: () => scroller.focus(),
    leave: () => resized.disconnect(),
    rows(list, isWhole) {
      all = list;
      none.hidden = list.length > 0 || !isWhole;
      root.setAttribute('aria-rowcount', list.length + 1);
      draw();
    },
    grow,
  };
}
