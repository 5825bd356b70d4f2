// Main: the state of the page, and the action of each key and gesture.

class App {
  constructor() {
    this.canvas = document.getElementById("picture");
    this.context = this.canvas.getContext("2d");
    this.camera = new Camera();
    this.tree = new Tree();
    this.measure = makeMeasure();
    Object.assign(this, { selected: -1, hover: -1, hits: [], hitLines: new Set(), hit: -1, reachShown: null, asked: false });
    this.minimap = new Minimap(document.getElementById("minimap"), (x, y) => {
      this.camera.pan(-(x - this.camera.x) * this.camera.k + this.camera.width / 2, -(y - this.camera.y) * this.camera.k + this.camera.height / 2);
      this.redraw();
    });
    this.list = new LineList(this, document.getElementById("lines"));
    this.theme = readTheme(false);
  }

  start() {
    this.model = makeModel(BOOK.steps.length - 1);
    this.resize();
    this.openReadably();
    this.rebuild();
    this.camera.fit(this.scene, false);
    this.list.reset();
    fillPanel(this, document.getElementById("details"));
    fillSteps(this);
  }

  // Open as many groups as are legible when the whole drawing is visible.
  openReadably() {
    for (const budget of BUDGETS) {
      this.tree.openSome(this.model, budget);
      this.scene = buildScene(this.model, this.tree, this.measure);
      this.camera.fit(this.scene, false);
      if (this.camera.k > 0.5) return;
    }
  }

  // ---- drawing ---------------------------------------------------------------------------------

  rebuild() {
    this.scene = buildScene(this.model, this.tree, this.measure);
    this.emphasise();
    this.minimap.take(this.scene, this.theme);
    fillLegend(this);
    this.redraw();
  }

