// Scene: all boxes and wires that are drawn, in one coordinate system.
//
//   buildScene(model, tree, measure)  ->  { boxes, wires, byBox, w, h }
//
// An edge between two groups leaves the first through a port at its bottom and enters the second
// through a port at its top, so that each group can be laid out separately.  If more than BUNDLE
// values go from one box to another, they share one port and one thick wire.

const BUNDLE = 10;
const PAD = 18;
const HEADER = 34;
const BOX_HEIGHT = 42;

function buildScene(model, tree, measure) {
  const boxOf = tree.boxes(model);
  const insides = liftEdges(model, boxOf);
  const scene = { boxes: [], wires: [], byBox: new Map(), boxOf, w: 0, h: 0 };
  const root = layGroup(model, tree, insides, boxOf, measure, 0);
  flatten(model, scene, root, 0, 0, 0);
  scene.w = root.w;
  scene.h = root.h;
  addUpdates(model, scene, boxOf);
  return scene;
}

// ---- edges, lifted to the groups that they cross -------------------------------------------------

function liftEdges(model, boxOf) {
  const edges = mergedEdges(model, boxOf);
  const values = new Map(); // the values that go from one box of a group to another
  for (const edge of edges) {
    Object.assign(edge, meeting(model, edge.u, edge.v));
    const pair = `${edge.a}>${edge.b}`;
    if (!values.has(pair)) values.set(pair, new Set());
    values.get(pair).add(edge.u);
  }
  const insides = new Map();
  for (const edge of edges) {
    const pair = `${edge.a}>${edge.b}`;
    const key = values.get(pair).size > BUNDLE ? pair : String(edge.u);
    liftEdge(model, insides, edge, key);
  }
  return insides;
}

function mergedEdges(model, boxOf) {
  const found = new Map();
  for (let i = 0; i < model.n; i++) {
    const v = boxOf[i];
    if (v < 0) continue;
    for (const k of model.operands[i]) {
      const u = boxOf[k];
      if (u < 0 || u === v) continue;
      const key = u * 2097152 + v;
      if (!found.has(key)) found.set(key, { u, v, lines: [], control: true });
      found.get(key).lines.push([k, i]);
      found.get(key).control = found.get(key).control && isControl(model, k, i);
    }
  }
  return [...found.values()];
}

// Whether a line must run after another without using its value.
function isControl(model, k, i) {
  return Boolean(opOf(model.pool[i]).waits) && model.operands[i][0] !== k;
}

// The innermost group around two boxes, and its members that contain them.
function meeting(model, u, v) {
  const [up, vp] = [pathTo(model, u), pathTo(model, v)];
  let d = 0;
  while (d + 1 < up.length && d + 1 < vp.length && up[d + 1] === vp[d + 1]) d += 1;
  return {
    up, vp, depth: d, a: d + 1 < up.length ? model.n + up[d + 1] : u,
    b: d + 1 < vp.length ? model.n + vp[d + 1] : v,
  };
}

// The groups around a box, the outermost first.
function pathTo(model, box) {
  const path = [];
  for (let g = containerOf(model, box); g >= 0; g = model.groups[g].parent) path.push(g);
  return path.reverse();
}

function liftEdge(model, insides, edge, key) {
  const { u, v, up, vp, depth } = edge;
  for (let d = up.length - 1; d > depth; d--) {
    const from = d === up.length - 1 ? u : model.n + up[d + 1];
    addLink(insides, up[d], from, key, `out:${key}`, key, edge);
  }
  addLink(insides, up[depth], edge.a, key, edge.b, key, edge);
  for (let d = vp.length - 1; d > depth; d--) {
    const to = d === vp.length - 1 ? v : model.n + vp[d + 1];
    addLink(insides, vp[d], `in:${key}`, key, to, key, edge);
  }
}

