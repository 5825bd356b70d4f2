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