  resize() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: w, clientHeight: h } = this.canvas;
    [this.canvas.width, this.canvas.height] = [Math.round(w * ratio), Math.round(h * ratio)];
    Object.assign(this.camera, { width: w, height: h });
  }

  redraw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame((now) => {
      this.asked = false;
      if (this.camera.step(now)) this.redraw();
      this.drawNow();
    });
  }

  drawNow(theme = this.theme) {
    const since = performance.now();
    const hits = new Set(this.hits.map((i) => this.scene.boxOf[i]).filter((box) => box >= 0));
    const { camera, scene, model, selected, hover, emphasis } = this;
    const ratio = window.devicePixelRatio || 1;
    drawScene(this.context, { camera, scene, model, theme, selected, hover, emphasis, hits, ratio });
    const whole = camera.contains({ x: 0, y: 0, w: scene.w, h: scene.h });
    this.minimap.canvas.hidden = whole; // the view shows everything
    if (!whole) this.minimap.draw(camera, theme);
    this.frame = performance.now() - since;
  }

  // ---- selection -------------------------------------------------------------------------------

  // The emphasized lines: the ancestors or descendants of the selection if shown, else all.
  emphasise() {
    this.emphasis = null;
    if (!this.reachShown || this.selected < 0 || isGroup(this.model, this.selected)) return;
    const next = this.reachShown === "ancestors" ? this.model.operands : this.model.consumers;
    const lines = [this.selected, ...reach(next, this.selected)];
    this.emphasis = new Set(lines.map((i) => this.scene.boxOf[i]).filter((box) => box >= 0));
  }

  select(box) {
    if (box !== this.selected) this.reachShown = box < 0 ? null : this.reachShown;
    this.selected = box;
    this.emphasise();
    fillPanel(this, document.getElementById("details"));
    document.body.classList.toggle("chosen", box >= 0);
    if (box >= 0 && !isGroup(this.model, box)) this.list.showLine(box);
    else this.list.draw();
    say(box < 0 ? "Nothing selected" : this.spoken(box));
    this.redraw();
  }

  spoken(box) {
    if (isGroup(this.model, box)) return `${groupOf(this.model, box).name}, ${groupSummary(groupOf(this.model, box))}`;
    return `${sentenceOf(this.model, box)}, ${textOf("spec", this.model.pool[box])}`;
  }

  // Select a line, and open the groups that hide it.
  go(i) {
    this.tree.reveal(this.model, i);
    this.fillLevels();
    this.rebuild();
    this.select(i);
    const shown = this.scene.byBox.get(i) || this.scene.byBox.get(this.scene.boxOf[this.model.consumers[i][0]]);
    if (shown && (!this.camera.contains(shown) || this.camera.k < 0.5)) this.camera.show(shown, true);
    this.redraw();
  }

  showReach(what) {
    if (this.selected < 0 || isGroup(this.model, this.selected)) return;
    this.reachShown = this.reachShown === what ? null : what;
    this.emphasise();
    fillPanel(this, document.getElementById("details"));
    this.redraw();
  }

  setHover(box) {
    if (box === this.hover) return;
    this.hover = box;
    this.canvas.style.cursor = box >= 0 ? "pointer" : "grab";
    this.canvas.title = box >= 0 ? this.spoken(box) : "";
    this.redraw();
  }

  boxAt(sx, sy) {
    const [x, y] = this.camera.toDrawing(sx, sy);
    const boxes = this.scene.boxes;
    for (let k = boxes.length - 1; k >= 0; k--) {
      const b = boxes[k];
      const h = b.open ? this.headerHeight(b) : b.h;
      if (x >= b.x && x <= b.x + b.w && y >= b.y && y <= b.y + h && !(b.open && b.group.parent < 0)) return b.id;
    }
    return -1;
  }

  // At small scales the label of an open group is larger than its header, and so is its target.
  headerHeight(box) { return Math.min(box.h, Math.max(HEADER, Math.min(14 / this.camera.k, box.w / 7))); }

  click(sx, sy) {
    const box = this.boxAt(sx, sy);
    if (box >= 0 && isGroup(this.model, box)) this.toggle(groupOf(this.model, box));
    else this.select(box);
  }

  // Open or close a group; the point under the pointer does not move.
  toggle(group) {
    const id = this.model.n + group.number;
    const before = this.scene.byBox.get(id);
    const at = before ? this.camera.toScreen(before.x, before.y) : null;
    this.tree.toggle(group);
    this.rebuild();
    const after = this.scene.byBox.get(id);
    if (at && after) {
      const now = this.camera.toScreen(after.x, after.y);
      this.camera.pan(at[0] - now[0], at[1] - now[1]);
      if (after.open && !this.camera.contains(after)) this.showOpened(after);
    }
    this.select(id);
  }

  showOpened(box) {
    const { camera } = this;
    const k = Math.min(camera.k, (camera.width * 0.9) / box.w);
    const high = (camera.height * 0.9) / k;
    const y = box.h > high ? box.y - camera.height / 2 / k + high / 2 : box.y + box.h / 2 - camera.height / 2 / k;
    camera.moveTo(box.x + box.w / 2 - camera.width / 2 / k, y, k, true);
  }

  enter() {
    if (this.selected >= 0 && isGroup(this.model, this.selected)) this.toggle(groupOf(this.model, this.selected));
    else if (this.selected >= 0) this.showTab("details");
  }

  escape() {
    if (document.getElementById("help").open) document.getElementById("help").close();
    else if (document.activeElement === document.getElementById("search")) this.canvas.focus();
    else if (this.hits.length) {
      document.getElementById("search").value = "";
      this.search("");
    } else this.select(-1);
  }

  // Move the selection to the nearest box in that direction, along a wire if there is one.
  walk(way) {
    const here = this.scene.byBox.get(this.scene.boxOf[this.selected] ?? this.selected);
    if (!here) {
      if (this.selected < 0 && way === "down") this.select((this.scene.boxes.find((b) => !b.open) || { id: -1 }).id);
      else this.pan(...{ up: [0, PAN], down: [0, -PAN], left: [PAN, 0], right: [-PAN, 0] }[way]);
      return;
    }
    const linked = new Set();
    for (const { edges } of this.scene.wires) {
      for (const edge of edges) {
        if (way === "up" && edge.v === here.id) linked.add(edge.u);
        if (way === "down" && edge.u === here.id) linked.add(edge.v);
      }
    }
    const best = nearest(this.scene.boxes, here, way, linked);
    if (!best) return;
    this.select(best.id);
    if (!this.camera.contains(best)) this.camera.show(best, true);
  }

  // ---- view ------------------------------------------------------------------------------------

  pan(dx, dy) { this.camera.pan(dx, dy); this.redraw(); }
  zoom(factor, x, y) { this.camera.zoom(factor, x, y); this.redraw(); }
  fit() { this.camera.fit(this.scene, true); this.redraw(); }

  search(query) {
    this.hits = findLines(this.model, query);
    this.hitLines = new Set(this.hits);
    this.hit = -1;
    const shown = this.hits.length ? `${this.hits.length} found` : query.trim() ? "none found" : "";
    document.getElementById("found").textContent = shown;
    this.list.draw();
    this.redraw();
  }

  nextHit(step) {
    if (!this.hits.length) return;
    this.hit = (this.hit + step + this.hits.length + (this.hit < 0 && step < 0 ? 1 : 0)) % this.hits.length;
    document.getElementById("found").textContent = `${this.hit + 1} of ${this.hits.length}`;
    this.go(this.hits[this.hit]);
  }

  goStep(step) {
    if (step < 0 || step >= BOOK.steps.length || step === this.model.step) return;
    const old = this.model;
    this.model = makeModel(step);
    const selected = carried(old, this.model, this.selected);
    for (const g of this.model.groups) if (g.parent < 0) this.tree.open.add(g.path);
    this.selected = -1;
    this.search(document.getElementById("search").value);
    this.rebuild();
    this.list.reset();
    this.select(selected);
    fillSteps(this);
    say(`${BOOK.steps[step].title}: ${this.model.n} lines`);
  }

  showTab(name) {
    for (const tab of ["details", "lines"]) {
      document.getElementById(tab).hidden = tab !== name;
      document.getElementById(`tab-${tab}`).setAttribute("aria-selected", tab === name);
    }
    document.body.classList.add("panel-open");
    if (name === "lines" && this.selected >= 0 && this.selected < this.model.n) this.list.showLine(this.selected);
    this.list.draw();
  }

  help() { document.getElementById("help").showModal(); }

  fillLevels() {
    document.querySelectorAll("#levels input").forEach((box) => {
      box.checked = !this.tree.hidden.has(Number(box.value));
    });
  }
}