function addLink(insides, group, from, fromKey, to, toKey, edge) {
  if (!insides.has(group)) insides.set(group, new Map());
  const links = insides.get(group);
  const name = `${from}|${fromKey}|${to}|${toKey}`;
  if (!links.has(name)) links.set(name, { from, fromKey, to, toKey, edges: [] });
  links.get(name).edges.push(edge);
}

// ---- one group -----------------------------------------------------------------------------------

function layGroup(model, tree, insides, boxOf, measure, g) {
  const group = model.groups[g];
  const children = seenMembers(model, tree, boxOf, group).map((box) => {
    if (isGroup(model, box) && tree.open.has(groupOf(model, box).path)) {
      return layGroup(model, tree, insides, boxOf, measure, box - model.n);
    }
    return { box, ...measure(model, tree, box) };
  });
  const links = [...(insides.get(g) || new Map()).values()];
  const ports = (side, end) => [...new Set(links.map((link) => link[end]).filter((name) => String(name).startsWith(side)))]
    .map((name) => ({ box: name, w: 6, h: 0, port: side }));
  const items = [...ports("in", "from"), ...sorted(children, links), ...ports("out", "to")];
  const index = new Map(items.map((item, k) => [item.box, k]));
  const [forward, backward] = [[], []];
  for (const link of links) {
    const [from, to] = [index.get(link.from), index.get(link.to)];
    const made = {
      from, to, fromKey: link.fromKey, edges: link.edges,
      startX: items[from].out ? items[from].out.get(link.fromKey) : 0,
      endX: items[to].in ? items[to].in.get(link.toKey) : 0,
    };
    (from < to ? forward : backward).push(made);
  }
  const inside = arrange(items, forward);
  return framed(model, g, items, forward, backward, inside, measure);
}

// Members in an order in which they can be computed.  Groups may depend on each other in both
// directions, so that there is no such order; then the one with the earliest line comes first.
function sorted(children, links) {
  const index = new Map(children.map((child, k) => [child.box, k]));
  const missing = children.map(() => 0);
  const users = children.map(() => []);
  for (const { from, to } of links) {
    if (!index.has(from) || !index.has(to)) continue;
    users[index.get(from)].push(index.get(to));
    missing[index.get(to)] += 1;
  }
  const waiting = new Set(children.keys());
  const ready = new Set([...waiting].filter((k) => !missing[k]));
  const order = [];
  while (waiting.size) {
    const k = ready.size ? Math.min(...ready) : waiting.values().next().value;
    ready.delete(k);
    waiting.delete(k);
    order.push(children[k]);
    for (const b of users[k]) {
      missing[b] -= 1;
      if (!missing[b] && waiting.has(b)) ready.add(b);
    }
  }
  return order;
}

function seenMembers(model, tree, boxOf, group) {
  const seen = [];
  for (const member of group.members) {
    if (member.line !== undefined) {
      if (boxOf[member.line] >= 0) seen.push(member.line);
    } else if (hasSeen(model, tree, model.groups[member.group])) seen.push(model.n + member.group);
  }
  return seen;
}

function hasSeen(model, tree, group) {
  const stack = [group];
  while (stack.length) {
    for (const m of stack.pop().members) {
      if (m.group !== undefined) stack.push(model.groups[m.group]);
      else if (tree.isSeen(model, m.line)) return true;
    }
  }
  return false;
}

// The frame around the layout of a group, with the positions of its ports.
function framed(model, g, items, forward, backward, inside, measure) {
  const root = g === 0;
  const label = root ? 0 : measure.label(model.groups[g].name) + 46;
  const side = PAD + (backward.length ? 16 + 8 * backward.length : 0);
  const w = Math.max(inside.w + PAD + side, label);
  const h = inside.h + (root ? 2 * PAD : HEADER + PAD);
  const [left, top] = [PAD + (w - inside.w - PAD - side) / 2, root ? PAD : HEADER];
  const ports = (side) => new Map(items.flatMap((item, k) => (item.port === side
    ? [[item.box.slice(side.length + 1), inside.at[k].x + left - w / 2]] : [])));
  return {
    box: model.n + g, w, h, items, inside, left, top, forward, backward, open: true,
    in: ports("in"), out: ports("out"),
  };
}

