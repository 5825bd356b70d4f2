// Layout: the rows of boxes and their order, the coordinates, and the routes of edges.
//
// Ranks: the row of each box, and the order of the boxes in a row.
//
//   makePlaces(items, links)   rows by longest path; an edge over several rows gets a dummy in each
//                              row that it crosses, shared by all edges of one value
//   orderRows(places)          barycenter passes; the order with the fewest crossings is used
//
// After K. Sugiyama, S. Tagawa, M. Toda, IEEE Trans. SMC 11(2), 1981.  Every link goes from an item
// to a later one; `port` is "in" or "out" for the points where edges enter and leave the group.

const ORDER_PASSES = 12;

function rankItems(items, links) {
  const base = items.some((item) => item.port === "in") ? 1 : 0;
  const rank = items.map((item) => (item.port === "in" ? 0 : base));
  const users = items.map(() => []);
  const operands = items.map(() => []);
  for (const { from, to } of links) {
    users[from].push(to);
    operands[to].push(from);
  }
  for (let i = 0; i < items.length; i++) {
    for (const a of operands[i]) rank[i] = Math.max(rank[i], rank[a] + 1);
  }
  for (const link of links) link.spine = rank[link.to] === rank[link.from] + 1; // of a longest path
  const last = Math.max(0, ...rank.map((r, i) => (items[i].port === "out" ? r : r + 1)));
  items.forEach((item, i) => { if (item.port === "out") rank[i] = last; });
  // A box with a single user is moved down to it, with the boxes that only it uses.
  const free = items.map((item) => !item.port);
  for (let i = 0; i < items.length; i++) {
    free[i] = free[i] && operands[i].every((a) => free[a] && new Set(users[a]).size === 1);
  }
  for (let i = items.length - 1; i >= 0; i--) {
    if (free[i] && users[i].length) rank[i] = Math.min(...users[i].map((b) => rank[b])) - 1;
  }
  return rank;
}

function makePlaces(items, links) {
  const places = {
    rank: rankItems(items, links),
    w: items.map((item) => item.w), h: items.map((item) => item.h),
    dummy: items.map(() => false),
    above: items.map(() => []), below: items.map(() => []), // [place, target offset of x, weight]
    chains: new Array(links.length),
  };
  const sources = new Map();
  const byRank = links.map((_, k) => k).sort((a, b) => places.rank[links[a].to] - places.rank[links[b].to]);
  for (const k of byRank) {
    const link = links[k];
    const key = `${link.from}|${link.fromKey}`;
    if (!sources.has(key)) sources.set(key, [link.from]);
    const chain = sources.get(key);
    const passed = places.rank[link.to] - places.rank[link.from];
    while (chain.length < passed) addDummy(places, chain, limited(link.startX));
    const before = chain[Math.max(0, passed - 1)];
    const offset = (before === link.from ? limited(link.startX) : 0) - limited(link.endX);
    join(places, before, link.to, offset, before !== link.from ? 0.3 : link.spine ? 1 : 0.1);
    places.chains[k] = [...chain.slice(0, Math.max(1, passed)), link.to];
  }
  return places;
}

// Limits the offset of ports of large groups, or a chain of such groups would drift sideways.
function limited(offset) { return Math.max(-90, Math.min(90, offset)); }

function addDummy(places, chain, startX) {
  const before = chain[chain.length - 1];
  const made = places.rank.length;
  places.rank.push(places.rank[before] + 1);
  places.w.push(0);
  places.h.push(0);
  places.dummy.push(true);
  places.above.push([]);
  places.below.push([]);
  join(places, before, made, chain.length === 1 ? startX : 0, chain.length === 1 ? 0.3 : 4);
  chain.push(made);
}

// Add an edge; its weight for verticality is the highest for long edges, then for longest paths.
function join(places, a, b, offset, weight) {
  places.below[a].push([b, -offset, weight]);
  places.above[b].push([a, offset, weight]);
}

