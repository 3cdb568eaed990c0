// A small line for one figure over the last minutes.

import { svg } from './dom.js';

const [WIDTH, HEIGHT] = [240, 48];

/** `points` are `[time, value]` with rising times; one that is older than `window` is where the line comes from. */
export function chart(points, window, label, now = Date.now()) {
  const seen = points.map(([time, value]) => [Math.max(time, now - window), value]);
  const most = Math.max(1, ...seen.map(([, value]) => value));
  const x = (time) => (WIDTH * (time - (now - window))) / window;
  const y = (value) => HEIGHT - 2 - ((HEIGHT - 4) * value) / most;
  // A figure holds until the next one is told, so the line has steps.
  const path = seen.map(([time, value], at) => {
    const from = at ? `H${x(time).toFixed(1)}` : `M${x(time).toFixed(1)} ${y(value).toFixed(1)}`;
    return `${from}V${y(value).toFixed(1)}`;
  });
  const end = seen.length ? `H${WIDTH}` : '';
  return svg('svg', { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, class: 'chart', preserveAspectRatio: 'none', role: 'img', 'aria-label': `${label}, at most ${most}` },
    svg('path', { d: path.join('') + end, fill: 'none', 'vector-effect': 'non-scaling-stroke' }));
}
