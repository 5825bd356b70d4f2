// Columns: the coordinates of the boxes of each row.
//
//   spreadRows(places, rows)     x: each box moves to the median of its neighbors above or below,
//                                as closely as order and distances allow (isotonic regression,
//                                solved exactly)
//   stackRows(places, rows, x)   y; a drawing that would be much taller than wide is broken into
//                                columns, at rows that few edges cross

const GAP = 22; // between boxes of a row
const LANE = 11; // between edges that pass
const RISE = 34; // between rows
const GUTTER = 44; // between columns
const SPREAD_PASSES = 14;

function distance(places, a, b) {
  const gap = places.dummy[a] && places.dummy[b] ? LANE : GAP;
  return (places.w[a] + places.w[b]) / 2 + gap;
}

function spreadRows(places, rows) {
  const x = new Array(places.rank.length).fill(0);
  for (const row of rows) {
    row.forEach((i, k) => { x[i] = k ? x[row[k - 1]] + distance(places, row[k - 1], i) : 0; });
  }
  for (let pass = 0; pass < SPREAD_PASSES; pass++) {
    const down = pass % 2 === 0;
    const both = pass >= SPREAD_PASSES - 4; // the last passes use neighbors on both sides
    for (let k = 0; k < rows.length; k++) {
      const row = rows[down ? k : rows.length - 1 - k];
      moveRow(places, row, x, both ? "both" : down ? "above" : "below");
    }
  }
  return x;
}

function moveRow(places, row, x, side) {
  const targets = [];
  const weights = [];
  for (const i of row) {
    let near = side === "both" ? [...places.above[i], ...places.below[i]] : places[side][i];
    if (!near.length) near = side === "above" ? places.below[i] : places.above[i];
    targets.push(near.length ? middle(near.map(([j, offset, weight]) => [x[j] + offset, weight])) : x[i]);
    weights.push(Math.max(0.1, ...near.map(([, , weight]) => weight)));
  }
  spaced(places, row, targets, weights).forEach((value, k) => { x[row[k]] = value; });
}

// The weighted median, which keeps a chain straight, whatever other operands its boxes have.
function middle(targets) {
  targets.sort((a, b) => a[0] - b[0]);
  const half = targets.reduce((sum, [, weight]) => sum + weight, 0) / 2;
  let sum = 0;
  for (let k = 0; k < targets.length; k++) {
    sum += targets[k][1];
    if (Math.abs(sum - half) < 1e-9 && k + 1 < targets.length) return (targets[k][0] + targets[k + 1][0]) / 2;
    if (sum > half) return targets[k][0];
  }
  return targets[targets.length - 1][0];
}

// The positions nearest to the targets with the same order and the minimum distances: with the
// distances subtracted this is isotonic regression, which pooling adjacent violators solves.
function spaced(places, row, targets, weights) {
  const offsets = [0];
  for (let k = 1; k < row.length; k++) offsets.push(offsets[k - 1] + distance(places, row[k - 1], row[k]));
  const blocks = [];
  targets.forEach((target, k) => {
    blocks.push([target - offsets[k], weights[k], 1]);
    while (blocks.length > 1 && blocks[blocks.length - 2][0] > blocks[blocks.length - 1][0]) {
      const [mean, weight, count] = blocks.pop();
      const last = blocks[blocks.length - 1];
      last[0] = (last[0] * last[1] + mean * weight) / (last[1] + weight);
      last[1] += weight;
      last[2] += count;
    }
  });
  const out = [];
  for (const [mean, , count] of blocks) for (let k = 0; k < count; k++) out.push(mean + offsets[out.length]);
  return out;
}

// ---- rows into columns -------------------------------------------------------------------------

function stackRows(places, rows, x) {
  const heights = rows.map((row) => Math.max(0, ...row.map((i) => places.h[i])));
  const starts = columnStarts(places, rows, x, heights);
  const column = [];
  rows.forEach((_, r) => { column.push(starts.includes(r) ? (column[r - 1] ?? -1) + 1 : column[r - 1]); });
  const top = [];
  let height = 0;
  rows.forEach((_, r) => {
    const rise = heights[r] && heights[r - 1] ? RISE : RISE / 2; // ports are near
    top.push(starts.includes(r) ? 0 : top[r - 1] + heights[r - 1] + rise);
    height = Math.max(height, top[r] + heights[r]);
  });
  const { shift, width, gutters } = columnShifts(places, rows, x, column, starts);
  return { heights, column, top, shift, width, height, gutters };
}

// The first row of each column.
function columnStarts(places, rows, x, heights) {
  const total = heights.reduce((sum, h) => sum + h + RISE, 0);
  const [low, high] = extent(places, rows.flat(), x);
  const wide = Math.max(120, high - low) + GUTTER;
  if (total < 800 || total < 1.6 * wide) return [0];
  const tallest = Math.max(...heights);
  const columns = Math.min(Math.round(Math.sqrt((1.7 * total) / wide)), Math.round(total / tallest));
  const starts = [0];
  let filled = 0;
  let cut = 1;
  let best = [-1, Infinity];
  for (let r = 1; r < rows.length && cut < columns; r++) {
    filled += heights[r - 1] + RISE;
    const ideal = (cut * total) / columns;
    const slack = (0.2 * total) / columns;
    const cost = crossingAt(places, rows, r) + (2 * Math.abs(filled - ideal)) / slack;
    if (filled > ideal - slack && cost < best[1] && rowsBetween(heights, starts[starts.length - 1], r)) best = [r, cost];
    if (filled >= ideal + slack || r === rows.length - 1) {
      if (best[0] > 0 && rowsBetween(heights, best[0], rows.length)) starts.push(best[0]);
      best = [-1, Infinity];
      cut += 1;
    }
  }
  return starts;
}

// Whether some of these rows have boxes, and not only ports.
function rowsBetween(heights, start, stop) {
  return heights.slice(start, stop).some((h) => h > 0);
}

function crossingAt(places, rows, r) {
  return rows[r - 1].filter((i) => places.below[i].length).length;
}

function extent(places, row, x) {
  let low = Infinity;
  let high = -Infinity;
  for (const i of row) {
    low = Math.min(low, x[i] - places.w[i] / 2);
    high = Math.max(high, x[i] + places.w[i] / 2);
  }
  return low < high ? [low, high] : [low === Infinity ? 0 : low, low === Infinity ? 0 : high];
}

// The shift of each column to the right, and the lanes to its left.
function columnShifts(places, rows, x, column, starts) {
  const shift = [];
  const gutters = [];
  let at = 0;
  starts.forEach((start, c) => {
    if (c) {
      const lanes = crossingAt(places, rows, start);
      gutters.push({ left: at + GUTTER / 2, lanes: new Map() });
      at += GUTTER + lanes * (LANE - 3);
    } else gutters.push(null);
    const members = rows.filter((_, r) => column[r] === c).flat();
    const [low, high] = extent(places, members, x);
    shift.push(at - low);
    at += high - low;
  });
  return { shift, width: at, gutters };
}