function nearest(boxes, here, way, linked) {
  let best = null;
  let least = Infinity;
  const [cx, cy] = [here.x + here.w / 2, here.y + here.h / 2];
  for (const box of boxes) {
    if (box.open || box.id === here.id) continue;
    const [dx, dy] = [box.x + box.w / 2 - cx, box.y + box.h / 2 - cy];
    const upright = way === "up" || way === "down";
    if (upright && linked.size && !linked.has(box.id)) continue;
    const along = { up: -dy, down: dy, left: -dx, right: dx }[way];
    if (along <= 1 && !(upright && linked.size)) continue;
    const cost = Math.abs(along) + 3 * Math.abs(upright ? dx : dy);
    if (cost < least) [best, least] = [box, cost];
  }
  return best;
}

function say(words) { document.getElementById("said").textContent = words; }

function fillLegend(app) {
  const tones = new Set(app.scene.boxes.filter((b) => b.tone && !b.group).map((b) => b.tone));
  const target = document.getElementById("legend-rows");
  target.replaceChildren(...[...tones].sort().map((tone) => {
    const swatch = element("span", { class: `swatch ${["constant", "discrete"].includes(tone) ? "dashed" : ""}` });
    const [fill, stroke] = toneOf(app.theme, tone);
    Object.assign(swatch.style, { background: fill, borderColor: stroke });
    return element("li", {}, swatch, tone);
  }));
  const more = [["output", "double", app.model.outputs.size], ["closed group", "stack", app.scene.boxes.some((b) => b.group && !b.open)],
    ["update", "update", app.scene.wires.some((w) => w.update)],
    ["waits for", "update", app.scene.wires.some((w) => w.dashed && !w.update)]];
  for (const [name, form, there] of more) {
    if (there) target.append(element("li", {}, element("span", { class: `swatch ${form}` }), name));
  }
}

function listenToControls(app) {
  const on = (id, event, act) => document.getElementById(id).addEventListener(event, act);
  on("zoom-in", "click", () => app.zoom(1.3));
  on("zoom-out", "click", () => app.zoom(1 / 1.3));
  on("fit", "click", () => app.fit());
  on("open-all", "click", () => { app.tree.openAll(app.model); app.rebuild(); app.fit(); });
  on("close-all", "click", () => { app.tree.closeAll(); app.rebuild(); app.fit(); });
  on("constants", "change", (event) => { app.tree.constantsAsBoxes = event.target.checked; app.rebuild(); });
  on("search", "input", (event) => app.search(event.target.value));
  on("search", "keydown", (event) => { if (event.key === "Enter") app.nextHit(event.shiftKey ? -1 : 1); });
  on("help-button", "click", () => app.help());
  on("help-close", "click", () => document.getElementById("help").close());
  on("panel-button", "click", () => { document.body.classList.toggle("panel-closed"); document.body.classList.toggle("panel-open"); });
  for (const tab of ["details", "lines"]) on(`tab-${tab}`, "click", () => app.showTab(tab));
  on("step-back", "click", () => app.goStep(app.model.step - 1));
  on("step-on", "click", () => app.goStep(app.model.step + 1));
  on("step-slider", "input", (event) => app.goStep(Number(event.target.value)));
  fillLevelBoxes(app);
}

function fillLevelBoxes(app) {
  const levels = Object.entries(BOOK.levels);
  const target = document.getElementById("levels");
  target.hidden = levels.length < 2;
  for (const [level, name] of levels) {
    const box = element("input", { type: "checkbox", value: level, checked: "" });
    box.addEventListener("change", () => {
      if (box.checked) app.tree.hidden.delete(Number(level));
      else app.tree.hidden.add(Number(level));
      app.rebuild();
    });
    target.append(element("label", {}, box, name));
  }
}

function listenToSurroundings(app) {
  new ResizeObserver(() => { app.resize(); app.minimap.take(app.scene, app.theme); app.drawNow(); app.list.draw(); }).observe(app.canvas);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { app.theme = readTheme(false); app.rebuild(); });
  // Print on white, with the whole drawing.
  let kept = null;
  window.addEventListener("beforeprint", () => {
    kept = { ...app.camera };
    app.camera.fit(app.scene, false);
    app.drawNow(readTheme(true));
  });
  window.addEventListener("afterprint", () => { Object.assign(app.camera, kept); app.drawNow(); });
}

const app = new App();
app.start();
listenToKeys(app);
listenToPointer(app);
listenToControls(app);
listenToSurroundings(app);
window.wengert = app; // for tests and debugging
