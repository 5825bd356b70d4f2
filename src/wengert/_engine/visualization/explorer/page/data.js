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
