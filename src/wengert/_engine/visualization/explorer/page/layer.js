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
