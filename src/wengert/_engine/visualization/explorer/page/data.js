// Data: the data of the page, written by page_data.py.
//
//   BOOK            all texts, operations, nodes ("lines") and steps
//   makeModel(k)    the graph of step k: operands, consumers, groups, and texts for each line
//
// A line is one node of the graph.  It is identified by its number in the graph, which differs from
// step to step, and its texts by its number in the columns, which does not.

const BOOK = JSON.parse(document.getElementById("data").textContent);

function makeModel(step) {
  const row = BOOK.steps[step];
  const pool = row.lines;
  const place = new Map(pool.map((p, i) => [p, i]));
  const operands = pool.map((p) => BOOK.lines.args[p].map((a) => place.get(a)));
  const consumers = pool.map(() => []);
  operands.forEach((used, i) => new Set(used).forEach((k) => consumers[k].push(i)));
  const model = {
    step, pool, place, operands, consumers, n: pool.length, home: row.home,
    outputs: new Set(row.outputs), effects: new Set(row.effects), updates: row.updates,
    groups: makeGroups(row, pool), marks: makeMarks(step),
  };
  model.updated = new Map(row.updates.map(([variable, next]) => [next, variable]));
  return model;
}

function makeGroups(row, pool) {
  const groups = row.groups.map(([kind, name, parent], number) => ({
    number, kind, name: BOOK.texts[name], parent, members: [], lines: 0, ops: new Map(), first: -1,
    path: "", depth: 0,
  }));
  for (const g of groups) {
    if (g.parent < 0) continue;
    const parent = groups[g.parent];
    g.path = `${parent.path}/${g.kind}:${g.name}`;
    g.depth = parent.depth + 1;
  }
  row.home.forEach((h, i) => {
    groups[h].members.push({ line: i });
    const op = opOf(pool[i]).name;
    for (let g = h; g >= 0; g = groups[g].parent) {
      const group = groups[g];
      group.lines += 1;
      group.ops.set(op, (group.ops.get(op) || 0) + 1);
      if (group.first < 0) {
        group.first = i;
        if (group.parent >= 0) groups[group.parent].members.push({ group: g });
      }
    }
  });
  return groups;
}

// The change of each line in this step ("new", "rewired") or in the next one ("gone").
function makeMarks(step) {
  const marks = new Map();
  const row = BOOK.steps[step];
  if (row.before) {
    row.rewired.forEach((i) => marks.set(i, "rewired"));
    row.before.forEach((was, i) => { if (was < 0) marks.set(i, "new"); });
  }
  const next = BOOK.steps[step + 1];
  if (next) {
    const kept = new Set(next.before);
    row.lines.forEach((_, i) => { if (!kept.has(i)) marks.set(i, "gone"); });
  }
  return marks;
}

// ---- texts -------------------------------------------------------------------------------------

function textOf(column, p) { return BOOK.texts[BOOK.lines[column][p]]; }
function opOf(p) { return BOOK.ops[BOOK.lines.op[p]]; }
function levelOf(p) { return BOOK.lines.level[p]; }
function levelName(level) { return BOOK.levels[level]; }
function inlineText(p) { return BOOK.lines.inline[p] ? textOf("inline", p) : ""; }

function placeOf(p) {
  const found = BOOK.places[BOOK.lines.place[p]];
  return found ? { file: found[0], line: found[1], within: found[2], text: found[3] } : null;
}

// The title of a box, which includes the operands that are shown inside it.
function titleOf(model, i, inlined) {
  const p = model.pool[i];
  const op = opOf(p);
  const name = textOf("name", p);
  if (op.kind === undefined) return name || op.name;
  const used = model.operands[i];
  let words = op.name.replace(/^_+|_+$/g, "");
  if (used.some(inlined)) {
    const parts = used.map((k) => (inlined(k) ? inlineText(model.pool[k]) : "·"));
    words += `(${parts.join(", ")})`;
  }
  return name ? `${name} = ${words}` : words;
}