// ---- order -------------------------------------------------------------------------------------

function orderRows(places) {
  const rows = Array.from({ length: Math.max(-1, ...places.rank) + 1 }, () => []);
  for (const i of byDepth(places)) rows[places.rank[i]].push(i);
  const position = new Array(places.rank.length).fill(0);
  const number = (row) => row.forEach((i, k) => { position[i] = k; });
  rows.forEach(number);
  let best = rows.map((row) => row.slice());
  let fewest = crossings(places, rows, position);
  for (let pass = 0; pass < ORDER_PASSES && fewest > 0; pass++) {
    const down = pass % 2 === 0;
    for (let k = 1; k < rows.length; k++) {
      const r = down ? k : rows.length - 1 - k;
      sortRow(rows[r], down ? places.above : places.below, position);
      number(rows[r]);
    }
    const count = crossings(places, rows, position);
    if (count < fewest) {
      fewest = count;
      best = rows.map((row) => row.slice());
    }
  }
  return best;
}

// All places, depth first from the bottom, so that connected places start close together.
function byDepth(places) {
  const order = new Set();
  const stack = [];
  for (let i = places.rank.length - 1; i >= 0; i--) if (!places.below[i].length) stack.push(i);
  while (stack.length) {
    const i = stack.pop();
    if (order.has(i)) continue;
    order.add(i);
    for (let k = places.above[i].length - 1; k >= 0; k--) stack.push(places.above[i][k][0]);
  }
  return order;
}

function sortRow(row, neighbors, position) {
  const keys = new Map();
  row.forEach((i, k) => {
    const around = neighbors[i];
    let sum = 0;
    for (const [j] of around) sum += position[j];
    keys.set(i, around.length ? sum / around.length : k);
  });
  row.sort((a, b) => keys.get(a) - keys.get(b));
}

// The number of crossing pairs of edges: inversions, counted with a Fenwick tree.
function crossings(places, rows, position) {
  let total = 0;
  for (let r = 0; r + 1 < rows.length; r++) {
    const size = rows[r + 1].length;
    const sums = new Int32Array(size + 1);
    let seen = 0;
    for (const i of rows[r]) {
      const ends = places.below[i].map(([j]) => position[j]);
      for (const end of ends) {
        let before = 0;
        for (let k = end + 1; k > 0; k -= k & -k) before += sums[k];
        total += seen - before;
      }
      for (const end of ends) {
        for (let k = end + 1; k <= size; k += k & -k) sums[k] += 1;
        seen += 1;
      }
    }
  }
  return total;
}

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

// Layer: the layout of one group, from its members and the links between them.
//
//   arrange(items, links)  ->  { w, h, at: centers of the items, routes: points of each link }
//
// A point of a route has `l: 1` if the segment that leads to it is straight; otherwise the segment
// is a curve that is vertical at both ends.

function arrange(items, links) {
  const places = makePlaces(items, links);
  const rows = orderRows(places);
  const x = spreadRows(places, rows);
  const stack = stackRows(places, rows, x);
  const at = items.map((item, i) => centreOf(places, stack, x, i, item));
  return { w: stack.width, h: stack.height, at, routes: routesOf(items, links, places, stack, x, at) };
}

function centreOf(places, stack, x, i, item) {
  const r = places.rank[i];
  const y = item.port === "out" ? stack.height : stack.top[r] + stack.heights[r] / 2;
  return { x: x[i] + stack.shift[stack.column[r]], y };
}

function routesOf(items, links, places, stack, x, at) {
  const middles = links.map((_, k) => middleOf(places, stack, x, places.chains[k]));
  const starts = startsOf(items, links, middles, at);
  const ends = endsOf(items, links, middles, at);
  return links.map((link, k) => {
    const points = [starts[k]];
    const start = places.rank[link.from];
    const bottom = stack.top[start] + stack.heights[start];
    if (!items[link.from].port && bottom > starts[k].y + 3) points.push({ x: starts[k].x, y: bottom, l: 1 });
    points.push(...middles[k]);
    const end = places.rank[link.to];
    if (!items[link.to].port && stack.top[end] < ends[k].y - 3) {
      points.push({ x: ends[k].x, y: stack.top[end] }, { ...ends[k], l: 1 });
    } else points.push(ends[k]);
    return points;
  });
}

