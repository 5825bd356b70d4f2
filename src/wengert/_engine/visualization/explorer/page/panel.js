// Panel: details of the selected line or group, and the list of all lines.
//
// Names are inserted as text and never as markup.

function element(tag, options = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, item] of Object.entries(options)) {
    if (key === "onclick") made.addEventListener("click", item);
    else if (key === "class") made.className = item;
    else made.setAttribute(key, item);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function lineLink(app, i) {
  const label = titleOf(app.model, i, (k) => app.tree.isInlined(app.model, k));
  return element("button", { class: "link", "data-line": i, onclick: () => app.go(i) }, `%${i} ${shortened(label, 30)}`);
}

function fillPanel(app, target) {
  target.replaceChildren();
  const box = app.selected;
  if (box < 0) target.append(...overview(app));
  else if (isGroup(app.model, box)) target.append(...groupPanel(app, groupOf(app.model, box)));
  else target.append(...linePanel(app, box));
}

function facts(rows) {
  const list = element("dl");
  for (const [name, item] of rows) {
    if (item === "" || item === null || item === undefined || (Array.isArray(item) && !item.length)) continue;
    list.append(element("dt", {}, name), element("dd", {}, ...(Array.isArray(item) ? item : [item])));
  }
  return list;
}

function code(text) { return element("code", {}, text); }

// ---- one line ----------------------------------------------------------------------------------

function linePanel(app, i) {
  const { model } = app;
  const p = model.pool[i];
  const op = opOf(p);
  const place = placeOf(p);
  const mark = { new: "new in this step", rewired: "same operation, other operands", gone: "gone after the next step" };
  const roles = [
    model.outputs.has(i) && "output", model.effects.has(i) && "runs always",
    model.updated.has(i) && `next value of %${model.updated.get(i)}`,
  ].filter(Boolean).join(", ");
  const parts = [
    element("h2", {}, titleOf(model, i, (k) => app.tree.isInlined(model, k))),
    element("p", { class: "sentence" }, code(sentenceOf(model, i))),
    op.doc ? element("p", { class: "doc" }, op.doc) : null,
    facts([
      ["formula", op.formula ? code(op.formula) : ""],
      ["spec", code(textOf("spec", p))],
      ["kind", textOf("kind", p)],
      ["operation", op.kind || ""],
      ["level", levelName(levelOf(p))],
      ["scope", textOf("scope", p)],
      ["parameters", textOf("params", p) && code(textOf("params", p))],
      ["role", roles],
      ["change", mark[model.marks.get(i)] || ""],
      ["metadata", textOf("meta", p)],
      ["source", place ? [element("span", { class: "place" }, `${place.file}:${place.line}${place.within ? `, in ${place.within}` : ""}`),
        place.text ? element("pre", {}, place.text) : null] : ""],
      ["operands", [...new Set(model.operands[i])].map((k) => lineLink(app, k))],
      ["used by", someLinks(app, model.consumers[i])],
    ]),
    ...reachRows(app, i),
    statisticsOf(p),
  ];
  return parts.filter(Boolean);
}

function someLinks(app, lines) {
  const links = lines.slice(0, 40).map((k) => lineLink(app, k));
  if (lines.length > 40) links.push(element("span", { class: "more" }, `and ${lines.length - 40} more`));
  return links;
}

function reachRows(app, i) {
  const row = (what, next, title) => {
    const found = reach(next, i);
    const button = element("button", {
      class: "chip", "aria-pressed": app.reachShown === what, onclick: () => app.showReach(what), "data-reach": what,
      title,
    }, `${found.size} ${found.size === 1 ? what.slice(0, -1) : what}`);
    return button;
  };
  return [element("p", { class: "chips" },
    row("ancestors", app.model.operands, "Highlight everything that it needs (a)"),
    row("descendants", app.model.consumers, "Highlight everything that needs it (d)"))];
}

function statisticsOf(p) {
  const found = BOOK.statistics[p];
  if (!found) return null;
  const counts = ["nan", "inf", "zero"].filter((k) => found[k]).map((k) => `${found[k]} ${k}`).join(", ");
  const warn = found.nan || found.inf;
  return element("section", { class: "statistics" },
    element("h3", {}, found.of ? `Values (${found.of})` : "Values"),
    facts([
      ["value", code(found.value)],
      ["elements", found.size === undefined ? "" : String(found.size)],
      ["range", found.min === undefined ? "" : `${found.min} to ${found.max}`],
      ["mean ± std", found.mean === undefined ? "" : `${found.mean} ± ${found.std}`],
      ["counts", counts && element("span", { class: warn ? "warn" : "" }, (warn ? "⚠ " : "") + counts)],
    ]),
    found.histogram ? histogram(found) : null);
}

function histogram(found) {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  const highest = Math.max(...found.histogram);
  const words = `Histogram from ${found.min} to ${found.max}: ${found.histogram.join(", ")}`;
  Object.entries({ viewBox: `0 0 ${found.histogram.length * 10} 60`, class: "histogram", role: "img", preserveAspectRatio: "none", "aria-label": words })
    .forEach(([key, item]) => svg.setAttribute(key, item));
  found.histogram.forEach((count, k) => {
    const bar = document.createElementNS(namespace, "rect");
    const h = count ? Math.max(1.5, (count / highest) * 60) : 0;
    Object.entries({ x: k * 10 + 0.5, y: 60 - h, width: 9, height: h }).forEach(([key, item]) => bar.setAttribute(key, item));
    svg.append(bar);
  });
  return element("figure", {}, svg, element("figcaption", {}, element("span", {}, found.min), element("span", {}, found.max)));
}

// ---- a group, or no selection-------------------------------------------------------------------

function groupPanel(app, group) {
  const ops = [...group.ops].sort((a, b) => b[1] - a[1]);
  const open = app.tree.open.has(group.path);
  return [
    element("h2", {}, group.name),
    element("p", {}, `${{ level: "Gradient level", scope: "Scope", block: "Consecutive lines" }[group.kind]} of ${group.lines} lines`),
    element("p", { class: "chips" }, element("button", { class: "chip", onclick: () => app.toggle(group) }, open ? "Close (Enter)" : "Open (Enter)")),
    element("h3", {}, "Operations"),
    element("ul", { class: "counts" }, ...ops.slice(0, 30).map(([name, count]) => element("li", {}, `${name} ×${count}`))),
  ];
}

function overview(app) {
  const { model } = app;
  const row = BOOK.steps[model.step];
  const links = (lines) => someLinks(app, lines);
  const inputs = model.pool.map((_, i) => i).filter((i) => ["input", "variable"].includes(textOf("tone", model.pool[i])));
  return [
    element("h2", {}, BOOK.title),
    element("p", {}, `${model.n} lines. Select a box to see what it is; ? lists the keys.`),
    facts([
      ["step", BOOK.steps.length > 1 ? `${model.step + 1} of ${BOOK.steps.length}: ${row.title}` : ""],
      ["inputs", links(inputs)],
      ["outputs", links([...model.outputs])],
    ]),
  ];
}

// ---- all lines ---------------------------------------------------------------------------------

const ROW = 22; // pixels; as in page.css

// Only visible rows are in the document, so that long lists scroll fast.
class LineList {
  constructor(app, scroller) {
    Object.assign(this, { app, scroller });
    this.inner = element("div", { class: "rows" });
    scroller.append(this.inner);
    scroller.addEventListener("scroll", () => this.draw());
  }

  reset() {
    this.inner.style.height = `${this.app.model.n * ROW}px`;
    this.draw();
  }

  showLine(i) {
    const { scroller } = this;
    const y = i * ROW;
    if (y < scroller.scrollTop || y > scroller.scrollTop + scroller.clientHeight - ROW) {
      scroller.scrollTop = y - scroller.clientHeight / 2;
    }
    this.draw();
  }

  draw() {
    const { app, scroller } = this;
    if (!scroller.clientHeight) return;
    const first = Math.max(0, Math.floor(scroller.scrollTop / ROW) - 4);
    const last = Math.min(app.model.n, first + Math.ceil(scroller.clientHeight / ROW) + 8);
    const rows = [];
    for (let i = first; i < last; i++) {
      const p = app.model.pool[i];
      const classes = ["row", app.selected === i && "chosen", app.hitLines.has(i) && "hit", app.model.marks.get(i)];
      const row = element("button", { class: classes.filter(Boolean).join(" "), tabindex: -1, onclick: () => app.go(i) },
        element("span", {}, sentenceOf(app.model, i)), element("span", { class: "spec" }, textOf("spec", p)));
      row.style.top = `${i * ROW}px`;
      rows.push(row);
    }
    this.inner.replaceChildren(...rows);
  }
}

// Search: lines whose name, operation, scope, spec, parameters or source line contain the words.
//
//   findLines(model, "layer1 tanh")   every word must occur; "%12" is the line itself, and
//                                     "op:tanh" searches the operation only, "at:" the source

const PARTS = {
  op: (p) => opOf(p).name, name: (p) => textOf("name", p), scope: (p) => textOf("scope", p),
  kind: (p) => textOf("kind", p),
  at: (p) => { const place = placeOf(p); return place ? `${place.file}:${place.line} ${place.text}` : ""; },
};

function haystack(model, i) {
  const p = model.pool[i];
  const place = placeOf(p);
  const words = [
    opOf(p).name, textOf("name", p), textOf("scope", p), textOf("spec", p), textOf("params", p),
    textOf("meta", p), textOf("kind", p), levelOf(p) ? levelName(levelOf(p)) : "",
  ];
  if (place) words.push(`${place.file}:${place.line}`, place.within, place.text);
  return words.join(" ").toLowerCase();
}

function findLines(model, query) {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return [];
  const number = /^%(\d+)$/.exec(query.trim());
  if (number) return Number(number[1]) < model.n ? [Number(number[1])] : [];
  const parts = words.map((word) => /^(op|name|scope|kind|at):(.+)$/.exec(word));
  if (!model.haystacks) model.haystacks = model.pool.map((_, i) => haystack(model, i));
  const found = [];
  const holds = (i, k) => (parts[k]
    ? PARTS[parts[k][1]](model.pool[i]).toLowerCase().includes(parts[k][2]) : model.haystacks[i].includes(words[k]));
  for (let i = 0; i < model.n; i++) if (words.every((_, k) => holds(i, k))) found.push(i);
  return found;
}

// All lines that a line depends on, or that depend on it.
function reach(next, start) {
  const seen = new Set([start]);
  const stack = [start];
  while (stack.length) {
    for (const k of next[stack.pop()]) {
      if (!seen.has(k)) {
        seen.add(k);
        stack.push(k);
      }
    }
  }
  seen.delete(start);
  return seen;
}