// ---- the whole drawing ----------------------------------------------------------------------------

function flatten(model, scene, laid, x, y, depth) {
  const { items, inside, left, top } = laid;
  const group = groupOf(model, laid.box);
  addBox(scene, { id: laid.box, x, y, w: laid.w, h: laid.h, open: true, depth, group });
  items.forEach((item, k) => {
    if (item.port) return;
    const [bx, by] = [x + left + inside.at[k].x - item.w / 2, y + top + inside.at[k].y - item.h / 2];
    if (item.open) flatten(model, scene, item, bx, by, depth + 1);
    else {
      const { box, ...rest } = item;
      addBox(scene, { id: box, ...rest, x: bx, y: by, depth: depth + 1 });
    }
  });
  laid.forward.forEach((link, k) => {
    const points = inside.routes[k].map((p) => ({ ...p, x: p.x + x + left, y: p.y + y + top }));
    const last = points[points.length - 1];
    const first = points[0];
    // A wire from a port begins at the edge of the frame.
    if (items[link.from].port) points.unshift({ x: first.x, y });
    if (items[link.from].port) points[1] = { ...points[1], l: 1 };
    if (items[link.to].port) points.push({ x: last.x, y: y + laid.h, l: 1 });
    addWire(scene, link, points, !items[link.to].port && !items[link.to].open);
  });
  laid.backward.forEach((link, k) => {
    const [a, b] = [items[link.from], items[link.to]].map((item) => item);
    const [p, q] = [inside.at[link.from], inside.at[link.to]];
    const right = x + left + inside.w + 12 + 8 * k;
    const start = { x: x + left + p.x + link.startX, y: y + top + p.y + a.h / 2 };
    const end = { x: x + left + q.x + link.endX, y: y + top + q.y - b.h / 2 };
    addWire(scene, link, [
      start, { x: start.x, y: start.y + 9, l: 1 }, { x: right, y: start.y + 9, l: 1 },
      { x: right, y: end.y - 9, l: 1 }, { x: end.x, y: end.y - 9, l: 1 }, { ...end, l: 1 },
    ], !b.open);
  });
}

function addBox(scene, box) {
  scene.boxes.push(box);
  scene.byBox.set(box.id, box);
}

function addWire(scene, link, points, head) {
  const sources = new Set(link.edges.map((edge) => edge.u));
  const dashed = link.edges.every((edge) => edge.control);
  scene.wires.push({ points, head, edges: link.edges, count: sources.size, dashed, ...bounds(points) });
}

function bounds(points) {
  const xs = points.map((p) => p.x);
  const ys = points.map((p) => p.y);
  return { x0: Math.min(...xs), x1: Math.max(...xs), y0: Math.min(...ys), y1: Math.max(...ys) };
}

// From the next value of a variable back to the variable.
function addUpdates(model, scene, boxOf) {
  for (const [variable, next] of model.updates) {
    const [from, to] = [scene.byBox.get(boxOf[next]), scene.byBox.get(boxOf[variable])];
    if (!from || !to || from === to) continue;
    const out = Math.max(from.x + from.w, to.x + to.w) + 40;
    const points = [
      { x: from.x + from.w, y: from.y + from.h / 2 }, { x: out, y: from.y + from.h / 2, l: 1 },
      { x: out, y: to.y + to.h / 2, l: 1 }, { x: to.x + to.w, y: to.y + to.h / 2, l: 1 },
    ];
    const edge = { u: from.id, v: to.id, lines: [[next, variable]] };
    scene.wires.push({ points, head: true, edges: [edge], count: 1, dashed: true, update: true, ...bounds(points) });
    scene.w = Math.max(scene.w, out + 10);
  }
}