// The points of an edge between its ends: straight down across rows, around between columns.
function middleOf(places, stack, x, chain) {
  const points = [];
  for (let k = 0; k < chain.length; k++) {
    const [i, r] = [chain[k], places.rank[chain[k]]];
    const shift = stack.shift[stack.column[r]];
    if (k > 0 && k < chain.length - 1) {
      points.push({ x: x[i] + shift, y: stack.top[r] });
      points.push({ x: x[i] + shift, y: stack.top[r] + stack.heights[r], l: 1 });
    }
    const next = chain[k + 1];
    if (next === undefined || stack.column[places.rank[next]] === stack.column[r]) continue;
    points.push(...jump(places, stack, x, i, next));
  }
  return points;
}

function jump(places, stack, x, i, next) {
  const [r, s] = [places.rank[i], places.rank[next]];
  const gutter = stack.gutters[stack.column[s]];
  if (!gutter.lanes.has(i)) gutter.lanes.set(i, gutter.lanes.size);
  const lane = gutter.lanes.get(i);
  const bottom = stack.top[r] + stack.heights[r] + 10 + 4 * lane;
  const over = stack.top[s] - 16 - 4 * lane;
  const here = x[i] + stack.shift[stack.column[r]];
  const there = x[next] + stack.shift[stack.column[s]];
  const across = gutter.left + lane * (LANE - 3);
  return [
    { x: here, y: bottom, l: 1 }, { x: across, y: bottom, l: 1 }, { x: across, y: over, l: 1 },
    { x: there, y: over, l: 1 },
  ];
}

// Where links leave a box: an open group has fixed ports, the keys of a closed group are side by
// side, and all links of a line leave from the middle, because it has one value.
function startsOf(items, links, middles, at) {
  const keys = new Map();
  links.forEach((link, k) => {
    const item = items[link.from];
    if (item.port || item.out) return;
    const toward = (middles[k][0] || at[link.to]).x;
    if (!keys.has(link.from)) keys.set(link.from, new Map());
    keys.get(link.from).set(link.fromKey, toward);
  });
  return links.map((link) => {
    const item = items[link.from];
    const { x, y } = at[link.from];
    if (item.port) return { x, y };
    if (item.out) return { x: x + link.startX, y: y + item.h / 2 };
    const order = [...keys.get(link.from)].sort((a, b) => a[1] - b[1]).map(([key]) => key);
    return { x: x + portOffset(order.indexOf(link.fromKey), order.length, item.w), y: y + item.h / 2 };
  });
}

// Where links arrive at a box: side by side, from left to right in the order of their origins.
function endsOf(items, links, middles, at) {
  const arriving = new Map();
  links.forEach((link, k) => {
    const from = middles[k].length ? middles[k][middles[k].length - 1].x : at[link.from].x + link.startX;
    if (!arriving.has(link.to)) arriving.set(link.to, []);
    arriving.get(link.to).push([from, k]);
  });
  const ends = new Array(links.length);
  for (const [to, list] of arriving) {
    const item = items[to];
    list.sort((a, b) => a[0] - b[0]);
    list.forEach(([, k], slot) => {
      const { x, y } = at[to];
      if (item.port) ends[k] = { x, y };
      else if (item.in) ends[k] = { x: x + links[k].endX, y: y - item.h / 2 };
      else ends[k] = { x: x + portOffset(slot, list.length, item.w), y: y - item.h / 2 };
    });
  }
  return ends;
}

function portOffset(slot, count, width) {
  const step = Math.min(16, (width - 20) / Math.max(1, count));
  return (slot - (count - 1) / 2) * step;
}
