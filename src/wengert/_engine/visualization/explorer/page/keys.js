// Keys, pointers and steps.
//
// Steps: moving through the graphs of a history, with a summary of each step.

function fillSteps(app) {
  const bar = document.getElementById("steps");
  bar.hidden = BOOK.steps.length < 2;
  if (bar.hidden) return;
  const { step, n } = app.model;
  const row = BOOK.steps[step];
  const before = step ? BOOK.steps[step - 1].lines.length : n;
  const done = row.before ? row.before.filter((was) => was < 0).length : 0;
  const marks = [...app.model.marks.values()];
  const gone = marks.filter((mark) => mark === "gone").length;
  const words = [`${step ? `${before} → ` : ""}${n} lines`];
  if (done) words.push(`${done} new (+)`);
  if (row.rewired && row.rewired.length) words.push(`${row.rewired.length} with other operands (≠)`);
  if (gone) words.push(`${gone} to go next (−)`);
  document.getElementById("step-title").textContent = `${step + 1}/${BOOK.steps.length}  ${row.title}`;
  document.getElementById("step-words").textContent = words.join(" · ");
  document.getElementById("step-note").textContent = row.note;
  document.getElementById("step-back").disabled = step === 0;
  document.getElementById("step-on").disabled = step === BOOK.steps.length - 1;
  const slider = document.getElementById("step-slider");
  slider.max = BOOK.steps.length - 1;
  slider.value = step;
  slider.setAttribute("aria-valuetext", `${row.title}: ${words.join(", ")}`);
}

// The box of the new step that corresponds to the selected box of the old one.
function carried(from, to, box) {
  if (box < 0) return -1;
  if (isGroup(from, box)) {
    const same = to.groups.find((g) => g.path === groupOf(from, box).path);
    return same ? to.n + same.number : -1;
  }
  if (to.place.has(from.pool[box])) return to.place.get(from.pool[box]);
  let line = box;
  for (let s = from.step; s < to.step && line >= 0; s++) line = BOOK.steps[s + 1].before.indexOf(line);
  for (let s = from.step; s > to.step && line >= 0; s--) line = BOOK.steps[s].before[line];
  return line;
}

// Keys and pointers: moving, zooming and selecting.

const PAN = 60;

function listenToKeys(app) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches("input[type=search], input[type=range]");
    if (typing && event.key !== "Escape") return;
    const act = actionOf(app, event);
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function actionOf(app, event) {
  const onCanvas = event.target === app.canvas || event.target === document.body;
  const moves = {
    ArrowUp: () => app.walk("up"), ArrowDown: () => app.walk("down"),
    ArrowLeft: () => app.walk("left"), ArrowRight: () => app.walk("right"),
    Enter: () => app.enter(), " ": () => app.enter(),
  };
  if (onCanvas && moves[event.key]) return moves[event.key];
  return {
    "+": () => app.zoom(1.25), "=": () => app.zoom(1.25), "-": () => app.zoom(0.8),
    0: () => app.fit(), f: () => app.fit(), "/": () => document.getElementById("search").focus(),
    n: () => app.nextHit(1), N: () => app.nextHit(-1), "[": () => app.goStep(app.model.step - 1),
    "]": () => app.goStep(app.model.step + 1), a: () => app.showReach("ancestors"),
    d: () => app.showReach("descendants"), l: () => app.showTab("lines"), "?": () => app.help(),
    c: () => document.getElementById("constants").click(), Escape: () => app.escape(),
  }[event.key];
}

function listenToPointer(app) {
  const { canvas } = app;
  const down = new Map();
  let moved = 0;
  const spread = () => {
    const [p, q] = [...down.values()];
    return [Math.hypot(p.x - q.x, p.y - q.y), (p.x + q.x) / 2, (p.y + q.y) / 2];
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    moved = down.size > 1 ? 99 : 0;
  });
  canvas.addEventListener("pointermove", (event) => {
    const last = down.get(event.pointerId);
    if (!last) {
      app.setHover(app.boxAt(event.offsetX, event.offsetY));
      return;
    }
    const before = down.size === 2 ? spread() : null;
    const [dx, dy] = [event.offsetX - last.x, event.offsetY - last.y];
    moved += Math.abs(dx) + Math.abs(dy);
    Object.assign(last, { x: event.offsetX, y: event.offsetY });
    if (before) {
      const [size, x, y] = spread();
      app.camera.pan(x - before[1], y - before[2]);
      app.zoom(size / Math.max(1, before[0]), x, y);
    } else if (moved > 3) app.pan(dx, dy);
  });
  const up = (event) => {
    const was = down.delete(event.pointerId);
    if (was && event.type === "pointerup" && moved <= 3) app.click(event.offsetX, event.offsetY);
  };
  canvas.addEventListener("pointerup", up);
  canvas.addEventListener("pointercancel", up);
  canvas.addEventListener("pointerleave", () => app.setHover(-1));
  canvas.addEventListener("wheel", (event) => {
    // In a notebook the wheel scrolls the notebook until the user has clicked into the drawing.
    if (window.self !== window.top && document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 18 : 1;
    app.zoom(Math.exp(-event.deltaY * unit * (event.ctrlKey ? 0.01 : 0.0016)), event.offsetX, event.offsetY);
  }, { passive: false });
}