function detailOf(model, i) {
  const p = model.pool[i];
  const params = textOf("params", p);
  const more = params && params.length <= 26 ? `  ${params}` : params ? "  …" : "";
  return textOf("spec", p) + more;
}

function sentenceOf(model, i) {
  const p = model.pool[i];
  const used = model.operands[i].map((k) => `%${k}`).join(" ");
  const name = textOf("name", p);
  return `%${i} = ${opOf(p).name} ${name} ${used}`.replace(/ +/g, " ").trim();
}

function groupSummary(group) {
  const ops = [...group.ops].sort((a, b) => b[1] - a[1]).slice(0, 3);
  const words = ops.map(([name, count]) => (count > 1 ? `${name} ×${count}` : name));
  const lines = group.lines === 1 ? "1 line" : `${group.lines} lines`;
  return `${lines} · ${words.join(", ")}${group.ops.size > 3 ? " …" : ""}`;
}

// Tree: which boxes are visible.
//
// A line is visible as itself, or as the outermost closed group around it.  It is not visible if its
// level of derivative is hidden, or if it is a number that is shown inside its users.  Open groups
// are stored by path, so that they stay open from one step to the next.

const BUDGETS = [90, 60, 40, 25, 12, 1]; // numbers of boxes to try for the first view

class Tree {
  constructor() {
    this.open = new Set();
    this.hidden = new Set(); // levels
    this.constantsAsBoxes = false;
  }

  // Open groups from the outside in, up to a number of boxes; blocks of a group all or none.
  openSome(model, budget) {
    this.open = new Set([""]);
    let shown = model.groups[0].members.length;
    const queue = [model.groups[0]];
    while (queue.length) {
      const inside = queue.shift().members.filter((m) => m.group !== undefined).map((m) => model.groups[m.group]);
      const blocks = inside.filter((g) => g.kind === "block");
      for (const some of [blocks, ...inside.filter((g) => g.kind !== "block").map((g) => [g])]) {
        const more = some.reduce((sum, g) => sum + boxesIn(model, g) - 1, 0);
        if (shown + more > budget) continue;
        shown += more;
        for (const g of some) this.open.add(g.path);
        queue.push(...some);
      }
    }
  }

  openAll(model) { model.groups.forEach((g) => this.open.add(g.path)); }
  closeAll() { this.open = new Set([""]); }

  toggle(group) {
    if (group.parent < 0) return;
    if (!this.open.delete(group.path)) this.open.add(group.path);
  }

  // Open all groups around a line or a group.
  reveal(model, box) {
    let g = isGroup(model, box) ? model.groups[box - model.n].parent : model.home[box];
    for (; g >= 0; g = model.groups[g].parent) this.open.add(model.groups[g].path);
    if (!isGroup(model, box)) this.hidden.delete(levelOf(model.pool[box]));
  }

  isInlined(model, i) {
    return !this.constantsAsBoxes && inlineText(model.pool[i]) !== "";
  }

  isSeen(model, i) {
    return !this.hidden.has(levelOf(model.pool[i])) && !this.isInlined(model, i);
  }

  // The visible box of each line, or -1.
  boxes(model) {
    const outermost = model.groups.map(() => -1); // the outermost closed group, itself included
    for (const g of model.groups) {
      const above = g.parent < 0 ? -1 : outermost[g.parent];
      outermost[g.number] = above >= 0 ? above : this.open.has(g.path) ? -1 : g.number;
    }
    return model.pool.map((_, i) => {
      if (!this.isSeen(model, i)) return -1;
      const closed = outermost[model.home[i]];
      return closed < 0 ? i : model.n + closed;
    });
  }
}

function boxesIn(model, group) {
  return group.members.filter((m) => m.group !== undefined || !inlineText(model.pool[m.line])).length;
}

// Boxes are numbered, first the lines and then the groups.
function isGroup(model, box) { return box >= model.n; }
function groupOf(model, box) { return model.groups[box - model.n]; }
function containerOf(model, box) {
  return isGroup(model, box) ? groupOf(model, box).parent : model.home[box];
}
